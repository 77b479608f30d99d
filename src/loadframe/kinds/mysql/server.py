"""Private servers of MariaDB and MySQL: own data directory and socket, unprivileged user, nothing read from /etc."""

import functools
import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

from loadframe.host.leases import Lease
from loadframe.host.privilege import Privilege
from loadframe.host.processes import Allowance
from loadframe.kinds.database import SCHEMA
from loadframe.kinds.package import Package, ask, installed
from loadframe.kinds.private_server import Account, PrivateServer, write_secret
from loadframe.model import TargetState

MARIADB = Package(
    "MariaDB",
    ("mariadbd", "mariadb-install-db"),
    "apt-get install mariadb-server",
    ("--no-defaults", "--version"),
    r"Ver (\d+\.\d+\.\d+)",
)


def _program(name: str) -> str | None:
    """The path of a MySQL's mysqld: a link of that name may lead to a MariaDB (mariadb-server-compat)."""
    path = installed(name)
    return None if path is None or "MariaDB" in ask(path, "--no-defaults", "--version").stdout else path


MYSQL = Package(
    "MySQL",
    ("mysqld",),
    "MySQL's own package mysql-community-server, or scripts/unpack-mysql FOLDER and FOLDER/bin first in PATH; Debian "
    "12 has no package",
    ("--no-defaults", "--version"),
    r"Ver (\d+\.\d+\.\d+)",
    _program,
)
PRIVATE = ("--mysqlx=OFF", "--secure-file-priv=NULL")
"""No second protocol, and no files that statements read or write."""
NOT_TAKEN = "Error while setting value"
"""How the server reports that it does not accept an option's value."""
GRANTS = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, INDEX, ALTER, LOCK TABLES, CREATE TEMPORARY TABLES, TRIGGER"


@functools.cache
def known_options(server: str) -> frozenset[str]:
    """Every option with a value that this server knows, from its own help; names with underscores."""
    text = ask(server, "--no-defaults", "--verbose", "--help").stdout
    table = text.partition("\nVariables (--variable-name=value)\n")[2]
    rows = (line.split() for line in table.splitlines())
    names = (row[0] for row in rows if row and re.fullmatch(r"[a-z][a-z0-9_-]+", row[0]))
    return frozenset(name.replace("-", "_") for name in names)


