"""The server of the live page, on loopback. Every user of the machine can connect to it. So connections are limited;
idle ones are closed, and without the key also those that do not read their answer; where all are taken, the oldest
without the key is closed; and the log of all this does not grow."""

import asyncio
import logging
import math
import resource
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from loadframe.errors import MachineError
from loadframe.host.signals import STOPPING
from loadframe_live.app import HAS_KEY, Secrets, application
from loadframe_live.hub import MOST_SUBSCRIBERS, Hub
from loadframe_live.shown import Places
from loadframe_live.view import Reads

ADDRESS = "127.0.0.1"
MOST_CONNECTIONS = MOST_SUBSCRIBERS + 64
FEWEST_CONNECTIONS, RESERVED = 8, 64
"""Descriptors (ulimit -n) for reading runs and for connections that are being refused."""
ACCEPTED_AT_ONCE = 16
ASKS_WITHIN_S = 5.0
"""A request's headers must arrive so long after the connection or the previous answer."""
TAKES_WITHIN_S = 10.0
"""A client without the key must have read the answer so long after that."""
LOGGED_EVERY_S = 60.0
ENDS_WITHIN_S = 2


@dataclass(frozen=True, slots=True)
class Address:
    """url: with the token, for its user only."""

    port: int
    token: str

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.port}/#token={self.token}"


class _Server(uvicorn.Server):
    """Leaves signals to the caller: what it ignores stays ignored."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Connection(H11Protocol):
    """uvicorn's own waits for headers and for readers for ever, and accepts until no descriptor is left."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_a_request()
        there = [other for other in self.connections if isinstance(other, _Connection) and other.is_open]
        if len(there) > most_connections():
            others = [other for other in there if other is not self and not (other.has_key and other.is_busy)]
            min(others, key=lambda other: (other.has_key, other._since), default=self).transport.abort()

    @property
    def is_open(self) -> bool:
        return not self.transport.is_closing()

    @property
    def is_busy(self) -> bool:
        answering = self.cycle is not None and not self.cycle.response_complete
        return answering or self.transport.get_write_buffer_size() > 0

    @property
    def has_key(self) -> bool:
        """Whether its last request came with the token, or with a ticket."""
        return self.scope is not None and HAS_KEY in self.scope["state"]

    def _expect_a_request(self) -> None:
        self._since = self.loop.time()
        self._too_late = self.loop.call_later(ASKS_WITHIN_S, self._close_if_late)

    def _close_if_late(self) -> None:
        within_s = ASKS_WITHIN_S if not self.is_busy else math.inf if self.has_key else TAKES_WITHIN_S
        if self.loop.time() - self._since >= within_s:
            self.transport.abort()
        else:
            self._too_late = self.loop.call_later(ASKS_WITHIN_S, self._close_if_late)

    def on_response_complete(self) -> None:
        self._too_late.cancel()
        self._expect_a_request()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._too_late.cancel()
        super().connection_lost(exc)


def most_connections() -> int:
    """Also limited by the available descriptors."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(FEWEST_CONNECTIONS, min(MOST_CONNECTIONS, descriptors - RESERVED))


class _Seldom(logging.Filter):
    """Lets each place in the code log once in LOGGED_EVERY_S, with the number of messages left out since."""

    def __init__(self) -> None:
        super().__init__()
        self._logged: dict[tuple[str, int], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        place, now = (record.pathname, record.lineno), time.monotonic()
        since, left_out = self._logged.get(place, (-LOGGED_EVERY_S, 0))
        if now - since < LOGGED_EVERY_S:
            self._logged[place] = (since, left_out + 1)
            return False
        if left_out:
            record.msg = f"{record.msg} ({left_out:,} more were not logged)"
        self._logged[place] = (now, 0)
        return True


def serve(runs: Sequence[Path], *, reads: Reads, port: int = 0, ready: Callable[[Address], None]) -> None:
    """Until a signal comes. ready: called with the address once it answers. port 0: any free one. RunError for a path
    that holds no runs, MachineError where the port is not available."""
    places, known, hub = Places(runs), Secrets(), Hub()
    for name in ("asyncio", "uvicorn.error"):
        logging.getLogger(name).addFilter(_Seldom())
    with _listening(port) as listener:
        address = Address(listener.getsockname()[1], known.token)
        names = frozenset(f"{name}:{address.port}" for name in (ADDRESS, "localhost"))
        config = uvicorn.Config(
            application(places, hub, known, lambda: names, reads),
            log_config=None, access_log=False, server_header=False, proxy_headers=False, ws="none", http=_Connection,
            loop="asyncio", backlog=ACCEPTED_AT_ONCE, timeout_graceful_shutdown=ENDS_WITHIN_S,
        )  # fmt: skip
        asyncio.run(_serve(_Server(config), hub, listener, lambda: ready(address)))


async def _serve(server: uvicorn.Server, hub: Hub, listener: socket.socket, begun: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()

    def stop() -> None:
        hub.close()
        server.should_exit = True

    for number in STOPPING:
        if signal.getsignal(number) != signal.SIG_IGN:
            loop.add_signal_handler(number, stop)
    serving = asyncio.create_task(server.serve([listener]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    if not serving.done():
        begun()
    await serving


@contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((ADDRESS, port))
        except (OSError, OverflowError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no port"
            raise MachineError(
                f"The page cannot be served on port {port}: {why}",
                remedy="Choose another with --port, or leave it out.",
            ) from error
        yield listener
