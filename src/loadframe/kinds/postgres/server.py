"""The postmaster: find the programs, make the data directory, write its configuration, start."""

import functools
import re
import shutil
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

from loadframe.connections.postgres_connection import program
from loadframe.errors import MissingTool
from loadframe.host import shared_memory
from loadframe.host.environment import python_package
from loadframe.host.leases import Lease
from loadframe.host.privilege import Privilege, rights_of
from loadframe.host.processes import Allowance
from loadframe.kinds.catalogue import SettingSpec, on_or_off
from loadframe.kinds.own_counts import LogCounts
from loadframe.kinds.package import Package, ask
from loadframe.kinds.postgres.settings import CATALOGUE
from loadframe.kinds.private_server import KILL_TIMEOUT_S, Account, PrivateServer, write_readable, write_secret
from loadframe.model import Requirement, SettingValue, TargetState

PACKAGE = Package(
    "PostgreSQL",
    ("postgres", "initdb"),
    "apt-get install postgresql",
    ("--version",),
    r"\(PostgreSQL\) (\d+\S*)",
    find=lambda name: program(name),
)
DATABASE = "loadframe"
PORT = 5432
"""A server that listens on no port has it only in the socket's name."""
NO_PROCESS = b"could not fork new process"
"""Where a limit of processes or memory leaves none for a connection."""
OLDEST = 14
"""The first version with pg_stat_wal and pg_stat_database.sessions."""
LOCKED = 'lock file "postmaster.pid" already exists'
REFUSED = b" 53300 FATAL"
"""too_many_connections (errcodes.txt) in a line of the log, whose prefix ends in the SQLSTATE."""


def requirements() -> list[Requirement]:
    return [*PACKAGE.requirements("postgres"), python_package("postgres", "psycopg", "postgres")]


@functools.cache
def described(postgres: str) -> dict[str, str]:
    """Every setting that this server knows, from its own list, and what it takes: BOOLEAN, INTEGER, REAL, ENUM or
    STRING, which is any text."""
    rows = (line.split("\t") for line in ask(postgres, "--describe-config").stdout.splitlines())
    return {row[0].lower(): row[3] for row in rows if len(row) > 3}


class Server(PrivateServer):
    """SIGINT disconnects clients and writes a checkpoint, SIGQUIT ends it and its children at once (postgres(1));
    SIGKILL would leave children running, and its shared memory behind."""

    package, name = PACKAGE, PACKAGE.name
    stop_signal = signal.SIGINT
    kill_signal = signal.SIGQUIT
    death_signal = signal.SIGQUIT

    def __init__(self, lease: Lease, user: Privilege, port: int | None, folder: str = "postgres") -> None:
        """folder: its name in the lease's, so that there may be several."""
        super().__init__(lease, folder, user, port)
        self.data = self.folder / "data"
        self.configuration = self.folder / "postgresql.conf"
        self.option_file = self.folder / "service.conf"
        self.control_account = Account("loadframe_control")
        self.workload_account = Account("loadframe")
        self.like: Server | None = None
        """A created one that has never run: its data are copied, which is quicker than initdb."""
        self._log_counts = LogCounts(self.log, (REFUSED, NO_PROCESS))
        self._without_process = 0
        """Connections without a process before its last start."""

    @property
    def socket_folder(self) -> Path:
        """What libpq takes for a host."""
        return self.folder / "run"

    @property
    def socket(self) -> Path:
        return self.socket_folder / f".s.PGSQL.{self.port or PORT}"

    def prepare(self) -> None:
        _check_version()
        self.make_folders()
        if self.like is None:
            self._initialise()
        else:
            self._copy(self.like)

    def _initialise(self) -> None:
        secret = self.folder / "password"
        write_secret(secret, self.control_account.password)
        self.give(secret)
        self.data.mkdir(mode=0o700)
        self.give(self.data)
        command = [
            self.required("initdb"),
            f"--pgdata={self.data}",
            f"--username={self.control_account.user}",
            f"--pwfile={secret}",
        ]
        # --no-sync: data that a power loss may take are temporary anyhow.
        command += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"]
        try:
            self.run_once(command, "initdb.log")
        finally:
            secret.unlink()

    def _copy(self, like: "Server") -> None:
        self.control_account = like.control_account
        self.data.mkdir(mode=0o700)
        self.give(self.data)
        with rights_of(self.user, self._lease.user):  # both are the server's: a link there leads to nothing of ours
            shutil.copytree(like.data, self.data, symlinks=True, dirs_exist_ok=True)

    def start(self, settings: Mapping[str, SettingValue], allowance: Allowance, answers: Callable[[], bool]) -> None:
        """Return once `answers` is true. TargetError where it does not start."""
        self.take_port()
        self.configure(settings)
        command = (self.required(), "-D", str(self.data), "-c", f"config_file={self.configuration}")
        self._without_process = self._log_counts.read()[NO_PROCESS]
        self.launch(command, allowance, answers)

    def check(self, state: TargetState, allowance: Allowance) -> None:
        """TargetError, in the server's words, where it would not start in this state. PostgreSQL's own checks
        (postgres -C, --check) leave out what only the postmaster looks at, so one is started with an hba_file that
        does not exist: it reads that once it has its memory, before it touches the data, and ends (postmaster.c).
        Where one runs on the same data it ends earlier, at their lock."""
        if not self.started:
            self.take_port()
        nobody = self.folder / "nobody.conf"
        configuration = self.folder / "check.conf"
        write_readable(configuration, self._text(state.settings, hba_file=str(nobody)))
        command = (self.required(), "-D", str(self.data), "-c", f"config_file={configuration}")
        _, said = self.said_to_its_end(command, allowance)
        if str(nobody) not in said and LOCKED not in said:
            lines = [line for line in said.splitlines() if "LOG:  starting" not in line]
            raise self.refusal(state, "\n".join(lines))

    def destroy(self) -> None:
        """Also removes the shared memory of a killed one, which its data directory identifies."""
        self.kill()
        shared_memory.remove_of_postgres(self.data, KILL_TIMEOUT_S)
        super().destroy()

    def given_up(self) -> bool:
        """Whether it could not start a process for a connection: it goes on, and accepts no client."""
        return self._log_counts.read()[NO_PROCESS] > self._without_process

    def configure(self, settings: Mapping[str, SettingValue]) -> None:
        """Write the configuration that the next start or reload reads; what is not named has the server's default."""
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

    def write_option_file(self, host: str, port: int) -> None:
        """The account of load drivers as a connection service file (libpq), for those that read one."""
        account = self.workload_account
        self.option_file.unlink(missing_ok=True)
        write_secret(
            self.option_file,
            f"[loadframe]\nhost={host}\nport={port}\ndbname={DATABASE}\n"
            f"user={account.user}\npassword={account.password}\n",
        )

    def refused(self) -> int:
        """Connections that were refused because all were taken, from the log: the server has no counter of them."""
        return self._log_counts.read()[REFUSED]


def word(spec: SettingSpec | None, value: SettingValue) -> str:
    """As the configuration file takes it."""
    unit = {"bytes": "B", "duration": spec.unit}.get(spec.kind, "") if spec is not None and value != -1 else ""
    return f"{on_or_off(value)}{unit}"


def _check_version() -> None:
    match = re.search(r"\d+", PACKAGE.version())
    if match is not None and int(match[0]) < OLDEST:
        raise MissingTool(f"{PACKAGE.version()} is older than PostgreSQL {OLDEST}", remedy=PACKAGE.install)
