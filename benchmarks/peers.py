"""Hostile servers on 127.0.0.1, each with one way of answering wrongly: for tests and fuzz.py.

    with peer("mariadb", "endless rows") as hostile:
        ...  # connect to 127.0.0.1:hostile.port

KINDS has the ways by kind: mariadb, postgres, http, prometheus (counters, asked for by http). A peer that never ends
gives up after MOST_BYTES or LONGEST_S on a connection. What clients sent is in `received`.
"""

from __future__ import annotations

import functools
import gzip
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

MOST_BYTES = 8 << 30
LONGEST_S = 120.0
SLOW_S = 0.2
"""Between two bytes of a peer that is slow."""
BLOCK = b"x" * (1 << 20)
ODD = b"\x1b]0;owned\x07\x1b[31m[/red]\r\nnext\xff\xfe\xe2\x80\xa8<script>`$(id)`'\";--"
"""What no terminal, page, shell or statement may be given as it is: escape sequences, bytes that are no UTF-8, a line
separator, markup, quotes."""
SECRET_FILE = "/etc/hostname"
"""What a server asks its client to send, where it asks for a file."""


@dataclass
class Peer:
    """A hostile server while it runs. received: what each connection has sent. sent: how many bytes they were sent."""

    kind: str
    way: str
    port: int
    received: list[bytearray] = field(default_factory=list)
    sent: int = 0

    @property
    def sent_by_clients(self) -> bytes:
        """All of it together."""
        return b"".join(bytes(one) for one in self.received)


