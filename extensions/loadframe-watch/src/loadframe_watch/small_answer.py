"""A small HTTP/1.1 client for a light process: one request per connection, its answer in one piece, without
http.client. The limits of bounds.py hold: no proxies, redirects or decompression."""

import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from loadframe.connections.bounds import Bound

PART = 1 << 16
LONGEST_HEAD = 1 << 16
"""Bytes of a status line and its headers."""
LONGEST_LINE = 1 << 12
"""Bytes of the line before a chunk."""
MOST_DIGITS = 16
"""Digits of a length."""
NO_BODY = frozenset((204, 304))
_TIMEVAL = struct.Struct("@ll")


class BrokenAnswerError(OSError):
    """The answer is not HTTP/1.1, or incomplete."""


@dataclass(frozen=True, slots=True)
class Answer:
    """headers: by their names in small letters, the first of each name."""

    status: int
    headers: dict[str, str]
    body: bytes = b""


class _Coming:
    """receive: the next bytes; none: the connection has ended."""

    def __init__(self, receive: Callable[[], bytes]) -> None:
        self._receive, self._came, self._any = receive, bytearray(), False

    def line(self, most: int, what: str) -> bytes:
        """Without its end. BrokenAnswerError where it is longer than `most` bytes."""
        while (end := self._came.find(b"\n")) < 0 and len(self._came) <= most:
            self._more()
        if end < 0 or end > most:
            raise BrokenAnswerError(f"{what} longer than {most:,} bytes")
        return self.exactly(end + 1).rstrip(b"\r\n")

    def exactly(self, size: int) -> bytes:
        """BrokenAnswerError where there are fewer bytes."""
        while len(self._came) < size:
            self._more()
        part = bytes(self._came[:size])
        del self._came[:size]
        return part

    def rest(self) -> bytes:
        while data := self._receive():
            self._came += data
        return bytes(self._came)

    def _more(self) -> None:
        if not (data := self._receive()):
            raise BrokenAnswerError("it ended in the middle" if self._any else "it was empty")
        self._came += data
        self._any = True


def read_answer(receive: Callable[[], bytes]) -> Answer:
    """receive: the next bytes; none: the connection has ended. BrokenAnswerError."""
    coming = _Coming(receive)
    while (head := _head(coming)).status < 200:  # 100 Continue
        pass
    if head.status in NO_BODY:
        return head
    if head.headers.get("transfer-encoding", "").lower() == "chunked":
        return replace(head, body=b"".join(_chunks(coming)))
    if (length := head.headers.get("content-length")) is None:
        return replace(head, body=coming.rest())
    if not length.isdecimal() or len(length) > MOST_DIGITS:
        raise BrokenAnswerError(f"its length is {length[:20]!r}")
    return replace(head, body=coming.exactly(int(length)))


def _head(coming: _Coming) -> Answer:
    lines: list[str] = []
    left = LONGEST_HEAD
    while line := coming.line(left, "its headers are"):
        lines.append(line.decode("iso-8859-1"))
        left -= len(line)
    words = lines[0].split(None, 2) if lines else []
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not (words[1].isdecimal() and len(words[1]) == 3):
        raise BrokenAnswerError(f"it is not HTTP/1.1: {''.join(lines[:1])[:60]!r}")
    headers: dict[str, str] = {}
    for text in lines[1:]:
        name, _, value = text.partition(":")
        headers.setdefault(name.strip().lower(), value.strip())
    return Answer(int(words[1]), headers)


def _chunks(coming: _Coming) -> Iterator[bytes]:
    """The trailer after the last one is not read."""
    while True:
        line = coming.line(LONGEST_LINE, "the line before a chunk is")
        digits = line.partition(b";")[0].strip()
        if not digits or len(digits) > MOST_DIGITS or digits.strip(b"0123456789abcdefABCDEF"):
            raise BrokenAnswerError(f"a chunk's length is {line[:20].decode('ascii', 'replace')!r}")
        if not (size := int(digits, 16)):
            return
        yield coming.exactly(size)
        if coming.exactly(2) != b"\r\n":
            raise BrokenAnswerError("a chunk has another length than it says")


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
    """The whole answer to a GET. number: a numeric address; host: of the header Host, sent with `headers` alone.
    OSError: BrokenAnswerError, TooMuchError, TimeoutError and errors of connecting. ValueError: an invalid request."""
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}", *(f"{name}: {value}" for name, value in headers)]
    if any(ord(character) < 32 or ord(character) == 127 for character in "".join(lines)) or len(lines[0].split()) != 3:
        raise ValueError("a request of several lines, or with a blank in its path")
    bound = Bound(most_bytes, within_s)
    with socket.socket(socket.AF_INET6 if ":" in number else socket.AF_INET) as asking:
        try:
            _wait_no_longer(asking, bound.left_s())
            asking.connect((number, port))
            asking.sendall("\r\n".join((*lines, "", "")).encode("iso-8859-1"))

            def receive() -> bytes:
                _wait_no_longer(asking, bound.left_s())
                data = asking.recv(PART)
                bound.take(len(data))
                return data

            return read_answer(receive)
        except BlockingIOError:
            raise TimeoutError(f"no answer within {within_s:g} s") from None


def _wait_no_longer(asking: socket.socket, seconds: float) -> None:
    """The kernel ends a longer call: this saves the poll(2) before each call that Python's timeout costs."""
    whole = int(seconds)
    time = _TIMEVAL.pack(whole, max(1, int((seconds - whole) * 1e6)))
    asking.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, time)
    asking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, time)
