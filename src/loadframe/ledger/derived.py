"""Metrics of the ledger that follow from others: two counters make a share, settings make a demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Derived:
    """metric follows from `needs`, given to `compute` in that order. either: those that are there suffice."""

    metric: str
    needs: tuple[str, ...]
    compute: Callable[..., float]
    either: bool = False


TIME_WAIT_S = 60.0
"""TCP_TIMEWAIT_LEN in include/net/tcp.h."""


def _share(part: float, whole: float) -> float:
    """0 where nothing happened."""
    return min(1.0, part / whole) if whole > 0 else 0.0


def _of_both(part: float, other: float) -> float:
    return _share(part, part + other)


def _difference(more: float, less: float) -> float:
    return max(0.0, more - less)


def _files_wanted(connections: float, tables: float, asked: float) -> float:
    """mysqld's start-up arithmetic; asked: open_files_limit, 0 where none was."""
    return max(10 + connections + 2 * tables, 5 * connections, asked)


def _files_of_full_cache(tables: float, instances: float) -> float:
    """Two files per MyISAM table (data and index), in every instance of the cache."""
    return 2 * tables * instances


def _tables_at_once(running: float, hits: float, misses: float, questions: float) -> float:
    """Running statements times tables per statement; one table where no statement ran."""
    return running * ((hits + misses) / questions if questions > 0 else 1.0)


def _promised(buffers: float, connections: float, work: float, workers: float, maintenance: float) -> float:
    """postgresqltuner's arithmetic: one and a half sorts or hashes for each connection."""
    return buffers + connections * work * 1.5 + workers * maintenance


def _of_transactions(part: float, commits: float, rollbacks: float) -> float:
    return _share(part, commits + rollbacks)


DERIVED: tuple[Derived, ...] = (
    Derived(
        "system.cpu.frequency_lost",
        ("system.cpu.frequency_missing", "system.cpu.busy_cores", "system.cpu.count"),
        lambda missing, busy, count: missing * busy / count,
    ),
    Derived(
        "system.paging.refault_wait",
        ("system.paging.refault_share", "system.pressure.io.some"),
        lambda share, waiting: share * waiting,
    ),
    Derived("target.cpus.allowed", ("target.cpus.named", "system.cpu.count"), min),
    Derived(
        "target.memory.allowed",
        ("target.cgroup.memory.limit", "target.cage.memory.limit", "system.memory.limit"),
        min,
        either=True,
    ),
    Derived(
        "system.network.local_ports.per_second",
        ("system.network.local_ports.limit",),
        lambda ports: ports / TIME_WAIT_S,
    ),
    Derived(
        "mariadb.files_wanted",
        (
            "mariadb.max_connections.asked",
            "mariadb.table_open_cache.asked",
            "mariadb.open_files_limit.asked",
        ),
        _files_wanted,
    ),
    Derived(
        "mariadb.files_of_full_cache",
        ("mariadb.table_open_cache", "mariadb.table_open_cache_instances"),
        _files_of_full_cache,
    ),
    Derived(
        "mariadb.tables_at_once",
        ("mariadb.threads_running", "mariadb.table_cache_hits", "mariadb.table_cache_misses", "mariadb.questions"),
        _tables_at_once,
    ),
    Derived("mariadb.new_thread_share", ("mariadb.threads_created", "mariadb.new_connections"), _share),
    Derived("mariadb.disk_table_share", ("mariadb.temporary_disk_tables", "mariadb.temporary_tables"), _share),
    Derived("mariadb.lock_wait_share", ("mariadb.table_locks_waited", "mariadb.table_locks_immediate"), _of_both),
    Derived("mariadb.pool_miss_share", ("mariadb.pool_reads", "mariadb.pool_read_requests"), _share),
    Derived("mariadb.log_buffer_waits", ("mariadb.log_waits", "mariadb.log_write_requests"), _share),
    Derived("nginx.files_wanted", ("nginx.worker_connections",), lambda each: 2 * each),
    Derived("nginx.connection_share", ("nginx.accepts", "nginx.requests"), _share),
    Derived("postgres.buffer_miss_share", ("postgres.blocks_read", "postgres.blocks_hit"), _of_both),
    Derived("postgres.requested_share", ("postgres.checkpoints_requested", "postgres.checkpoints_timed"), _of_both),
    Derived(
        "postgres.spill_share", ("postgres.temp_files", "postgres.commits", "postgres.rollbacks"), _of_transactions
    ),
    Derived(
        "postgres.memory_promised",
        (
            "postgres.shared_buffers.asked",
            "postgres.max_connections.asked",
            "postgres.work_mem.asked",
            "postgres.autovacuum_max_workers.asked",
            "postgres.maintenance_work_mem.asked",
        ),
        _promised,
    ),
    Derived("mariadb.pool_pages_used", ("mariadb.pool_pages", "mariadb.pool_pages_free"), _difference),
)


def derive(values: Mapping[str, float], missing: Mapping[str, str]) -> tuple[dict[str, float], dict[str, str]]:
    """The same values and reasons, with what follows from them; what does not follow has the reason of the first
    thing that it lacks."""
    found, reasons = dict(values), dict(missing)
    for one in DERIVED:
        there = [values[name] for name in one.needs if name in values]
        lacking = [name for name in one.needs if name not in values]
        if there and (one.either or not lacking):
            found[one.metric] = one.compute(there) if one.either else one.compute(*there)
        elif any(name in missing for name in lacking):
            reasons[one.metric] = next(missing[name] for name in lacking if name in missing)
    return found, reasons
