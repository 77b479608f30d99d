"""A small thing asked by HTTP/1.1, again and again, by a process that has to stay light: one request of one connection,
its answer in one piece, and none of what http.client imports and makes of it. The same limits hold (bounds.py): to the
address that was decided, by no proxy, following nothing, unpacking nothing.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence

from loadframe.connections.bounds import Bound

PART = 1 << 16
LONGEST_HEAD = 1 << 16
"""Bytes of a status line and its headers."""
LONGEST_LINE = 1 << 12
"""Bytes of the line before a chunk."""
NO_BODY = frozenset((204, 304))
_TIMEVAL = struct.Struct("@ll")


class BrokenAnswerError(OSError):
    """What came is no answer in HTTP/1.1, or a part of one."""


class Answer:
    """As it comes. status: 0 until its headers are there; headers: by their names in small letters, the first of each
    name."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.whole = False
        self._came, self._seen = bytearray(), 0
        self._parts: list[bytes] = []
        self._left: int | None = None
        self._chunked = False

    @property
    def body(self) -> bytes:
        """What has come of it."""
        return b"".join(self._parts)

    def take(self, data: bytes) -> None:
        """The next bytes; none: the connection has ended. BrokenAnswerError."""
        self._came += data
        while self.status == 0 and self._head():
            pass
        if self.status and not self.whole:
            self._chunks() if self._chunked else self._plain()
        if not data and not self.whole:
            if self.status == 0 or self._chunked or self._left is not None:
                raise BrokenAnswerError("it ended in the middle" if self._came or self.status else "it was empty")
            self.whole = True

    def _head(self) -> bool:
        """Take the headers; True where another answer follows (100 Continue)."""
        came = self._came
        end, blank = came.find(b"\r\n\r\n", self._seen), 4
        if end < 0:
            end, blank = came.find(b"\n\n", self._seen), 2
        if (len(came) if end < 0 else end) > LONGEST_HEAD:
            raise BrokenAnswerError(f"its headers are longer than {LONGEST_HEAD:,} bytes")
        if end < 0:
            self._seen = max(0, len(came) - 3)
            return False
        self._seen = 0
        head = came[:end]
        del came[: end + blank]
        first, *lines = head.decode("iso-8859-1").splitlines()
        words = first.split(None, 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1.") or not (words[1].isdecimal() and len(words[1]) == 3):
            raise BrokenAnswerError(f"it is not HTTP/1.1: {first[:60]!r}")
        status = int(words[1])
        if status < 200:
            return True
        self.status = status
        for line in lines:
            name, _, value = line.partition(":")
            self.headers.setdefault(name.strip().lower(), value.strip())
        self._measure()
        return False

    def _measure(self) -> None:
        """How its body ends."""
        if self.status in NO_BODY:
            self.whole = True
        elif self.headers.get("transfer-encoding", "").lower() == "chunked":
            self._chunked, self._left = True, None
        elif "content-length" in self.headers:
            length = self.headers["content-length"]
            if not length.isdecimal():
                raise BrokenAnswerError(f"its length is {length[:20]!r}")
            self._left = int(length)

    def _plain(self) -> None:
        """The next part of a body that has a length, or ends with the connection."""
        part = bytes(self._came if self._left is None else self._came[: self._left])
        self._parts.append(part)
        self._came.clear()
        if self._left is not None:
            self._left -= len(part)
            self.whole = self._left == 0

    def _chunks(self) -> None:
        """Those that have come. What follows the last one is left out."""
        came, at = self._came, 0
        while not self.whole:
            if self._left is None:
                end = came.find(b"\r\n", at)
                if (len(came) if end < 0 else end) - at > LONGEST_LINE:
                    raise BrokenAnswerError("the length of a chunk does not end")
                if end < 0:
                    break
                self._left, at = _chunk_length(came[at:end]), end + 2
                self.whole = self._left == 0
            elif len(came) >= at + self._left + 2:
                self._parts.append(bytes(came[at : at + self._left]))
                at += self._left + 2
                self._left = None
                if came[at - 2 : at] != b"\r\n":
                    raise BrokenAnswerError("a chunk has another length than it says")
            else:
                break
        del came[:at]


def _chunk_length(line: bytearray) -> int:
    digits = line.partition(b";")[0].strip()
    if not digits or len(digits) > 16 or digits.strip(b"0123456789abcdefABCDEF"):
        raise BrokenAnswerError(f"a chunk's length is {line[:20].decode('ascii', 'replace')!r}")
    return int(digits, 16)


def ask(
    number: str,
    port: int,
    path: str,
    *,
    host: str,
    headers: Sequence[tuple[str, str]] = (),
    most_bytes: int,
    within_s: float,
) -> Answer:
    """The whole answer to a GET. number: an address as digits; host: of the header Host, no others are sent but
    `headers`. OSError: BrokenAnswerError, TooMuchError, TimeoutError and what connecting raises. ValueError for what no
    request may have."""
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}", *(f"{name}: {value}" for name, value in headers)]
    if any(_torn(line) for line in lines) or len(lines[0].split()) != 3:
        raise ValueError("a request of several lines, or with a blank in its path")
    bound, answer = Bound(most_bytes, within_s), Answer()
    with socket.socket(socket.AF_INET6 if ":" in number else socket.AF_INET) as asking:
        try:
            _wait_no_longer(asking, bound.left_s())
            asking.connect((number, port))
            asking.sendall("\r\n".join((*lines, "", "")).encode("iso-8859-1"))
            while not answer.whole:
                data = asking.recv(PART)
                bound.take(len(data))
                answer.take(data)
                if not answer.whole:
                    _wait_no_longer(asking, bound.left_s())
        except BlockingIOError:
            raise TimeoutError(f"no answer within {within_s:g} s") from None
    return answer


def _wait_no_longer(asking: socket.socket, seconds: float) -> None:
    """The kernel ends a call that takes longer: no poll(2) before each, as there would be for a timeout of Python's."""
    whole = int(seconds)
    time = _TIMEVAL.pack(whole, max(1, int((seconds - whole) * 1e6)))
    asking.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, time)
    asking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, time)


def _torn(line: str) -> bool:
    return any(ord(character) < 32 or ord(character) == 127 for character in line)
