"""PostgreSQL as a kind of target: private instances; one, or several side by side as shards."""

import functools
import re
import shutil
import signal
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

from loadframe.connections.postgres_connection import driver, program
from loadframe.errors import MissingTool, TargetError
from loadframe.host import shared_memory
from loadframe.host.environment import python_package
from loadframe.host.leases import Lease
from loadframe.host.privilege import NamedUser, rights_of
from loadframe.host.processes import Allowance, Resources
from loadframe.kinds.base import shard_name
from loadframe.kinds.database import DatabaseTarget, check_passed_on
from loadframe.kinds.kind import Attachable, KindOfTarget, SettingsFile
from loadframe.kinds.own_counts import LogCounts, Waited
from loadframe.kinds.postgres.attached import CHILDREN, PASSWORD, AttachedPostgres, host_of, word
from loadframe.kinds.postgres.counters import (
    ASKED,
    CATALOGUE,
    HARMLESS_TEXTS,
    OLDEST,
    REFUSALS,
    RESERVED,
    TUNABLES,
    WAITING,
    counted,
    statement,
)
from loadframe.kinds.postgres.session import PORT, Control
from loadframe.kinds.private_server import KILL_TIMEOUT_S, Package, ask, do_all, write_readable, write_secret
from loadframe.model import Endpoint, Requirement, SettingValue, TargetState

PACKAGE = Package(
    "PostgreSQL",
    ("postgres", "initdb"),
    "apt-get install postgresql",
    ("--version",),
    r"\(PostgreSQL\) (\d+\S*)",
    find=lambda name: program(name),
)
DATABASE = "loadframe"
RELOAD_TIMEOUT_S = 30.0
NO_PROCESS = b"could not fork new process"
LOCKED = 'lock file "postmaster.pid" already exists'
REFUSED = b" 53300 FATAL"
"""too_many_connections (errcodes.txt) in a line of the log, whose prefix ends in the SQLSTATE."""


def requirements() -> list[Requirement]:
    return [*PACKAGE.requirements("postgres"), python_package("postgres", "psycopg", "postgres")]


@functools.cache
def described(postgres: str) -> dict[str, str]:
    """What every setting of this server takes, from its own list: BOOLEAN, INTEGER, REAL, ENUM or STRING, which is any
    text."""
    rows = (line.split("\t") for line in ask(postgres, "--describe-config").stdout.splitlines())
    return {row[0].lower(): row[3] for row in rows if len(row) > 3}


