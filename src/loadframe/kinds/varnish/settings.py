"""Varnish as data: its settings and its counters.

Bounds, defaults and meanings of parameters were read from Varnish 7.1 itself (`varnishd -x parameter`), of storage from
varnishd(1); what an installed Varnish does not take it says itself. storage_* are options of its -s.
"""

from __future__ import annotations

from loadframe.kinds.catalogue import Catalogue, SettingSpec
from loadframe.model import CounterSpec

PARAMETERS, STORAGE = "varnishd -x parameter", "varnishd(1), -s"
PAGE = 4096
MOST_THREADS = 5000
"""In a pool, by default."""


def _integer(
    name: str, low: int, high: int | None, default: int, *, dynamic: bool, takes: str | None = None
) -> SettingSpec:
    return SettingSpec(name, "integer", dynamic, low, high, (), default, source=PARAMETERS, takes=takes)


def _bytes(
    name: str, low: int, high: int | None, default: int, *, dynamic: bool, takes: str | None = None
) -> SettingSpec:
    return SettingSpec(name, "bytes", dynamic, low, high, (), default, source=PARAMETERS, takes=takes)


def _seconds(name: str, low: float, default: float, *, dynamic: bool = True) -> SettingSpec:
    return SettingSpec(name, "number", dynamic, low, None, (), default, source=PARAMETERS, unit="s")


CATALOGUE = Catalogue(
    kind="varnish",
    source="The settings are parameters of varnishd, and storage_kind, storage_size and storage_granularity.",
    specs=(
        # where objects are
        SettingSpec("storage_kind", "text", False, None, None, ("malloc", "file"), "malloc", source=STORAGE),
        SettingSpec(
            "storage_size", "bytes", False, 1 << 20, None, (), 256 << 20, source="unbounded there; the default is ours",
            takes="this much memory; with storage_kind = file so much disk space at once, and page cache",
        ),
        SettingSpec("storage_granularity", "bytes", False, PAGE, 1 << 30, (), PAGE, source=STORAGE),
        _bytes("fetch_chunksize", PAGE, None, 16 << 10, dynamic=True),
        _bytes("fetch_maxchunksize", 64 << 10, None, 1 << 28, dynamic=True),
        _integer("nuke_limit", 0, None, 50, dynamic=True),
        _seconds("lru_interval", 0, 2.0),
        # for how long
        SettingSpec(
            "default_ttl", "number", True, 0, None, (), 86400.0, unit="s",
            source="120 s there; ours has nothing go stale in the middle of a study",
        ),
        _seconds("default_grace", 0, 10.0),
        _seconds("default_keep", 0, 0.0),
        # threads
        _integer("thread_pools", 1, 32, 2, dynamic=False, takes="thread_pool_min threads each, at once"),
        _integer("thread_pool_min", 5, None, 100, dynamic=False, takes="a stack for each thread in every pool"),
        _integer(
            "thread_pool_max", 5, None, MOST_THREADS, dynamic=False, takes="a stack for each thread in every pool"
        ),
        _seconds("thread_pool_timeout", 10, 300.0),
        _seconds("thread_pool_add_delay", 0, 0.0),
        _integer("thread_queue_limit", 0, None, 20, dynamic=True),
        # connections
        _integer("listen_depth", 0, None, 1024, dynamic=False),
        _seconds("timeout_idle", 0, 5.0),
        _seconds("idle_send_timeout", 0, 60.0),
        _seconds("first_byte_timeout", 0, 60.0),
        # memory for each request, and the log in memory
        _bytes("workspace_client", 9 << 10, None, 96 << 10, dynamic=False, takes="for each request in progress"),
        _bytes("workspace_backend", 1 << 10, None, 96 << 10, dynamic=False, takes="for each fetch in progress"),
        _bytes("vsl_space", 1 << 20, 4 << 30, 80 << 20, dynamic=False, takes="a mapped file of that size"),
        SettingSpec("http_gzip_support", "boolean", True, default=True, source=PARAMETERS),
    ),
)  # fmt: skip
"""dynamic: the running cache process takes the new value at once, for all that comes after."""


def _count(vsc: str, name: str) -> tuple[str, CounterSpec]:
    return vsc, CounterSpec(name, f"varnish.{name}", cumulative=True)


def _gauge(vsc: str, name: str) -> tuple[str, CounterSpec]:
    return vsc, CounterSpec(name, f"varnish.{name}", cumulative=False)


COUNTERS: dict[str, CounterSpec] = dict(
    [
        _count("MAIN.client_req", "requests"),
        _count("MAIN.cache_hit", "hits"),
        _count("MAIN.cache_miss", "misses"),
        _count("MAIN.backend_req", "fetches"),
        _count("MAIN.fetch_failed", "fetches_failed"),
        _count("MAIN.n_lru_nuked", "evictions"),
        _count("MAIN.n_lru_limited", "evictions_limited"),
        _count("MAIN.threads_limited", "threads_limited"),
        _count("MAIN.threads_failed", "threads_failed"),
        _count("MAIN.sess_queued", "sessions_queued"),
        _count("MAIN.sess_dropped", "sessions_dropped"),
        _count("MAIN.req_dropped", "requests_dropped"),
        _count("MAIN.sess_fail", "sessions_failed"),
        _count("MAIN.sess_fail_emfile", "descriptors_refused"),
        _gauge("MAIN.threads", "threads"),
        _gauge("MAIN.thread_queue_len", "thread_queue"),
        _gauge("MAIN.n_object", "objects"),
        _gauge("STORAGE.g_bytes", "storage_used"),
        _gauge("STORAGE.g_space", "storage_free"),
    ]
)
"""varnish-counters(7). STORAGE: of the storage for objects, whatever its kind."""

CEILINGS = (
    CounterSpec("threads_allowed", "varnish.threads_allowed", cumulative=False),
    CounterSpec("storage_size", "varnish.storage_size", cumulative=False),
)
"""thread_pools times thread_pool_max; storage_size, all as they are in effect."""
