"""What MariaDB and PostgreSQL have in common as targets, private and attached."""

import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from loadframe.connections.unix_socket import LET_IT_GO_ON
from loadframe.errors import StudyError, TargetError
from loadframe.formats.said import words
from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.host.signals import stopped_by_signal
from loadframe.kinds.behind import comm_of
from loadframe.kinds.catalogue import Catalogue, plain
from loadframe.kinds.private_server import NOFILE, Account, PrivateTarget, soft_nofile
from loadframe.model import CounterSpec, Endpoint, SettingValue

SCHEMA = "loadframe"
SETTLED_WITHIN_S = 30.0
ENDS_WITHIN_S = 2.0
REFUSED_REMEDY = "Its log says more. Correct the study or the server, and run it again."
BUSY_REMEDY = "Its log and its list of connections say what it waits for. Run it again once that is over."
SILENT_REMEDY = "Look at its log, and at what its machine and disk do; run it again once it answers."
Answer = tuple[list[tuple[Any, ...]], list[str]]
PLAIN = re.compile(r"[\w.,:=+%$\"@* -]*", re.ASCII)
"""Words, numbers, lists: no path, no second line, no quote that ends a value, nothing special to a shell."""
ZONE = re.compile(r"[A-Za-z_]+(/[A-Za-z0-9_+-]+){0,2}")
OF_MYSQL = (
    r"|.*(_|^)(file|filename|dir|datadir|tmpdir|path|directory|home_dir|index|socket|command|cmd|library|libraries"
    r"|basename|priv|proxy|url|address|host|port|tc|isam|recovery|error|user|secret|key)"
)
NEVER: Mapping[str, re.Pattern[str]] = {
    "mariadb": re.compile(
        r"(plugin|init|ssl|tls|wsrep|feedback|report|master|relay|slave|replicate|rpl|debug)_.*|ssl|debug|log_bin"
        + OF_MYSQL
    ),
    "mysql": re.compile(
        r"(plugin|init|ssl|tls|admin|mysqlx|report|master|relay|slave|source|replica|replicate|rpl|group_replication|ndb"
        r"|authentication|early|loose|log_error|telemetry|keyring|component|external)_.*|ssl|debug|daemonize|gdb|upgrade"
        r"|archive|blackhole|federated|ndbcluster|.*_(dirs|directories|keys|monitor)" + OF_MYSQL
    ),
    "postgres": re.compile(
        r"(ssl|krb|primary|recovery|restore|archive|synchronous_standby)_.*|ssl|jit_provider|bonjour.*|zero_.*"
        r"|(?!search_path).*(_|^)(file|keyfile|dir|destdir|path|directory|directories|command|library|libraries)"
    ),
}


