"""PostgreSQL, as a private instance: own data directory, own socket, unprivileged user, its own configuration alone."""

from collections.abc import Mapping, Sequence

from loadframe.connections.postgres_connection import driver
from loadframe.errors import TargetError
from loadframe.host.leases import Lease
from loadframe.host.privilege import NamedUser
from loadframe.host.processes import Allowance, Resources
from loadframe.kinds import passed_on
from loadframe.kinds.catalogue import SettingSpec, as_shown
from loadframe.kinds.database import DatabaseTarget
from loadframe.kinds.own_counts import Waited
from loadframe.kinds.postgres.control import Control
from loadframe.kinds.postgres.counters import WAITING, counted, statement
from loadframe.kinds.postgres.server import DATABASE, PACKAGE, PORT, Server, described
from loadframe.kinds.postgres.settings import ASKED, CATALOGUE, HARMLESS_TEXTS, REFUSALS, RESERVED
from loadframe.kinds.private_server import soft_nofile
from loadframe.kinds.private_target import NOFILE
from loadframe.model import Endpoint, SettingValue, TargetState

RELOAD_TIMEOUT_S = 30.0


class PostgresTarget(DatabaseTarget[Server, Control]):
    """See kinds.base.Target. A change of state is a reload of the configuration, or a restart where a setting that
    differs needs one: the same state gives the same effective values, whichever state came before."""

    kind = "postgres"
    catalogue = CATALOGUE
    counter_specs = (*ASKED, *REFUSALS)

    @classmethod
    def check_settings(cls, settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
        """The installed server is asked about settings outside of the catalogue. StudyError."""

        def known() -> dict[str, str]:
            return described(PACKAGE.required())

        def texts() -> set[str]:
            return {name for name, kind in known().items() if kind == "STRING"} - HARMLESS_TEXTS

        return passed_on.check(CATALOGUE, settings, reserved=RESERVED, known=known, texts=texts)

    def __init__(
        self, lease: Lease, resources: Resources, *, port: int | None = None, folder: str = "postgres"
    ) -> None:
        """folder: in the lease's. port: None for a socket alone, 0 for a free port of 127.0.0.1."""
        allowance = resources.run_by(lease.account("postgres"))
        server = Server(lease, allowance.user, port, folder)
        super().__init__(server, allowance, data=server.data)
        self._waited = Waited(WAITING)
        self._statement = ""

    # --- life ---

    def create(self) -> None:
        """MissingTool without postgres, initdb or psycopg; TargetError where the data cannot be made."""
        driver()
        super().create()

    def create_like(self, other: "PostgresTarget") -> None:
        """With a copy of the data of one that was created and has never run."""
        self._server.like = other._server
        self.create()

    def check(self, state: TargetState) -> None:
        """Another postmaster tries it, and ends before it accepts a client."""
        wanted = self._wanted(state)
        self._server.check(wanted, self._allowed(wanted))

    def reset(self) -> None:
        """PostgreSQL keeps no high-water marks and no cache of handles; it has to answer."""
        self._talk().ask("SELECT 1")

    # --- what it is and does now ---

    def effective(self) -> dict[str, SettingValue]:
        """Of the catalogue and the state's other settings; RLIMIT_NOFILE from the kernel."""
        names = list(dict.fromkeys([*CATALOGUE.names(), *self._running().settings]))
        return {**read_settings(self._talk(), names), NOFILE: soft_nofile(self._server.pid)}

    def counters(self) -> dict[str, float]:
        row = self._talk().row(self._statement)
        return {**counted(row, self._waited), REFUSALS[0].name: float(self._server.refused())}

    def pids(self) -> tuple[int, ...]:
        """The postmaster, then a process for each connection and each of the server's own workers."""
        pid = self._server.pid
        if pid is None or self._control is None:
            return ()
        try:
            return (pid, *sorted(child for (child,) in self._control.ask(CHILDREN)))
        except TargetError:  # it is starting or ending: whoever needs its answer will report that
            return (pid,)

    def endpoint(self) -> Endpoint:
        """address: the socket's folder, libpq's host. options: user, password, port, database, schema; `socket`,
        that folder; `option_file` holds them as a connection service file, so that no password has to be in a
        command line; host where a port was asked for."""
        server, account = self._server, self._server.workload_account
        options = {
            "user": account.user,
            "password": account.password,
            "database": DATABASE,
            "schema": account.user,
            "socket": str(server.socket_folder),
            "port": str(server.port or PORT),
            "option_file": str(server.option_file),
        }
        if server.port is None:
            return Endpoint(self.kind, str(server.socket_folder), options)
        return Endpoint(self.kind, f"127.0.0.1:{server.port}", options | {"host": "127.0.0.1"})

    def _begin(self, wanted: TargetState, allowance: Allowance) -> None:
        self._server.start(wanted.settings, allowance, lambda: self._reach().ping())

    def _change(self, wanted: TargetState, changed: Sequence[str]) -> None:
        self._server.configure(wanted.settings)
        self._state = wanted
        self._talk().reload("PostgreSQL", RELOAD_TIMEOUT_S, self.log_tail)

    def _reach(self) -> Control:
        """Our own connection, as a superuser, for which connections are reserved."""
        if self._control is None:
            server, account = self._server, self._server.control_account
            where: dict[str, str | int] = {
                "host": str(server.socket_folder),
                "port": server.port or PORT,
                "user": account.user,
                "password": account.password,
                "dbname": "postgres",
            }
            if isinstance(server.user, NamedUser):  # libpq follows links: it checks who is at the other end
                where["requirepeer"] = str(server.user)
            self._control = Control(where, server.died)
        return self._control

    def _entered(self, state: TargetState) -> None:
        """Create the workload's account and database on the first start."""
        self._state = state
        control, server = self._talk(), self._server
        ((number,),) = control.ask("SELECT current_setting('server_version_num')::int")
        self._statement = statement(number)
        account = server.workload_account
        if control.ask("SELECT 1 FROM pg_roles WHERE rolname = %s", [account.user]) == []:
            # Neither statement takes parameters; the password is hexadecimal. It is not logged: only errors are.
            control.ask(f"CREATE ROLE {account.user} LOGIN PASSWORD '{account.password}'")
            control.ask(f"GRANT pg_monitor TO {account.user}")
            control.ask(f"CREATE DATABASE {DATABASE} OWNER {account.user}")
        server.write_option_file(str(server.socket_folder), server.port or PORT)


CHILDREN = "SELECT pid FROM pg_stat_get_activity(NULL)"


def read_settings(control: Control, names: list[str]) -> dict[str, SettingValue]:
    """In the catalogue's units; those that the server does not have are absent."""
    rows = control.ask("SELECT name, setting, unit FROM pg_settings WHERE lower(name) = ANY(%s)", [names])
    return {name.lower(): in_our_units(CATALOGUE.get(name.lower()), setting, unit) for name, setting, unit in rows}


def in_our_units(spec: SettingSpec | None, setting: str, unit: str | None) -> SettingValue:
    """A value as pg_settings shows it, in canonical form where the catalogue knows it: 16384 of 8kB are 134217728."""
    if spec is None:
        return as_shown(setting)
    text = setting
    if spec.kind == "bytes" and unit and setting != "-1":
        number = unit.rstrip("kMB")  # B, kB, MB, or a number of kB ("8kB")
        text = str(int(setting) * int(number or 1) * {"B": 1, "kB": 2**10, "MB": 2**20}[unit.removeprefix(number)])
    elif spec.kind == "duration" and unit and setting != "-1":
        text = f"{setting}{unit}"
    return CATALOGUE.shown(spec.name, text)
