"""Requests of Loadframe's own. After a load there may be no answer until what it used up is free again."""

import errno
import os
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

from loadframe.connections.http_connection import ERRORS, Connection, body
from loadframe.errors import NotRecovered, TargetError
from loadframe.formats.said import why as in_words
from loadframe.formats.said import words
from loadframe.model import Endpoint
from loadframe.units import show

TIMEOUT_S = 10.0
WHOLE_S = 60.0
LARGEST_OBJECT = 256 << 20
HEADERS_BYTES = 1 << 20
RECOVERS_WITHIN_S = 75.0
"""What a step used up comes back in that time: ports stay in TIME_WAIT for 60 s (tcp(7))."""
STARTED_AGAIN_AFTER_S = 20.0
"""Less for a server that Loadframe can restart: two requests without an answer (TIMEOUT_S); our choice."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
NO_PORTS = frozenset({errno.EADDRNOTAVAIL, errno.EAGAIN})
_OF_PORTS = frozenset(map(os.strerror, NO_PORTS))
Met = TypeVar("Met")


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    headers: Sequence[tuple[str, str]] = ()


def host_of(endpoint: Endpoint) -> str:
    return endpoint.options.get("host", endpoint.address)


def ask(
    endpoint: Endpoint, path: str, method: str = "GET", headers: Sequence[tuple[str, str]] = (), content: bytes = b""
) -> Answer:
    """One request on a connection of its own. TargetError if no answer is complete within WHOLE_S."""
    most, host = LARGEST_OBJECT + HEADERS_BYTES, host_of(endpoint)
    connection = Connection(endpoint.address, host=host, most_bytes=most, within_s=WHOLE_S, silent_s=TIMEOUT_S)
    try:
        with closing(connection):
            answer = connection.send_as(method, path, headers, content)
            return Answer(answer.status, body(answer), answer.getheaders())
    except ERRORS as error:
        raise TargetError(
            f"The server at {endpoint.address} does not answer {path}: {in_words(error)}",
            remedy="Check that it runs and listens there; its log says why it would not.",
        ) from error


def strange(endpoint: Endpoint, path: str, what: str, remedy: str) -> TargetError:
    return TargetError(f"The server at {endpoint.address} answers {path} with {what}", remedy=remedy)


def met(
    endpoint: Endpoint, path: str, ask: Callable[[], Met], refused: Callable[[Met], bool] = lambda _: False
) -> tuple[Met, float]:
    """What `ask` returns once there is an answer that is not refused, and for how long (s) it was repeated. When that
    has taken long enough: the refused answer, or NotRecovered if there was none; TargetError for any other failure."""
    begun_s, pause_s, again_s = time.monotonic(), FIRST_PAUSE_S, 0.0
    while True:
        failure: TargetError | None = None
        why = ""
        try:
            if not refused(answer := ask()):
                return answer, again_s
        except TargetError as error:
            failure, cause = error, error.__cause__
            lost = isinstance(cause, ConnectionError | TimeoutError)
            if not isinstance(cause, OSError) or not (lost or cause.errno in NO_PORTS):
                raise
            why = words(cause.strerror or cause) or type(cause).__name__
        waits = endpoint.attached or why in _OF_PORTS  # a restart frees no ports
        within_s = RECOVERS_WITHIN_S if waits else min(STARTED_AGAIN_AFTER_S, RECOVERS_WITHIN_S)
        if (waited_s := time.monotonic() - begun_s) + pause_s > within_s:
            if failure is not None:
                raise NotRecovered(
                    f"The server at {endpoint.address} does not answer{path and ' '}{path} ({why}), and did not for "
                    f"{show(waited_s, 's')} after the load had ended; before it, it answered",
                    remedy="See whether it has ended, and why: its log, its exit status, the kernel's log where memory "
                    "ran out. Start it before it is measured again, or measure lower loads.",
                    path=path,
                    waited_s=waited_s,
                    why=why,
                ) from failure
            return answer, waited_s
        time.sleep(pause_s)
        again_s = time.monotonic() - begun_s
        pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)
