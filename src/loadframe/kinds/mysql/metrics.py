"""Metrics of MariaDB and MySQL that follow from their counters."""

from collections.abc import Callable
from operator import add

from loadframe.knowledge.metric import Derived, connections, derived, difference, of_both, requests, share

KINDS = ("mariadb", "mysql")
OF_CAPACITY = 30 / 32 * 0.95
"""The usable share of the redo log's capacity: two of 32 files stay empty, and a twentieth is the log writer's
(log0files_capacity.cc). Pages are flushed unconditionally from 7/8 of it on: at most 0.74 of 8 MiB was seen in use."""


def _files_wanted(connections: float, tables: float, asked: float) -> float:
    """mysqld's start-up arithmetic; asked: open_files_limit, 0 where none was configured."""
    return max(10 + connections + 2 * tables, 5 * connections, asked)


def _derived_of(kind: str, wanted: Callable[[float, float, float], float]) -> tuple[Derived, ...]:
    """wanted: the files that a start wants, by connections, cached tables and the configured limit, 0 for none."""
    return (
        derived(f"{kind}.files_wanted", "max_connections.asked table_open_cache.asked open_files_limit.asked", wanted),
        derived(
            f"{kind}.tables_at_once",
            "threads_running table_cache_hits table_cache_misses questions",
            # running statements times tables per statement; one table where no statement ran
            lambda running, hits, misses, questions: running * ((hits + misses) / questions if questions > 0 else 1.0),
        ),
        derived(f"{kind}.new_thread_share", "threads_created new_connections", share),
        derived(f"{kind}.disk_table_share", "temporary_disk_tables temporary_tables", share),
        derived(f"{kind}.lock_wait_share", "table_locks_waited table_locks_immediate", of_both),
        derived(f"{kind}.pool_miss_share", "pool_reads pool_read_requests", share),
        derived(f"{kind}.log_buffer_waits", "log_waits log_write_requests", share),
        derived(f"{kind}.pool_pages_used", "pool_pages pool_pages_free", difference),
    )


DERIVED = (
    *_derived_of("mariadb", _files_wanted),
    # two files per MyISAM table (data and index), in every instance of the cache
    derived(
        "mariadb.files_of_full_cache",
        "table_open_cache table_open_cache_instances",
        lambda tables, instances: 2 * tables * instances,
    ),
    # without an open_files_limit MySQL wants 5000 at least (sql/mysqld.cc, adjust_open_files_limit)
    *_derived_of("mysql", lambda connections, tables, asked: _files_wanted(connections, tables, asked or 5000)),
    derived("mysql.checkpoint_max_age", "redo_log_capacity", lambda capacity: OF_CAPACITY * capacity),
    # A connection uses one of the cache's instances, by its number (sql/table_cache.h): with fewer connections than
    # instances the cache is full for them long before all of it is. Then opened tables displace others.
    derived(
        "mysql.tables_kept",
        "open_tables table_open_cache opened_tables table_cache_overflows",
        lambda opened, size, rate, overflows: size if overflows > 0 and 2 * overflows >= rate else opened,
    ),
    derived("mysql.commit_wait", "redo_log_wait binary_log_wait", add),
)

AGREEMENTS = tuple(
    row
    for kind in KINDS
    for row in (requests(f"{kind}.questions", also=(f"{kind}.",)), connections(f"{kind}.connections"))
)
