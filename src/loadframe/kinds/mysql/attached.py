"""A running MariaDB or MySQL: read, and changed by SET GLOBAL alone; reached by its socket or by host and port."""

import os
import pwd
import socket as sockets
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from operator import methodcaller
from pathlib import Path
from types import MappingProxyType
from typing import Any

from loadframe.connections.address import decide, joined, parted
from loadframe.connections.bounds import MIB
from loadframe.connections.mariadb_connection import CANNOT_CONNECT, GARBLED, Reach, connect, driver, tls_of
from loadframe.connections.unix_socket import peer
from loadframe.errors import TargetError
from loadframe.formats.named_files import read_up_to
from loadframe.formats.plain_numbers import whole
from loadframe.formats.said import words
from loadframe.host.processes import user_of
from loadframe.kinds import database
from loadframe.kinds.base import ServerAddress
from loadframe.kinds.catalogue import Catalogue
from loadframe.kinds.database import SCHEMA, AttachedDatabase
from loadframe.kinds.mysql.counters import MARIADB, MARIADB_CATALOGUE, MYSQL, MYSQL_CATALOGUE, Counting
from loadframe.kinds.mysql.option_files import configured_options, read_client_options
from loadframe.model import Endpoint, SettingValue

ANSWER_BYTES = 4 * MIB
CONNECTION_LOST = frozenset({0, CANNOT_CONNECT, 2006, 2013, 2014})
"""pymysql: interface error; cannot connect; gone away; lost during a query; out of sync."""
PASSWORD = "MYSQL_PWD"
PID_BYTES = 32
PORT = 3306
SOCKET = "/run/mysqld/mysqld.sock"
POOL = "innodb_buffer_pool_size"
RESIZED_WITHIN_S = 30.0


class Control(database.Control):
    garbled = GARBLED
    let_go = methodcaller("_force_close")  # close() would talk to a server that may be gone

    def __init__(
        self,
        reach: Reach,
        died: Callable[[], TargetError | None],
        pids: Callable[[], Iterable[int]] = tuple,
        server: str = "MariaDB",
    ) -> None:
        super().__init__(died)
        self._reach, self._processes, self.server = reach, pids, server
        self.connect = partial(connect, reach, most_bytes=ANSWER_BYTES)
        known = driver().err
        self.lost, self.errors = (known.OperationalError, known.InterfaceError), known.MySQLError

    def direct(self) -> bool:
        """Whether no proxy answers, which numbers connections differently. The lower 32 bits of the number are
        announced (MySQL protocol, Handshake V10). `+ 0` keeps a proxy from answering itself."""
        (answering,) = self.one("SELECT CONNECTION_ID() + 0", int)
        with self._lock:
            return self._connection is None or answering % (1 << 32) == self._connection.thread_id()

    def pairs(self, statement: str, names: Iterable[str]) -> dict[str, str]:
        wanted = list(names)
        marks = ", ".join(["%s"] * len(wanted))
        rows = self.ask(f"{statement} WHERE Variable_name IN ({marks})", wanted)
        return {str(row[0]): str(row[1]) for row in rows if len(row) == 2 and row[0] in wanted}

    def variables(self, catalogue: Catalogue, names: Iterable[str]) -> dict[str, SettingValue]:
        wanted = list(names)
        texts = self.pairs("SHOW GLOBAL VARIABLES", wanted)
        return {name: catalogue.shown(name, texts[name]) for name in wanted if name in texts}

    def _is_lost(self, error: Exception) -> bool:
        return bool(error.args) and error.args[0] in CONNECTION_LOST

    def _is_late(self, error: Exception) -> bool:
        return isinstance(error.__context__, TimeoutError)

    def _pids(self) -> Iterable[int]:
        return self._processes()

    def _shown(self, error: Exception) -> str:
        number, text = (*error.args, "", "")[:2]
        return f"{words(text or error)} (error {words(number)})"


