"""The server of the live page: on loopback, until a signal ends it."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from loadframe.errors import MachineError
from loadframe.host.signals import STOPPING
from loadframe.live.app import application
from loadframe.live.guard import Secrets
from loadframe.live.hub import MOST_SUBSCRIBERS, Hub
from loadframe.live.metrics import Export
from loadframe.live.places import Places

ADDRESS = "127.0.0.1"
MOST_CONNECTIONS = MOST_SUBSCRIBERS + 64
ENDS_WITHIN_S = 2


@dataclass(frozen=True, slots=True)
class Address:
    """Where the page is. url: with the token, for its user alone."""

    port: int
    token: str

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.port}/#token={self.token}"


class _Server(uvicorn.Server):
    """Signals are ours: what the caller ignores stays ignored."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(runs: Sequence[Path], *, export: Export, port: int = 0, told: Callable[[Address], None]) -> None:
    """Show these runs until SIGINT, SIGTERM or SIGHUP comes. export: what /metrics says of one. told: is told the
    address once it answers. port 0: any that is free. RunError for a path that holds no runs, MachineError where the
    port cannot be had."""
    places, known, hub = Places(runs), Secrets(), Hub()
    with _listening(port) as listener:
        address = Address(listener.getsockname()[1], known.token)
        names = frozenset(f"{name}:{address.port}" for name in (ADDRESS, "localhost"))
        config = uvicorn.Config(
            application(places, hub, known, lambda: names, export),
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            http="h11",
            loop="asyncio",
            limit_concurrency=MOST_CONNECTIONS,
            timeout_graceful_shutdown=ENDS_WITHIN_S,
        )
        asyncio.run(_serve(_Server(config), hub, listener, lambda: told(address)))


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
