"""Squid as data: its settings, how its configuration file has them, and its counters.

Defaults and meanings were read from Squid 5.7's squid.conf.documented; what an installed Squid does not take it says
itself (`squid -k parse`). A directive with several values is several settings here, named directive_value.
"""

from __future__ import annotations

from loadframe.kinds.catalogue import Catalogue, SettingSpec
from loadframe.model import CounterSpec

MOST = 2**31 - 1
MB = 1 << 20
DOCUMENTED = "squid.conf.documented"
POLICIES = ("lru", "heap GDSF", "heap LFUDA", "heap LRU")


def _bytes(name: str, low: int, default: int, *, dynamic: bool = True, takes: str | None = None) -> SettingSpec:
    return SettingSpec(name, "bytes", dynamic, low, None, (), default, source=DOCUMENTED, takes=takes)


def _integer(
    name: str, low: int, high: int, default: int | None, *, dynamic: bool, source: str = "", takes: str | None = None
) -> SettingSpec:
    return SettingSpec(
        name, "integer", dynamic, low, high, (), default, source=source or f"{DOCUMENTED}, {name}", takes=takes
    )


def _switch(name: str, default: bool, *, dynamic: bool = True, takes: str | None = None) -> SettingSpec:
    return SettingSpec(name, "boolean", dynamic, default=default, source=DOCUMENTED, takes=takes)


def _choice(name: str, choices: tuple[str, ...], *, dynamic: bool, takes: str | None = None) -> SettingSpec:
    return SettingSpec(name, "text", dynamic, None, None, choices, choices[0], source=DOCUMENTED, takes=takes)


def _duration(name: str, unit: str, default: int, source: str = DOCUMENTED) -> SettingSpec:
    return SettingSpec(name, "duration", True, 0, MOST, (), default, source=source, unit=unit)


CATALOGUE = Catalogue(
    kind="squid",
    source="The settings are directives of squid.conf; those of several values are named directive_value.",
    specs=(
        # objects in memory
        _bytes("cache_mem", 0, 256 * MB, takes="this much memory once it is full, and what is under way beyond it"),
        _bytes("maximum_object_size_in_memory", 0, 512 << 10),
        _choice("memory_replacement_policy", POLICIES, dynamic=False),
        _choice("memory_cache_mode", ("always", "disk", "network"), dynamic=True),
        # objects on the disk
        _choice("cache_dir_kind", ("none", "ufs", "aufs", "rock"), dynamic=False, takes="with aufs 16 threads or more"),
        SettingSpec(
            "cache_dir_size", "bytes", False, MB, 1 << 50, (), 100 * MB, source=f"{DOCUMENTED}; in whole MiB there",
            takes="this much disk space, with rock at once; an index in memory, 14 MB for each GB of small objects",
        ),
        _integer(
            "cache_dir_l1", 1, 256, 16, dynamic=False, source=f"{DOCUMENTED}, cache_dir; not of rock",
            takes="number of folders, with l2 more in each",
        ),
        _integer(
            "cache_dir_l2", 1, 256, 16, dynamic=False,
            source=f"{DOCUMENTED}, cache_dir: 256 there; ours are made in 0.05 s, and serve 65,536 objects well",
        ),
        _bytes("maximum_object_size", 0, 4 * MB, dynamic=False),
        _choice("cache_replacement_policy", POLICIES, dynamic=False),
        _integer("cache_swap_low", 0, 100, 90, dynamic=True),
        _integer("cache_swap_high", 0, 100, 95, dynamic=True),
        _integer("max_open_disk_fds", 0, MOST, 0, dynamic=True),
        _bytes("store_avg_object_size", 1, 13 << 10, dynamic=False),
        # for how long, and how they are fetched
        _duration(
            "refresh_pattern_min", "min", 1440,
            f"{DOCUMENTED}, refresh_pattern: 0 there; ours has nothing go stale in the middle of a study",
        ),
        _switch("collapsed_forwarding", False),
        _bytes("read_ahead_gap", 1, 16 << 10, takes="for each fetch in progress"),
        # the process, and what it may hold
        _integer(
            "workers", 1, 1, 1, dynamic=False,
            source="more than one meet in /run/squid, which belongs to the installed server alone",
        ),
        _integer("max_filedescriptors", 32, MOST, None, dynamic=False, takes="a table in memory, from the start"),
        _switch("memory_pools", True),
        _bytes("memory_pools_limit", 1, 5 * MB, takes="this much memory that is not in use"),
        # connections
        _integer("client_ip_max_connections", -1, MOST, -1, dynamic=True),
        _switch("client_persistent_connections", True),
        _switch("server_persistent_connections", True),
        _duration("client_idle_pconn_timeout", "s", 120),
        _duration("server_idle_pconn_timeout", "s", 60),
    ),
)  # fmt: skip
"""dynamic: a reconfiguration (SIGHUP) gives what a restart would. cache_dir_*: a change begins with nothing cached."""


def _count(name: str) -> CounterSpec:
    return CounterSpec(name, f"squid.{name}", cumulative=True)


def _gauge(name: str) -> CounterSpec:
    return CounterSpec(name, f"squid.{name}", cumulative=False)


COUNTERS = {
    "client_http.requests": _count("requests"),
    "client_http.hits": _count("hits"),
    "client_http.errors": _count("requests_failed"),
    "server.all.requests": _count("fetches"),
    "server.all.errors": _count("fetches_failed"),
    "swap.ins": _count("disk_reads"),
    "swap.outs": _count("disk_writes"),
}
"""By what the cache manager calls them, mgr:counters."""

FOLLOWING = (_count("misses"), _count("not_in_memory"), _count("evictions"))
"""Requests less hits; fetches and reads from the disk; objects written to the disk that are no longer there."""

GAUGES = {
    "Storage Mem size": _gauge("memory_used"),
    "Storage Swap size": _gauge("disk_used"),
    "on-disk objects": _gauge("objects_on_disk"),
    "Store Disk files open": _gauge("disk_files_open"),
}
"""By what it calls them, mgr:info."""

HELD = tuple(
    _gauge(name)
    for name in (
        "memory_size", "disk_allowed", "descriptors", "descriptors_allowed", "client_connections",
        "client_connections_allowed",
    )
)  # fmt: skip
"""cache_mem; what cache_swap_low leaves of cache_dir_size; of max_filedescriptors what is not kept in reserve; what is
connected, and what may be: client_ip_max_connections beside our own, which Squid lets have one more than it says."""

LOGGED = (_count("connections_refused"), _count("descriptors_short"))
"""Counted in the log, as Squid keeps no counter of them."""
