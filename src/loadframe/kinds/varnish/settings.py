"""Varnish as data: its settings and its counters."""

from functools import partial
from pathlib import Path

from loadframe.kinds.catalogue import catalogue_in, count, gauge
from loadframe.kinds.tunable import tunables_in
from loadframe.model import CounterSpec

MOST_THREADS = 5000
"""In a pool, by default."""

_FILE = Path(__file__).with_name("settings.toml")
CATALOGUE, TUNABLES = catalogue_in(_FILE), tunables_in(_FILE)
"""dynamic: the running cache process takes the new value at once, for all that comes after."""


_gauge, _count = partial(gauge, "varnish"), partial(count, "varnish")

COUNTERS: dict[str, CounterSpec] = {
    "MAIN.client_req": _count("requests"),
    "MAIN.cache_hit": _count("hits"),
    "MAIN.cache_miss": _count("misses"),
    "MAIN.backend_req": _count("fetches"),
    "MAIN.fetch_failed": _count("fetches_failed"),
    "MAIN.n_lru_nuked": _count("evictions"),
    "MAIN.n_lru_limited": _count("evictions_limited"),
    "MAIN.threads_limited": _count("threads_limited"),
    "MAIN.threads_failed": _count("threads_failed"),
    "MAIN.sess_queued": _count("sessions_queued"),
    "MAIN.sess_dropped": _count("sessions_dropped"),
    "MAIN.req_dropped": _count("requests_dropped"),
    "MAIN.sess_fail": _count("sessions_failed"),
    "MAIN.sess_fail_emfile": _count("descriptors_refused"),
    "MAIN.threads": _gauge("threads"),
    "MAIN.thread_queue_len": _gauge("thread_queue"),
    "MAIN.n_object": _gauge("objects"),
    "STORAGE.g_bytes": _gauge("storage_used"),
    "STORAGE.g_space": _gauge("storage_free"),
}
"""varnish-counters(7). STORAGE: of the storage for objects, whatever its kind."""

CEILINGS = (_gauge("threads_allowed"), _gauge("storage_size"))
"""thread_pools times thread_pool_max; storage_size, all as they are in effect."""
