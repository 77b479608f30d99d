"""Limits of a Varnish."""

from __future__ import annotations

from loadframe.knowledge.limit import LimitRule

COUNTERS = "varnish-counters(7)"

LIMITS: tuple[LimitRule, ...] = (
    LimitRule(
        id="varnish.threads",
        title="the number of worker threads",
        use="varnish.threads",
        ceiling="varnish.threads_allowed",
        loud=True,
        source=f"varnishd, thread_pools times thread_pool_max; {COUNTERS}, threads_limited; a session "
        "that finds thread_queue_limit others waiting is dropped; near: 80 %, our choice",
        configured="thread_pool_max",
        errors="varnish.sessions_dropped",
        chain=("cage.pids", "system.memory"),
        near=0.8,
    ),
    LimitRule(
        id="varnish.storage",
        title="the storage for objects",
        use="varnish.storage_used",
        ceiling="varnish.storage_size",
        unit="bytes",
        source=f"varnishd(1), -s; {COUNTERS}, n_lru_nuked: an object is dropped to make room for another; near: 95 %",
        configured="storage_size",
        thrash="varnish.evictions",
        chain=("disk.space", "system.memory"),
        near=0.95,
    ),
)
