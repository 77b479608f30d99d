"""pgbench: PostgreSQL's own benchmark (targets: postgres; axes: clients, rate = transactions/s, by pgbench's --rate).

pgbench's own timer counts whole seconds, and connecting too. A step counts from when all clients are connected, and is
ended by the signal with which that timer does it.
"""

import math
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from loadframe.connections.postgres_programs import program as postgres_program
from loadframe.errors import StudyError
from loadframe.formats.said import words
from loadframe.host.environment import python_package
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance, spawn
from loadframe.model import Endpoint, Requirement, SettingValue
from loadframe.workloads import databases, postgres, step_files
from loadframe.workloads.common import AtRate, Common
from loadframe.workloads.driving import ProcessDriver, run_to_end
from loadframe.workloads.kind import KindOfWorkload, demand
from loadframe.workloads.options import choice, content_of, rules, text, whole
from loadframe.workloads.pgbench_log import lag_now_s, read, schedules
from loadframe.workloads.request_log import Requests

MOST_CLIENTS = 4096
READY_WITHIN_S = 10.0
CONNECTING_S = 0.1
"""How long a client may need to connect, one after the other, beside READY_WITHIN_S for all."""
POLL_S = 0.005
BEGIN_S = 0.1
"""Between the last connection and the first transaction."""
END_S = 0.5
"""What a client may need to end the transaction that it is in the midst of, before pgbench is killed."""
MOST_SCRIPT_BYTES = 1 << 20
RUNS_A_PROGRAM = re.compile(rb"^[ \t]*\\(set)?shell\b[^\n]*", re.MULTILINE | re.IGNORECASE)
"""pgbench's meta commands \\shell and \\setshell."""
SCRIPT, PROOF = "script.sql", "proof.sql"
"""In a step's folder: the user's own; where pgbench finds its tables."""
SCRIPTS = ("tpcb-like", "simple-update", "select-only")


@dataclass(frozen=True)
class PgbenchOptions:
    script: str = choice("tpcb-like", SCRIPTS, "which of pgbench's own scripts")
    file: str = text("", "path of a script of yours, in place of one of pgbench's own")
    scale: int = whole(10, 1, 100_000, "number of branches; 10 tellers and 100,000 accounts for each")
    fillfactor: int = whole(100, 10, 100, "how full the tables' pages are made, in per cent")
    protocol: str = choice("simple", ("simple", "extended", "prepared"), "how statements are sent")
    jobs: int = whole(1, 1, 256, "threads of pgbench, which share the clients")
    max_tries: int = whole(1, 1, 1000, "how often a transaction is tried that a deadlock or conflict has ended")
    connections: int = whole(32, 1, MOST_CLIENTS, "axis rate: connections that serve the offered load")
    latency_limit_ms: int = whole(
        0, 0, 3_600_000, "axis rate: a transaction that would begin later than this is skipped, an error; 0: never"
    )


def requirements(kind: str) -> tuple[Requirement, ...]:
    found = postgres_program("pgbench")
    return (
        Requirement(kind, "pgbench", found, "sudo apt-get install postgresql"),
        python_package(kind, "psycopg", "postgres"),
    )


