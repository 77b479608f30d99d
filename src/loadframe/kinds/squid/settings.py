"""Squid as data: its settings, how its configuration file has them, and its counters."""

from pathlib import Path

from loadframe.kinds.catalogue import catalogue_in, counters_in, tunables_in

_FILE, _METRICS = (Path(__file__).with_name(name) for name in ("settings.toml", "metrics.txt"))
CATALOGUE, TUNABLES = catalogue_in(_FILE), tunables_in(_FILE)
"""dynamic: a reconfiguration (SIGHUP) gives what a restart would. cache_dir_*: a change begins with nothing cached."""

COUNTERS = counters_in(_METRICS, "counters")
"""By what the cache manager calls them, mgr:counters."""
FOLLOWING = tuple(counters_in(_METRICS, "following").values())
"""Requests less hits; fetches and reads from the disk; objects written to the disk that are no longer there."""
GAUGES = counters_in(_METRICS, "info")
"""By what it calls them, mgr:info."""
HELD = tuple(counters_in(_METRICS, "held").values())
"""cache_mem; what cache_swap_low leaves of cache_dir_size; of max_filedescriptors what is not kept in reserve; what is
connected, and what may be: client_ip_max_connections beside our own, which Squid lets have one more than it says."""
LOGGED = tuple(counters_in(_METRICS, "log").values())
"""Counted in the log, as Squid keeps no counter of them."""
