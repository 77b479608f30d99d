"""Loadframe's own connection to a PostgreSQL server."""

import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from operator import methodcaller
from typing import Any

from loadframe.connections.bounds import MIB
from loadframe.connections.postgres_connection import connect, driver
from loadframe.connections.unix_socket import listening, peer
from loadframe.errors import TargetError
from loadframe.kinds import database
from loadframe.kinds.catalogue import Catalogue, SettingSpec, as_shown
from loadframe.kinds.database import BUSY_REMEDY
from loadframe.kinds.postgres.counters import CATALOGUE
from loadframe.model import SettingValue

PORT = 5432
ANSWER_BYTES, ANSWER_S = 16 * MIB, 30.0
"""Bounds of a whole statement that reads. No timeout of the server's: it would be a setting of ours in what we read."""
OURS: Mapping[str, str | int] = {"connect_timeout": 30, "application_name": "loadframe"}


class Control(database.Control):
    server = "PostgreSQL"
    garbled = (ValueError, TypeError, LookupError, MemoryError)
    """What psycopg raises for impossible values; UnicodeDecodeError is a ValueError."""
    let_go = methodcaller("close")

    def __init__(self, where: Mapping[str, str | int], died: Callable[[], TargetError | None]) -> None:
        super().__init__(died)
        self._psycopg = driver()
        self.lost = (self._psycopg.OperationalError, self._psycopg.InterfaceError)
        self.errors = self._psycopg.Error
        self._where = dict(where)
        self._backend = 0

    def row(self, statement: str) -> dict[str, Any]:
        """The one row of a statement. TargetError for any other number of rows."""
        rows, names = self.asked(statement)
        if len(rows) != 1:
            raise self.is_other(statement, f"{len(rows)} rows")
        return dict(zip(names, rows[0], strict=True))

    def variables(self, catalogue: Catalogue, names: Iterable[str]) -> dict[str, SettingValue]:
        listed = "SELECT name, setting, unit FROM pg_settings WHERE lower(name) = ANY(%s)"
        rows = ((name.lower(), setting, unit) for name, setting, unit in self.ask(listed, [list(names)]))
        return {name: in_our_units(catalogue.get(name), setting, unit) for name, setting, unit in rows}

    def reload(self, who: str, within_s: float, log: Callable[[], str] = str) -> None:
        """Return once the postmaster has read its configuration. TargetError after within_s. who: the server, in
        messages. log: its log, for details."""
        loaded, until = "SELECT pg_conf_load_time()", time.monotonic() + within_s
        before = self.ask(loaded)
        self.ask("SELECT pg_reload_conf()")
        while self.ask(loaded) == before:
            if time.monotonic() > until:
                fact = f"{who} has not read its configuration after {within_s:.0f} s"
                raise TargetError(fact, remedy=BUSY_REMEDY, details=log())
            time.sleep(0.005)

    def pid(self) -> int:
        with self._lock:
            return 0 if self._connection is None else self._connection.info.backend_pid

    def listener(self) -> int | None:
        """The process that listens at the socket; None where it is not visible."""
        with self._lock:
            if self._connection is None:
                return None
            with socket.socket(fileno=os.dup(self._connection.fileno())) as same:
                return peer(same)

    def connect(self, *, within_s: float) -> Any:
        where = {**OURS, **self._where}
        connection = connect(where, most_bytes=ANSWER_BYTES, within_s=ANSWER_S, silence_s=within_s)
        self._backend = connection.info.backend_pid
        return connection

    def _is_lost(self, error: Exception) -> bool:
        return bool(self._connection.broken)

    def _is_late(self, error: Exception) -> bool:
        return isinstance(error.__cause__, TimeoutError) or isinstance(error, self._psycopg.errors.ConnectionTimeout)

    def _pids(self) -> list[int]:
        host = str(self._where.get("host", ""))
        if not host.startswith("/"):
            return []
        listener = listening(f"{host}/.s.PGSQL.{self._where.get('port', PORT)}")
        return [pid for pid in (self._backend, listener) if pid]


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
