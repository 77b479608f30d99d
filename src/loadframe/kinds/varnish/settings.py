"""Varnish as data: its settings and its counters."""

from pathlib import Path

from loadframe.kinds.catalogue import catalogue_in, counters_in, tunables_in

_FILE, _METRICS = (Path(__file__).with_name(name) for name in ("settings.toml", "metrics.txt"))
CATALOGUE, TUNABLES = catalogue_in(_FILE), tunables_in(_FILE)
"""dynamic: the running cache process takes the new value at once, for all that comes after."""

COUNTERS = counters_in(_METRICS, "vsc")
"""varnish-counters(7). STORAGE: of the storage for objects, whatever its kind."""
ALL_COUNTERS = tuple(counters_in(_METRICS).values())
"""Also thread_pools times thread_pool_max, and storage_size, all as they are in effect."""
