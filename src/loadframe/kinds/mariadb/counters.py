"""What a MariaDB is asked in the steps of a study and by the ledger, of a private server and of one that runs already.
Names and meanings: MariaDB 10.11's SHOW GLOBAL STATUS and SHOW GLOBAL VARIABLES."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from loadframe.formats.plain_numbers import finite
from loadframe.kinds.catalogue import count, gauge

_gauge, _count = partial(gauge, "mariadb"), partial(count, "mariadb")

STATUS = (
    _gauge("Open_tables", "open_tables"),
    _count("Opened_tables", "opened_tables"),
    _count("Table_open_cache_hits", "table_cache_hits"),
    _count("Table_open_cache_misses", "table_cache_misses"),
    _count("Table_open_cache_overflows", "table_cache_overflows"),
    _gauge("Table_open_cache_active_instances", "table_cache_instances"),
    _gauge("Open_table_definitions", "open_table_definitions"),
    _count("Opened_table_definitions", "opened_table_definitions"),
    _gauge("Open_files", "open_files"),
    _count("Opened_files", "opened_files"),
    _gauge("Threads_connected", "connections"),
    _gauge("Max_used_connections", "max_used_connections"),
    _gauge("Threads_running", "threads_running"),
    _count("Connection_errors_max_connections", "connection_errors_max"),
    _count("Aborted_connects", "aborted_connects"),
    _count("Questions", "questions"),
    _count("Innodb_data_fsyncs", "data_fsyncs"),
    _gauge("Innodb_buffer_pool_pages_total", "pool_pages"),
    _gauge("Innodb_buffer_pool_pages_free", "pool_pages_free"),
    _gauge("Innodb_page_size", "pool_page_bytes"),
    _count("Innodb_buffer_pool_reads", "pool_reads"),
    _count("Innodb_buffer_pool_read_requests", "pool_read_requests"),
    _count("Innodb_buffer_pool_wait_free", "pool_wait_free"),
    _count("Innodb_buffer_pool_pages_flushed", "pages_flushed"),
    _count("Innodb_log_waits", "log_waits"),
    _count("Table_locks_waited", "table_locks_waited"),
    _count("Innodb_row_lock_waits", "row_lock_waits"),
    _count("Created_tmp_disk_tables", "temporary_disk_tables"),
    _count("Created_tmp_tables", "temporary_tables"),
    _count("Threads_created", "threads_created"),
    _count("Connections", "new_connections"),
    _count("Table_locks_immediate", "table_locks_immediate"),
    _gauge("Prepared_stmt_count", "prepared_statements"),
    _gauge("Innodb_buffer_pool_pages_dirty", "pool_pages_dirty"),
    _count("Innodb_log_write_requests", "log_write_requests"),
    _gauge("Innodb_checkpoint_age", "checkpoint_age"),
    _gauge("Innodb_checkpoint_max_age", "checkpoint_max_age"),
)
"""SHOW GLOBAL STATUS. MariaDB 10.11 has no Innodb_os_log_fsyncs any more: fsyncs of the redo log count in
Innodb_data_fsyncs (seen: 20 single-row commits raise it by 21)."""

VARIABLES = (
    _gauge("table_open_cache", "table_open_cache"),
    _gauge("table_definition_cache", "table_definition_cache"),
    _gauge("open_files_limit", "open_files_limit"),
    _gauge("max_connections", "max_connections"),
    _gauge("table_open_cache_instances", "table_open_cache_instances"),
    _gauge("max_prepared_stmt_count", "max_prepared_stmt_count"),
)
"""SHOW GLOBAL VARIABLES: ceilings that belong next to their use."""

CHECKPOINT = ("Innodb_checkpoint_age", "Innodb_checkpoint_max_age")
"""How much of the redo log is in use, and how much may be before pages have to be written: bytes."""

FOLLOWING = (_gauge("redo_fill", "redo_fill"),)
"""What follows from the others at one moment."""

COUNTERS = (*STATUS, *VARIABLES, *FOLLOWING)


def counted(told: Mapping[str, str]) -> dict[str, float]:
    """What the two statements told, by CounterSpec.name; what is no number is left out."""
    found = {name: number for name, text in told.items() if (number := finite(text)) is not None}
    age, most = (found.get(name, 0.0) for name in CHECKPOINT)
    return found | ({"redo_fill": age / most} if most > 0 else {})
