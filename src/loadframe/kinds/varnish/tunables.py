"""What a search may vary of Varnish, and how far. The most promising come first."""

from __future__ import annotations

from loadframe.kinds.tunable import Tunable

TUNABLES = (
    Tunable("thread_pools", values=(1, 2, 4)),
    Tunable("thread_pool_min", values=(10, 100, 500, 1000)),
    Tunable("lru_interval", values=(0.0, 2.0, 10.0, 60.0)),
)
