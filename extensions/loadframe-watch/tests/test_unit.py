"""One unit of work after the other, whatever the service does."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from loadframe.errors import TargetError
from loadframe_watch.find import Ports
from loadframe_watch.journal import Clocks
from loadframe_watch.unit import Done, Unit, work_of
from waiting import await_that

WITHIN_S = 20.0


@contextmanager
def answering(text: bytes, got: list[bytes]) -> Iterator[int]:
    """A server that gives this answer to one connection; its port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                got.append(connection.recv(1000))
                connection.sendall(text)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def asking(port: int, **more: Any) -> Mapping[str, Any]:
    return {"form": "http", "host": "127.0.0.1", "port": port, "path": "/one", "headers": [["X", "y"]], "expect": None,
            **more}  # fmt: skip


def done(unit: Unit, many: int) -> list[Done]:
    """What has ended, once it is so many."""
    found: list[Done] = []

    def enough() -> bool:
        found.extend(unit.finished())
        return len(found) >= many

    await_that(enough, f"{many} have ended")
    return found


@pytest.mark.parametrize(
    ("answer", "expect", "error"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", None, ""),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nno", None, "status 503"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 204, "status 200"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", None, "no answer: it ended in the middle"),
        (b"", None, "no answer: it was empty"),
    ],
)
def test_a_request_is_judged_by_its_answer(answer: bytes, expect: int | None, error: str) -> None:
    got: list[bytes] = []
    with answering(answer, got) as port:
        assert work_of(asking(port, expect=expect), None, Ports({}, {}))() == error
    assert got == [f"GET /one HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX: y\r\n\r\n".encode()]


def test_a_service_that_is_not_there_gives_no_answer() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        assert "refused" in work_of(asking(port), None, Ports({}, {}))()


def test_there_is_never_more_than_one_and_one_that_waited_is_late() -> None:
    begun, may_end, at_once = threading.Semaphore(0), threading.Semaphore(0), list[int]()

    def work() -> str:
        at_once.append(1)
        begun.release()
        may_end.acquire()
        at_once.pop()
        return "" if not at_once else "two at once"

    unit, now_s = Unit(work, Clocks()), time.monotonic()
    unit.begin(now_s)
    assert begun.acquire(timeout=WITHIN_S) and unit.running
    for _ in range(2):  # the first of them waits, the second one is left out
        unit.begin(now_s)
    assert unit.finished() == [] and unit.skipped == 1
    may_end.release()
    (first,) = done(unit, 1)
    assert first.error == "" and first.response_s >= first.late_s
    await_that(lambda: begun.acquire(timeout=0.01) or unit.finished(), "begun once it is asked what has ended")
    may_end.release()
    (second,) = done(unit, 1)
    assert second.error == "" and second.late_s > first.late_s


def fails() -> str:
    raise TargetError("`submit-one` ended with exit status 1", remedy="Correct it.")


def breaks() -> str:
    raise ZeroDivisionError


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("work", "error"), [(fails, "exit status 1"), (breaks, "a fault of Loadframe")])
def test_one_that_fails_is_told_and_the_next_one_is_begun(work: Callable[[], str], error: str) -> None:
    unit = Unit(work, Clocks())
    for _ in range(2):
        unit.begin(time.monotonic())
        (one,) = done(unit, 1)
        assert error in one.error
        await_that(lambda: not unit.running, "it has ended")
