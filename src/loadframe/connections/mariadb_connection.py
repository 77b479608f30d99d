"""Connections to MariaDB and MySQL: to the resolved address, without option files of the driver's, without files sent
to the server, and with bounded answers (bounds.py)."""

from __future__ import annotations

import functools
import math
import socket
import ssl
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from loadframe.connections.address import Place
from loadframe.connections.bounds import MIB, Bound
from loadframe.connections.unix_socket import open_socket
from loadframe.errors import MissingTool, TargetError, extra

if TYPE_CHECKING:
    from pymysql.connections import Connection

CONNECT_S, CONNECT_BYTES = 30.0, MIB
ANSWER_BYTES = 64 * MIB
LONGEST_S = 3600.0
CANNOT_CONNECT, LOST, NO_TLS, NO_PLUGIN = 2003, 2013, 2026, 2059
GARBLED = (
    ValueError, TypeError, LookupError, AttributeError, RuntimeError, AssertionError, ArithmeticError, MemoryError,
    struct.error,
)  # fmt: skip
"""What pymysql raises for an answer outside of the protocol; RuntimeError where the server asks for a file."""
READABLE = ("mysql_clear_password", "dialog", "sha256_password")
"""Authentication methods by which the server, or anyone on the way, can read the password."""
CARRIED = ("ca", "capath", "cert", "key", "cipher")


@dataclass(frozen=True, slots=True)
class Reach:
    """socket: of this machine, or place. tls: pymysql's options; empty for none."""

    socket: str = ""
    place: Place | None = None
    user: str = ""
    password: str = field(default="", repr=False)
    tls: Mapping[str, Any] = field(default_factory=dict)


def driver() -> Any:
    """The pymysql package. MissingTool."""
    try:
        import pymysql
    except ImportError as error:
        raise MissingTool("The Python package pymysql is not installed", remedy=extra("mariadb")) from error
    return pymysql


def tls_of(options: Mapping[str, str]) -> dict[str, Any]:
    """The TLS options of an option file, for pymysql. TargetError for one that cannot be kept: never less secure."""
    given = {
        name: value for name, value in options.items() if name.startswith(("ssl", "tls")) and value not in ("0", "OFF")
    }
    carried = {f"ssl_{name}": name for name in CARRIED}
    if unable := [name for name in given if name not in (*carried, "ssl", "ssl_verify_server_cert")]:
        raise TargetError(
            f"{unable[0]} of the option file cannot be carried over to our connection",
            remedy=f"Omit it; known: ssl, {', '.join(carried)}, ssl_verify_server_cert.",
        )
    if not given:
        return {}
    trusted = "ssl_ca" in given or "ssl_capath" in given
    return {
        **{word: given[name] for name, word in carried.items() if name in given},
        "check_hostname": trusted and "ssl_verify_server_cert" in given,
        "verify_mode": "required" if trusted else "none",
    }


def connect(
    reach: Reach,
    over: socket.socket | None = None,
    *,
    database: str = "",
    several: bool = False,
    most_bytes: int = ANSWER_BYTES,
    within_s: float = LONGEST_S,
) -> Connection[Any]:
    """A connection in autocommit mode. over: a socket that is connected there already. several: allow several
    statements at once. most_bytes, within_s: of each statement's answer. pymysql's MySQLError where the server refuses,
    or says too much or nothing; one of GARBLED for another protocol."""
    pymysql = driver()
    from pymysql.constants import CLIENT

    connection: Any = _bounded()(
        defer_connect=True,
        host=reach.place.host if reach.place else "localhost",  # only for certificates
        user=reach.user,
        password=reach.password,
        database=database or None,
        autocommit=True,
        charset="utf8mb4",
        local_infile=False,
        client_flag=CLIENT.MULTI_STATEMENTS if several else 0,
        auth_plugin_map={} if reach.tls else dict.fromkeys(READABLE, _Refusing),
        **({"ssl": dict(reach.tls)} if reach.tls else {"ssl_disabled": True}),  # making a TLS context takes 60 ms
    )
    connection._secure = reach.place is None  # only the server reads what goes through a Unix socket
    try:
        if over is None and reach.place is None:
            over = open_socket(reach.socket, timeout_s=CONNECT_S)
        elif over is None and reach.place is not None:
            over = socket.create_connection((reach.place.number, reach.place.port), timeout=CONNECT_S)
            over.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.connect(over)
    except OSError as error:
        raise pymysql.err.OperationalError(CANNOT_CONNECT, str(error)) from error
    if reach.tls and not isinstance(connection._sock, ssl.SSLSocket):
        connection._force_close()
        raise pymysql.err.OperationalError(NO_TLS, "the option file asks for TLS, and the server speaks none")
    connection.bound = Bound(most_bytes, within_s)
    return cast("Connection[Any]", connection)


class _Refusing:
    def __init__(self, connection: object) -> None:
        """With pymysql's signature."""

    def authenticate(self, packet: object) -> None:
        raise driver().err.OperationalError(
            NO_PLUGIN, "it asks for the password in a form that can be read, and the connection has no TLS"
        )


@functools.cache
def _bounded() -> Any:
    pymysql = driver()

    class Bounded(pymysql.connections.Connection):  # type: ignore[misc,name-defined]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            self.bound = Bound(CONNECT_BYTES, CONNECT_S)
            self._patience_s = math.inf
            super().__init__(*arguments, **options)

        def _execute_command(self, command: int, sql: str | bytes) -> None:
            self.bound.begin()
            super()._execute_command(command, sql)

        def _read_bytes(self, num_bytes: int) -> bytes:
            data = bytearray()
            try:
                self.bound.take(num_bytes)
                while len(data) < num_bytes:
                    left_s = self.bound.left_s()
                    if not left_s <= self._patience_s <= left_s + 1.0:  # setting it takes a system call
                        self._sock.settimeout(left_s)
                        self._patience_s = left_s
                    part = self._rfile.read1(min(num_bytes - len(data), 1 << 18))
                    if not part:
                        raise OSError("it has closed the connection")
                    data += part
            except OSError as error:
                self._force_close()
                raise pymysql.err.OperationalError(LOST, f"Lost the connection: {error}") from error
            except BaseException:
                self._force_close()
                raise
            return bytes(data)

    return Bounded
