"""PostgreSQL's own benchmark. Its timer counts whole seconds and includes connecting: a step counts from when all
clients are connected, and is ended by the signal of that timer. A line of its transaction log (pgbench documentation,
"Per-Transaction Logging") is `client number latency_us script epoch_s epoch_us`, then with --rate the lag of the
schedule (us), then with --max-tries > 1 the number of retries. A skipped or failed transaction has a word in place of
its latency. Each thread writes a file of its own, and its transactions begin in the order of its schedule."""

import math
import os
import re
import signal
import subprocess
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from loadframe.connections.postgres_connection import program as postgres_program
from loadframe.errors import StudyError
from loadframe.formats.said import words
from loadframe.host.environment import python_package
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance, spawn
from loadframe.model import Endpoint, Requirement, SettingValue
from loadframe.workloads import databases, postgres, request_log, step_files
from loadframe.workloads.base import demand
from loadframe.workloads.common import AtRate, Common, registration
from loadframe.workloads.driving import ProcessDriver, run_to_end
from loadframe.workloads.options import choice, content_of, text, whole
from loadframe.workloads.request_log import RECORD, Requests

MOST_CLIENTS = 4096
READY_WITHIN_S = 10.0
CONNECTING_S = 0.1
"""Time for each client to connect, one after the other, in addition to READY_WITHIN_S for all."""
POLL_S = 0.005
BEGIN_S = 0.1
END_S = 0.5
"""Time for a client to end its current transaction before pgbench is killed."""
MOST_SCRIPT_BYTES = 1 << 20
RUNS_A_PROGRAM = re.compile(rb"^[ \t]*\\(set)?shell\b[^\n]*", re.MULTILINE | re.IGNORECASE)
SCRIPT, PROOF = "script.sql", "proof.sql"
"""Files in a step's folder: the user's script; the query that proves where pgbench finds its tables."""
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
    program = postgres_program("pgbench")
    return (
        Requirement(kind, "pgbench", program, "sudo apt-get install postgresql"),
        python_package(kind, "psycopg", "postgres"),
    )


class Pgbench(databases.InOwnSchema, Common[PgbenchOptions]):
    kind = "pgbench"
    target_kinds = frozenset({"postgres"})
    axes = frozenset({"clients"})
    axis_unit = "clients"
    operations: tuple[str, ...] = ("transaction",)
    model = PgbenchOptions
    levels = (1, MOST_CLIENTS)

    def __init__(self, options: Mapping[str, SettingValue], allowance: Allowance | None = None) -> None:
        super().__init__(options, allowance)
        self._script: bytes | None = None
        if not (name := self.options.file):
            return
        if "script" in options:
            raise StudyError(
                f"workload.options.file = {name!r} and script = {self.options.script!r}: one of them is enough.",
                remedy="Leave one of file and script out.",
            )
        self._script = content_of(name, MOST_SCRIPT_BYTES, "The script (workload.options.file)")
        if match := RUNS_A_PROGRAM.search(self._script):
            raise StudyError(
                f"workload.options.file = {name!r} has the line {words(match[0].decode(errors='replace'))}, which "
                "runs a program",
                remedy="Omit the line: a study runs no programs but those that it names.",
            )

    def trials(self) -> Sequence[Sequence[str]]:
        return (("test", "-x", postgres_program("pgbench") or "pgbench"),)

    def install(self, endpoint: Endpoint) -> None:
        """pgbench's own --initialize would drop tables of these names wherever it finds them."""
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
            postgres.execute(connection, [statement.format(databases.name_of(endpoint)) for statement in TIDY])

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
        if endpoint.attached:
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
        statement = f"SELECT 1 / ({databases.proof(endpoint)})"
        step_files.write(folder / PROOF, statement.encode(), self.allowance.user)
        command = [*_command(endpoint), "--no-vacuum", "--transactions=1", f"--file={folder / PROOF}"]
        if (said := run_to_end(command, _environment(endpoint), self.allowance)) is not None:
            raise databases.elsewhere(endpoint, "pgbench", said)

    def _chosen(self, folder: Path) -> str:
        """The option that names the script; a user's script is copied to where the driver's user may read it."""
        if self._script is None:
            return f"--builtin={self.options.script}"
        step_files.write(folder / SCRIPT, self._script, self.allowance.user)
        return f"--file={folder / SCRIPT}"


class PgbenchAtRate(AtRate, Pgbench):
    axis_unit = "transactions/s"


@dataclass(eq=False, kw_only=True)
class PgbenchDriver(ProcessDriver):
    """end_s: when it is asked to end. rate: transactions/s in an open loop, else None; others as in `read`."""

    monotonic_s: float
    rate: int | None
    latency_limit_ms: int
    _asked: bool = field(default=False, init=False)

    def running(self) -> bool:
        """Also asks the driver to end once its time is up."""
        if self.end_s is not None and time.monotonic() > self.end_s:
            self._ask()
        return super().running()

    def _ask(self) -> None:
        """As pgbench's own timer does: transactions under way complete, and the log has all of them."""
        if not self._asked and self.pids():
            self._asked = True
            os.kill(self.processes[0].pid, signal.SIGALRM)  # not waited for, so the pid is its own

    def waiting(self) -> int:
        """Requests that wait: as many as arrive in the time that the last one in the log waited; the log is a little
        behind."""
        return 0 if self.rate is None else round(self.rate * max(lag_now_s(log) for log in self.logs))

    def offered(self, start_s: float, end_s: float) -> int | None:
        """What was scheduled is known only after pgbench has ended."""
        if self.rate is None:
            return None
        rate = self.rate / len(self.logs)
        known = {"monotonic_s": self.monotonic_s, "latency_limit_ms": self.latency_limit_ms}
        return sum(offered(log, start_s, end_s, rate, **known) for log in self.logs)

    def kill(self) -> None:
        """It gets END_S to write its log."""
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
"""The tables as pgbench's --init-steps=tGvp makes them (pgbench.c), with the schema in each name."""
MANY_ACCOUNTS = 20_000
"""From this scale on account numbers have 64 bits."""
TIDY = ("TRUNCATE {}.pgbench_history", "VACUUM {}.pgbench_branches", "VACUUM {}.pgbench_tellers")


