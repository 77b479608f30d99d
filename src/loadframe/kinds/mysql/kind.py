"""Private instances of MariaDB and MySQL, for which nothing is read from /etc."""

import functools
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from loadframe.connections.mariadb_connection import Reach, driver
from loadframe.host.environment import python_package
from loadframe.host.leases import Lease
from loadframe.host.processes import Allowance, Resources
from loadframe.kinds.catalogue import Tunable
from loadframe.kinds.database import SCHEMA, DatabaseTarget, check_passed_on
from loadframe.kinds.kind import Attachable, KindOfTarget, SettingsFile
from loadframe.kinds.mysql.attached import PASSWORD, AttachedFamily, AttachedMariadb, AttachedMysql, Control, host_of
from loadframe.kinds.mysql.counters import (
    MARIADB,
    MARIADB_CATALOGUE,
    MARIADB_TUNABLES,
    MYSQL,
    MYSQL_CATALOGUE,
    MYSQL_TUNABLES,
    RESERVED,
    Counting,
)
from loadframe.kinds.private_server import Package, ask, installed, write_secret
from loadframe.model import Endpoint, SettingValue, TargetState

MARIADB_PACKAGE = Package(
    "MariaDB",
    ("mariadbd", "mariadb-install-db"),
    "apt-get install mariadb-server",
    ("--no-defaults", "--version"),
    r"Ver (\d+\.\d+\.\d+)",
)
PRIVATE = ("--mysqlx=OFF", "--secure-file-priv=NULL")
"""No second protocol, and no files that statements read or write."""
NOT_TAKEN = "Error while setting value"
GRANTS = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, INDEX, ALTER, LOCK TABLES, CREATE TEMPORARY TABLES, TRIGGER"


def _mysqld(name: str) -> str | None:
    """A link of that name may lead to a MariaDB (mariadb-server-compat)."""
    path = installed(name)
    return None if path is None or "MariaDB" in ask(path, "--no-defaults", "--version").stdout else path


MYSQL_PACKAGE = Package(
    "MySQL",
    ("mysqld",),
    "MySQL's own package mysql-community-server, or scripts/unpack-mysql FOLDER and FOLDER/bin first in PATH; Debian "
    "12 has no package",
    ("--no-defaults", "--version"),
    r"Ver (\d+\.\d+\.\d+)",
    _mysqld,
)


@functools.cache
def known_options(server: str) -> frozenset[str]:
    """Every option with a value, from the server's own help; with underscores."""
    # Before it prints its help, mysqld makes and removes a file in its data directory: in /proc it cannot.
    text = ask(server, "--no-defaults", "--datadir=/proc/", "--verbose", "--help").stdout
    table = text.partition("\nVariables (--variable-name=value)\n")[2]
    rows = (line.split() for line in table.splitlines())
    names = (row[0] for row in rows if row and re.fullmatch(r"[a-z][a-z0-9_-]+", row[0]))
    return frozenset(name.replace("-", "_") for name in names)


