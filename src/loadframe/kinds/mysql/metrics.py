"""What MariaDB and MySQL count."""

from collections.abc import Callable
from pathlib import Path

from loadframe.knowledge.metric import Derived, connections, difference, of_both, requests, share

KINDS = ("mariadb", "mysql")
_ROWS = Path(__file__).with_name("metrics.txt").read_text(encoding="utf-8", errors="strict").splitlines()
ROWS = "\n".join(row.format(kind=kind) for kind in KINDS for row in _ROWS if row.startswith(("{kind}.", f"{kind}.")))
"""name | unit | what."""

OF_CAPACITY = 30 / 32 * 0.95
"""Of the redo log's capacity, what threads may fill: two of 32 files stay empty, and a twentieth is the log writer's
(log0files_capacity.cc). Pages are flushed unconditionally from 7/8 of it on: seen, 0.74 of 8 MiB at the most."""


def _files_wanted(connections: float, tables: float, asked: float) -> float:
    """mysqld's start-up arithmetic; asked: open_files_limit, 0 where none was."""
    return max(10 + connections + 2 * tables, 5 * connections, asked)


def _tables_at_once(running: float, hits: float, misses: float, questions: float) -> float:
    """Running statements times tables per statement; one table where no statement ran."""
    return running * ((hits + misses) / questions if questions > 0 else 1.0)


def _files_wanted_by_mysql(connections: float, tables: float, asked: float) -> float:
    """Without an open_files_limit MySQL wants 5000 at least (sql/mysqld.cc, adjust_open_files_limit)."""
    return _files_wanted(connections, tables, asked or 5000)


def _checkpoint_max_age(capacity: float) -> float:
    return OF_CAPACITY * capacity


def _tables_kept(opened: float, size: float, rate: float, overflows: float) -> float:
    """A connection uses one of the cache's instances, by its number (sql/table_cache.h): with fewer connections than
    instances the cache is full, for those that there are, long before all of it is. Then tables that are opened
    displace others."""
    return size if overflows > 0 and 2 * overflows >= rate else opened


def _both(redo: float, binary: float) -> float:
    return redo + binary


def _files_of_full_cache(tables: float, instances: float) -> float:
    """Two files per MyISAM table (data and index), in every instance of the cache."""
    return 2 * tables * instances


def _derived_of(kind: str, wanted: Callable[[float, float, float], float] = _files_wanted) -> tuple[Derived, ...]:
    """What follows from the others. wanted: the files that a start wants, by connections, cached tables and the limit
    asked for, 0 where none was."""
    return (
        Derived(
            f"{kind}.files_wanted",
            (
                f"{kind}.max_connections.asked",
                f"{kind}.table_open_cache.asked",
                f"{kind}.open_files_limit.asked",
            ),
            wanted,
        ),
        Derived(
            f"{kind}.tables_at_once",
            (f"{kind}.threads_running", f"{kind}.table_cache_hits", f"{kind}.table_cache_misses", f"{kind}.questions"),
            _tables_at_once,
        ),
        Derived(f"{kind}.new_thread_share", (f"{kind}.threads_created", f"{kind}.new_connections"), share),
        Derived(f"{kind}.disk_table_share", (f"{kind}.temporary_disk_tables", f"{kind}.temporary_tables"), share),
        Derived(f"{kind}.lock_wait_share", (f"{kind}.table_locks_waited", f"{kind}.table_locks_immediate"), of_both),
        Derived(f"{kind}.pool_miss_share", (f"{kind}.pool_reads", f"{kind}.pool_read_requests"), share),
        Derived(f"{kind}.log_buffer_waits", (f"{kind}.log_waits", f"{kind}.log_write_requests"), share),
        Derived(f"{kind}.pool_pages_used", (f"{kind}.pool_pages", f"{kind}.pool_pages_free"), difference),
    )


DERIVED = (
    *_derived_of("mariadb"),
    Derived(
        "mariadb.files_of_full_cache",
        ("mariadb.table_open_cache", "mariadb.table_open_cache_instances"),
        _files_of_full_cache,
    ),
    *_derived_of("mysql", _files_wanted_by_mysql),
    Derived("mysql.checkpoint_max_age", ("mysql.redo_log_capacity",), _checkpoint_max_age),
    Derived(
        "mysql.tables_kept",
        ("mysql.open_tables", "mysql.table_open_cache", "mysql.opened_tables", "mysql.table_cache_overflows"),
        _tables_kept,
    ),
    Derived("mysql.commit_wait", ("mysql.redo_log_wait", "mysql.binary_log_wait"), _both),
)

AGREEMENTS = tuple(
    row
    for kind in KINDS
    for row in (requests(f"{kind}.questions", also=(f"{kind}.",)), connections(f"{kind}.connections"))
)
"""The driver's requests and connections, as the server counts them."""