class FamilyServer(PrivateServer):
    """short: the name of its folder and its files."""

    short: str

    def __init__(self, lease: Lease, user: Privilege, port: int | None) -> None:
        super().__init__(lease, self.short, user, port)
        self.data = self.folder / "data"
        self.option_file = self.folder / "workload.cnf"
        self.control_account = Account("loadframe_control")
        self.workload_account = Account("loadframe")
        self.accounts_file = self.folder / "accounts.sql"

    @property
    def socket(self) -> Path:
        return self.folder / "run" / f"{self.short}.sock"

    def prepare(self) -> None:
        self.make_folders(self.data, self.folder / "tmp")
        self._write_accounts()
        self.run_once(self.installing(), "install.log")

    def start(self, settings: Sequence[str], allowance: Allowance, answers: Callable[[], bool]) -> None:
        """Start with these options (--name=value) and return once `answers` is true. TargetError."""
        self.take_port()
        self.launch((self.required(), *self.own_options(), *settings), allowance, answers)
        self.accounts_file.unlink(missing_ok=True)  # its statements have been executed by now

    def check(self, state: TargetState, settings: Sequence[str], allowance: Allowance) -> None:
        """TargetError, in the server's words, where it would not start with these options. Exit status 0 may hide an
        error."""
        begin = (self.required(), *(option for option in self.own_options() if "--init-file" not in option), *settings)
        status, said = self.said_to_its_end((*begin, *self.checking()), allowance)
        if status != 0 or NOT_TAKEN in said:
            raise self.refusal(state, "\n".join(line for line in said.splitlines() if "[ERROR]" in line) or said)

    @abstractmethod
    def installing(self) -> Sequence[str]:
        """The command that makes the data directory."""

    @abstractmethod
    def checking(self) -> Sequence[str]:
        """The options with which it reads the others and ends."""

    @abstractmethod
    def without_others(self) -> str:
        """The statements that close the accounts of the installation that are open to others."""

    def own_options(self) -> Sequence[str]:
        """The options that keep it private."""
        network = ["--skip-networking"]
        if self.port is not None:
            network = ["--bind-address=127.0.0.1", f"--port={self.port}"]
        return [
            "--no-defaults",
            f"--datadir={self.data}",
            f"--socket={self.socket}",
            f"--pid-file={self.socket.with_suffix('.pid')}",
            f"--tmpdir={self.folder / 'tmp'}",
            "--skip-name-resolve",
            *network,
        ]

    def workload_grants(self) -> Sequence[str]:
        """What a load driver's account may do outside of its schemas."""
        return ("PROCESS, RELOAD ON *.*",)

    def _write_accounts(self) -> None:
        """Into files that only their readers may read, never into a command line."""
        control, workload = self.control_account, self.workload_account
        schemas = (f"{GRANTS} ON `{name}`.*" for name in (SCHEMA, f"{SCHEMA}\\_%"))
        granted = (*self.workload_grants(), *schemas)
        write_secret(
            self.accounts_file,
            f"{self.without_others()}"
            f"CREATE DATABASE IF NOT EXISTS {SCHEMA};\n"
            f"CREATE USER '{control.user}'@'localhost' IDENTIFIED BY '{control.password}';\n"
            f"GRANT ALL PRIVILEGES ON *.* TO '{control.user}'@'localhost';\n"
            + "".join(
                f"CREATE USER '{workload.user}'@'{host}' IDENTIFIED BY '{workload.password}';\n"
                + "".join(f"GRANT {what} TO '{workload.user}'@'{host}';\n" for what in granted)
                for host in ("localhost", "127.0.0.1")
            ),
        )
        self.give(self.accounts_file)
        write_secret(
            self.option_file,
            f"[client]\nuser={workload.user}\npassword={workload.password}\nsocket={self.socket}\n"
            f"[mysql]\ndatabase={SCHEMA}\n",
        )


class MariadbServer(FamilyServer):
    package, name, short = MARIADB, MARIADB.name, "mariadb"

    def installing(self) -> Sequence[str]:
        return [
            self.required("mariadb-install-db"),
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            f"--datadir={self.data}",
            f"--tmpdir={self.folder / 'tmp'}",
        ]

    def without_others(self) -> str:
        """The root accounts have no password, and others may be able to reach the socket."""
        return "DELETE FROM mysql.global_priv WHERE User IN ('root', '');\nFLUSH PRIVILEGES;\n"

    def checking(self) -> Sequence[str]:
        """A stopped server is started in its bootstrap mode and ends at once: that takes 0.2 s, reads the data
        without changing them, and allocates the memory. While it runs, only the options are read."""
        return ("--help", "--verbose") if self.started else ("--bootstrap", "--innodb-read-only")

    def own_options(self) -> Sequence[str]:
        first = [f"--init-file={self.accounts_file}"] if self.accounts_file.exists() else []
        return [*super().own_options(), "--skip-log-bin", *first]


class MysqlServer(FamilyServer):
    package, name, short = MYSQL, MYSQL.name, "mysql"

    def installing(self) -> Sequence[str]:
        """The accounts are made with the data, before a socket is open."""
        return [
            self.required(),
            "--no-defaults",
            f"--datadir={self.data}",
            f"--tmpdir={self.folder / 'tmp'}",
            *PRIVATE,
            "--initialize-insecure",
            f"--init-file={self.accounts_file}",
        ]

    def without_others(self) -> str:
        return "DROP USER 'root'@'localhost';\n"

    def checking(self) -> Sequence[str]:
        """It reads the options, also those of its storage engines, leaves the data alone, and allocates no memory."""
        return ("--validate-config",)

    def own_options(self) -> Sequence[str]:
        return [*super().own_options(), *PRIVATE]

    def workload_grants(self) -> Sequence[str]:
        return (*super().workload_grants(), "SELECT ON performance_schema.*")