class FamilyTarget(DatabaseTarget[Control]):
    """A change of state restarts the server unless every setting that differs is dynamic and not sized at the start."""

    owner = "mysql"
    package: Package
    counting: Counting
    closing: str
    """The statements that close the accounts of the installation that are open to others."""

    @classmethod
    def check_settings(cls, settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
        """The installed server is asked about settings outside of the catalogue."""
        return check_passed_on(
            cls.catalogue,
            settings,
            reserved=RESERVED - set(cls.catalogue.names()),
            known=lambda: known_options(cls.package.required()),
        )

    def __init__(self, lease: Lease, resources: Resources, *, port: int | None = None, folder: str = "") -> None:
        super().__init__(lease, resources, port=port, folder=folder)
        self.accounts_file = self.folder / "accounts.sql"

    @property
    def socket(self) -> Path:
        return self.folder / "run" / f"{self.folder.name}.sock"

    def create(self) -> None:
        driver()
        super().create()

    def prepare(self) -> None:
        self.make_folders(self.data, self.folder / "tmp")
        self._write_accounts()
        folders = (f"--datadir={self.data}", f"--tmpdir={self.folder / 'tmp'}")
        self.run_once([*self.installing(), *folders], "install.log")

    def check(self, state: TargetState) -> None:
        """The exit status 0 may hide an error."""
        wanted = self._wanted(state)
        own = (option for option in self.own_options() if "--init-file" not in option)
        command = (self.required(), *own, *options_of(wanted.settings), *self.checking())
        status, said = self.said_to_its_end(command, self._allowed(wanted))
        if status != 0 or NOT_TAKEN in said:
            raise self.refusal(wanted, "\n".join(line for line in said.splitlines() if "[ERROR]" in line) or said)

    def reset(self) -> None:
        """FLUSH STATUS zeroes counters: take rates after it."""
        control = self._talk()
        control.ask("FLUSH TABLES")
        control.ask("FLUSH STATUS")

    def counters(self) -> dict[str, float]:
        return self.counting.read(self._talk())

    def endpoint(self) -> Endpoint:
        """options: user, password, schema, socket; `option_file` holds them for --defaults-extra-file; host and port
        where a port was asked for."""
        return self._endpoint(self.socket, schema=SCHEMA)

    def describe(self) -> Mapping[str, str]:
        shown = " ".join(word for word in self.command if not word.startswith("--init-file="))
        return {**super().describe(), "started": shown}

    @abstractmethod
    def installing(self) -> Sequence[str]:
        """The command that makes the data directory, without the options for the folders."""

    @abstractmethod
    def checking(self) -> Sequence[str]:
        """The options with which it reads the others and ends."""

    def own_options(self) -> Sequence[str]:
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
        control, workload = self.control_account, self.workload_account
        schemas = (f"{GRANTS} ON `{name}`.*" for name in (SCHEMA, f"{SCHEMA}\\_%"))
        granted = (*self.workload_grants(), *schemas)
        write_secret(
            self.accounts_file,
            self.closing + f"CREATE DATABASE IF NOT EXISTS {SCHEMA};\n"
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

    def _begin(self, wanted: TargetState, allowance: Allowance) -> None:
        account = self.control_account
        reach = Reach(str(self.socket), user=account.user, password=account.password)
        self._control = Control(reach, self.died, self.pids, self.name)
        self.take_port()
        command = (self.required(), *self.own_options(), *options_of(wanted.settings))
        self.launch(command, allowance, self._answers)
        self.accounts_file.unlink(missing_ok=True)  # its statements have been executed by now

    def _change(self, wanted: TargetState, changed: Sequence[str]) -> None:
        """`_state` follows each SET GLOBAL, so that it is true on failure."""
        control, current = self._talk(), self._running()
        for name in changed:
            settings = {other: kept for other, kept in current.settings.items() if other != name}
            if (value := wanted.settings.get(name)) is None:
                control.ask(f"SET GLOBAL {name} = DEFAULT")
            else:
                control.ask(f"SET GLOBAL {name} = %s", [value])
                settings[name] = value
            self._state = current = replace(current, settings=settings)
        self._entered(wanted)


class MariadbTarget(FamilyTarget):
    kind, package, name = "mariadb", MARIADB_PACKAGE, MARIADB_PACKAGE.name
    catalogue, counting, counter_specs = MARIADB_CATALOGUE, MARIADB, MARIADB.specs
    closing = "DELETE FROM mysql.global_priv WHERE User IN ('root', '');\nFLUSH PRIVILEGES;\n"
    """The root accounts have no password, and others may be able to reach the socket."""

    def installing(self) -> Sequence[str]:
        own = ("--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db")
        return [self.required("mariadb-install-db"), *own]

    def checking(self) -> Sequence[str]:
        """Its bootstrap mode allocates the memory, reads the data, changes nothing, and ends after 0.2 s."""
        return ("--help", "--verbose") if self.started else ("--bootstrap", "--innodb-read-only")

    def own_options(self) -> Sequence[str]:
        first = [f"--init-file={self.accounts_file}"] if self.accounts_file.exists() else []
        return [*super().own_options(), "--skip-log-bin", *first]


class MysqlTarget(FamilyTarget):
    """The binary log is on, MySQL's default, unless a state says otherwise."""

    kind, package, name = "mysql", MYSQL_PACKAGE, MYSQL_PACKAGE.name
    catalogue, counting, counter_specs = MYSQL_CATALOGUE, MYSQL, MYSQL.specs
    closing = "DROP USER 'root'@'localhost';\n"

    def installing(self) -> Sequence[str]:
        """The accounts are made with the data, before a socket is open."""
        own = ("--initialize-insecure", f"--init-file={self.accounts_file}")
        return [self.required(), "--no-defaults", *PRIVATE, *own]

    def checking(self) -> Sequence[str]:
        """It leaves the data alone, and allocates no memory."""
        return ("--validate-config",)

    def own_options(self) -> Sequence[str]:
        return [*super().own_options(), *PRIVATE]

    def workload_grants(self) -> Sequence[str]:
        return (*super().workload_grants(), "SELECT ON performance_schema.*")


def options_of(settings: Mapping[str, SettingValue]) -> list[str]:
    """On a command line `log_bin` takes a file's name: in a study it is a switch."""
    words = {name: ("OFF", "ON")[value] if isinstance(value, bool) else value for name, value in settings.items()}
    return [
        f"--{'' if settings[name] else 'skip-'}log-bin" if name == "log_bin" else f"--{name}={word}"
        for name, word in words.items()
    ]


def _kind(
    target: type[MariadbTarget | MysqlTarget], attached: type[AttachedFamily], tunables: tuple[Tunable, ...], group: str
) -> KindOfTarget:
    return KindOfTarget(
        target.kind,
        target,
        target.catalogue,
        target.check_settings,
        lambda: [*target.package.requirements(target.kind), python_package(target.kind, "pymysql", "mariadb")],
        tunables=tunables,
        file=SettingsFile("tuned.cnf", "{name} = {value}", head=f"[{group}]\n", words=("OFF", "ON")),
        attachable=Attachable(attached, host_of, head="[mysqld]\n", password=PASSWORD),
        worked_out=frozenset({"open_files_limit"}),
    )


KINDS = (
    _kind(MariadbTarget, AttachedMariadb, MARIADB_TUNABLES, "mariadbd"),
    _kind(MysqlTarget, AttachedMysql, MYSQL_TUNABLES, "mysqld"),
)
