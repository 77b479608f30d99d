"""Connections to PostgreSQL with complete parameters of libpq ("Parameter Key Words", "Environment Variables"), so that
neither the environment nor a default leads elsewhere, and with bounded answers (bounds.py)."""

from __future__ import annotations

import fcntl
import functools
import os
import shutil
import socket as sockets
import sys
import termios
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadframe.connections.bounds import MIB, Bound
from loadframe.errors import MissingTool, TargetError, extra
from loadframe.host.environment import located

if TYPE_CHECKING:
    from psycopg import Connection

Waiting = Generator[Any, Any, Any]
NUMBER = "hostaddr"
"""The parameter, and the option of an Endpoint, with the numeric address; `host` is for certificates."""
LOCATING = (
    "PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGSERVICE", "PGSERVICEFILE", "PGLOADBALANCEHOSTS",
)  # fmt: skip
"""Variables that name the server: a load driver gets none of them but ours."""
ELSEWHERE = ("PGHOSTADDR", "PGSERVICE")
"""Those of LOCATING that override a socket's path, or fill in what we leave open."""
_CARRIED = (
    "sslmode sslnegotiation sslcert sslkey sslrootcert sslcrl sslcrldir sslsni sslcertmode ssl_min_protocol_version "
    "ssl_max_protocol_version gssencmode krbsrvname gsslib channel_binding require_auth requirepeer passfile "
    "target_session_attrs connect_timeout client_encoding"
)
CARRIED: Mapping[str, str] = {name: f"PG{name.upper().replace('_', '')}" for name in _CARRIED.split()} | {
    "connect_timeout": "PGCONNECT_TIMEOUT"
}
"""Parameters of an option file for every connection and every load driver, the latter by these variables."""
FILES = ("sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir", "passfile")
SAID = ("host", NUMBER, "port", "dbname", "user", "password")
KNOWS_REQUIRE_AUTH = 160000
CONNECT_S = 10
LOGIN_BYTES = MIB
ANSWER_BYTES = 64 * MIB
WATCHED_EVERY_S = 0.005
RECEIVED_AT = 128
LONGEST_S = SILENT_S = 3600.0
PACKAGED = Path("/usr/lib/postgresql")
"""Debian keeps each version's programs in a folder of its own, outside the usual PATH."""


def driver() -> Any:
    """The psycopg package. MissingTool."""
    try:
        import psycopg
    except ImportError as error:
        raise MissingTool(
            "The Python package psycopg is not installed, or finds no libpq", remedy=extra("postgres")
        ) from error
    return psycopg


def check_parameters(given: Mapping[str, str], whose: str) -> dict[str, str]:
    """The parameters of an option file, with absolute paths. TargetError for one that drivers cannot have."""
    if unable := [name for name in given if name not in (*SAID, *CARRIED)]:
        raise TargetError(
            f"{whose}: {unable[0]} cannot be given to load drivers",
            remedy=f"Omit it; known: {', '.join((*SAID, *CARRIED))}.",
        )
    dbname = given.get("dbname", "")
    if "=" in dbname or "://" in dbname:
        raise TargetError(
            f"{whose}: dbname = {dbname!r} is a connection string, which may lead elsewhere",
            remedy="Write its parts: host, port, dbname, user.",
        )
    return {name: _absolute(value) if name in FILES else value for name, value in given.items()}


def guarded(parameters: Mapping[str, str]) -> dict[str, str]:
    """Forbids readable passwords to a server elsewhere, unless other parameters protect them (libpq 16 and later)."""
    secure = (parameters.get("sslmode") or os.environ.get("PGSSLMODE", "")) in ("require", "verify-ca", "verify-full")
    said = parameters.get("require_auth") or os.environ.get("PGREQUIREAUTH")
    if secure or said or not parameters.get(NUMBER) or driver().pq.version() < KNOWS_REQUIRE_AUTH:
        return dict(parameters)
    return {**parameters, "require_auth": "!password"}


