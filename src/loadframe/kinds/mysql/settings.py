"""MariaDB and MySQL as data: their settings.

MariaDB: bounds, choices, defaults and READ_ONLY were read from information_schema.SYSTEM_VARIABLES of 10.11.19 (Debian
12). What is sized at the start was read from GLOBAL_VALUE_ORIGIN = AUTO there and from the server's log: with
table_open_cache = 12000 and RLIMIT_NOFILE = 20000 it wants 12000 x 8 instances x 2 + 184 files, cuts the instances to 1
and table_open_cache to 9909, and says so in one warning only. What gives up durability was read at
mariadb.com/kb/en/innodb-system-variables and replication-and-binary-log-system-variables, which say nothing of
littlesync and nosync: MySQL's manual ("InnoDB Startup Options and System Variables") has them for tests of performance
alone.

MySQL: bounds and defaults were read from performance_schema.variables_metadata and SHOW GLOBAL VARIABLES of 9.7.4
(Debian sid); choices, and what a running server takes, from the manual ("InnoDB Startup Options and System Variables",
"Server System Variables", "Binary Logging Options and Variables"). The defaults of 8.4 were not read from a server; by
the manual's "What Is New in MySQL 8.4" 8.0 has others: innodb_adaptive_hash_index ON, innodb_flush_method fsync,
innodb_io_capacity 200, innodb_log_buffer_size 16 MiB. innodb_redo_log_capacity came with 8.0.30.

What is sized at MySQL's start: table_open_cache, table_definition_cache, max_connections and open_files_limit are
fitted to one another as in every mysqld (adjust_related_options in sql/mysqld.cc); innodb_io_capacity_max follows
innodb_io_capacity; with innodb_dedicated_server the buffer pool and the redo log, where they are not given, follow the
machine; the buffer pool is rounded to its chunks, which only a start makes smaller; the redo log is resized behind the
answer.
"""

from __future__ import annotations

from loadframe.kinds.catalogue import Catalogue, SettingSpec, specs_from
from loadframe.kinds.tunable import GB, MB, SWITCH, Tunable

MAX_BYTES, MOST = 2**63 - 1, 2**32 - 1

COMMITS = "0 and 2: about the last second of commits may be lost at power loss (0: also when the server dies)"
TIMEOUT = (
    "more than 1: with innodb_flush_log_at_trx_commit 0 or 2 the commits of that many seconds may be lost at power loss"
)
EVENTS = (
    "all but 1: at power loss the last events may be missing in the binary log, so that its replicas, and backups that "
    "are rolled forward by it, lack commits which the server has"
)
TORN = "OFF: a page torn by power loss cannot be repaired"
RELAYED = "all but 1: at power loss a replica may lose its place in what it has received"
ENGINES_LOSE = (
    "MEMORY: all rows are gone when the server ends; others but InnoDB: a crash may leave half of a transaction, or a "
    "table that has to be repaired"
)
FILES = (
    "nosync, littlesync: the data files may be lost at power loss; O_DIRECT_NO_FSYNC: what the file system keeps of a "
    "file that grew"
)
FLUSH = ("fsync", "O_DSYNC", "littlesync", "nosync", "O_DIRECT", "O_DIRECT_NO_FSYNC")


def _shared(row: specs_from) -> tuple[SettingSpec, ...]:
    """Settings of which both tell the same bounds and defaults."""
    return (
        row("open_files_limit", "integer", False, 0, MOST, 0, sized_at_start=True),
        row("thread_cache_size", "integer", True, 0, 16384, sized_at_start=True),
        row("back_log", "integer", False, 0, 65535, sized_at_start=True),
        row("innodb_flush_log_at_timeout", "integer", True, 0, 2700, 1, gives_up=TIMEOUT, safe=range(2)),
        row(
            "innodb_flush_method",
            "text",
            False,
            default="O_DIRECT",
            choices=FLUSH,
            gives_up=FILES,
            safe=("fsync", "O_DSYNC", "O_DIRECT"),
        ),
        row("innodb_file_per_table", "boolean", True, default=True),
        row("innodb_stats_persistent", "boolean", True, default=True),
        row("innodb_adaptive_hash_index", "boolean", True, default=False),
        row("innodb_read_io_threads", "integer", True, 1, 64, 4),
        row("sync_relay_log", "integer", True, 0, MOST, 10000, gives_up=RELAYED, safe=(1,)),
        row("join_buffer_size", "bytes", True, 128, MAX_BYTES, 262144),
        row("max_heap_table_size", "bytes", True, 16384, MAX_BYTES, 16777216),
    )


_RESERVED = """
basedir bind_address bootstrap character_sets_dir chroot datadir defaults_extra_file defaults_file help init_file
initialize initialize_insecure innodb_data_home_dir innodb_log_group_home_dir lc_messages_dir log_bin log_error mysqlx
no_defaults pid_file plugin_dir port print_defaults skip_grant_tables skip_name_resolve skip_networking socket
table_cache tmpdir user validate_config verbose version
"""
RESERVED = frozenset(_RESERVED.split())
"""Options that a private instance decides itself; table_cache is an old name of table_open_cache."""

