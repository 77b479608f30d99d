"""What private servers of MySQL's family have in common: own data directory, own socket, unprivileged user, nothing
read from /etc."""

from __future__ import annotations

import functools
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from loadframe.connections.mariadb_connection import Reach, driver
from loadframe.host.leases import Lease
from loadframe.host.privilege import Privilege
from loadframe.host.processes import Allowance, Resources
from loadframe.kinds import passed_on
from loadframe.kinds.catalogue import Catalogue
from loadframe.kinds.database import SCHEMA, DatabaseTarget
from loadframe.kinds.mysql_control import Control
from loadframe.kinds.mysql_counters import Counting
from loadframe.kinds.mysql_settings import RESERVED
from loadframe.kinds.package import Package, ask
from loadframe.kinds.private_server import Account, PrivateServer, soft_nofile, write_secret
from loadframe.kinds.private_target import NOFILE
from loadframe.model import Endpoint, SettingValue, TargetState

NOT_TAKEN = "Error while setting value"
"""How the server tells of an option's value that it does not take."""
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
    """A private server of the family in a lease's folder. short: the name of its folder and its files."""

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
        """The folders and an empty data directory."""
        self.make_folders(self.data, self.folder / "tmp")
        self._write_accounts()
        self.run_once(self.installing(), "install.log")

    def start(self, settings: Sequence[str], allowance: Allowance, answers: Callable[[], bool]) -> None:
        """Start with these options (--name=value) and return when `answers` says yes. TargetError where it does not."""
        self.take_port()
        self.launch((self.required(), *self.own_options(), *settings), allowance, answers)
        self.accounts_file.unlink(missing_ok=True)  # its statements were executed by now

    def check(self, state: TargetState, settings: Sequence[str], allowance: Allowance) -> None:
        """TargetError, in the server's words, where it would not start with these options. What a storage engine does
        not take may be told in a line that leaves the exit status at 0."""
        begin = (self.required(), *(each for each in self.own_options() if "--init-file" not in each), *settings)
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
        """The statements after which there is no account of the installation's that is open to others."""

    def own_options(self) -> Sequence[str]:
        """Those that keep it private."""
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
        """What a load driver's account has besides the schemas: what the server tells of itself."""
        return ("PROCESS, RELOAD ON *.*",)

    def _write_accounts(self) -> None:
        """Accounts by way of files that only their readers may read, never by way of a command line."""
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


class FamilyTarget(DatabaseTarget[FamilyServer, Control]):
    """See targets.base.Target.

    A change of state restarts the server unless every setting that differs is dynamic and not sized at the start: the
    same state must give the same effective values, whichever state came before.
    """

    catalogue: Catalogue
    counting: Counting
    make: type[FamilyServer]

    def __init__(self, lease: Lease, resources: Resources, *, port: int | None = None) -> None:
        """lease: its folder holds data, socket and log. As root it runs as Lease.account
        says. port: None for a socket alone, 0 for a free port of 127.0.0.1."""
        allowance = resources.run_by(lease.account("mysql"))
        server = self.make(lease, allowance.user, port)
        super().__init__(server, allowance, data=server.data)

    # --- life -------------------------------------------------------------------------------------------------------

    def create(self) -> None:
        """MissingTool without a program of the server or pymysql; TargetError where no data can be made."""
        driver()
        super().create()

    def check(self, state: TargetState) -> None:
        """By the server's own means: it reads the options and ends."""
        wanted = self._wanted(state)
        self._server.check(wanted, options_of(wanted.settings), self._allowed(wanted))

    def reset(self) -> None:
        """Close all cached tables and begin the high-water marks again (FLUSH STATUS also zeroes counters: their rates
        have to be taken after it)."""
        control = self._talk()
        control.ask("FLUSH TABLES")
        control.ask("FLUSH STATUS")

    # --- what it is and does now ------------------------------------------------------------------------------------

    def effective(self) -> dict[str, SettingValue]:
        """SHOW GLOBAL VARIABLES for the catalogue and what the state names besides; RLIMIT_NOFILE from the kernel."""
        names = dict.fromkeys([*self.catalogue.names(), *self._running().settings])
        found = self._talk().pairs("SHOW GLOBAL VARIABLES", names)
        values = {name: self.catalogue.shown(name, found[name]) for name in names if name in found}
        return {**values, NOFILE: soft_nofile(self._server.pid)}

    def counters(self) -> dict[str, float]:
        """On the kept connection."""
        return self.counting.read(self._talk())

    def endpoint(self) -> Endpoint:
        """options: user, password, schema, socket; `option_file` holds the same for --defaults-extra-file, so that no
        password has to stand in a command line; host and port where a port was asked for."""
        server, account = self._server, self._server.workload_account
        options = {
            "user": account.user,
            "password": account.password,
            "schema": SCHEMA,
            "socket": str(server.socket),
            "option_file": str(server.option_file),
        }
        if server.port is None:
            return Endpoint(self.kind, str(server.socket), options)
        options |= {"host": "127.0.0.1", "port": str(server.port)}
        return Endpoint(self.kind, f"127.0.0.1:{server.port}", options)

    def describe(self) -> Mapping[str, str]:
        shown = " ".join(word for word in self._server.command if not word.startswith("--init-file="))
        return {**super().describe(), "started": shown}

    # --- inside -----------------------------------------------------------------------------------------------------

    def _begin(self, wanted: TargetState, allowance: Allowance) -> None:
        """With the settings on its command line."""
        server, account = self._server, self._server.control_account
        reach = Reach(str(server.socket), user=account.user, password=account.password)
        self._control = Control(reach, server.died, self.pids, server.name)
        server.start(options_of(wanted.settings), allowance, self._control.ping)

    def _change(self, wanted: TargetState, changed: Sequence[str]) -> None:
        for name in changed:
            self._set(name, wanted.settings.get(name))
        self._entered(wanted)

    def _canonical(self, settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
        return checked(self.catalogue, self.make, settings)

    def _set(self, name: str, value: SettingValue | None) -> None:
        """One SET GLOBAL; None goes back to the default. The state follows at once, so that it is true on failure."""
        control, current = self._talk(), self._running()
        settings = {other: kept for other, kept in current.settings.items() if other != name}
        if value is None:
            control.ask(f"SET GLOBAL {name} = DEFAULT")
        else:
            control.ask(f"SET GLOBAL {name} = %s", [value])
            settings[name] = value
        self._state = replace(current, settings=settings)


def checked(
    catalogue: Catalogue, server: type[FamilyServer], settings: Mapping[str, SettingValue]
) -> dict[str, SettingValue]:
    """In canonical form; what the catalogue does not hold is asked of the installed server. StudyError."""
    package = server.package
    assert isinstance(package, Package), "it is of a package"
    return passed_on.check(
        catalogue, settings, reserved=RESERVED - set(catalogue.names()), known=lambda: known_options(package.required())
    )


def options_of(settings: Mapping[str, SettingValue]) -> list[str]:
    """For the command line. `log_bin` takes a file's name there: what a study says of it is a switch."""
    return [
        f"--{'' if value else 'skip-'}log-bin" if name == "log_bin" else f"--{name}={_word(value)}"
        for name, value in settings.items()
    ]


def _word(value: SettingValue) -> str:
    return ("ON" if value else "OFF") if isinstance(value, bool) else str(value)
