"""Squid as data: its settings, how its configuration file has them, and its counters."""

from functools import partial
from pathlib import Path

from loadframe.kinds.catalogue import catalogue_in, count, gauge
from loadframe.kinds.tunable import tunables_in

_FILE = Path(__file__).with_name("settings.toml")
CATALOGUE, TUNABLES = catalogue_in(_FILE), tunables_in(_FILE)
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