TABLE_BYTES = 20 << 10
"""Of an open table in MariaDB's cache: 5.5 GB at 64,000 tables was seen in the story of the render farm, connections
and buffers included; a fifth of that is the table's own."""

IO_THREADS = (
    Tunable("innodb_write_io_threads", values=(2, 4, 8, 16)),
    Tunable("innodb_read_io_threads", values=(1, 4, 8, 16)),
    Tunable("table_open_cache_instances", values=(1, 2, 4, 8, 16)),
)
OF_CONNECTIONS = (
    Tunable("thread_cache_size", values=(0, 16, 64, 256)),
    Tunable("tmp_table_size", low=4 * MB, high=64 * MB, unit_bytes=1, per="connection"),
    Tunable("sort_buffer_size", low=MB / 4, high=16 * MB, unit_bytes=1, per="connection"),
)
"""What `tune` may vary of both."""

_MARIADB_ENGINES = ("InnoDB", "Aria", "MyISAM", "MEMORY", "ARCHIVE", "CSV")
_MARIADB_THREADS = ("one-thread-per-connection", "no-threads", "pool-of-threads")

_mariadb = specs_from("MariaDB 10.11 information_schema.SYSTEM_VARIABLES")
MARIADB_CATALOGUE = Catalogue(
    kind="mariadb",
    source="The settings are those of `mariadbd --no-defaults --verbose --help`.",
    specs=(
        *_shared(_mariadb),
        # tables, files, connections: fitted to one another and to RLIMIT_NOFILE when the server starts
        _mariadb("table_open_cache", "integer", True, 10, 1048576, 2000, sized_at_start=True),
        _mariadb("table_open_cache_instances", "integer", False, 1, 64, 8, sized_at_start=True),
        _mariadb("table_definition_cache", "integer", True, 400, 2097152, sized_at_start=True),
        _mariadb("innodb_open_files", "integer", False, 0, MAX_BYTES, 0, sized_at_start=True),
        _mariadb("max_connections", "integer", True, 10, 100000, 151, sized_at_start=True),
        # threads
        _mariadb("thread_handling", "text", False, default="one-thread-per-connection", choices=_MARIADB_THREADS),
        _mariadb("thread_pool_size", "integer", True, 1, 100000, sized_at_start=True),
        # InnoDB
        # SET GLOBAL resizes the pool behind the answer, and refuses a log below the log buffer, where a start does not
        _mariadb("innodb_buffer_pool_size", "bytes", True, 2097152, MAX_BYTES, 134217728, sized_at_start=True),
        _mariadb("innodb_flush_log_at_trx_commit", "integer", True, 0, 3, 1, gives_up=COMMITS, safe=(1, 3)),
        _mariadb("innodb_log_file_size", "bytes", True, 4194304, MAX_BYTES, 100663296, sized_at_start=True),
        _mariadb("innodb_log_buffer_size", "bytes", False, 2097152, 2147479552, 16777216),
        _mariadb("innodb_doublewrite", "boolean", False, default=True, gives_up=TORN),
        _mariadb("innodb_io_capacity", "integer", True, 100, MOST, 200),
        _mariadb("innodb_write_io_threads", "integer", True, 2, 64, 4),
        _mariadb("innodb_lock_wait_timeout", "integer", True, 0, 100000000, 50),
        # durability outside InnoDB
        _mariadb(
            "sync_frm", "boolean", True, default=True, gives_up="OFF: a table just created may be lost at power loss"
        ),
        _mariadb("sync_binlog", "integer", True, 0, MOST, 0, gives_up=EVENTS, safe=(1,)),
        _mariadb("sync_relay_log_info", "integer", True, 0, MOST, 10000, gives_up=RELAYED, safe=(1,)),
        _mariadb("sync_master_info", "integer", True, 0, MOST, 10000, gives_up=RELAYED, safe=(1,)),
        # caches and temporary tables
        _mariadb("key_buffer_size", "bytes", True, 0, MAX_BYTES, 134217728),
        _mariadb("aria_pagecache_buffer_size", "bytes", False, 131072, MAX_BYTES, 134217728),
        _mariadb("tmp_table_size", "bytes", True, 0, MAX_BYTES, 16777216),
        _mariadb("query_cache_size", "bytes", True, 0, MAX_BYTES, 1048576),
        _mariadb("query_cache_type", "text", True, default="OFF", choices=("OFF", "ON", "DEMAND")),
        _mariadb("sort_buffer_size", "bytes", True, 1024, MAX_BYTES, 2097152),
        _mariadb("max_prepared_stmt_count", "integer", True, 0, MOST, 16382),
        _mariadb(
            "default_storage_engine", "text", True, default="InnoDB", choices=_MARIADB_ENGINES, gives_up=ENGINES_LOSE
        ),
        _mariadb("performance_schema", "boolean", False, default=False),
    ),
)

