"""A running PostgreSQL, changed by ALTER SYSTEM and a reload. A connection pooler (PgBouncer, Odyssey) may send each
statement over any connection, and drop start-up parameters: a table made through it may be anywhere."""

import configparser
import os
import pwd
import secrets
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from loadframe.connections.address import decide, joined, parted
from loadframe.connections.postgres_connection import CARRIED, NUMBER, check_parameters, guarded
from loadframe.errors import StudyError, TargetError
from loadframe.formats.named_files import LARGEST_OPTION_FILE, read_text_up_to
from loadframe.formats.said import words
from loadframe.host.identity import parent_of
from loadframe.kinds.base import ServerAddress
from loadframe.kinds.catalogue import SettingSpec, on_or_off
from loadframe.kinds.database import SCHEMA, AttachedDatabase
from loadframe.kinds.own_counts import Waited
from loadframe.kinds.postgres.counters import ASKED, CATALOGUE, OLDEST, WAITING, counted, statement
from loadframe.kinds.postgres.session import PORT, Control, in_our_units
from loadframe.model import Endpoint, SettingValue

PASSWORD = "PGPASSWORD"
SOCKETS = "/var/run/postgresql"
RELOADED_WITHIN_S = 10.0
MONITOR = "GRANT pg_monitor TO the account (it may then read statistics, and nothing else besides)"
SENT = "loadframe.connection"
"""A setting that a session only has where the start-up parameter `options` has arrived."""
STATE = (
    f"SELECT pg_backend_pid(), coalesce(current_setting('{SENT}', true), ''), current_setting('search_path'),"
    " pg_postmaster_start_time()::text"
)
CHILDREN = "SELECT pid FROM pg_stat_get_activity(NULL)"