def _await_connected(process: subprocess.Popen[bytes], clients: int, most_s: float) -> None:
    """Until it has a socket for every client; the driver reports one that has ended."""
    until, sockets = time.monotonic() + most_s, 0
    while process.poll() is None and sockets < clients and time.monotonic() < until:
        time.sleep(POLL_S)
        with suppress(OSError):
            opened = Path(f"/proc/{process.pid}/fd").iterdir()
            sockets = sum(str(descriptor.readlink()).startswith("socket:") for descriptor in opened)


def _environment(endpoint: Endpoint) -> dict[str, str]:
    """With the password, if any: Linux hides it from other users (proc(5)), and no file has it."""
    password = postgres.parameters(endpoint)["password"]
    return postgres.environment(endpoint) | ({"PGPASSWORD": password} if password else {})


def _command(endpoint: Endpoint) -> list[str]:
    given = postgres.parameters(endpoint)
    words = [f"--{name}={given[key]}" for name, key in (("host", "host"), ("port", "port"), ("username", "user"))]
    return [postgres_program("pgbench") or "pgbench", *words, given["dbname"]]


KIND = registration(Pgbench, requirements, other_axes={"rate": PgbenchAtRate})


SKIPPED = b"skipped"
FAILED, LATE = 1, 2
"""Outcomes: it failed, or was skipped because it was too late to begin."""
LAST_LINES_BYTES = 400


def read(paths: Sequence[Path], *, monotonic_s: float, latency_limit_ms: float) -> Requests:
    """The transactions of all threads. monotonic_s: CLOCK_MONOTONIC minus the time of day, at the start. pgbench logs
    no latency of a failed transaction: it is the time since the client's previous one ended. A skipped one waited at
    least latency_limit_ms."""
    records = bytearray()
    for path in paths:
        ended_s: dict[bytes, float] = {}
        for client, end_s, known_ms, outcome, _ in _transactions(path, monotonic_s, latency_limit_ms):
            latency_ms = 1000 * (end_s - ended_s.get(client, end_s)) if known_ms is None else known_ms
            ended_s[client] = end_s
            records += RECORD.pack(end_s, max(latency_ms, 1e-3), 0.0, 0, outcome)
    return request_log.from_bytes(bytes(records))


def offered(
    path: Path, start_s: float, end_s: float, rate: float, *, monotonic_s: float, latency_limit_ms: float
) -> int:
    """How many transactions of one thread should have begun after start_s and not after end_s (CLOCK_MONOTONIC), at
    `rate` per second, from its log with --rate. Those that no client had time for are in no log: if the last one waited
    while others would have arrived, they are counted from the rate."""
    transactions = list(_transactions(path, monotonic_s, latency_limit_ms))
    begun_s = sorted(end - (latency_ms or 0.0) / 1000 for _, end, latency_ms, _, _ in transactions)
    last_lag_s = next((lag_s for *_, lag_s in reversed(transactions) if lag_s is not None), 0.0)
    seen_s = max(begun_s[-1] if begun_s else start_s, start_s)
    unseen = max(end_s - seen_s, 0.0) * rate if last_lag_s * rate >= 1 else 0.0
    return bisect_right(begun_s, end_s) - bisect_right(begun_s, start_s) + int(unseen)


def _transactions(
    path: Path, monotonic_s: float, latency_limit_ms: float
) -> Iterator[tuple[bytes, float, float | None, int, float | None]]:
    """Client, end (CLOCK_MONOTONIC, s), latency (ms), outcome, lag (s) of each; None: unknown. A torn last line is left
    out."""
    text = step_files.read(path)
    for line in text[: text.rfind(b"\n") + 1].splitlines():
        client, _, latency_us, _, at_s, at_us, *more = line.split()
        end_s = int(at_s) + int(at_us) / 1e6 + monotonic_s
        if latency_us.isdigit():
            yield client, end_s, int(latency_us) / 1000, 0, int(more[0]) / 1e6 if more else None
        elif latency_us == SKIPPED:
            yield client, end_s, latency_limit_ms, LATE, latency_limit_ms / 1000
        else:
            yield client, end_s, None, FAILED, None


def lag_now_s(path: Path) -> float:
    """How long the last transaction in a log that is being written waited to begin (s); 0 without one."""
    if (log := step_files.opened(path)) is None:
        return 0.0
    with log:
        log.seek(max(log.seek(0, os.SEEK_END) - LAST_LINES_BYTES, 0))
        lines = log.read().split(b"\n")[1:-1]  # the first and the last one may be torn
    lags = [int(said[6]) for line in lines if len(said := line.split()) > 6 and said[2].isdigit()]
    return lags[-1] / 1e6 if lags else 0.0
