"""MariaDB and MySQL, as private instances."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from loadframe.connections.mariadb_connection import Reach, driver
from loadframe.host.leases import Lease
from loadframe.host.processes import Allowance, Resources
from loadframe.kinds import passed_on
from loadframe.kinds.catalogue import Catalogue
from loadframe.kinds.database import SCHEMA, DatabaseTarget
from loadframe.kinds.mysql.control import Control
from loadframe.kinds.mysql.counters import MARIADB, MYSQL, Counting
from loadframe.kinds.mysql.server import FamilyServer, MariadbServer, MysqlServer, known_options
from loadframe.kinds.mysql.settings import MARIADB_CATALOGUE, MYSQL_CATALOGUE, RESERVED
from loadframe.kinds.private_server import soft_nofile
from loadframe.kinds.private_target import NOFILE
from loadframe.model import Endpoint, SettingValue, TargetState


class FamilyTarget(DatabaseTarget[FamilyServer, Control]):
    """See kinds.base.Target. A change of state restarts the server unless every setting that differs is dynamic and
    not sized at the start: the same state must give the same effective values, whichever state came before."""

    catalogue: Catalogue
    counting: Counting
    make: type[FamilyServer]

    @classmethod
    def check_settings(cls, settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
        """The installed server is asked about settings outside of the catalogue. StudyError."""
        package = cls.make.package
        assert package is not None, "it is of a package"
        return passed_on.check(
            cls.catalogue,
            settings,
            reserved=RESERVED - set(cls.catalogue.names()),
            known=lambda: known_options(package.required()),
        )

    def __init__(self, lease: Lease, resources: Resources, *, port: int | None = None) -> None:
        """port: None for a socket alone, 0 for a free port of 127.0.0.1."""
        allowance = resources.run_by(lease.account("mysql"))
        server = self.make(lease, allowance.user, port)
        super().__init__(server, allowance, data=server.data)

    # --- life ---

    def create(self) -> None:
        """MissingTool without a program of the server or pymysql; TargetError where the data cannot be made."""
        driver()
        super().create()

    def check(self, state: TargetState) -> None:
        wanted = self._wanted(state)
        self._server.check(wanted, options_of(wanted.settings), self._allowed(wanted))

    def reset(self) -> None:
        """Close cached tables, reset high-water marks. FLUSH STATUS zeroes counters: take rates after it."""
        control = self._talk()
        control.ask("FLUSH TABLES")
        control.ask("FLUSH STATUS")

    # --- what it is and does now ---

    def effective(self) -> dict[str, SettingValue]:
        """Of the catalogue and the state's other settings; RLIMIT_NOFILE from the kernel."""
        names = dict.fromkeys([*self.catalogue.names(), *self._running().settings])
        variables = self._talk().pairs("SHOW GLOBAL VARIABLES", names)
        values = {name: self.catalogue.shown(name, variables[name]) for name in names if name in variables}
        return {**values, NOFILE: soft_nofile(self._server.pid)}

    def counters(self) -> dict[str, float]:
        return self.counting.read(self._talk())

    def endpoint(self) -> Endpoint:
        """options: user, password, schema, socket; `option_file` holds them for --defaults-extra-file, so that no
        password has to be in a command line; host and port where a port was asked for."""
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

    def _begin(self, wanted: TargetState, allowance: Allowance) -> None:
        server, account = self._server, self._server.control_account
        reach = Reach(str(server.socket), user=account.user, password=account.password)
        self._control = Control(reach, server.died, self.pids, server.name)
        server.start(options_of(wanted.settings), allowance, self._ready)

    def _ready(self) -> bool:
        return self._answers()

    def _change(self, wanted: TargetState, changed: Sequence[str]) -> None:
        for name in changed:
            self._set(name, wanted.settings.get(name))
        self._entered(wanted)

    def _set(self, name: str, value: SettingValue | None) -> None:
        """One SET GLOBAL; None goes back to the default. `_state` follows each, so that it is true on failure."""
        control, current = self._talk(), self._running()
        settings = {other: kept for other, kept in current.settings.items() if other != name}
        if value is None:
            control.ask(f"SET GLOBAL {name} = DEFAULT")
        else:
            control.ask(f"SET GLOBAL {name} = %s", [value])
            settings[name] = value
        self._state = replace(current, settings=settings)


class MariadbTarget(FamilyTarget):
    kind = "mariadb"
    catalogue, counting, make = MARIADB_CATALOGUE, MARIADB, MariadbServer
    counter_specs = MARIADB.specs


class MysqlTarget(FamilyTarget):
    """The binary log is on, MySQL's default, unless a state says otherwise."""

    kind = "mysql"
    catalogue, counting, make = MYSQL_CATALOGUE, MYSQL, MysqlServer
    counter_specs = MYSQL.specs


def options_of(settings: Mapping[str, SettingValue]) -> list[str]:
    """For the command line, where `log_bin` takes a file's name: in a study it is a switch."""
    return [
        f"--{'' if value else 'skip-'}log-bin" if name == "log_bin" else f"--{name}={_word(value)}"
        for name, value in settings.items()
    ]


def _word(value: SettingValue) -> str:
    return ("ON" if value else "OFF") if isinstance(value, bool) else str(value)
