"""MySQL as data: its settings.

Bounds and defaults were read from performance_schema.variables_metadata and SHOW GLOBAL VARIABLES of MySQL 9.7.4
(Debian sid); choices, and what a running server takes, from the manual ("InnoDB Startup Options and System Variables",
"Server System Variables", "Binary Logging Options and Variables"). The defaults of 8.4 were not read from a server; by
the manual's "What Is New in MySQL 8.4" 8.0 has others: innodb_adaptive_hash_index ON, innodb_flush_method fsync,
innodb_io_capacity 200, innodb_log_buffer_size 16 MiB. innodb_redo_log_capacity came with 8.0.30.

What is sized at the start: table_open_cache, table_definition_cache, max_connections and open_files_limit are fitted to
one another as in every mysqld (adjust_related_options in sql/mysqld.cc); innodb_io_capacity_max follows
innodb_io_capacity; with innodb_dedicated_server the buffer pool and the redo log, where they are not given, follow the
machine; the buffer pool is rounded to its chunks, which only a start makes smaller; the redo log is resized
behind the answer.
"""

from __future__ import annotations

from loadframe.kinds.catalogue import Catalogue, specs_from
from loadframe.kinds.mysql_settings import (
    COMMITS,
    ENGINES_LOSE,
    EVENTS,
    IO_THREADS,
    MAX_BYTES,
    MOST,
    OF_CONNECTIONS,
    RELAYED,
    TABLE_BYTES,
    TORN,
    shared,
)
from loadframe.kinds.tunable import GB, MB, SWITCH, Tunable

VARIABLES = "MySQL 9.7 performance_schema.variables_metadata"

_NO_LOG = "OFF: no replica can follow, and no backup can be rolled forward to the moment before a loss"
_DOUBLEWRITE = ("ON", "OFF", "DETECT_AND_RECOVER", "DETECT_ONLY")
_THREADS = ("one-thread-per-connection", "no-threads")
_ENGINES = ("InnoDB", "MyISAM", "MEMORY", "ARCHIVE", "CSV")
_BUFFERED = ("none", "inserts", "deletes", "changes", "purges", "all")

