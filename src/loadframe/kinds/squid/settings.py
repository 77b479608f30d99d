"""Squid as data: its settings, how its configuration file has them, and its counters.

Defaults and meanings were read from Squid 5.7's squid.conf.documented; what an installed Squid does not take it says
itself (`squid -k parse`). A directive with several values is several settings here, named directive_value.
"""

from __future__ import annotations

from functools import partial

from loadframe.kinds.catalogue import Catalogue, count, gauge, specs_from
from loadframe.kinds.tunable import SWITCH, Tunable

MOST = 2**31 - 1
MB = 1 << 20
DOCUMENTED = "squid.conf.documented"
POLICIES = ("lru", "heap GDSF", "heap LFUDA", "heap LRU")


_row = specs_from(DOCUMENTED)
CATALOGUE = Catalogue(
    kind="squid",
    source="The settings are directives of squid.conf; those of several values are named directive_value.",
    specs=(
        # objects in memory
        _row(
            "cache_mem", "bytes", True, 0, default=256 * MB,
            takes="this much memory once it is full, and what is under way beyond it",
        ),
        _row("maximum_object_size_in_memory", "bytes", True, 0, default=512 << 10),
        _row("memory_replacement_policy", "text", False, default=POLICIES[0], choices=POLICIES),
        _row("memory_cache_mode", "text", True, default="always", choices=("always", "disk", "network")),
        # objects on the disk
        _row(
            "cache_dir_kind", "text", False, default="none", choices=("none", "ufs", "aufs", "rock"),
            takes="with aufs 16 threads or more",
        ),
        _row(
            "cache_dir_size", "bytes", False, MB, 1 << 50, 100 * MB, source=f"{DOCUMENTED}; in whole MiB there",
            takes="this much disk space, with rock at once; an index in memory, 14 MB for each GB of small objects",
        ),
        _row(
            "cache_dir_l1", "integer", False, 1, 256, 16, source=f"{DOCUMENTED}, cache_dir; not of rock",
            takes="number of folders, with l2 more in each",
        ),
        _row(
            "cache_dir_l2", "integer", False, 1, 256, 16,
            source=f"{DOCUMENTED}, cache_dir: 256 there; ours are made in 0.05 s, and serve 65,536 objects well",
        ),
        _row("maximum_object_size", "bytes", False, 0, default=4 * MB),
        _row("cache_replacement_policy", "text", False, default=POLICIES[0], choices=POLICIES),
        _row("cache_swap_low", "integer", True, 0, 100, 90),
        _row("cache_swap_high", "integer", True, 0, 100, 95),
        _row("max_open_disk_fds", "integer", True, 0, MOST, 0),
        _row("store_avg_object_size", "bytes", False, 1, default=13 << 10),
        # for how long, and how they are fetched
        _row(
            "refresh_pattern_min", "duration", True, 0, MOST, 1440, unit="min",
            source=f"{DOCUMENTED}, refresh_pattern: 0 there; ours has nothing go stale in the middle of a study",
        ),
        _row("collapsed_forwarding", "boolean", True, default=False),
        _row("read_ahead_gap", "bytes", True, 1, default=16 << 10, takes="for each fetch in progress"),
        # the process, and what it may hold
        _row(
            "workers", "integer", False, 1, 1, 1,
            source="more than one meet in /run/squid, which belongs to the installed server alone",
        ),
        _row("max_filedescriptors", "integer", False, 32, MOST, takes="a table in memory, from the start"),
        _row("memory_pools", "boolean", True, default=True),
        _row("memory_pools_limit", "bytes", True, 1, default=5 * MB, takes="this much memory that is not in use"),
        # connections
        _row("client_ip_max_connections", "integer", True, -1, MOST, -1),
        _row("client_persistent_connections", "boolean", True, default=True),
        _row("server_persistent_connections", "boolean", True, default=True),
        _row("client_idle_pconn_timeout", "duration", True, 0, MOST, 120, unit="s"),
        _row("server_idle_pconn_timeout", "duration", True, 0, MOST, 60, unit="s"),
    ),
)  # fmt: skip
"""dynamic: a reconfiguration (SIGHUP) gives what a restart would. cache_dir_*: a change begins with nothing cached."""


_gauge, _count = partial(gauge, "squid"), partial(count, "squid")
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

TUNABLES = (
    Tunable("cache_mem", low=8 * MB, high=None, unit_bytes=1),
    Tunable("maximum_object_size_in_memory", low=64 << 10, high=16 * MB),
    Tunable("memory_replacement_policy", values=("lru", "heap GDSF", "heap LFUDA", "heap LRU")),
    Tunable("collapsed_forwarding", values=SWITCH),
    Tunable("memory_pools_limit", low=MB, high=256 * MB, unit_bytes=1),
)
"""What a search may vary, and how far; the most promising first."""