class AttachedFamily(AttachedDatabase["FamilyControl"]):
    """files: the statement that lists the option files that the server read. followed: the status variable that follows
    a setting which takes effect after its SET has returned."""

    name: str
    files: str
    followed: Mapping[str, str] = MappingProxyType({})
    counting: Counting
    changing = (
        "SELECT info FROM information_schema.processlist WHERE id <> CONNECTION_ID()"
        " AND user = SUBSTRING_INDEX(USER(), '@', 1) AND (info LIKE %s OR info LIKE %s)"
    )
    """Without the PROCESS privilege it sees no other accounts."""
    patterns = ("SET GLOBAL %", f"%`{SCHEMA}`%")

    def __init__(self, asked: ServerAddress) -> None:
        """asked.address: a socket's path, or HOST[:PORT]; "": by the option file, else Debian's socket. TargetError
        where the option file cannot be read, the server refuses us or a proxy answers; MissingTool."""
        options = read_client_options(asked.option_file) if asked.option_file is not None else {}
        self._control = FamilyControl(self.kind, self.name, options, asked)
        try:
            version, host, data = self._control.one("SELECT VERSION(), @@hostname, @@datadir", str, str, str)
        except TargetError as error:
            raise TargetError(
                f"Cannot attach to {self._control.words}: {error.fact}",
                remedy=f"Where a {self.name} listens there, name an account with {asked.account}; {PASSWORD} may have "
                "its password. Reading takes no privilege.",
            ) from error
        self._version = words(version)
        self._check()
        self.words = f"{self.name} at {self._control.words}"
        thing = f"{self.kind} with {words(data)} on {words(host)}"
        self.address = asked.written(self.kind, self._control.words, thing, self._control.number)

    def _check(self) -> None:
        """For the family's other server, and for a proxy, which may send statements over any connection."""
        other = ("mysql", "MySQL") if self.kind == "mariadb" else ("mariadb", "MariaDB")
        fact = remedy = ""
        if ("MariaDB" in self._version) is not (self.kind == "mariadb"):
            fact, remedy = f"a {other[1]} ({self._version}), not a {self.name}", f"Name its kind, {other[0]}."
        elif not self._control.direct():
            fact = (
                f"a proxy (such as ProxySQL or MaxScale), not the {self.name} itself: a connection was given one "
                "number and has another one in the server"
            )
            remedy = "Name the server itself, by its socket or its own port. Nothing was made or changed."
        if fact:
            self._control.close()
            raise TargetError(f"What answers at {self._control.words} is {fact}", remedy=remedy)

    def counters(self) -> dict[str, float]:
        return self.counting.read(self._control)

    def read(self, name: str) -> SettingValue:
        self.settle()
        if name not in (values := self._control.variables(self.catalogue, [name])):
            raise TargetError(f"{self.words} has no setting {name}", remedy="Omit it.")
        return values[name]

    def write(self, name: str, value: SettingValue) -> None:
        """Also waits for a resize that goes on after its answer."""
        if self.catalogue.get(name) is None:
            raise TargetError(f"{name} is not in the catalogue of settings of {self.name}", remedy="Omit it.")
        before = self.read(name)
        self._control.ask(f"SET GLOBAL {name} = %s", [("OFF", "ON")[value] if isinstance(value, bool) else value])
        until = time.monotonic() + RESIZED_WITHIN_S
        while name == POOL and before != value and self.read(name) == before and time.monotonic() < until:
            time.sleep(0.01)
        shown = partial(self._control.pairs, "SHOW GLOBAL STATUS", [self.followed.get(name, "")])
        while name in self.followed and str(value) not in shown().values() and time.monotonic() < until:
            time.sleep(0.01)

    def configured(self) -> dict[str, SettingValue]:
        """The values from its command line, and its option files as far as its user may read them."""
        files, pid, asked = self._control.ask(self.files), self.pid(), dict[str, str]()
        with suppress(OSError):  # it has just ended; the next statement says so
            if pid is not None:
                arguments = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
                asked = configured_options(arguments, [Path(str(row[0])) for row in files if row], user_of(pid))
        asked |= {"table_open_cache": asked["table_cache"]} if "table_cache" in asked else {}
        known = self.catalogue.names()
        return {name: self.catalogue.shown(name, text) for name, text in asked.items() if name in known}

    def pids(self) -> tuple[int, ...]:
        pid = self.pid()
        return () if pid is None else (pid,)

    def local(self) -> bool:
        return self._control.socket is not None or self.pid() is not None

    def endpoint(self) -> Endpoint:
        """TargetError where it is reached by TLS, which load drivers do not speak."""
        return self._control.endpoint()

    def version(self) -> str:
        return self._version if self.name in self._version else f"{self.name} {self._version}"

    def describe(self) -> str:
        return self._control.words

    def listener(self) -> int | None:
        return self._if_named(self._control.peer)

    def pid(self) -> int | None:
        return self._control.peer or self._if_named(self._reported_pid())

    def _reported_pid(self) -> int | None:
        if not self._control.here:
            return None
        host, file, data = self._control.one("SELECT @@hostname, @@pid_file, @@datadir", str, str, str)
        if host != sockets.gethostname():
            return None
        path = Path(data) / file
        try:
            return whole(read_up_to(path, PID_BYTES).decode("ascii", "replace").strip()) if path.is_file() else None
        except (OSError, ValueError):  # not readable for us, or not of this machine after all
            return None