class AttachedPostgres(AttachedDatabase[Control]):
    """The password is from the option file or where libpq looks, never on a command line."""

    kind = "postgres"
    names = ("postgres", "postmaster")
    changing = (
        "SELECT query FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename = current_user"
        " AND state <> 'idle' AND (query LIKE %s OR query LIKE %s)"
    )
    patterns = ("ALTER SYSTEM %", f"%SCHEMA%{SCHEMA}%")
    catalogue, counter_specs = CATALOGUE, ASKED

    def __init__(self, asked: ServerAddress) -> None:
        """asked.address: the folder of a socket, or the socket, or HOST[:PORT]; empty: by the option file (the first
        section of a connection service file of libpq), else Debian's folder. TargetError where the server refuses us or
        is too old, the account may not see the activity of others, or a pooler answers; MissingTool."""
        options = _options(asked.option_file)
        name = asked.user or options.get("user") or os.environ.get("PGUSER") or pwd.getpwuid(os.geteuid()).pw_name
        self._where = {**options, **_where(asked.address, options), "user": name}
        self._where.setdefault("dbname", "postgres")
        self._here = True
        if not self._where["host"].startswith("/"):
            named = self._where.get(NUMBER) or self._where["host"]
            place = decide(named, int(self._where["port"]), asked.number)
            self._where, self._here = guarded({**self._where, NUMBER: place.number}), place.here
        self._control = Control(self._where, lambda: None)
        self._waited = Waited(WAITING)
        try:
            self._version, self._statement, thing, own_port = self._met(asked.account)
            refuse_pooler(self._control, self._where, self.describe(), own_port)
        except TargetError:
            self._control.close()
            raise
        host, port = self._where["host"], self._where["port"]
        self.words = f"PostgreSQL at {self.describe()}"
        address = f"{host}/.s.PGSQL.{port}" if host.startswith("/") else joined(host, port)
        self.address = asked.written(self.kind, address, thing, self._where.get(NUMBER, ""))

    def _met(self, account: str) -> tuple[str, str, str, str]:
        try:
            number, version, sees_all, system, port = self._control.one(
                "SELECT current_setting('server_version_num')::int, current_setting('server_version'),"
                " pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'),"
                " (SELECT system_identifier FROM pg_control_system()), current_setting('port')",
                int,
                str,
                bool,
                int,
                str,
            )
        except TargetError as error:
            raise TargetError(
                f"Cannot attach to {self.describe()}: {error.fact}",
                remedy=f"Where a PostgreSQL listens there, name an account with {account} (a connection service file); "
                f"its password may be in {PASSWORD} or a password file.",
            ) from error
        if number < 10000 * OLDEST:
            raise TargetError(
                f"PostgreSQL {words(version)} at {self.describe()} is older than {OLDEST}",
                remedy="It is not supported.",
            )
        if not sees_all:
            raise TargetError(
                f"The account {self._where['user']} may not see what others do in {self.describe()}",
                remedy=f"As administrator: {MONITOR}.",
            )
        thing = f"postgres {system} at port {words(port)}"
        return words(version).partition(" ")[0], statement(number), thing, words(port)

    def counters(self) -> dict[str, float]:
        """Counters without what only the log has (refused connections)."""
        return counted(self._control.row(self._statement), self._waited)

    def read(self, name: str) -> SettingValue:
        """The value that ALTER SYSTEM has written; "" where other configuration or the default rules."""
        self.settle()
        rows = self._control.ask(
            "SELECT setting FROM pg_file_settings WHERE name = %s AND sourcefile LIKE %s ORDER BY seqno DESC LIMIT 1",
            [name, "%/postgresql.auto.conf"],
        )
        return str(rows[0][0]) if rows else ""

    def write(self, name: str, value: SettingValue) -> None:
        """ALTER SYSTEM (RESET for "") and a reload; returns once that was read."""
        if (spec := CATALOGUE.get(name)) is None:
            raise TargetError(f"{name} is not in the catalogue of settings of PostgreSQL", remedy="Omit it.")
        if value == "":
            self._control.ask(f"ALTER SYSTEM RESET {name}")
        else:
            text = (value if isinstance(value, str) else word(spec, value)).replace("'", "''")
            self._control.ask(f"ALTER SYSTEM SET {name} = '{text}'")
        self._control.reload(self.words, RELOADED_WITHIN_S)

    def configured(self) -> dict[str, SettingValue]:
        rows = self._control.ask(
            "SELECT name, setting, unit FROM pg_settings"
            " WHERE name = ANY(%s) AND source NOT IN ('default', 'override')",
            [list(CATALOGUE.names())],
        )
        return {name: in_our_units(CATALOGUE.get(name), setting, unit) for name, setting, unit in rows}

    def pid(self) -> int | None:
        return self._if_named(parent_of(self._control.pid()) if self.local() else None)

    def listener(self) -> int | None:
        return self._if_named(self._control.listener() if self._where["host"].startswith("/") else None)

    def pids(self) -> tuple[int, ...]:
        first = self.pid()
        return () if first is None else (first, *sorted(pid for (pid,) in self._control.ask(CHILDREN)))

    def local(self) -> bool:
        """Whether it is here: by a socket, or an address of this machine unless the server sees another (a container's
        port)."""
        if self._where["host"].startswith("/") or not self._here:
            return self._here
        return bool(self._control.one("SELECT coalesce(inet_client_addr() = inet_server_addr(), true)", bool)[0])

    def endpoint(self) -> Endpoint:
        """The endpoint in our database; a password that only libpq knows is left to it."""
        where = self._where
        options = {
            "user": where["user"],
            "password": where.get("password", ""),
            "database": where["dbname"],
            "schema": SCHEMA,
            "port": where["port"],
            **{name: where[name] for name in (NUMBER, *CARRIED) if where.get(name)},
        }
        socket = {"socket": where["host"]} if where["host"].startswith("/") else {}
        return Endpoint(self.kind, where["host"], options | socket, attached=True)

    def version(self) -> str:
        return f"PostgreSQL {self._version}"

    def describe(self) -> str:
        host = self._where["host"]
        return host if host.startswith("/") else joined(host, self._where["port"])


def host_of(address: str, option_file: Path | None) -> str:
    """The first host that is another machine, else the first; "" for sockets. Raises as AttachedPostgres does; contacts
    no server."""
    where = _where(address, _options(option_file))
    return "" if where["host"].startswith("/") else where.get(NUMBER, where["host"])


def _options(option_file: Path | None) -> dict[str, str]:
    return check_parameters(read_service(option_file), str(option_file)) if option_file is not None else {}


