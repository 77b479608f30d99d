"""Varnish as data: its settings and its counters.

Bounds, defaults and meanings of parameters were read from Varnish 7.1 itself (`varnishd -x parameter`), of storage from
varnishd(1); what an installed Varnish does not take it says itself. storage_* are options of its -s.
"""

from __future__ import annotations

from functools import partial

from loadframe.kinds.catalogue import Catalogue, count, gauge, specs_from
from loadframe.kinds.tunable import Tunable
from loadframe.model import CounterSpec

PARAMETERS, STORAGE = "varnishd -x parameter", "varnishd(1), -s"
PAGE = 4096
MOST_THREADS = 5000
"""In a pool, by default."""


_row = specs_from(PARAMETERS)
CATALOGUE = Catalogue(
    kind="varnish",
    source="The settings are parameters of varnishd, and storage_kind, storage_size and storage_granularity.",
    specs=(
        # where objects are
        _row("storage_kind", "text", False, default="malloc", choices=("malloc", "file"), source=STORAGE),
        _row(
            "storage_size", "bytes", False, 1 << 20, default=256 << 20, source="unbounded there; the default is ours",
            takes="this much memory; with storage_kind = file so much disk space at once, and page cache",
        ),
        _row("storage_granularity", "bytes", False, PAGE, 1 << 30, PAGE, source=STORAGE),
        _row("fetch_chunksize", "bytes", True, PAGE, default=16 << 10),
        _row("fetch_maxchunksize", "bytes", True, 64 << 10, default=1 << 28),
        _row("nuke_limit", "integer", True, 0, default=50),
        _row("lru_interval", "number", True, 0, default=2.0, unit="s"),
        # for how long
        _row(
            "default_ttl", "number", True, 0, default=86400.0, unit="s",
            source="120 s there; ours has nothing go stale in the middle of a study",
        ),
        _row("default_grace", "number", True, 0, default=10.0, unit="s"),
        _row("default_keep", "number", True, 0, default=0.0, unit="s"),
        # threads
        _row("thread_pools", "integer", False, 1, 32, 2, takes="thread_pool_min threads each, at once"),
        _row("thread_pool_min", "integer", False, 5, default=100, takes="a stack for each thread in every pool"),
        _row(
            "thread_pool_max", "integer", False, 5, default=MOST_THREADS,
            takes="a stack for each thread in every pool",
        ),
        _row("thread_pool_timeout", "number", True, 10, default=300.0, unit="s"),
        _row("thread_pool_add_delay", "number", True, 0, default=0.0, unit="s"),
        _row("thread_queue_limit", "integer", True, 0, default=20),
        # connections
        _row("listen_depth", "integer", False, 0, default=1024),
        _row("timeout_idle", "number", True, 0, default=5.0, unit="s"),
        _row("idle_send_timeout", "number", True, 0, default=60.0, unit="s"),
        _row("first_byte_timeout", "number", True, 0, default=60.0, unit="s"),
        # memory for each request, and the log in memory
        _row("workspace_client", "bytes", False, 9 << 10, default=96 << 10, takes="for each request in progress"),
        _row("workspace_backend", "bytes", False, 1 << 10, default=96 << 10, takes="for each fetch in progress"),
        _row("vsl_space", "bytes", False, 1 << 20, 4 << 30, 80 << 20, takes="a mapped file of that size"),
        _row("http_gzip_support", "boolean", True, default=True),
    ),
)  # fmt: skip
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

TUNABLES = (
    Tunable("thread_pools", values=(1, 2, 4)),
    Tunable("thread_pool_min", values=(10, 100, 500, 1000)),
    Tunable("lru_interval", values=(0.0, 2.0, 10.0, 60.0)),
)
"""What a search may vary, and how far; the most promising first."""