class Control(ABC):
    """Our own connection, for one thread at a time; reconnects once where it was lost. A driver's exceptions become
    TargetErrors here. lost: those after which a connection may be lost; errors: all of its own; garbled: for an answer
    outside of its protocol. patience_s: a server that is silent for longer counts as hung."""

    server: str
    patience_s: float = 30.0
    lost: tuple[type[Exception], ...]
    errors: type[Exception]
    garbled: tuple[type[Exception], ...]
    let_go: Callable[[Any], object]
    connect: Callable[..., Any]
    """within_s: of each answer."""

    def __init__(self, died: Callable[[], TargetError | None]) -> None:
        """died: the TargetError that explains why the server is gone; None while its process lives."""
        self._died = died
        self._connection: Any = None
        self._silent = False
        """It did not answer once: while its processes are stopped it is not asked again."""
        self._lock = threading.Lock()

    def ping(self) -> bool:
        try:
            return self.ask("SELECT 1") == [(1,)]
        except TargetError:
            return False

    def ask(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """TargetError where the server refuses the statement, does not answer or has died."""
        return self.asked(statement, values)[0]

    def one(self, statement: str, *types: type) -> tuple[Any, ...]:
        """The one row of a statement, with columns of these types. TargetError for any other answer."""
        rows = self.ask(statement)
        if len(rows) != 1 or [type(value) for value in rows[0]] != list(types):
            raise self.is_other(statement, rows)
        return rows[0]

    def asked(self, statement: str, values: Sequence[Any] = ()) -> Answer:
        with self._lock:
            if self._silent and stopped_by_signal(self._pids()):
                raise self._silence(statement)
            had = self._connection is not None
            try:
                return self._ask(statement, values)
            except self.lost as error:
                connected = self._connection is not None
                lost = had and (not connected or self._is_lost(error))
                self._drop()
                if (died := self._died()) is not None:
                    raise died from error
                if self._is_late(error):  # each further try would take as long
                    self._silent = True
                    raise self._silence(statement) from error
                if not lost and not connected:
                    raise self._unreached(error) from error
                if not lost:
                    raise self._refused(statement, error) from error
            except self.errors as error:
                raise self._refused(statement, error) from error
            except self.garbled as error:
                self._drop()
                raise self.is_other(statement, error) from error
            try:
                return self._ask(statement, values)
            except self.errors as error:
                unreached = self._connection is None
                self._drop()
                raise self._gone(ENDS_WITHIN_S if unreached else 0.0) or self._refused(statement, error) from error
            except self.garbled as error:
                self._drop()
                raise self.is_other(statement, error) from error

    def _gone(self, within_s: float) -> TargetError | None:
        deadline = time.monotonic() + within_s
        while (died := self._died()) is None and time.monotonic() < deadline:
            time.sleep(0.02)
        return died

    def close(self) -> None:
        """Idempotent; never raises."""
        with self._lock:
            self._drop()

    def is_other(self, statement: str, said: object) -> TargetError:
        return TargetError(
            f"What answers `{shortened(statement)}` is not {self.server}: {words(said) or type(said).__name__}",
            remedy="See which server listens there.",
        )

    @abstractmethod
    def variables(self, catalogue: Catalogue, names: Iterable[str]) -> dict[str, SettingValue]: ...

    def _ask(self, statement: str, values: Sequence[Any]) -> Answer:
        if self._connection is None:
            self._connection = self.connect(within_s=self.patience_s)
        with self._connection.cursor() as cursor:
            cursor.execute(statement, tuple(values) or None)
            columns = cursor.description or ()
            return list(cursor.fetchall()) if columns else [], [column[0] for column in columns]

    @abstractmethod
    def _is_lost(self, error: Exception) -> bool: ...

    @abstractmethod
    def _is_late(self, error: Exception) -> bool: ...

    @abstractmethod
    def _pids(self) -> Iterable[int]: ...

    def _shown(self, error: Exception) -> str:
        return words(error)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self.let_go(connection)

    def _silence(self, statement: str) -> TargetError:
        why, asked = stopped_by_signal(self._pids()), shortened(statement)
        return TargetError(
            f"{self.server} did not answer `{asked}` within {self.patience_s:.0f} s{why and ': '}{why}",
            remedy=LET_IT_GO_ON if why else SILENT_REMEDY,
        )

    def _unreached(self, error: Exception) -> TargetError:
        return TargetError(f"no connection to {self.server}: {self._shown(error)}", remedy=REFUSED_REMEDY)

    def _refused(self, statement: str, error: Exception) -> TargetError:
        return TargetError(
            f"{self.server} refused `{shortened(statement)}`: {self._shown(error)}", remedy=REFUSED_REMEDY
        )


Own = TypeVar("Own", bound=Control)


class DatabaseTarget(PrivateTarget, Generic[Own]):
    """owner: the account of its processes, where we are root."""

    owner: str
    _control: Own | None = None

    def __init__(self, lease: Lease, resources: Resources, *, port: int | None = None, folder: str = "") -> None:
        """port: None for a socket alone, 0 for a free port of 127.0.0.1."""
        super().__init__(lease, folder or self.kind, resources.run_by(lease.account(self.owner)), port)
        self.data = self.folder / "data"
        self.option_file = self.folder / "workload.cnf"
        self.control_account = Account("loadframe_control")
        self.workload_account = Account("loadframe")

    def effective(self) -> dict[str, SettingValue]:
        names = dict.fromkeys([*self.catalogue.names(), *self._running().settings])
        return {**self._talk().variables(self.catalogue, names), NOFILE: soft_nofile(self.pid)}

    def _endpoint(self, socket: Path, **others: str) -> Endpoint:
        options = {
            "user": self.workload_account.user,
            "password": self.workload_account.password,
            "socket": str(socket),
            "option_file": str(self.option_file),
            **others,
        }
        if self.port is None:
            return Endpoint(self.kind, str(socket), options)
        options |= {"host": "127.0.0.1", "port": str(self.port)}
        return Endpoint(self.kind, f"127.0.0.1:{self.port}", options)

    def _talk(self) -> Own:
        self._running()
        assert self._control is not None, "a server that runs has a connection"
        return self._control

    def _answers(self) -> bool:
        return self._control is not None and self._control.ping()

    def _left(self) -> None:
        super()._left()
        if self._control is not None:
            self._control.close()
            self._control = None


class AttachedDatabase(ABC, Generic[Own]):
    """names: of its process. changing: the statement that lists what other connections of the account do that matches
    either of `patterns`: changing a setting, or the load's schema."""

    kind: str
    names: tuple[str, ...]
    changing: str
    patterns: tuple[str, str]
    counter_specs: tuple[CounterSpec, ...]
    catalogue: Catalogue
    address: Mapping[str, str]
    words: str
    _control: Own

    def effective(self) -> dict[str, SettingValue]:
        return self._control.variables(self.catalogue, self.catalogue.names())

    def settle(self) -> None:
        """MariaDB 10.11 takes 2 s to resize a redo log of half a gigabyte and reports the old size meanwhile."""
        until = time.monotonic() + SETTLED_WITHIN_S
        while doing := self._control.ask(self.changing, self.patterns):
            if time.monotonic() > until:
                raise TargetError(
                    f"{self.words} has not ended `{words(doing[0][0])}` after {SETTLED_WITHIN_S:.0f} s",
                    remedy=BUSY_REMEDY,
                )
            time.sleep(0.01)

    @abstractmethod
    def listener(self) -> int | None: ...

    @abstractmethod
    def pid(self) -> int | None: ...

    def helpers(self) -> Mapping[str, tuple[int, ...]]:
        return {}

    def close(self) -> None:
        self._control.close()

    def _if_named(self, pid: int | None) -> int | None:
        return pid if pid is not None and comm_of(pid) in self.names else None


def shortened(statement: str) -> str:
    """A statement for messages: in one line of at most 80 characters."""
    shown = " ".join(statement.split())
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def check_passed_on(
    catalogue: Catalogue,
    settings: Mapping[str, SettingValue],
    *,
    reserved: frozenset[str],
    known: Callable[[], Collection[str]],
    texts: Callable[[], Collection[str]] = frozenset,
) -> dict[str, SettingValue]:
    """StudyError for a stranger's setting that would run a program, load a library, reach another host or name a file.
    reserved: what a private instance decides itself. known: the installed server's settings besides the catalogue,
    whose bounds it checks itself. texts: known ones that accept any harmless text."""
    for given in settings:
        if plain(given) in reserved:
            raise StudyError(
                f"target.settings.{given}: a private instance sets this itself",
                remedy="Omit it; table_cache is called table_open_cache." if "cache" in given else "Omit it.",
            )
    others = {given: value for given, value in settings.items() if catalogue.get(plain(given)) is None}
    if not others:
        return catalogue.check(settings)
    free = texts()
    for given, value in others.items():
        if plain(given) in free or NEVER[catalogue.kind].fullmatch(plain(given)) is not None:
            raise StudyError(
                f"target.settings.{given}: a private instance does not take programs, libraries, files and other hosts "
                "from a study",
                remedy="Omit it, or set up a server of your own with it and attach to it (target.attach).",
            )
        if isinstance(value, str) and not (PLAIN.fullmatch(value) and ".." not in value) and not ZONE.fullmatch(value):
            raise StudyError(
                f"target.settings.{given} = {value!r} contains more than words, numbers and lists",
                remedy="Paths, line breaks and quotes are not passed on.",
            )
    return catalogue.check(settings, known())