def read_service(path: Path) -> dict[str, str]:
    """The first section of a connection service file (libpq). TargetError."""
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    try:
        parser.read_string(read_text_up_to(path, LARGEST_OPTION_FILE))
    except OSError as error:
        raise TargetError(
            f"Cannot read the option file {path}: {error.strerror or error}",
            remedy="Name a connection service file: [NAME], then host, port, dbname, user and password.",
        ) from error
    except configparser.Error as error:
        raise TargetError(
            f"{path} is not a connection service file: {' '.join(str(error).split())}",
            remedy="Its form: [NAME], then lines such as host=..., user=..., password=...",
        ) from error
    return dict(parser[parser.sections()[0]]) if parser.sections() else {}


def _where(address: str, options: Mapping[str, str]) -> dict[str, str]:
    port, number = options.get("port", str(PORT)), options.get(NUMBER, "")
    if "," in f"{address}{options.get('host', '')}{number}":
        raise StudyError(
            f"{address or options.get('host', '') or number} are several hosts", remedy="Name one, as each is checked."
        )
    if address.startswith("/"):
        folder, mark, socket_port = address.rpartition("/.s.PGSQL.")
        place = {"host": folder, "port": socket_port} if mark else {"host": address, "port": port}
    else:
        host, port = parted(address, port)
        place = {"host": host or address or options.get("host") or number or SOCKETS, "port": port}
    if number and (place["host"].startswith("/") or (address and place["host"] not in (number, options.get("host")))):
        raise StudyError(
            f"The option file has hostaddr = {number}, and the server to attach to is {place['host']}",
            remedy="Remove one of them.",
        )
    return place | ({NUMBER: number} if number else {})


def refuse_pooler(control: Control, where: Mapping[str, str], words: str, port: str) -> None:
    """TargetError where connections to `where` (libpq's parameters) are not those of a server itself: another process
    answers than the connection was given, start-up parameters have not arrived, or two connections share a process,
    change it or reach two servers."""
    why = _other_process(control)
    if not why:
        try:
            with closing(_Marked(where)) as first, closing(_Marked(where)) as second:
                why = first.lacking() or second.lacking() or _shared(first, second)
        except TargetError as error:
            raise TargetError(
                f"What answers at {words} did not accept two connections with start-up parameters of their own, by "
                f"which a connection pooler is recognised: {error.fact}",
                remedy=_remedy(port),
            ) from error
    if why:
        raise TargetError(
            f"What answers at {words} is a connection pooler (such as PgBouncer), not the PostgreSQL itself: {why}",
            remedy=_remedy(port),
        )


def _remedy(port: str) -> str:
    return f"Name the server itself, by its socket or its own port ({port}). Nothing was made or changed."


class _Marked(Control):
    def __init__(self, where: Mapping[str, str]) -> None:
        self.mark = f"loadframe_{secrets.token_hex(8)}"
        super().__init__({**where, "options": f"-c {SENT}={self.mark} -c search_path={self.mark}"}, lambda: None)

    def lacking(self) -> str:
        _, arrived, path, _ = self.one(STATE, int, str, str, str)
        if (arrived, path) != (self.mark, self.mark):
            return f"the start-up parameter options does not arrive (search_path is {path})"
        return _other_process(self)

    def process(self) -> tuple[int, str]:
        """The answering server process, and when that server was started."""
        pid, _, _, started = self.one(STATE, int, str, str, str)
        return pid, started


def _other_process(control: Control) -> str:
    (answering,) = control.one("SELECT pg_backend_pid()", int)
    given = control.pid()
    return "" if answering == given else f"a connection was given process {given}, and process {answering} answers"


def _shared(first: _Marked, second: _Marked) -> str:
    """While one of them is in a transaction, the other one cannot have its process."""
    before = [first.process(), second.process()]
    second.ask("BEGIN")
    held, free = second.process(), first.process()
    pids, starts = zip(*before, free, held, strict=True)
    if len(set(starts)) > 1:
        return "two connections reach two servers, which were started at different times"
    right = before == [free, held] and free != held
    return "" if right else f"two connections share or change their processes: {list(pids)}"


def word(spec: SettingSpec | None, value: SettingValue) -> str:
    unit = {"bytes": "B", "duration": spec.unit}.get(spec.kind, "") if spec is not None and value != -1 else ""
    return f"{on_or_off(value)}{unit}"