def environment(parameters: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    """For a load driver's process: ours without LOCATING, with the variables of the parameters, and `others`."""
    own = {name: value for name, value in os.environ.items() if name not in LOCATING}
    carried = {variable: parameters[name] for name, variable in CARRIED.items() if parameters.get(name)}
    number = {"PGHOSTADDR": parameters[NUMBER]} if parameters.get(NUMBER) else {}
    return {**own, **carried, **number, **others}


def connect(
    parameters: Mapping[str, str | int],
    *,
    most_bytes: int = ANSWER_BYTES,
    within_s: float = LONGEST_S,
    silence_s: float = SILENT_S,
) -> Connection[Any]:
    """A connection in autocommit mode. most_bytes, within_s: of each statement's answer. silence_s: the longest pause
    in it. psycopg.Error where the server refuses, or says too much or nothing; TargetError where a variable of libpq
    would lead elsewhere."""
    if name := next((name for name in ELSEWHERE if os.environ.get(name)), None):
        raise TargetError(
            f"{name} = {os.environ[name]!r} is set, and would lead connections to another server",
            remedy=f"Run without it (env -u {name} loadframe ...); the study or its option file names the server.",
        )
    known = {"connect_timeout": CONNECT_S, **parameters}
    connection: Connection[Any] = patient(silence_s).connect(**known, autocommit=True)
    connection.bound = Bound(most_bytes, within_s)  # type: ignore[attr-defined]
    return connection


@functools.cache
def patient(silence_s: float, clock: Callable[[], float] = time.monotonic) -> Any:
    """psycopg's Connection, which raises OperationalError and is closed where the server has sent nothing for silence_s
    (a statement_timeout would be a setting of ours, and a stopped server does not keep it), or more than `bound`. Bytes
    are counted before libpq, which keeps a whole answer in memory, reads them."""
    psycopg = driver()

    class Patient(psycopg.Connection[Any]):  # type: ignore[misc,name-defined]
        bound: Bound | None = None

        @classmethod
        def _connect_gen(cls, *given: Any, **named: Any) -> Waiting:
            """libpq itself only limits the seconds."""
            waiting, bound, ready = super()._connect_gen(*given, **named), Bound(LOGIN_BYTES, LONGEST_S), None
            try:
                while True:
                    socket, wanted = waiting.send(ready)
                    ready = yield socket, wanted
                    bound.take(_waiting(socket))
            except StopIteration as end:
                return end.value
            except OSError as error:
                waiting.close()
                raise psycopg.OperationalError(str(error)) from error

        def wait(self, gen: Any, *more: Any, **named: Any) -> Any:
            """psycopg resumes the generator at every interval, with 0 where nothing has come."""
            return super().wait(self._limited(gen), *more, **named)

        def _limited(self, waiting: Waiting) -> Waiting:
            heard_s, ready, bound = clock(), None, self.bound
            if bound is not None:
                bound.begin()
            try:
                while True:
                    wanted = waiting.send(ready) if bound is None else self._resumed(waiting, ready, bound)
                    ready = yield wanted
                    if bound is not None:
                        bound.left_s()
                        bound.take(_waiting(self.pgconn.socket))
                    if ready:
                        heard_s = clock()
                    elif clock() - heard_s > silence_s:
                        raise TimeoutError(f"no answer within {silence_s:.0f} s")
            except StopIteration as end:
                return end.value
            except OSError as error:
                self.pgconn.finish()
                raise psycopg.OperationalError(str(error)) from error

        def _resumed(self, waiting: Waiting, ready: Any, bound: Bound) -> Any:
            try:
                with _cut_off(self.pgconn.socket, bound.left_bytes) as over:
                    return waiting.send(ready)
            finally:
                if over:
                    bound.take(bound.left_bytes + 1)

    return Patient


@contextmanager
def _cut_off(file: int, most: int) -> Iterator[list[int]]:
    """Cut off a sender of more than `most` bytes; their number is then in the list. libpq reads an announced long value
    until nothing more comes. Only TCP: a Unix socket does not count."""
    over: list[int] = []
    before = _received(file)
    if before is None:
        yield over
        return
    done = threading.Event()

    def watch() -> None:
        while not done.wait(WATCHED_EVERY_S):
            came = (_received(file) or before) - before
            if came > most:
                over.append(came)
                with sockets.socket(fileno=os.dup(file)) as ours:
                    ours.shutdown(sockets.SHUT_RDWR)
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield over
    finally:
        done.set()
        watcher.join()


def _received(file: int) -> int | None:
    """tcpi_bytes_received of a TCP connection (linux/tcp.h); None for another socket."""
    with sockets.socket(fileno=os.dup(file)) as ours:
        if ours.family not in (sockets.AF_INET, sockets.AF_INET6):
            return None
        try:
            info = ours.getsockopt(sockets.IPPROTO_TCP, sockets.TCP_INFO, RECEIVED_AT + 8)
        except OSError:
            return None
    return int.from_bytes(info[RECEIVED_AT:], sys.byteorder) if len(info) == RECEIVED_AT + 8 else None


def _waiting(file: int) -> int:
    """Bytes that can be read at once (tty_ioctl(4), FIONREAD)."""
    return int.from_bytes(fcntl.ioctl(file, termios.FIONREAD, bytes(4)), sys.byteorder)


def _absolute(path: str) -> str:
    if path in ("", "system"):
        return path
    try:
        return str(Path(path).expanduser().absolute())
    except RuntimeError:  # no user of that name: a file whose name begins with ~
        return str(Path(path).absolute())


def program(name: str) -> str | None:
    """The path of a program, of the newest installed version."""
    versions = [folder for folder in PACKAGED.glob("*/bin") if folder.parent.name.isdigit()]
    for folder in sorted(versions, key=lambda folder: int(folder.parent.name), reverse=True):
        if (path := shutil.which(name, path=str(folder))) is not None:
            return path
    return located(name)
