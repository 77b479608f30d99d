"""What a search may vary of Squid, and how far. The most promising come first."""

from __future__ import annotations

from loadframe.kinds.tunable import MB, SWITCH, Tunable

TUNABLES = (
    Tunable("cache_mem", low=8 * MB, high=None, unit_bytes=1),
    Tunable("maximum_object_size_in_memory", low=64 << 10, high=16 * MB),
    Tunable("memory_replacement_policy", values=("lru", "heap GDSF", "heap LFUDA", "heap LRU")),
    Tunable("collapsed_forwarding", values=SWITCH),
    Tunable("memory_pools_limit", low=MB, high=256 * MB, unit_bytes=1),
)
