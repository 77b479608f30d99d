"""Limits of a Squid."""

from __future__ import annotations

from loadframe.knowledge.limit import LimitRule

DOCUMENTED = "squid.conf.documented"

LIMITS: tuple[LimitRule, ...] = (
    LimitRule(
        id="squid.client_ip_max_connections",
        title="the connections of one client address",
        use="squid.client_connections",
        ceiling="squid.client_connections_allowed",
        loud=True,
        source=f"{DOCUMENTED}, client_ip_max_connections: a driver is one address, further connections are closed; "
        "without one all descriptors; mgr:client_list, the log; near: 80 %, our choice",
        configured="client_ip_max_connections",
        errors="squid.connections_refused",
        chain=("squid.max_filedescriptors", "process.open_files"),
        near=0.8,
        on_harm="reached",
    ),
    LimitRule(
        id="squid.max_filedescriptors",
        title="the descriptors with which it accepts clients",
        use="squid.descriptors",
        ceiling="squid.descriptors_allowed",
        loud=True,
        source=f"{DOCUMENTED}, max_filedescriptors, less those that it reserves (mgr:info: a quarter, at most 100): "
        "then no client is accepted, no connection is kept, and fetches fail; /proc/PID/fd; near: 80 %, as for "
        "RLIMIT_NOFILE",
        configured="max_filedescriptors",
        errors="squid.requests_failed",
        chain=("process.open_files",),
        near=0.8,
    ),
    LimitRule(
        id="squid.cache_mem",
        title="the memory for objects",
        use="squid.memory_used",
        ceiling="squid.memory_size",
        unit="bytes",
        source=f"{DOCUMENTED}, cache_mem: an object makes room for another, and is read from the disk or fetched "
        "when it is asked for again; mgr:info; near: 95 %",
        configured="cache_mem",
        thrash="squid.not_in_memory",
        chain=("cage.memory", "system.memory"),
        near=0.95,
    ),
    LimitRule(
        id="squid.cache_dir_size",
        title="the disk space for objects",
        use="squid.disk_used",
        ceiling="squid.disk_allowed",
        unit="bytes",
        source=f"{DOCUMENTED}, cache_dir and cache_swap_low: beyond this share of it objects are removed; mgr:info; "
        "near: 95 %",
        configured="cache_dir_size",
        thrash="squid.evictions",
        chain=("disk.space",),
        near=0.95,
    ),
)