class AttachedMariadb(AttachedFamily):
    kind, name = "mariadb", "MariaDB"
    names = ("mariadbd", "mysqld")
    files = "SELECT DISTINCT GLOBAL_VALUE_PATH FROM information_schema.SYSTEM_VARIABLES WHERE GLOBAL_VALUE_PATH > ''"
    catalogue, counting, counter_specs = MARIADB_CATALOGUE, MARIADB, MARIADB.specs


class AttachedMysql(AttachedFamily):
    """The counters of waits need SELECT on performance_schema; without it they are missing."""

    kind, name = "mysql", "MySQL"
    names = ("mysqld",)
    files = "SELECT DISTINCT VARIABLE_PATH FROM performance_schema.variables_info WHERE VARIABLE_PATH > ''"
    catalogue, counting, counter_specs = MYSQL_CATALOGUE, MYSQL, MYSQL.specs
    followed = MappingProxyType({"innodb_redo_log_capacity": "Innodb_redo_log_capacity_resized"})


def host_of(address: str, option_file: Path | None) -> str:
    """The host to connect to, empty for a socket. Raises as AttachedFamily does; contacts no server."""
    return _where(address, read_client_options(option_file) if option_file is not None else {})[1]


class FamilyControl(Control):
    """A Control for any server, with the options that the family's own clients take. kind: of its endpoint. number: the
    numeric address; "" for a socket."""

    def __init__(self, kind: str, name: str, options: Mapping[str, str], asked: ServerAddress) -> None:
        password = options.get("password") or os.environ.get(PASSWORD, "")
        account = asked.user or options.get("user") or pwd.getpwuid(os.geteuid()).pw_name
        self.socket, host, self._port = _where(asked.address, options)
        self.peer: int | None = None
        place = decide(host, self._port, asked.number) if self.socket is None else None
        tls = tls_of(options) if place is not None else {}
        reach = Reach(self.socket or "", place, account, password, tls)
        super().__init__(reach, lambda: None, lambda: () if self.peer is None else (self.peer,), name)
        self.connect = partial(self._connected, self.connect)
        self._kind, self.words = kind, self.socket or joined(host, self._port)
        self.number, self.here = ("", True) if place is None else (place.number, place.here)

    def endpoint(self) -> Endpoint:
        if self._reach.tls:
            raise TargetError(
                f"Load drivers cannot reach {self.words} by TLS, as the option file asks for it (ssl)",
                remedy="Name its socket, or an option file without TLS.",
            )
        options = {"user": self._reach.user, "password": self._reach.password, "schema": SCHEMA}
        return Endpoint(self._kind, self.socket or joined(self.number, self._port), options, attached=True)

    def _connected(self, connect: Callable[..., Any], within_s: float) -> Any:
        connection = connect(within_s=within_s)
        if self.socket is not None:
            self.peer = peer(connection._sock)
        return connection


def _where(address: str, options: Mapping[str, str]) -> tuple[str | None, str, int]:
    """(socket, host, port); socket is None for a host. StudyError for a bad port, TargetError for a bad protocol."""
    protocol = options.get("protocol", "").lower()
    if protocol not in ("", "tcp", "socket"):
        raise TargetError(
            f"protocol = {words(protocol)} of the option file is not known", remedy="Write tcp or socket."
        )
    socket = options.get("socket") if protocol != "tcp" else ""
    host = options.get("host") if protocol != "socket" else ""
    address = address or socket or host or ("127.0.0.1" if protocol == "tcp" else SOCKET)
    if address.startswith("/"):
        return address, "", 0
    host, port = parted(address, options.get("port", str(PORT)))
    return None, host or address, int(port)