_row = specs_from(VARIABLES)
CATALOGUE = Catalogue(
    kind="mysql",
    source="The settings are those of `mysqld --no-defaults --verbose --help`.",
    specs=(
        *shared(_row),
        # tables, files, connections: fitted to one another and to RLIMIT_NOFILE when the server starts
        _row("table_open_cache", "integer", True, 1, 524288, 4000, sized_at_start=True),
        _row("table_open_cache_instances", "integer", False, 1, 64, 16, sized_at_start=True),
        _row("table_definition_cache", "integer", True, 400, 524288, sized_at_start=True),
        _row("innodb_open_files", "integer", False, 0, 2**31 - 1, sized_at_start=True),
        _row("max_connections", "integer", True, 1, 100000, 151, sized_at_start=True),
        _row("thread_handling", "text", False, default="one-thread-per-connection", choices=_THREADS),
        # InnoDB's memory
        _row("innodb_buffer_pool_size", "bytes", True, 5242880, MAX_BYTES, 134217728, sized_at_start=True),
        _row("innodb_dedicated_server", "boolean", False, default=False),
        _row("innodb_buffer_pool_instances", "integer", False, 0, 64, sized_at_start=True),
        _row("innodb_change_buffering", "text", True, default="all", choices=_BUFFERED),
        # its redo log, and what a commit waits for
        _row("innodb_redo_log_capacity", "bytes", True, 8388608, 549755813888, 104857600, sized_at_start=True),
        _row("innodb_log_buffer_size", "bytes", True, 262144, MOST, 67108864),
        _row("innodb_log_writer_threads", "boolean", True, sized_at_start=True),
        _row("innodb_flush_log_at_trx_commit", "integer", True, 0, 2, 1, gives_up=COMMITS),
        _row(
            "innodb_doublewrite",
            "text",
            False,
            default="ON",
            choices=_DOUBLEWRITE,
            gives_up=f"DETECT_ONLY and {TORN}",
            safe=("ON", "DETECT_AND_RECOVER"),
        ),
        # its threads
        _row("innodb_io_capacity", "integer", True, 100, MOST, 10000, sized_at_start=True),
        _row("innodb_io_capacity_max", "integer", True, 100, MOST, sized_at_start=True),
        _row("innodb_write_io_threads", "integer", False, 1, 64, 4),
        _row("innodb_page_cleaners", "integer", False, 1, 64, sized_at_start=True),
        _row("innodb_purge_threads", "integer", False, 1, 32, sized_at_start=True),
        _row("innodb_thread_concurrency", "integer", True, 0, 1000, 0),
        _row("innodb_lock_wait_timeout", "integer", True, 1, 1073741824, 50),
        # the binary log, which is on
        _row("log_bin", "boolean", False, default=True, gives_up=_NO_LOG),
        _row("sync_binlog", "integer", True, 0, MOST, 1, gives_up=EVENTS),
        _row("binlog_group_commit_sync_delay", "integer", True, 0, 1000000, 0),
        _row("binlog_group_commit_sync_no_delay_count", "integer", True, 0, 100000, 0),
        _row("binlog_order_commits", "boolean", True, default=True),
        _row("binlog_cache_size", "bytes", True, 4096, MAX_BYTES, 32768),
        _row("binlog_row_image", "text", True, default="FULL", choices=("FULL", "MINIMAL", "NOBLOB")),
        _row("binlog_transaction_compression", "boolean", True, default=False),
        _row("sync_source_info", "integer", True, 0, MOST, 10000, gives_up=RELAYED, safe=(1,)),
        # caches and temporary tables
        _row("key_buffer_size", "bytes", True, 0, MAX_BYTES, 8388608),
        _row("tmp_table_size", "bytes", True, 1024, MAX_BYTES, 16777216),
        _row("internal_tmp_mem_storage_engine", "text", True, default="TempTable", choices=("TempTable", "MEMORY")),
        _row("temptable_max_ram", "bytes", True, 2097152, MAX_BYTES, sized_at_start=True),
        _row("sort_buffer_size", "bytes", True, 32768, MAX_BYTES, 262144),
        _row("max_prepared_stmt_count", "integer", True, 0, 4194304, 16382),
        _row("default_storage_engine", "text", True, default="InnoDB", choices=_ENGINES, gives_up=ENGINES_LOSE),
        _row("performance_schema", "boolean", False, default=True),
    ),
)

TUNABLES = (
    Tunable("innodb_buffer_pool_size", low=32 * MB, high=None, unit_bytes=1),
    Tunable("innodb_redo_log_capacity", low=48 * MB, high=4 * GB),
    Tunable("innodb_flush_log_at_trx_commit", values=(1,), relaxed=(0, 2)),
    Tunable("sync_binlog", values=(1,), relaxed=(0, 1000)),
    Tunable("log_bin", values=(True,), relaxed=(False,)),
    Tunable("innodb_flush_method", values=("fsync", "O_DIRECT"), relaxed=("O_DIRECT_NO_FSYNC",)),
    Tunable("table_open_cache", low=200, high=16_000, unit_bytes=TABLE_BYTES),
    Tunable("binlog_group_commit_sync_delay", values=(0, 50, 200, 1000)),
    Tunable("innodb_io_capacity", low=200, high=20_000),
    Tunable("innodb_adaptive_hash_index", values=SWITCH),
    Tunable("innodb_log_writer_threads", values=SWITCH),
    Tunable("innodb_log_buffer_size", low=4 * MB, high=128 * MB, unit_bytes=1),
    Tunable("binlog_row_image", values=("FULL", "MINIMAL")),
    Tunable("performance_schema", values=(True, False)),
    *IO_THREADS,
    *OF_CONNECTIONS,
    Tunable("innodb_doublewrite", values=("ON",), relaxed=("OFF",)),
)
"""What a search may vary, and how far; the most promising first."""