class PostgresTarget(DatabaseTarget[Control]):
    """SIGINT disconnects clients and writes a checkpoint, SIGQUIT ends it and its children at once (postgres(1));
    SIGKILL would leave children running, and its shared memory behind."""

    kind = owner = "postgres"
    catalogue = CATALOGUE
    counter_specs = (*ASKED, *REFUSALS)
    package, name = PACKAGE, PACKAGE.name
    stop_signal = signal.SIGINT
    kill_signal = signal.SIGQUIT
    death_signal = signal.SIGQUIT

    @classmethod
    def check_settings(cls, settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
        def known() -> dict[str, str]:
            return described(PACKAGE.required())

        def texts() -> set[str]:
            return {name for name, kind in known().items() if kind == "STRING"} - HARMLESS_TEXTS

        return check_passed_on(CATALOGUE, settings, reserved=RESERVED, known=known, texts=texts)

    def __init__(self, lease: Lease, resources: Resources, *, port: int | None = None, folder: str = "") -> None:
        super().__init__(lease, resources, port=port, folder=folder)
        self.configuration = self.folder / "postgresql.conf"
        self.option_file = self.folder / "service.conf"
        self._like: PostgresTarget | None = None
        self._log_counts = LogCounts(self.log, (REFUSED, NO_PROCESS))
        self._without_process = 0
        self._waited = Waited(WAITING)
        self._statement = ""

    @property
    def socket_folder(self) -> Path:
        """What libpq takes for a host."""
        return self.folder / "run"

    @property
    def socket(self) -> Path:
        return self.socket_folder / f".s.PGSQL.{self.port or PORT}"

    def create(self, like: "PostgresTarget | None" = None) -> None:
        """like: one that was created and has never run; a copy of its data is quicker than initdb."""
        driver()
        self._like = like
        super().create()

    def prepare(self) -> None:
        match = re.search(r"\d+", PACKAGE.version())
        if match is not None and int(match[0]) < OLDEST:
            raise MissingTool(f"{PACKAGE.version()} is older than PostgreSQL {OLDEST}", remedy=PACKAGE.install)
        self.make_folders()
        if self._like is None:
            self._initialise()
            return
        self.control_account = self._like.control_account
        self.data.mkdir(mode=0o700)
        self.give(self.data)
        with rights_of(self.user, self._lease.user):  # both are the server's: a link there leads to nothing of ours
            shutil.copytree(self._like.data, self.data, symlinks=True, dirs_exist_ok=True)

    def check(self, state: TargetState) -> None:
        """Start another postmaster with an hba_file that does not exist: it reads that with its memory taken, before it
        touches the data, and ends (postmaster.c); where a server runs, its lock ends it earlier. `postgres -C` omits
        what only the postmaster sees."""
        wanted = self._wanted(state)
        if not self.started:
            self.take_port()
        absent = self.folder / "absent.conf"
        configuration = self.folder / "check.conf"
        write_readable(configuration, self._text(wanted.settings, hba_file=str(absent)))
        _, said = self.said_to_its_end(self._command(configuration), self._allowed(wanted))
        if str(absent) not in said and LOCKED not in said:
            lines = [line for line in said.splitlines() if "LOG:  starting" not in line]
            raise self.refusal(wanted, "\n".join(lines))

    def reset(self) -> None:
        """PostgreSQL keeps no high-water marks and no cache of handles."""
        self._talk().ask("SELECT 1")

    def destroy(self) -> None:
        """Also removes the shared memory of a killed server, which its data directory identifies."""
        self.kill()
        shared_memory.remove_of_postgres(self.data, KILL_TIMEOUT_S)
        super().destroy()

    def given_up(self) -> bool:
        """Whether it could not start a process for a connection: it goes on, and accepts no client."""
        return self._log_counts.read()[NO_PROCESS] > self._without_process

    def counters(self) -> dict[str, float]:
        row = self._talk().row(self._statement)
        return {**counted(row, self._waited), REFUSALS[0].name: float(self._log_counts.read()[REFUSED])}

    def pids(self) -> tuple[int, ...]:
        postmaster = self.pid
        if postmaster is None or self._control is None:
            return ()
        try:
            return (postmaster, *sorted(child for (child,) in self._control.ask(CHILDREN)))
        except TargetError:  # it is starting or ending: whoever needs its answer will report that
            return (postmaster,)

    def endpoint(self) -> Endpoint:
        """address: the socket's folder. options: user, password, port, database, schema; `socket`, that folder;
        `option_file` holds them as a connection service file; host where a port was asked for."""
        user, port = self.workload_account.user, str(self.port or PORT)
        return self._endpoint(self.socket_folder, database=DATABASE, schema=user, port=port)

    def _initialise(self) -> None:
        secret = self.folder / "password"
        write_secret(secret, self.control_account.password)
        self.give(secret)
        self.data.mkdir(mode=0o700)
        self.give(self.data)
        # --no-sync: data that a power loss may take are temporary anyhow.
        plain = ("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
        own = (f"--pgdata={self.data}", f"--username={self.control_account.user}", f"--pwfile={secret}")
        command = (self.required("initdb"), *own, *plain)
        try:
            self.run_once(command, "initdb.log")
        finally:
            secret.unlink()

    def _command(self, configuration: Path) -> tuple[str, ...]:
        return (self.required(), "-D", str(self.data), "-c", f"config_file={configuration}")

    def _configure(self, settings: Mapping[str, SettingValue]) -> None:
        aside = self.configuration.with_suffix(".new")
        write_readable(aside, self._text(settings))
        aside.replace(self.configuration)

    def _text(self, settings: Mapping[str, SettingValue], **instead: str) -> str:
        own: dict[str, str] = {
            "listen_addresses": "" if self.port is None else "127.0.0.1",
            "port": str(self.port or PORT),
            "unix_socket_directories": str(self.socket_folder),
            "hba_file": str(self.data / "pg_hba.conf"),
            "ident_file": str(self.data / "pg_ident.conf"),
            "log_line_prefix": "%m [%p] %e ",
            "lc_messages": "C",
        }
        asked = {name: word(CATALOGUE.get(name), value) for name, value in settings.items()}
        quoted = {name: text.replace("\\", "\\\\").replace("'", "''") for name, text in (own | asked | instead).items()}
        return "".join(f"{name} = '{text}'\n" for name, text in quoted.items())

    def _begin(self, wanted: TargetState, allowance: Allowance) -> None:
        self.take_port()
        self._configure(wanted.settings)
        self._without_process = self._log_counts.read()[NO_PROCESS]
        self.launch(self._command(self.configuration), allowance, lambda: self._reach().ping())

    def _change(self, wanted: TargetState, changed: Sequence[str]) -> None:
        self._configure(wanted.settings)
        self._state = wanted
        self._talk().reload("PostgreSQL", RELOAD_TIMEOUT_S, self.log_tail)

    def _reach(self) -> Control:
        if self._control is None:
            account = self.control_account
            where: dict[str, str | int] = {
                "host": str(self.socket_folder),
                "port": self.port or PORT,
                "user": account.user,
                "password": account.password,
                "dbname": "postgres",
            }
            if isinstance(self.user, NamedUser):  # libpq follows links: it checks who is at the other end
                where["requirepeer"] = str(self.user)
            self._control = Control(where, self.died)
        return self._control

    def _entered(self, state: TargetState) -> None:
        self._state = state
        control, account = self._talk(), self.workload_account
        ((number,),) = control.ask("SELECT current_setting('server_version_num')::int")
        self._statement = statement(number)
        if control.ask("SELECT 1 FROM pg_roles WHERE rolname = %s", [account.user]) == []:
            # Neither statement takes parameters; the password is hexadecimal. It is not logged: only errors are.
            control.ask(f"CREATE ROLE {account.user} LOGIN PASSWORD '{account.password}'")
            control.ask(f"GRANT pg_monitor TO {account.user}")
            control.ask(f"CREATE DATABASE {DATABASE} OWNER {account.user}")
        self.option_file.unlink(missing_ok=True)
        write_secret(
            self.option_file,
            f"[loadframe]\nhost={self.socket_folder}\nport={self.port or PORT}\ndbname={DATABASE}\n"
            f"user={account.user}\npassword={account.password}\n",
        )


class PostgresShards:
    """Counters are sums over the shards, but of those in OF_THE_MOST the largest. The endpoint is the first one's;
    `shards` has all of them, in order."""

    kind = "postgres"
    embedded = False
    counter_specs = PostgresTarget.counter_specs

    def __init__(self, *, lease: Lease, resources: Sequence[Resources]) -> None:
        self._shards = {
            shard_name(number): PostgresTarget(lease=lease, resources=shard_resources, folder=shard_name(number))
            for number, shard_resources in enumerate(resources, 1)
        }

    def create(self) -> None:
        """The first one's empty data are copied to the others: initdb takes a second, a copy a tenth."""
        first, *others = self._shards.values()
        first.create()
        for shard in others:
            shard.create(first)

    def check(self, state: TargetState) -> None:
        self._first.check(state)

    def start(self, state: TargetState) -> None:
        for shard in self._shards.values():
            shard.start(state)

    def apply(self, state: TargetState) -> None:
        for shard in self._shards.values():
            shard.apply(state)

    def reset(self) -> None:
        for shard in self._shards.values():
            shard.reset()

    def stop(self) -> None:
        do_all(shard.stop for shard in self._shards.values())

    def destroy(self) -> None:
        for shard in self._shards.values():
            shard.destroy()

    def effective(self) -> dict[str, SettingValue]:
        return self._first.effective()

    def counters(self) -> dict[str, float]:
        of_shards = [shard.counters() for shard in self._shards.values()]
        return {
            name: (max if name in OF_THE_MOST else sum)(counters[name] for counters in of_shards)
            for name in of_shards[0]
        }

    def pids(self) -> tuple[int, ...]:
        return tuple(chain.from_iterable(self.processes().values()))

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        return {name: shard.pids() for name, shard in self._shards.items()}

    def endpoint(self) -> Endpoint:
        first, *others = (shard.endpoint() for shard in self._shards.values())
        return Endpoint(first.kind, first.address, first.options, shards=(first, *others))

    def healthy(self) -> bool:
        return all(shard.healthy() for shard in self._shards.values())

    def version(self) -> str:
        return self._first.version()

    def log_tail(self, lines: int = 20) -> str:
        tails = {name: shard.log_tail(lines) for name, shard in self._shards.items()}
        return "\n".join(f"{name}:\n{tail}" for name, tail in tails.items() if tail)

    def describe(self) -> Mapping[str, str]:
        return {**self._first.describe(), "shards": str(len(self._shards))}

    @property
    def _first(self) -> PostgresTarget:
        return next(iter(self._shards.values()))


OF_THE_MOST = frozenset(
    {"max_connections", "connections_allowed", "connections", "autovacuum_workers", "autovacuum_max_workers",
     "worker_processes", "max_worker_processes", "locks", "lock_slots", "wal_since_checkpoint",
     "checkpoint_distance", "transaction_age", "transaction_age_limit"}
)  # fmt: skip
FILE = SettingsFile(
    "tuned.conf", "{name} = {value}", quotes="'", size="B", statement="ALTER SYSTEM SET {name} = {value};"
)
"""Bare numbers are pages or megabytes: bytes get a B (https://www.postgresql.org/docs/current/config-setting.html)."""
KINDS = (
    KindOfTarget(
        PostgresTarget.kind,
        PostgresTarget,
        CATALOGUE,
        PostgresTarget.check_settings,
        requirements,
        make_shards=lambda lease, resources: PostgresShards(lease=lease, resources=list(resources.values())),
        tunables=TUNABLES,
        file=FILE,
        attachable=Attachable(AttachedPostgres, host_of, head="", password=PASSWORD),
    ),
)
