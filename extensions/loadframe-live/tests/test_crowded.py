"""Whoever is on the machine can connect to the live page: it is served all the same to who has the key."""

import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from loadframe_live import serving as serving_module
from waiting import await_that

from .conftest import Served, serving

DESCRIPTORS = 128
IDLE = 300
LONGEST_LOG = 4_096
"""Bytes: a traceback, and a few lines."""
HALF = b"GET /api/runs HTTP/1.1\r\nHost: 127.0.0.1\r\n"
CLOSED_WITHIN_S = 60.0


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the server writes to standard error."""
    return tmp_path_factory.mktemp("log") / "log"


@pytest.fixture(scope="module")
def served(log: Path) -> Iterator[Served]:
    """A server that has few descriptors."""
    runs = log.with_name("runs")
    runs.mkdir()
    with log.open("wb") as stderr, serving(runs, stderr) as served:
        resource.prlimit(served.process.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
        yield served


def connection(served: Served, said: bytes) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", served.port), timeout=CLOSED_WITHIN_S)
    with suppress(OSError):  # it was refused meanwhile
        made.sendall(said)
    return made


def is_closed(made: socket.socket) -> bool:
    """Waits for the server to close it."""
    try:
        return made.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


@pytest.mark.long
def test_a_viewer_is_served_while_others_hold_more_connections_than_there_are_descriptors(
    served: Served, log: Path
) -> None:
    with served.asking("/api/events") as stream, ExitStack() as held:
        first = stream.readline()
        for _ in range(IDLE):
            held.enter_context(connection(served, HALF))
        assert served.get("/api/runs").status == 200
        assert first and stream.readline(), "a stream that was there before stays"
        assert descriptors(served) < DESCRIPTORS
    assert log.stat().st_size < LONGEST_LOG, log.read_text()[:2_000]


SLOW = b"GET /live.js HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n"
ASKED = 1_000


@pytest.mark.long
def test_who_has_the_token_is_served_while_slow_readers_hold_all_connections(served: Served) -> None:
    before = descriptors(served)
    with served.asking("/api/events") as stream, ExitStack() as held:
        first = stream.readline()
        for _ in range(DESCRIPTORS):
            held.enter_context(connection(served, SLOW % served.port * ASKED))
        assert served.get("/api/runs").status == 200
        assert first and stream.readline(), "a stream that was there before stays"
        await_that(lambda: descriptors(served) <= before + 3, "what slow readers do not take is given up")
        assert stream.readline(), "who has the token may take its time"


def descriptors(served: Served) -> int:
    return len(list(Path(f"/proc/{served.process.pid}/fd").iterdir()))


@pytest.mark.long
def test_headers_that_do_not_come_are_not_waited_for_for_ever(served: Served) -> None:
    with connection(served, b"") as silent, connection(served, HALF) as half, connection(served, HALF) as dripping:
        assert ends_though_it_gets_drops(dripping)
        assert is_closed(half) and is_closed(silent)
    assert served.get("/api/runs").status == 200


def ends_though_it_gets_drops(dripping: socket.socket) -> bool:
    dripping.settimeout(0.5)
    until = time.monotonic() + CLOSED_WITHIN_S
    while time.monotonic() < until:
        try:
            dripping.send(b"X")
            if dripping.recv(1) == b"":
                return True
        except TimeoutError:
            continue
        except (ConnectionResetError, BrokenPipeError):
            return True
    return False


@pytest.mark.long
def test_what_is_no_http_is_logged_once(served: Served, log: Path) -> None:
    for _ in range(100):
        with connection(served, b"\x16\x03 no HTTP\r\n\r\n") as made:
            assert made.recv(12) == b"HTTP/1.1 400"
    assert log.read_text().count("Invalid HTTP request") == 1


def test_the_limit_follows_the_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 100))
    assert serving_module.most_connections() == 100 - serving_module.RESERVED
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert serving_module.most_connections() == serving_module.MOST_CONNECTIONS
