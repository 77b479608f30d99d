"""Remedies of nginx, as a web server and as a cache."""

import math

from loadframe.knowledge.remedy import (
    OTHER_FILES,
    RESERVE,
    Builders,
    Situation,
    link,
    round_up,
    server_change,
    text,
    whole,
)
from loadframe.model import Change, Price, Remedy

FILES_PER_CONNECTION = 2
OTHER_CONNECTIONS = 10
"""Connections of a worker besides clients': its listening sockets, the channel to its master, and one reader of its
status."""


def _raise_worker_connections(situation: Situation) -> Remedy | None:
    limit, workers = "nginx.worker_connections", whole(situation.effective, "worker_processes", 1)
    ceiling = situation.ceilings.get(limit)
    if ceiling is None:
        return None
    wanted = max(RESERVE * (situation.demands.get(limit) or 4 * ceiling), 2 * ceiling)
    connections = round_up(OTHER_CONNECTIONS + wanted / workers)
    files = OTHER_FILES + FILES_PER_CONNECTION * connections
    return Remedy(
        id=f"{limit}.raise",
        title=f"allow {connections:,} connections per worker",
        addresses=(limit,),
        changes=(
            *_worker_files(situation, files, "a descriptor for each connection, and one for its file"),
            server_change(
                situation, "worker_connections", connections, "the connections of the highest level, plus a fifth"
            ),
        ),
        price=Price(note="memory for each connection in every worker, from the start"),
        source="nginx documentation, worker_connections: it cannot exceed the limit on open files",
    )


def _raise_worker_files(situation: Situation) -> Remedy | None:
    connections = whole(situation.effective, "worker_connections", 512)
    files = max(
        OTHER_FILES + FILES_PER_CONNECTION * connections, 2 * whole(situation.effective, "worker_rlimit_nofile", 0)
    )
    files = min(round_up(files), situation.most_open_files)
    if files <= whole(situation.effective, "worker_rlimit_nofile", 0):
        return None  # the machine allows no more
    return Remedy(
        id="nginx.worker_rlimit_nofile.raise",
        title=f"allow {files:,} open files per worker",
        addresses=("nginx.worker_rlimit_nofile", "process.open_files"),
        changes=_worker_files(situation, files, "two for each connection of a worker, and others"),
        price=Price(note="kernel memory for each open file"),
        source="nginx-proxy/nginx-proxy, issue 2387: at least twice worker_connections",
    )


def _worker_files(situation: Situation, files: int, why: str) -> tuple[Change, ...]:
    return (
        link(situation, "process", "RLIMIT_NOFILE", files, f"a worker can have no more than the process: {why}"),
        link(situation, "server", "worker_rlimit_nofile", files, why),
    )


def _more_workers(situation: Situation) -> Remedy | None:
    limits = ("process.cpus", "cage.cpu_quota", "cpu.saturated")
    allowed = min(situation.ceilings.get(name, math.inf) for name in limits)
    now = whole(situation.effective, "worker_processes", 1)
    if not now < allowed < math.inf:
        return None
    cpus = math.ceil(allowed)
    return Remedy(
        id="nginx.worker_processes.raise",
        title=f"start {cpus} workers",
        addresses=("nginx.worker_processes",),
        changes=(server_change(situation, "worker_processes", cpus, "one for each CPU that it may use"),),
        price=Price(note="the CPUs are then not free for other processes"),
        source="nginx documentation, worker_processes",
    )


def _read_in_threads(situation: Situation) -> Remedy | None:
    if text(situation.effective, "aio") == "threads":
        return None
    return Remedy(
        id="nginx.aio.threads",
        title="read files in a thread pool",
        addresses=("nginx.blocked_workers",),
        changes=(server_change(situation, "aio", "threads", "a worker serves other requests while the disk is read"),),
        price=Price(note="32 threads in each worker; a file that is in memory takes a little longer"),
        source="nginx documentation, aio: threads",
    )


def _keep_connections(situation: Situation) -> Remedy | None:
    defaults = {"keepalive_timeout": 75, "keepalive_requests": 1000}
    changes = tuple(
        server_change(situation, name, value, "the default: clients ask again over the same connection")
        for name, value in defaults.items()
        if whole(situation.effective, name, value) < value
    )
    if not changes:
        return None  # it is the clients that do not keep them
    return Remedy(
        id="nginx.keepalive.raise",
        title="keep connections open for the next request",
        addresses=("nginx.keepalive",),
        changes=changes,
        price=Price(note="idle clients keep a connection of a worker"),
        source="nginx documentation, keepalive_requests, keepalive_timeout",
    )


BUILDERS: Builders = {
    "process.open_files": (_raise_worker_files,),
    "nginx.worker_connections": (_raise_worker_connections,),
    "nginx.worker_rlimit_nofile": (_raise_worker_files,),
    "nginx.worker_processes": (_more_workers,),
    "nginx.blocked_workers": (_read_in_threads,),
    "nginx.keepalive": (_keep_connections,),
}
