"""MariaDB as data: its settings.

Bounds, choices, defaults and READ_ONLY were read from information_schema.SYSTEM_VARIABLES of MariaDB 10.11.19 (Debian
12). What is sized at the start was read from GLOBAL_VALUE_ORIGIN = AUTO there and from the server's log: with
table_open_cache = 12000 and RLIMIT_NOFILE = 20000 it wants 12000 x 8 instances x 2 + 184 files, cuts the instances to 1
and table_open_cache to 9909, and says so in one warning only.

What gives up durability was read at KB and REPLICATION_KB, which say nothing of littlesync and nosync: MySQL's manual
("InnoDB Startup Options and System Variables") has them for tests of performance alone.
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

SYSTEM_VARIABLES = "MariaDB 10.11 information_schema.SYSTEM_VARIABLES"
KB = "https://mariadb.com/kb/en/innodb-system-variables/"
REPLICATION_KB = "https://mariadb.com/kb/en/replication-and-binary-log-system-variables/"
ENGINES = ("InnoDB", "Aria", "MyISAM", "MEMORY", "ARCHIVE", "CSV")


_THREADS = ("one-thread-per-connection", "no-threads", "pool-of-threads")

_row = specs_from(SYSTEM_VARIABLES)
CATALOGUE = Catalogue(
    kind="mariadb",
    source="The settings are those of `mariadbd --no-defaults --verbose --help`.",
    specs=(
        *shared(_row),
        # tables, files, connections: fitted to one another and to RLIMIT_NOFILE when the server starts
        _row("table_open_cache", "integer", True, 10, 1048576, 2000, sized_at_start=True),
        _row("table_open_cache_instances", "integer", False, 1, 64, 8, sized_at_start=True),
        _row("table_definition_cache", "integer", True, 400, 2097152, sized_at_start=True),
        _row("innodb_open_files", "integer", False, 0, MAX_BYTES, 0, sized_at_start=True),
        _row("max_connections", "integer", True, 10, 100000, 151, sized_at_start=True),
        # threads
        _row("thread_handling", "text", False, default="one-thread-per-connection", choices=_THREADS),
        _row("thread_pool_size", "integer", True, 1, 100000, sized_at_start=True),
        # InnoDB
        # SET GLOBAL resizes the pool behind the answer, and refuses a log below the log buffer, where a start does not
        _row("innodb_buffer_pool_size", "bytes", True, 2097152, MAX_BYTES, 134217728, sized_at_start=True),
        _row("innodb_flush_log_at_trx_commit", "integer", True, 0, 3, 1, gives_up=COMMITS, safe=(1, 3)),
        _row("innodb_log_file_size", "bytes", True, 4194304, MAX_BYTES, 100663296, sized_at_start=True),
        _row("innodb_log_buffer_size", "bytes", False, 2097152, 2147479552, 16777216),
        _row("innodb_doublewrite", "boolean", False, default=True, gives_up=TORN),
        _row("innodb_io_capacity", "integer", True, 100, MOST, 200),
        _row("innodb_write_io_threads", "integer", True, 2, 64, 4),
        _row("innodb_lock_wait_timeout", "integer", True, 0, 100000000, 50),
        # durability outside InnoDB
        _row("sync_frm", "boolean", True, default=True, gives_up="OFF: a table just created may be lost at power loss"),
        _row("sync_binlog", "integer", True, 0, MOST, 0, gives_up=EVENTS, safe=(1,)),
        _row("sync_relay_log_info", "integer", True, 0, MOST, 10000, gives_up=RELAYED, safe=(1,)),
        _row("sync_master_info", "integer", True, 0, MOST, 10000, gives_up=RELAYED, safe=(1,)),
        # caches and temporary tables
        _row("key_buffer_size", "bytes", True, 0, MAX_BYTES, 134217728),
        _row("aria_pagecache_buffer_size", "bytes", False, 131072, MAX_BYTES, 134217728),
        _row("tmp_table_size", "bytes", True, 0, MAX_BYTES, 16777216),
        _row("query_cache_size", "bytes", True, 0, MAX_BYTES, 1048576),
        _row("query_cache_type", "text", True, default="OFF", choices=("OFF", "ON", "DEMAND")),
        _row("sort_buffer_size", "bytes", True, 1024, MAX_BYTES, 2097152),
        _row("max_prepared_stmt_count", "integer", True, 0, MOST, 16382),
        _row("default_storage_engine", "text", True, default="InnoDB", choices=ENGINES, gives_up=ENGINES_LOSE),
        _row("performance_schema", "boolean", False, default=False),
    ),
)

TUNABLES = (
    Tunable("innodb_buffer_pool_size", low=32 * MB, high=None, unit_bytes=1),
    Tunable("innodb_log_file_size", low=48 * MB, high=2 * GB),
    Tunable("innodb_flush_log_at_trx_commit", values=(1,), relaxed=(0, 2)),
    Tunable("innodb_flush_method", values=("fsync", "O_DIRECT"), relaxed=("O_DIRECT_NO_FSYNC",)),
    Tunable("table_open_cache", low=200, high=16_000, unit_bytes=TABLE_BYTES),
    Tunable("thread_handling", values=("one-thread-per-connection", "pool-of-threads")),
    Tunable("innodb_io_capacity", low=200, high=20_000),
    Tunable("innodb_adaptive_hash_index", values=SWITCH),
    Tunable("innodb_log_buffer_size", low=4 * MB, high=128 * MB, unit_bytes=1),
    *IO_THREADS,
    *OF_CONNECTIONS,
    Tunable("innodb_doublewrite", values=(True,), relaxed=(False,)),
)
"""O_DIRECT_NO_FSYNC: what the file system keeps of a file that grew may be lost at power loss
(https://mariadb.com/kb/en/innodb-system-variables/#innodb_flush_method)."""
"""What a search may vary, and how far; the most promising first."""