class Pgbench(databases.InOwnSchema, Common[PgbenchOptions]):
    kind = "pgbench"
    target_kinds = frozenset({"postgres"})
    axes = frozenset({"clients"})
    axis_unit = "clients"
    operations: tuple[str, ...] = ("transaction",)
    judged = operations
    model = PgbenchOptions
    levels = (1, MOST_CLIENTS)

    def __init__(self, options: Mapping[str, SettingValue], allowance: Allowance | None = None) -> None:
        super().__init__(options, allowance)
        self._script = _script(self.options, options)

    def trials(self) -> Sequence[Sequence[str]]:
        return (("test", "-x", postgres_program("pgbench") or "pgbench"),)

    def install(self, endpoint: Endpoint) -> None:
        """pgbench's own --initialize would drop tables of their names, wherever it finds them."""
        demand(requirements(self.kind))
        scale = self.options.scale
        given = {
            "schema": databases.name_of(endpoint),
            "scale": scale,
            "fillfactor": self.options.fillfactor,
            "aid": "bigint" if scale >= MANY_ACCOUNTS else "int",
        }
        with postgres.connected(endpoint, f"pgbench's tables at scale {scale}") as connection:
            databases.make_schema_over(connection, endpoint)
            postgres.execute(connection, [statement.format(**given) for statement in TABLES])

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        """Empty the history, and vacuum the small tables as pgbench does before a run."""
        with postgres.connected(endpoint, self.words_of(self.check_level(level))) as connection:
            databases.await_gone(connection, endpoint)
            postgres.execute(connection, [each.format(databases.name_of(endpoint)) for each in TIDY])

    def start(self, endpoint: Endpoint, level: float, folder: Path, duration_s: float) -> "PgbenchDriver":
        level = self.check_level(level)
        demand(requirements(self.kind))
        clients, rate = self.clients(level), self.rate(level)
        folder, options = folder.resolve(), self.options
        jobs, most_s = min(options.jobs, clients), READY_WITHIN_S + clients * CONNECTING_S
        command = [*_command(endpoint), "--no-vacuum", f"--client={clients}", f"--jobs={jobs}"]
        command += [f"--time={math.ceil(most_s + BEGIN_S + duration_s)}"]
        command += [f"--protocol={options.protocol}", f"--max-tries={options.max_tries}", self._chosen(folder)]
        command += ["--log", f"--log-prefix={folder / 'transactions'}"]
        if rate is not None:
            command += [f"--rate={rate}"]
            command += [f"--latency-limit={options.latency_limit_ms}"] if options.latency_limit_ms else []
        self._prove(endpoint, folder)
        printed = folder / "pgbench.txt"
        monotonic_s = time.monotonic() - time.time()
        with step_files.create(printed, US) as output:
            process = spawn(
                command, self.allowance, stdout=output, stderr=output, cwd=folder, env=_environment(endpoint)
            )
        _await_connected(process, clients, most_s)
        first = folder / f"transactions.{process.pid}"
        return PgbenchDriver(
            self.kind,
            [process],
            logs=[first, *(first.with_name(f"{first.name}.{thread}") for thread in range(1, jobs))],
            printed=[printed],
            end_s=time.monotonic() + BEGIN_S + duration_s,
            monotonic_s=monotonic_s,
            rate=rate,
            latency_limit_ms=options.latency_limit_ms,
        )

    def _prove(self, endpoint: Endpoint, folder: Path) -> None:
        if not endpoint.attached:
            return
        statement = f"SELECT 1 / ({databases.proof(endpoint)})"
        step_files.write(folder / PROOF, statement.encode(), self.allowance.user)
        command = [*_command(endpoint), "--no-vacuum", "--transactions=1", f"--file={folder / PROOF}"]
        said = run_to_end(command, _environment(endpoint), self.allowance)
        if said is not None:
            raise databases.elsewhere(endpoint, "pgbench", said)

    def _chosen(self, folder: Path) -> str:
        """What tells pgbench which script to run; one of the user's is where who runs pgbench may read it."""
        if self._script is None:
            return f"--builtin={self.options.script}"
        step_files.write(folder / SCRIPT, self._script, self.allowance.user)
        return f"--file={folder / SCRIPT}"


class PgbenchAtRate(AtRate, Pgbench):
    """The same transactions at a given rate: see AtRate."""

    axis_unit = "transactions/s"


@dataclass(eq=False, kw_only=True)
class PgbenchDriver(ProcessDriver):
    """pgbench while it runs. end_s: when it is asked to end. rate: transactions per second in an open loop, None in a
    closed one; others as in pgbench_log.read."""

    monotonic_s: float
    rate: int | None
    latency_limit_ms: int
    _asked: bool = field(default=False, init=False)

    def running(self) -> bool:
        """Whether load is still made; where its time is up, it is asked to end."""
        if self.end_s is not None and time.monotonic() > self.end_s:
            self._ask()
        return super().running()

    def _ask(self) -> None:
        """As its own timer does: what is under way is done, and the log has all of it."""
        if not self._asked and self.pids():
            self._asked = True
            self.processes[0].send_signal(signal.SIGALRM)

    def waiting(self) -> int:
        """As many as arrive in the time that the last one in the log waited; the log is a little behind."""
        if self.rate is None:
            return 0
        return round(self.rate * max(lag_now_s(log) for log in self.logs))

    def offered(self, start_s: float, end_s: float) -> int | None:
        """See ProcessDriver. What was scheduled is known once pgbench has ended."""
        if self.rate is None:
            return None
        each = self.rate / len(self.logs)
        threads = schedules(self.logs, monotonic_s=self.monotonic_s, latency_limit_ms=self.latency_limit_ms)
        return sum(thread.offered(start_s, end_s, each) for thread in threads)

    def kill(self) -> None:
        """End it at once, its log written as far as that can be had soon."""
        if self.pids():
            self._killed = True
            self._ask()
            with suppress(subprocess.TimeoutExpired):
                self.processes[0].wait(END_S)
        super().kill()

    def _read(self) -> Requests:
        return read(self.logs, monotonic_s=self.monotonic_s, latency_limit_ms=self.latency_limit_ms)


