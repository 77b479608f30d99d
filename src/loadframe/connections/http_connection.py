"""HTTP/1.1 for all of Loadframe: without proxies, redirects or decompression, and bounded (bounds.py)."""

import http.client
import io
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from loadframe.connections.address import parted
from loadframe.connections.bounds import MIB, Bound
from loadframe.connections.unix_socket import open_socket

ANSWER_BYTES, ANSWER_S = 16 * MIB, 10.0
PART = 1 << 18
ERRORS = (OSError, http.client.HTTPException, ValueError)
"""What a request raises. ValueError: from int() for an invalid length or chunk."""


class Connection(http.client.HTTPConnection):
    def __init__(
        self,
        address: str | Path,
        *,
        host: str = "",
        most_bytes: int = ANSWER_BYTES,
        within_s: float = ANSWER_S,
        silent_s: float = ANSWER_S,
    ) -> None:
        """address: NUMBER:PORT, or the path of a Unix socket. host: of the header Host; "": the address. most_bytes,
        within_s: of each answer with its headers. silent_s: the longest pause in it."""
        self._unix = address if isinstance(address, Path) else None
        number, port = ("localhost", "80") if isinstance(address, Path) else parted(address, "80")
        super().__init__(number, int(port), timeout=silent_s)
        self._header = host or (number if isinstance(address, Path) else address)
        self.bound = Bound(most_bytes, within_s)
        self._silent_s = silent_s

    def connect(self) -> None:
        if self._unix is None:
            super().connect()
        else:
            self.sock = open_socket(str(self._unix), timeout_s=self._silent_s)

    def response_class(self, sock: socket.socket, *args: Any, **options: Any) -> http.client.HTTPResponse:  # type: ignore[override]
        """Reads no further than the bound."""
        return _Response(sock, self.bound, self._silent_s, *args, **options)

    def get(self, path: str) -> http.client.HTTPResponse:
        """With no more headers than wrk sends, as answers may depend on them. ERRORS."""
        return self.send_as("GET", path)

    def send_as(
        self, method: str, path: str, headers: Sequence[tuple[str, str]] = (), content: bytes = b""
    ) -> http.client.HTTPResponse:
        self.bound.begin()
        self.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        self.putheader("Host", self._header)
        for name, value in headers:
            self.putheader(name, value)
        if method != "GET" or content:
            self.putheader("Content-Length", str(len(content)))
        self.endheaders(content or None)
        return self.getresponse()


def parts(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    """A body as it comes. IncompleteRead where it is cut off, others of ERRORS."""
    while part := answer.read1(PART):
        yield part
    if answer.length:  # read1 does not report that
        raise http.client.IncompleteRead(b"", answer.length)
    answer.close()  # nor does it see the end of an announced length; the connection may stay


def body(answer: http.client.HTTPResponse) -> bytes:
    """In one piece. Raises as `parts`."""
    return b"".join(parts(answer))


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, bound: Bound, silent_s: float, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        raw = self.fp.detach()
        self.fp = io.BufferedReader(_Bounded(raw, sock, bound, silent_s), PART)


class _Bounded(io.RawIOBase):
    def __init__(self, raw: io.RawIOBase, sock: socket.socket, bound: Bound, silent_s: float) -> None:
        self._raw, self._sock, self._bound, self._silent_s = raw, sock, bound, silent_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left_s = self._bound.left_s()
        self._sock.settimeout(min(left_s, self._silent_s))
        try:
            size: int = self._raw.readinto(buffer) or 0
        except TimeoutError:
            if left_s <= self._silent_s:
                self._bound.left_s()
            raise
        self._bound.take(size)
        return size

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
            super().close()