MARIADB_TUNABLES = (
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
(https://mariadb.com/kb/en/innodb-system-variables/#innodb_flush_method).

What a search may vary, and how far; the most promising first."""

_NO_LOG = "OFF: no replica can follow, and no backup can be rolled forward to the moment before a loss"
_DOUBLEWRITE = ("ON", "OFF", "DETECT_AND_RECOVER", "DETECT_ONLY")
_MYSQL_THREADS = ("one-thread-per-connection", "no-threads")
_MYSQL_ENGINES = ("InnoDB", "MyISAM", "MEMORY", "ARCHIVE", "CSV")
_BUFFERED = ("none", "inserts", "deletes", "changes", "purges", "all")

_mysql = specs_from("MySQL 9.7 performance_schema.variables_metadata")
MYSQL_CATALOGUE = Catalogue(
    kind="mysql",
    source="The settings are those of `mysqld --no-defaults --verbose --help`.",
    specs=(
        *_shared(_mysql),
        # tables, files, connections: fitted to one another and to RLIMIT_NOFILE when the server starts
        _mysql("table_open_cache", "integer", True, 1, 524288, 4000, sized_at_start=True),
        _mysql("table_open_cache_instances", "integer", False, 1, 64, 16, sized_at_start=True),
        _mysql("table_definition_cache", "integer", True, 400, 524288, sized_at_start=True),
        _mysql("innodb_open_files", "integer", False, 0, 2**31 - 1, sized_at_start=True),
        _mysql("max_connections", "integer", True, 1, 100000, 151, sized_at_start=True),
        _mysql("thread_handling", "text", False, default="one-thread-per-connection", choices=_MYSQL_THREADS),
        # InnoDB's memory
        _mysql("innodb_buffer_pool_size", "bytes", True, 5242880, MAX_BYTES, 134217728, sized_at_start=True),
        _mysql("innodb_dedicated_server", "boolean", False, default=False),
        _mysql("innodb_buffer_pool_instances", "integer", False, 0, 64, sized_at_start=True),
        _mysql("innodb_change_buffering", "text", True, default="all", choices=_BUFFERED),
        # its redo log, and what a commit waits for
        _mysql("innodb_redo_log_capacity", "bytes", True, 8388608, 549755813888, 104857600, sized_at_start=True),
        _mysql("innodb_log_buffer_size", "bytes", True, 262144, MOST, 67108864),
        _mysql("innodb_log_writer_threads", "boolean", True, sized_at_start=True),
        _mysql("innodb_flush_log_at_trx_commit", "integer", True, 0, 2, 1, gives_up=COMMITS),
        _mysql(
            "innodb_doublewrite",
            "text",
            False,
            default="ON",
            choices=_DOUBLEWRITE,
            gives_up=f"DETECT_ONLY and {TORN}",
            safe=("ON", "DETECT_AND_RECOVER"),
        ),
        # its threads
        _mysql("innodb_io_capacity", "integer", True, 100, MOST, 10000, sized_at_start=True),
        _mysql("innodb_io_capacity_max", "integer", True, 100, MOST, sized_at_start=True),
        _mysql("innodb_write_io_threads", "integer", False, 1, 64, 4),
        _mysql("innodb_page_cleaners", "integer", False, 1, 64, sized_at_start=True),
        _mysql("innodb_purge_threads", "integer", False, 1, 32, sized_at_start=True),
        _mysql("innodb_thread_concurrency", "integer", True, 0, 1000, 0),
        _mysql("innodb_lock_wait_timeout", "integer", True, 1, 1073741824, 50),
        # the binary log, which is on
        _mysql("log_bin", "boolean", False, default=True, gives_up=_NO_LOG),
        _mysql("sync_binlog", "integer", True, 0, MOST, 1, gives_up=EVENTS),
        _mysql("binlog_group_commit_sync_delay", "integer", True, 0, 1000000, 0),
        _mysql("binlog_group_commit_sync_no_delay_count", "integer", True, 0, 100000, 0),
        _mysql("binlog_order_commits", "boolean", True, default=True),
        _mysql("binlog_cache_size", "bytes", True, 4096, MAX_BYTES, 32768),
        _mysql("binlog_row_image", "text", True, default="FULL", choices=("FULL", "MINIMAL", "NOBLOB")),
        _mysql("binlog_transaction_compression", "boolean", True, default=False),
        _mysql("sync_source_info", "integer", True, 0, MOST, 10000, gives_up=RELAYED, safe=(1,)),
        # caches and temporary tables
        _mysql("key_buffer_size", "bytes", True, 0, MAX_BYTES, 8388608),
        _mysql("tmp_table_size", "bytes", True, 1024, MAX_BYTES, 16777216),
        _mysql("internal_tmp_mem_storage_engine", "text", True, default="TempTable", choices=("TempTable", "MEMORY")),
        _mysql("temptable_max_ram", "bytes", True, 2097152, MAX_BYTES, sized_at_start=True),
        _mysql("sort_buffer_size", "bytes", True, 32768, MAX_BYTES, 262144),
        _mysql("max_prepared_stmt_count", "integer", True, 0, 4194304, 16382),
        _mysql("default_storage_engine", "text", True, default="InnoDB", choices=_MYSQL_ENGINES, gives_up=ENGINES_LOSE),
        _mysql("performance_schema", "boolean", False, default=True),
    ),
)

MYSQL_TUNABLES = (
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
