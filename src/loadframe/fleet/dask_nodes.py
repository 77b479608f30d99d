"""What a scheduler of dask and its workers say of themselves: their settings, who is there, and where they listen.

What is asked goes there by value, as a function within a function does: a scheduler may have no Loadframe. Where a node
listens is asked of itself. The address that others know it by tells less: one that listens on every address is known by
the one through which it was first reached, which may be of the loopback.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

ENCRYPTED = ("tls://", "inproc://")
"""Listeners of dask that let no stranger in: both ends show a certificate (distributed.security asks for it), or there
is no port."""
ASKED_WITHIN_S = 20.0


@dataclass(frozen=True, slots=True)
class Seen:
    """A worker that the scheduler has. address: by which tasks name it; number: of this worker, which none has that
    comes later, also at the same address."""

    address: str
    number: str
    threads: int
    nanny: str


def settings_of(client: Any) -> tuple[int, bool]:
    """Of the scheduler: how often a task may be lost with its worker and is begun again, and whether tasks move."""

    def asked(dask_scheduler: Any) -> tuple[int, bool]:
        return int(dask_scheduler.allowed_failures), "stealing" in dask_scheduler.extensions

    failures, steals = client.run_on_scheduler(asked, callback_timeout=ASKED_WITHIN_S)
    return int(failures), bool(steals)


def workers_of(client: Any) -> Mapping[str, Seen]:
    """By the names under which they were started."""

    def asked(dask_scheduler: Any) -> dict[str, tuple[str, str, int, str]]:
        return {
            str(each.name): (str(each.address), str(each.server_id), int(each.nthreads), str(each.nanny or ""))
            for each in dask_scheduler.workers.values()
        }

    told = client.run_on_scheduler(asked, callback_timeout=ASKED_WITHIN_S)
    return {str(name): Seen(*worker) for name, worker in told.items()}


def open_of_scheduler(client: Any) -> tuple[str, ...]:
    """Where strangers reach it."""
    return strangers_reach(client.run_on_scheduler(_listening(), callback_timeout=ASKED_WITHIN_S))


def open_of_worker(client: Any, worker: Seen) -> tuple[str, ...]:
    """Where strangers reach it, or the nanny that has started it. What dask raises where one has gone."""
    found: list[str] = []
    for address, nanny in ((worker.address, False), (worker.nanny, True)):
        if address:
            told = client.run(_listening(), workers=[worker.address], nanny=nanny, callback_timeout=ASKED_WITHIN_S)
            if not told:
                raise ConnectionError(f"nothing answers at {address}")
            found += [each for places in told.values() for each in places]
    return strangers_reach(found)


def _listening() -> Callable[..., list[str]]:
    def asked(dask_scheduler: Any = None, dask_worker: Any = None) -> list[str]:
        node = dask_worker if dask_scheduler is None else dask_scheduler
        servers = [(each.prefix, each.tcp_server) for each in node.listeners if hasattr(each, "tcp_server")]
        found = [str(each.listen_address) for each in node.listeners if not hasattr(each, "tcp_server")]
        if getattr(node, "http_server", None) is not None:
            servers.append(("http://", node.http_server))
        for scheme, server in servers:
            for end in server._sockets.values():  # of tornado, which tells them in no other way
                host, port = end.getsockname()[:2]
                found.append(f"{scheme}[{host}]:{port}" if ":" in host else f"{scheme}{host}:{port}")
        return found

    return asked


def strangers_reach(listening: Iterable[str]) -> tuple[str, ...]:
    """Those of these addresses that are neither of the loopback nor open to holders of a certificate alone. Pages are
    for everyone, also encrypted ones."""
    return tuple(each for each in listening if not each.startswith(ENCRYPTED) and not _is_loopback(each))


def _is_loopback(address: str) -> bool:
    host = address.partition("://")[2].rpartition(":")[0].strip("[]").partition("%")[0]
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name: who knows where it leads
        return False
