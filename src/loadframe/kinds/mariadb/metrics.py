"""What MariaDB and MySQL count."""

from __future__ import annotations

from loadframe.knowledge.metric import Derived, connections, difference, of_both, requests, share

ROWS = """
mariadb.open_tables               | count | tables open in the table cache
mariadb.opened_tables             | 1/s   | tables opened because the cache did not have them
mariadb.table_cache_misses        | 1/s   | look-ups that the table cache could not answer
mariadb.table_cache_overflows     | 1/s   | tables closed because the table cache was full
mariadb.table_open_cache          | count | tables the table cache may hold (effective)
mariadb.table_cache_instances     | count | instances of the table cache in use
mariadb.open_table_definitions    | count | table definitions in the cache
mariadb.opened_table_definitions  | 1/s   | table definitions read because the cache did not have them
mariadb.table_definition_cache    | count | table definitions the cache may hold (effective)
mariadb.open_files                | count | files the server counts as open
mariadb.opened_files              | 1/s   | files the server opened
mariadb.open_files_limit          | count | files the server may open (effective)
mariadb.connections               | count | client connections open
mariadb.max_used_connections      | count | most client connections at once
mariadb.max_connections           | count | client connections allowed (effective)
mariadb.threads_running           | count | server threads that work on a statement
mariadb.connection_errors_max     | 1/s   | connections refused because all were taken
mariadb.aborted_connects          | 1/s   | connections that failed
mariadb.questions                 | 1/s   | statements
mariadb.log_fsyncs                | 1/s   | fsyncs of the redo log
mariadb.data_fsyncs               | 1/s   | fsyncs of data files
mariadb.pool_reads                | 1/s   | pages that the buffer pool had to read from disk
mariadb.pool_read_requests        | 1/s   | pages asked of the buffer pool
mariadb.pool_wait_free            | 1/s   | waits for a free page in the buffer pool
mariadb.pages_flushed             | 1/s   | pages that the buffer pool wrote to disk
mariadb.redo_fill                 | share | redo log in use, of what may be before pages must be written, largest
mariadb.log_waits                 | 1/s   | waits because the log buffer was too small
mariadb.table_locks_waited        | 1/s   | table locks that had to wait
mariadb.row_lock_waits            | 1/s   | row locks that had to wait
mariadb.temporary_disk_tables     | 1/s   | temporary tables that went to disk
mariadb.table_cache_hits          | 1/s   | look-ups that the table cache answered
mariadb.tables_at_once            | count | running statements times tables per statement
mariadb.max_connections.asked     | count | client connections asked for
mariadb.open_files_limit.asked    | count | files asked for, 0 where the server works them out
mariadb.table_open_cache.asked    | count | tables asked for in the table cache
mariadb.table_open_cache_instances | count | instances the table cache may have (effective)
mariadb.files_wanted              | count | files that the connections and the table cache asked for want
mariadb.files_of_full_cache       | count | files of a full table cache in all its instances
mariadb.memory_at_full            | bytes | resident memory expected with every connection taken
mariadb.threads_created           | 1/s   | threads made for connections
mariadb.new_connections           | 1/s   | attempts to connect
mariadb.new_thread_share          | share | connections for which a thread was made
mariadb.pool_pages                | count | pages of the buffer pool
mariadb.pool_pages_free           | count | pages of the buffer pool unused
mariadb.pool_pages_used           | count | pages of the buffer pool in use
mariadb.pool_miss_share           | share | pages asked of the buffer pool that had to be read from disk
mariadb.pool_pages_dirty          | count | pages of the buffer pool changed and not written yet
mariadb.pool_page_bytes           | bytes | size of a page
mariadb.log_write_requests        | 1/s   | writes to the redo log
mariadb.log_buffer_waits          | share | writes to the redo log that waited because the log buffer was too small
mariadb.checkpoint_age            | bytes | redo log since the last checkpoint
mariadb.checkpoint_max_age        | bytes | redo log that may lie since the last checkpoint
mariadb.temporary_tables          | 1/s   | temporary tables made
mariadb.disk_table_share          | share | temporary tables that were made on disk
mariadb.table_locks_immediate     | 1/s   | table locks given at once
mariadb.lock_wait_share           | share | table locks that waited
mariadb.prepared_statements       | count | prepared statements kept
mariadb.max_prepared_stmt_count   | count | prepared statements allowed (effective)
"""
"""name | unit | what."""


def _files_wanted(connections: float, tables: float, asked: float) -> float:
    """mysqld's start-up arithmetic; asked: open_files_limit, 0 where none was."""
    return max(10 + connections + 2 * tables, 5 * connections, asked)


def _files_of_full_cache(tables: float, instances: float) -> float:
    """Two files per MyISAM table (data and index), in every instance of the cache."""
    return 2 * tables * instances


def _tables_at_once(running: float, hits: float, misses: float, questions: float) -> float:
    """Running statements times tables per statement; one table where no statement ran."""
    return running * ((hits + misses) / questions if questions > 0 else 1.0)


DERIVED = (
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
    Derived("mariadb.new_thread_share", ("mariadb.threads_created", "mariadb.new_connections"), share),
    Derived("mariadb.disk_table_share", ("mariadb.temporary_disk_tables", "mariadb.temporary_tables"), share),
    Derived("mariadb.lock_wait_share", ("mariadb.table_locks_waited", "mariadb.table_locks_immediate"), of_both),
    Derived("mariadb.pool_miss_share", ("mariadb.pool_reads", "mariadb.pool_read_requests"), share),
    Derived("mariadb.log_buffer_waits", ("mariadb.log_waits", "mariadb.log_write_requests"), share),
    Derived("mariadb.pool_pages_used", ("mariadb.pool_pages", "mariadb.pool_pages_free"), difference),
)

AGREEMENTS = (requests("mariadb.questions", also=("mariadb.",)), connections("mariadb.connections"))