class Line:
    """One connection, as a peer sees it. OSError ends the peer's part."""

    def __init__(self, connection: socket.socket, received: bytearray, peer: Peer) -> None:
        self._connection, self._received, self.peer = connection, received, peer
        self._left, self._until = MOST_BYTES, time.monotonic() + LONGEST_S

    def send(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0 or time.monotonic() > self._until:
            raise ConnectionAbortedError
        self._connection.sendall(data)
        self.peer.sent += len(data)

    def slowly(self, data: bytes) -> None:
        """A byte at a time."""
        for number in data:
            self.send(bytes([number]))
            time.sleep(SLOW_S)

    def forever(self, data: bytes) -> None:
        """The same again and again."""
        while True:
            self.send(data)

    def read(self, size: int) -> bytes:
        """The next `size` bytes; ConnectionAbortedError where fewer come."""
        found = b""
        while len(found) < size:
            part = self._connection.recv(min(size - len(found), 1 << 16))
            if not part:
                raise ConnectionAbortedError
            self._received += part
            found += part
        return found

    def read_until(self, end: bytes) -> bytes:
        found = b""
        while not found.endswith(end):
            found += self.read(1)
        return found

    def wait(self) -> None:
        """Say nothing until the client goes."""
        while True:
            self.read(1)

    def end(self) -> None:
        """Close the connection."""
        raise ConnectionAbortedError


Way = Callable[[Line], None]


def _in_turn(*parts: bytes | Way) -> Way:
    """One after the other, then the end."""

    def behave(line: Line) -> None:
        for part in parts:
            if isinstance(part, bytes):
                line.send(part)
            else:
                part(line)

    return behave


def _slowly(data: bytes) -> Way:
    return lambda line: line.slowly(data)


def _forever(data: bytes) -> Way:
    return lambda line: line.forever(data)


@contextmanager
def peer(kind: str, way: str) -> Iterator[Peer]:
    """A server of this kind that answers in this way, one of KINDS[kind], for as long as the block lasts."""
    behave = KINDS[kind][way]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        found = Peer(kind, way, listening.getsockname()[1])
        open_now: list[socket.socket] = []
        accepting = threading.Thread(target=_accept, args=(listening, behave, found, open_now), daemon=True)
        accepting.start()
        try:
            yield found
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            for connection in open_now:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            accepting.join()


def _accept(listening: socket.socket, behave: Way, found: Peer, open_now: list[socket.socket]) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:  # the block has ended
            return
        open_now.append(connection)
        received = bytearray()
        found.received.append(received)
        threading.Thread(target=_serve, args=(connection, behave, received, found), daemon=True).start()


def _serve(connection: socket.socket, behave: Way, received: bytearray, found: Peer) -> None:
    with connection, suppress(OSError):
        behave(Line(connection, received, found))


# --- MariaDB: https://mariadb.com/kb/en/clientserver-protocol/ ---


def _packet(body: bytes, number: int) -> bytes:
    """Of less than 16 MiB."""
    return struct.pack("<I", len(body))[:3] + bytes([number & 255]) + body


def _greeting(
    protocol: int = 10, version: bytes = b"10.11.6-MariaDB", plugin: bytes = b"mysql_native_password"
) -> bytes:
    flags = 0x000FF7FF & ~0x0800 | 0x00080000  # everything of 4.1 but TLS; plugins
    return (
        bytes([protocol]) + version + b"\0" + struct.pack("<I", 7) + b"12345678\0" + struct.pack("<H", flags & 0xFFFF)
        + b"\x2d" + struct.pack("<HHB", 2, flags >> 16, 21) + b"\0" * 10 + b"123456789012\0" + plugin + b"\0"
    )  # fmt: skip


OK = b"\0\0\0\2\0\0\0"
EOF = b"\xfe\0\0\2\0"


def _error(words: bytes) -> bytes:
    return b"\xff" + struct.pack("<H", 1105) + b"#HY000" + words


def _text(value: bytes | None) -> bytes:
    """Length-encoded."""
    if value is None:
        return b"\xfb"
    if len(value) < 251:
        return bytes([len(value)]) + value
    return b"\xfd" + struct.pack("<I", len(value))[:3] + value


def _column(name: bytes, charset: int = 45, kind: int = 253) -> bytes:
    fixed = struct.pack("<HIBHB", charset, 255, kind, 0, 0)
    return _text(b"def") + _text(b"") * 3 + _text(name) * 2 + b"\x0c" + fixed + b"\0\0"


def _mariadb_login(greeting: bytes) -> Way:
    """Let in whoever comes."""

    def behave(line: Line) -> None:
        line.send(_packet(greeting, 0))
        _mariadb_read(line)
        line.send(_packet(OK, 2))

    return behave


def _mariadb_read(line: Line) -> bytes:
    """The body of a client's packet."""
    head = line.read(4)
    return line.read(int.from_bytes(head[:3], "little"))


Answer = Callable[[Line, bytes], None]


def _rows(line: Line, names: Sequence[bytes], rows: Sequence[Sequence[bytes | None]], **columns: int) -> None:
    parts = [bytes([len(names)]), *(_column(name, **columns) for name in names), EOF]
    parts += [b"".join(map(_text, row)) for row in rows]
    for number, body in enumerate([*parts, EOF], 1):
        line.send(_packet(body, number))


def _sane(line: Line, statement: bytes) -> None:
    """As a server would: its version, and what tells that it is on another machine."""
    asked = statement.upper()
    if asked.startswith(b"SELECT VERSION"):
        _rows(line, [b"v", b"h", b"d"], [[b"10.11.6-MariaDB", b"elsewhere", b"/var/lib/mysql/"]])
    elif b"@@HOSTNAME" in asked:
        _rows(line, [b"h", b"f", b"d"], [[socket.gethostname().encode(), b"zero", b"/dev"]])
    elif asked.startswith((b"SHOW", b"SELECT")):
        _rows(line, [b"Variable_name", b"Value"], [])
    else:
        line.send(_packet(OK, 1))


def _mariadb(answer: Answer, *, only: bytes = b"SELECT") -> Way:
    """After a proper login, answer each statement so that has these words in it, others as a server would."""

    def behave(line: Line) -> None:
        _mariadb_login(_greeting())(line)
        while True:
            body = _mariadb_read(line)
            if body[:1] == b"\x03" and only in body[1:].upper():
                answer(line, body[1:])
            elif body[:1] == b"\x03":
                _sane(line, body[1:])
            elif body[:1] == b"\x01":
                return
            else:
                line.send(_packet(OK, 1))

    return behave


def _endless_rows(line: Line, _: bytes) -> None:
    for number, body in enumerate((b"\2", _column(b"Variable_name"), _column(b"Value"), EOF), 1):
        line.send(_packet(body, number))
    line.forever(b"".join(_packet(_text(b"Open_tables") + _text(b"1"), 5 + number) for number in range(256)) * 64)


def _endless_columns(line: Line, _: bytes) -> None:
    line.send(_packet(b"\xfd\xff\xff\xff", 1))
    number = 2
    while True:
        line.send(_packet(_column(b"c"), number))
        number += 1


def _endless_properly(line: Line, _: bytes) -> None:
    for number, body in enumerate((b"\2", _column(b"Variable_name"), _column(b"Value"), EOF), 1):
        line.send(_packet(body, number))
    many = [_packet(_text(b"Open_tables") + _text(b"1"), number % 256) for number in range(5, 5 + 256)]
    line.forever(b"".join(many) * 64)


def _huge_value(line: Line, _: bytes) -> None:
    """A value of a gigabyte, in packets of 16 MiB."""
    for number, body in enumerate((b"\1", _column(b"v"), EOF), 1):
        line.send(_packet(body, number))
    size, number = 1 << 30, 4
    body = b"\xfe" + struct.pack("<Q", size)
    while size > 0:
        piece = 0xFFFFFF - len(body)
        line.send(b"\xff\xff\xff" + bytes([number & 255]) + body)
        for start in range(0, piece, len(BLOCK)):
            line.send(BLOCK[: min(len(BLOCK), piece - start)])
        size, number, body = size - piece, number + 1, b""


def _file_wanted(line: Line, _: bytes) -> None:
    """LOAD DATA LOCAL, unasked; what comes is in `received`."""
    line.send(_packet(b"\xfb" + SECRET_FILE.encode(), 1))
    _mariadb_read(line)
    line.send(_packet(OK, 3))


def _odd_rows(line: Line, _: bytes) -> None:
    _rows(line, [ODD, b"\0"], [[ODD, ODD], [b"Open_tables", b"\0\0"], [None, None], [b"Open_tables", b"nan"]])


def _odd_text(line: Line, _: bytes) -> None:
    """Odd, but UTF-8."""
    text = ODD.replace(b"\xff\xfe", b"")
    _rows(line, [b"Variable_name", b"Value"], [[text, text], [b"Open_tables", b"1e999"], [b"Open_files", b"9" * 5000]])


def _switch(plugin: bytes) -> Way:
    def behave(line: Line) -> None:
        line.send(_packet(_greeting(), 0))
        _mariadb_read(line)
        line.send(_packet(b"\xfe" + plugin + b"\0" + b"a" * 20 + b"\0", 2))
        _mariadb_read(line)
        line.send(_packet(_error(b"no"), 4))

    return behave


def _endless_switches(line: Line) -> None:
    line.send(_packet(_greeting(), 0))
    number = 2
    while True:
        _mariadb_read(line)
        line.send(_packet(b"\xfemysql_native_password\0" + b"a" * 20 + b"\0", number))
        number += 2


MARIADB: Mapping[str, Way] = {
    "silent": Line.wait,
    "closes": _in_turn(),
    "garbage": _in_turn(bytes(range(256)) * 16),
    "slow greeting": _slowly(_packet(_greeting(), 0)),
    "endless greeting": _forever(b"\xff\xff\xff\0" + BLOCK),
    "empty greeting": _in_turn(_packet(b"", 0)),
    "short greeting": _in_turn(_packet(b"\x0a5.5", 0)),
    "wrong length": _in_turn(struct.pack("<I", 5000) + b"\x0a"),
    "old protocol": _in_turn(_packet(_greeting(protocol=9), 0)),
    "odd version": _in_turn(_mariadb_login(_greeting(version=ODD)), Line.wait),
    "refuses oddly": _in_turn(_packet(_error(ODD), 0)),
    "unknown plugin": _switch(b"no_such_plugin"),
    "password in the clear": _switch(b"mysql_clear_password"),
    "password by dialog": _switch(b"dialog"),
    "public key": _switch(b"sha256_password"),
    "endless switches": _endless_switches,
    "silent after login": _in_turn(_mariadb_login(_greeting()), Line.wait),
    "closes after login": _mariadb_login(_greeting()),
    "wants a file": _mariadb(_file_wanted),
    "misnumbered rows": _mariadb(_endless_rows),
    "endless rows": _mariadb(_endless_properly),
    "endless rows of status": _mariadb(_endless_properly, only=b"SHOW GLOBAL"),
    "no count of columns": _mariadb(lambda line, _: line.forever(_packet(b"\xfe" + b"\xff" * 8, 1))),
    "columns without an end": _mariadb(_endless_columns),
    "huge value": _mariadb(_huge_value),
    "huge value of status": _mariadb(_huge_value, only=b"SHOW GLOBAL"),
    "slow rows": _mariadb(lambda line, _: line.slowly(_packet(b"\1", 1) + _packet(_column(b"v"), 2) * 99)),
    "odd rows": _mariadb(_odd_rows),
    "odd rows of status": _mariadb(_odd_rows, only=b"SHOW GLOBAL"),
    "odd text of status": _mariadb(_odd_text, only=b"SHOW GLOBAL"),
    "odd words": _mariadb(lambda line, _: line.send(_packet(_error(ODD), 1))),
    "unknown characters": _mariadb(lambda line, _: _rows(line, [b"v"], [[b"10"]], charset=9999)),
    "unknown types": _mariadb(lambda line, _: _rows(line, [b"v"], [[b"10"]], kind=77)),
    "impossible dates": _mariadb(lambda line, _: _rows(line, [b"v"], [[b"0000-99-99 77:00"]], kind=12)),
    "no numbers": _mariadb(lambda line, _: _rows(line, [b"v"], [[b"ten"]], kind=3)),
    "no rows": _mariadb(lambda line, _: _rows(line, [b"v"], [])),
    "too many columns": _mariadb(lambda line, _: _rows(line, [b"a"] * 9, [[b"1"] * 9])),
    "empty packets": _mariadb(lambda line, _: line.send(_packet(b"", 1))),
    "nothing": _mariadb(lambda line, _: line.send(_packet(OK, 1))),
}


# --- PostgreSQL: https://www.postgresql.org/docs/current/protocol-message-formats.html ---


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack(">I", len(body) + 4) + body


READY = _message(b"Z", b"I")
LET_IN = _message(b"R", struct.pack(">I", 0))
SSL, GSS = 80877103, 80877104


def _startup(line: Line) -> None:
    """Read what a client begins with; TLS is refused."""
    while True:
        (size,) = struct.unpack(">I", line.read(4))
        body = line.read(size - 4)
        if struct.unpack(">I", body[:4])[0] not in (SSL, GSS):
            return
        line.send(b"N")


def _postgres_login(line: Line) -> None:
    _startup(line)
    status = (b"server_version\0" + b"15.6\0", b"client_encoding\0UTF8\0", b"standard_conforming_strings\0on\0")
    line.send(LET_IN + b"".join(_message(b"S", one) for one in status) + READY)


def _postgres_statement(line: Line) -> bytes:
    """The client's messages up to the one that wants an answer; empty for the last."""
    found = b""
    while True:
        kind = line.read(1)
        (size,) = struct.unpack(">I", line.read(4))
        body = line.read(size - 4)
        found += body
        if kind == b"X":
            return b""
        if kind in b"QSH":
            return found or b" "


def _described(names: Sequence[bytes], oid: int = 25) -> bytes:
    fields = (name + b"\0" + struct.pack(">IHIhih", 0, 0, oid, -1, -1, 0) for name in names)
    return _message(b"T", struct.pack(">H", len(names)) + b"".join(fields))


def _data(values: Sequence[bytes]) -> bytes:
    parts = (struct.pack(">I", len(value)) + value for value in values)
    return _message(b"D", struct.pack(">H", len(values)) + b"".join(parts))


PARSED = _message(b"1", b"") + _message(b"2", b"")
DONE = _message(b"C", b"SELECT 1\0") + READY


def _postgres_error(words: bytes) -> bytes:
    return _message(b"E", b"SERROR\0VERROR\0CXX000\0M" + words + b"\0\0")


def _postgres(answer: Way) -> Way:
    """After a proper login, answer each statement so."""

    def behave(line: Line) -> None:
        _postgres_login(line)
        while _postgres_statement(line):
            answer(line)

    return behave


def _rows_of(values: Sequence[bytes]) -> Way:
    """One row, as to whoever asks for the version."""
    names = [f"column{number}".encode() for number in range(len(values))]
    return _postgres(lambda line: line.send(PARSED + _described(names) + _data(values) + DONE))


def _huge_row(line: Line) -> None:
    size = 1 << 30
    line.send(PARSED + _described([b"v"]) + b"D" + struct.pack(">IHI", size + 10, 1, size))
    line.forever(BLOCK)


NOTICE = _message(b"N", b"SNOTICE\0VNOTICE\0C00000\0Mhello\0\0")

POSTGRES: Mapping[str, Way] = {
    "silent": Line.wait,
    "closes": _in_turn(),
    "garbage": _in_turn(bytes(range(256)) * 16),
    "slow": _in_turn(_startup, _slowly(LET_IN + _message(b"S", b"a\0b\0") * 999)),
    "endless garbage": _forever(BLOCK),
    "refuses oddly": _in_turn(_startup, _postgres_error(ODD)),
    "wrong length": _in_turn(_startup, b"R" + struct.pack(">I", 1 << 30), Line.wait),
    "password in the clear": _in_turn(_startup, _message(b"R", struct.pack(">I", 3)), Line.wait),
    "unknown way in": _in_turn(_startup, _message(b"R", struct.pack(">I", 99))),
    "endless notices": _in_turn(_startup, LET_IN, _forever(NOTICE * 1024)),
    "endless parameters": _in_turn(_startup, LET_IN, _forever(_message(b"S", b"a\0b\0") * 1024)),
    "silent after login": _in_turn(_postgres_login, Line.wait),
    "closes after login": _postgres_login,
    "endless rows": _postgres(_in_turn(PARSED, _described([b"v"]), _forever(_data([b"1" * 100]) * 4096))),
    "endless notices to a statement": _postgres(_forever(NOTICE * 1024)),
    "huge value": _postgres(_huge_row),
    "slow rows": _postgres(_slowly(PARSED + _described([b"v"]) + _data([b"1"]) * 999)),
    "odd words": _postgres(_in_turn(PARSED, _postgres_error(ODD), READY)),
    "odd rows": _rows_of([ODD] * 5),
    "odd version": _rows_of([b"150000", ODD.replace(b"\xff\xfe", b""), b"t", b"7", b"5432"]),
    "no numbers": _postgres(_in_turn(PARSED, _described([b"n"] * 5, 23), _data([b"x"] * 5), DONE)),
    "too many columns": _rows_of([b"1"] * 9),
    "no rows": _postgres(_in_turn(PARSED, _described([b"a"] * 5), DONE)),
    "nothing": _postgres(_in_turn(PARSED, _message(b"I", b""), READY)),
    "wants data": _postgres(_in_turn(PARSED, _message(b"G", b"\0\0\0"), READY)),
    "copies": _postgres(_in_turn(PARSED, _message(b"W", b"\0\0\0"), Line.wait)),
    "wrong lengths": _postgres(_in_turn(PARSED, _described([b"v"]), b"D" + struct.pack(">I", 3), READY)),
}


# --- HTTP: RFC 9112 ---


def _http(*parts: bytes | Way) -> Way:
    """To each request of a connection the same parts."""

    def behave(line: Line) -> None:
        while True:
            line.read_until(b"\r\n\r\n")
            _in_turn(*parts)(line)

    return behave


@functools.cache
def _bomb() -> bytes:
    """A gigabyte of zeros in four megabytes, as gzip has it: of several members."""
    return gzip.compress(bytes(1 << 24), 1) * 64


ODD_LINE = ODD.replace(b"\r\n", b"")
PAGE = b"HTTP/1.1 200 OK\r\n"
CHUNKED = PAGE + b"Transfer-Encoding: chunked\r\n\r\n"


def _send_bomb(line: Line) -> None:
    body = _bomb()
    line.send(PAGE + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


FIRST = 3
"""The number of proper answers at the beginning of a connection."""


def _becomes_endless(line: Line) -> None:
    """A page while it is learnt, and one without an end from then on."""
    while True:
        line.read_until(b"\r\n\r\n")
        if len(line.peer.received) > FIRST:
            line.send(PAGE + b"\r\n")
            line.forever(BLOCK)
        line.send(PAGE + b"Content-Length: 4\r\n\r\npage")


HTTP: Mapping[str, Way] = {
    "silent": Line.wait,
    "closes": _in_turn(),
    "closes when asked": _http(Line.end),
    "garbage": _in_turn(bytes(range(256)) * 64),
    "endless garbage": _forever(BLOCK),
    "slow status": _http(_slowly(PAGE * 99)),
    "slow headers": _http(PAGE, _slowly(b"a: b\r\n" * 999)),
    "slow body": _http(PAGE + b"Content-Length: 9999\r\n\r\n", _slowly(b"x" * 9999)),
    "endless body": _http(PAGE + b"\r\n", _forever(BLOCK)),
    "endless headers": _http(PAGE, _forever(b"a: b\r\n" * 4096)),
    "endless header": _http(PAGE + b"a: ", _forever(BLOCK)),
    "endless status": _http(b"HTTP/1.1 200 ", _forever(BLOCK)),
    "continues for ever": _http(_forever(b"HTTP/1.1 100 Continue\r\n\r\n" * 4096)),
    "early hints for ever": _http(_forever(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 4096)),
    "longer than said": _http(PAGE + b"Content-Length: 3\r\n\r\n", BLOCK),
    "shorter than said": _http(PAGE + b"Content-Length: 9999\r\n\r\nshort", Line.end),
    "length below nothing": _http(PAGE + b"Content-Length: -5\r\n\r\nbody", Line.end),
    "length beyond all": _http(PAGE + b"Content-Length: " + b"9" * 4000 + b"\r\n\r\n", _forever(BLOCK)),
    "two lengths": _http(PAGE + b"Content-Length: 3\r\nContent-Length: 5\r\n\r\nabc"),
    "becomes endless": _becomes_endless,
    "compressed bomb": _http(_send_bomb),
    "redirects": _http(b"HTTP/1.1 302 Found\r\nLocation: http://203.0.113.1/\r\nContent-Length: 0\r\n\r\n"),
    "odd reason": _http(b"HTTP/1.1 500 " + ODD_LINE + b"\r\nContent-Length: 0\r\n\r\n"),
    "odd status": _http(ODD_LINE + b"\r\n\r\n"),
    "odd headers": _http(PAGE + ODD_LINE + b": " + ODD + b"\r\nContent-Length: 0\r\n\r\n"),
    "status beyond all": _http(b"HTTP/1.1 99999999999 OK\r\nContent-Length: 0\r\n\r\n"),
    "chunks of garbage": _http(CHUNKED + b"xyz\r\nnot a chunk"),
    "endless chunks": _http(CHUNKED, _forever(b"100000\r\n" + BLOCK + b"\r\n")),
    "chunk beyond all": _http(CHUNKED + b"f" * 200 + b"\r\n", _forever(BLOCK)),
    "chunk below nothing": _http(CHUNKED + b"-5\r\nabcde\r\n0\r\n\r\n"),
    "endless chunk extension": _http(CHUNKED + b"5;a=", _forever(BLOCK)),
    "endless trailer": _http(CHUNKED + b"0\r\n", _forever(b"a: b\r\n" * 4096)),
    "slow trailer": _http(CHUNKED + b"0\r\n", _slowly(b"a: b\r\n" * 999)),
}

KINDS: Mapping[str, Mapping[str, Way]] = {"mariadb": MARIADB, "postgres": POSTGRES, "http": HTTP, "prometheus": HTTP}
"""Each way of answering wrongly, by the kind of server."""
