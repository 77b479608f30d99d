"""An answer by HTTP as it comes, in whatever pieces, is the one that http.client reads; and it ends in time."""

from __future__ import annotations

import http.client
import io
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from loadframe.connections.bounds import TooMuchError
from loadframe_watch.small_answer import Answer, BrokenAnswerError, ask, read_answer

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: 11\r\n\r\nhello\nworld"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5\r\nhello\r\n1;name=value\r\n\n\r\n0005\r\nworld\r\n0\r\nTrailer: x\r\n\r\n"
)
ANSWERS = {
    "with a length": PLAIN,
    "in chunks": CHUNKED,
    "until it ends": b"HTTP/1.0 200 OK\r\nServer: x\r\n\r\nhello\nworld",
    "with line feeds alone": PLAIN.replace(b"\r\n", b"\n"),
    "after another": b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN,
    "empty": b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
    "without a body": b"HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n",
    "without a reason": b"HTTP/1.1 404\r\nContent-Length: 2\r\n\r\nno",
}
BROKEN = {
    "nothing": b"",
    "no HTTP": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "half of its headers": b"HTTP/1.1 200 OK\r\nContent-Le",
    "half of its body": PLAIN[:-3],
    "half of a chunk": CHUNKED[:60],
    "a length that is none": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    "a chunk of no length": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n",
    "a chunk of another length": CHUNKED.replace(b"5\r\nhello", b"3\r\nhello"),
    "headers without an end": b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 20_000,
}


class Said:
    """A socket to http.client."""

    def __init__(self, text: bytes) -> None:
        self._text = text

    def makefile(self, *_: Any) -> io.BytesIO:
        return io.BytesIO(self._text)


def taken(text: bytes, piece: int) -> Answer:
    pieces = iter([text[at : at + piece] for at in range(0, len(text), piece)])
    return read_answer(lambda: next(pieces, b""))


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("piece", [1, 7, 10_000])
def test_it_is_read_as_http_client_reads_it(name: str, piece: int) -> None:
    wanted = http.client.HTTPResponse(Said(ANSWERS[name]))  # type: ignore[arg-type]
    wanted.begin()
    found = taken(ANSWERS[name], piece)
    assert (found.status, found.body) == (wanted.status, wanted.read())
    assert found.headers.get("content-type") == wanted.getheader("Content-Type")


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("piece", [1, 10_000])
def test_what_is_cut_off_or_none_is_said(name: str, piece: int) -> None:
    with pytest.raises(BrokenAnswerError):
        taken(BROKEN[name], piece)


def test_many_small_chunks_take_no_longer_than_their_bytes() -> None:
    text = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 100_000 + b"0\r\n\r\n"
    before_s = time.process_time()
    assert taken(text, 1 << 20).body == b"x" * 100_000
    assert time.process_time() - before_s < 2.0


@contextmanager
def serving(talk: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server for one connection; its port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                talk(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def test_what_is_sent_is_what_was_asked_for() -> None:
    got: list[bytes] = []

    def talk(connection: socket.socket) -> None:
        got.append(connection.recv(1000))
        for byte in (PLAIN[at : at + 1] for at in range(len(PLAIN))):
            connection.sendall(byte)

    with serving(talk) as port:
        answer = ask(
            "127.0.0.1", port, "/a?b=c", host="a.example:80", headers=[("X", "y")], most_bytes=1000, within_s=5
        )
    assert got == [b"GET /a?b=c HTTP/1.1\r\nHost: a.example:80\r\nX: y\r\n\r\n"]
    assert (answer.status, answer.body) == (200, b"hello\nworld")


def test_one_that_says_nothing_and_one_that_never_ends_are_given_up() -> None:
    def silent(connection: socket.socket) -> None:
        connection.recv(1000)
        assert connection.recv(1000) == b"", "it is closed"

    def endless(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                connection.sendall(b"x" * 1000)
        except OSError:
            return

    began_s = time.monotonic()
    with serving(silent) as port, pytest.raises(TimeoutError, match="within"):
        ask("127.0.0.1", port, "/", host="x", most_bytes=1000, within_s=0.2)
    with serving(endless) as port, pytest.raises(TooMuchError):
        ask("127.0.0.1", port, "/", host="x", most_bytes=100_000, within_s=30)
    assert time.monotonic() - began_s < 10


@pytest.mark.parametrize(("path", "header"), [("/a b", ("X", "y")), ("/", ("X", "y\r\nZ: 1"))])
def test_no_request_hides_another(path: str, header: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="request"):
        ask("127.0.0.1", 1, path, host="x", headers=[header], most_bytes=1, within_s=1)
