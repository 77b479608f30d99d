"""Squid as data: its settings and its counters."""

from pathlib import Path

from loadframe.kinds.catalogue import catalogue_in, counters_in, tunables_in

_FILE, _METRICS = (Path(__file__).with_name(name) for name in ("settings.toml", "metrics.txt"))
CATALOGUE, TUNABLES = catalogue_in(_FILE), tunables_in(_FILE)
"""dynamic: a reconfiguration (SIGHUP) gives what a restart would. cache_dir_*: a change begins with an empty cache."""

COUNTERS, GAUGES = counters_in(_METRICS, "counters"), counters_in(_METRICS, "info")
"""By the cache manager's names, mgr:counters and mgr:info."""
ALL_COUNTERS = tuple(counters_in(_METRICS).values())
"""Of these, following: requests minus hits; fetches and reads from the disk; objects written to the disk that are no
longer there. held: cache_mem; cache_swap_low's share of cache_dir_size; descriptors without the reserve; connections,
and their limit: client_ip_max_connections without ours, as Squid allows one more than it says. log: counted in the log,
as Squid keeps no counter of them."""