TABLES = (
    "CREATE TABLE {schema}.pgbench_history (tid int, bid int, aid {aid}, delta int, mtime timestamp, filler char(22))",
    "CREATE TABLE {schema}.pgbench_tellers (tid int NOT NULL, bid int, tbalance int, filler char(84))"
    " WITH (fillfactor = {fillfactor})",
    "CREATE TABLE {schema}.pgbench_accounts (aid {aid} NOT NULL, bid int, abalance int, filler char(84))"
    " WITH (fillfactor = {fillfactor})",
    "CREATE TABLE {schema}.pgbench_branches (bid int NOT NULL, bbalance int, filler char(88))"
    " WITH (fillfactor = {fillfactor})",
    "INSERT INTO {schema}.pgbench_branches (bid, bbalance) SELECT bid, 0 FROM generate_series(1, {scale}) bid",
    "INSERT INTO {schema}.pgbench_tellers (tid, bid, tbalance)"
    " SELECT tid, (tid - 1) / 10 + 1, 0 FROM generate_series(1, {scale} * 10) tid",
    "INSERT INTO {schema}.pgbench_accounts (aid, bid, abalance, filler)"
    " SELECT aid, (aid - 1) / 100000 + 1, 0, '' FROM generate_series(1, {scale}::bigint * 100000) aid",
    *(f"VACUUM ANALYZE {{schema}}.pgbench_{name}" for name in ("branches", "tellers", "accounts", "history")),
    *(
        f"ALTER TABLE {{schema}}.pgbench_{name} ADD PRIMARY KEY ({key})"
        for name, key in (("branches", "bid"), ("tellers", "tid"), ("accounts", "aid"))
    ),
)
"""As pgbench's --init-steps=tGvp makes them (pgbench.c), each by its whole name."""
MANY_ACCOUNTS = 20_000
"""From this scale on their numbers have 64 bits."""
TIDY = ("TRUNCATE {}.pgbench_history", "VACUUM {}.pgbench_branches", "VACUUM {}.pgbench_tellers")


def _script(options: PgbenchOptions, given: Mapping[str, SettingValue]) -> bytes | None:
    """The user's script, None for one of pgbench's own. StudyError where there are two, or the file cannot be read."""
    if not options.file:
        return None
    if "script" in given:
        raise StudyError(
            f"workload.options.file = {options.file!r} and script = {options.script!r}: one of them is enough.",
            remedy="Leave one of file and script out.",
        )
    script = content_of(options.file, MOST_SCRIPT_BYTES, "The script (workload.options.file)")
    found = RUNS_A_PROGRAM.search(script)
    if found is not None:
        raise StudyError(
            f"workload.options.file = {options.file!r} has the line {words(found[0].decode(errors='replace'))}, which "
            "runs a program",
            remedy="Omit the line: a study runs no programs but those that it names.",
        )
    return script


def _await_connected(process: subprocess.Popen[bytes], clients: int, most_s: float) -> None:
    """Until it has a socket for every client; one that has ended is the driver's to tell."""
    until = time.monotonic() + most_s
    while process.poll() is None and _sockets(process.pid) < clients and time.monotonic() < until:
        time.sleep(POLL_S)


def _sockets(pid: int) -> int:
    with suppress(OSError):
        return sum(str(each.readlink()).startswith("socket:") for each in Path(f"/proc/{pid}/fd").iterdir())
    return 0


def _environment(endpoint: Endpoint) -> dict[str, str]:
    """With the password, if there is one: Linux hides the environment from other users (proc(5)), no file has it."""
    password = postgres.parameters(endpoint)["password"]
    return {**postgres.environment(endpoint), **({"PGPASSWORD": password} if password else {})}


def _command(endpoint: Endpoint) -> list[str]:
    """pgbench on this database; no password."""
    given = postgres.parameters(endpoint)
    words = [f"--{name}={given[key]}" for name, key in (("host", "host"), ("port", "port"), ("username", "user"))]
    return [postgres_program("pgbench") or "pgbench", *words, given["dbname"]]


KIND = KindOfWorkload(Pgbench.kind, Pgbench, rules(PgbenchOptions), requirements, other_axes={"rate": PgbenchAtRate})
