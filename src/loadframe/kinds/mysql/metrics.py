"""What MariaDB and MySQL count."""

from __future__ import annotations

from collections.abc import Callable

from loadframe.knowledge.metric import Derived, connections, difference, of_both, requests, share

KINDS = ("mariadb", "mysql")
_OF_BOTH = """
open_tables               | count | tables open in the table cache
opened_tables             | 1/s   | tables opened because the cache did not have them
table_cache_misses        | 1/s   | look-ups that the table cache could not answer
table_cache_overflows     | 1/s   | tables closed because the table cache was full
table_open_cache          | count | tables the table cache may hold (effective)
open_table_definitions    | count | table definitions in the cache
opened_table_definitions  | 1/s   | table definitions read because the cache did not have them
table_definition_cache    | count | table definitions the cache may hold (effective)
open_files                | count | files the server counts as open
opened_files              | 1/s   | files the server opened
open_files_limit          | count | files the server may open (effective)
connections               | count | client connections open
max_used_connections      | count | most client connections at once
max_connections           | count | client connections allowed (effective)
threads_running           | count | server threads that work on a statement
connection_errors_max     | 1/s   | connections refused because all were taken
aborted_connects          | 1/s   | connections that failed
questions                 | 1/s   | statements
log_fsyncs                | 1/s   | fsyncs of the redo log
data_fsyncs               | 1/s   | fsyncs of data files
pool_reads                | 1/s   | pages that the buffer pool had to read from disk
pool_read_requests        | 1/s   | pages asked of the buffer pool
pool_wait_free            | 1/s   | waits for a free page in the buffer pool
pages_flushed             | 1/s   | pages that the buffer pool wrote to disk
redo_fill                 | share | redo log in use, of what may be before pages must be written, largest
log_waits                 | 1/s   | waits because the log buffer was too small
table_locks_waited        | 1/s   | table locks that had to wait
row_lock_waits            | 1/s   | row locks that had to wait
temporary_disk_tables     | 1/s   | temporary tables that went to disk
table_cache_hits          | 1/s   | look-ups that the table cache answered
tables_at_once            | count | running statements times tables per statement
max_connections.asked     | count | client connections asked for
open_files_limit.asked    | count | files asked for, 0 where the server works them out
table_open_cache.asked    | count | tables asked for in the table cache
table_open_cache_instances | count | instances the table cache may have (effective)
files_wanted              | count | files that the connections and the table cache asked for want
memory_at_full            | bytes | resident memory expected with every connection taken
threads_created           | 1/s   | threads made for connections
new_connections           | 1/s   | attempts to connect
new_thread_share          | share | connections for which a thread was made
pool_pages                | count | pages of the buffer pool
pool_pages_free           | count | pages of the buffer pool unused
pool_pages_used           | count | pages of the buffer pool in use
pool_miss_share           | share | pages asked of the buffer pool that had to be read from disk
pool_pages_dirty          | count | pages of the buffer pool changed and not written yet
pool_page_bytes           | bytes | size of a page
log_write_requests        | 1/s   | writes to the redo log
log_buffer_waits          | share | writes to the redo log that waited because the log buffer was too small
checkpoint_age            | bytes | redo log since the last checkpoint
checkpoint_max_age        | bytes | redo log that may lie since the last checkpoint
temporary_tables          | 1/s   | temporary tables made
disk_table_share          | share | temporary tables that were made on disk
table_locks_immediate     | 1/s   | table locks given at once
lock_wait_share           | share | table locks that waited
prepared_statements       | count | prepared statements kept
max_prepared_stmt_count   | count | prepared statements allowed (effective)
"""
"""name without its kind | unit | what."""

ROWS = (
    "".join(f"{kind}.{row}\n" for kind in KINDS for row in _OF_BOTH.strip().splitlines())
    + """\
mariadb.table_cache_instances     | count | instances of the table cache in use
mariadb.files_of_full_cache       | count | files of a full table cache in all its instances
mysql.doublewrites            | 1/s   | writes to the doublewrite files
mysql.binlog_transactions     | 1/s   | transactions written to the binary log
mysql.binlog_cache_disk_uses  | 1/s   | transactions too large for the binary log's cache
mysql.row_locks_waited_for    | count | row locks that are waited for at this moment
mysql.redo_log_wait           | s/s   | threads that wait for the redo log's files
mysql.binary_log_wait         | s/s   | threads that wait for the binary log's file
mysql.data_file_wait          | s/s   | threads that wait for InnoDB's data files
mysql.doublewrite_wait        | s/s   | threads that wait for the doublewrite files
mysql.metadata_lock_wait      | s/s   | threads that wait for metadata locks
mysql.table_lock_wait         | s/s   | threads that wait for table locks
mysql.redo_log_capacity       | bytes | redo log that the server keeps files for
mysql.tables_kept             | count | tables open in the table cache; all of it where tables displace one another
mysql.commit_wait             | s/s   | threads that wait for the redo log's files or the binary log's
"""
)
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
