"""MariaDB as data: its settings.

Bounds, choices, defaults and READ_ONLY were read from information_schema.SYSTEM_VARIABLES of MariaDB 10.11.19 (Debian
12). What is sized at the start was read from GLOBAL_VALUE_ORIGIN = AUTO there and from the server's log: with
table_open_cache = 12000 and RLIMIT_NOFILE = 20000 it wants 12000 x 8 instances x 2 + 184 files, cuts the instances to 1
and table_open_cache to 9909, and says so in one warning only.

What gives up durability was read at KB and REPLICATION_KB, which say nothing of littlesync and nosync: MySQL's manual
("InnoDB Startup Options and System Variables") has them for tests of performance alone.
"""

from __future__ import annotations

from collections.abc import Container

from loadframe.kinds.catalogue import Catalogue, SettingSpec
from loadframe.model import SettingValue

SYSTEM_VARIABLES = "MariaDB 10.11 information_schema.SYSTEM_VARIABLES"
KB = "https://mariadb.com/kb/en/innodb-system-variables/"
REPLICATION_KB = "https://mariadb.com/kb/en/replication-and-binary-log-system-variables/"
MAX_BYTES = 2**63 - 1
ENGINES = ("InnoDB", "Aria", "MyISAM", "MEMORY", "ARCHIVE", "CSV")


def _integer(
    name: str,
    dynamic: bool,
    low: int,
    high: int,
    default: int | None,
    *,
    sized: bool = False,
    gives_up: str | None = None,
    safe: Container[SettingValue] = (),
) -> SettingSpec:
    return SettingSpec(
        name,
        "integer",
        dynamic,
        low,
        high,
        (),
        default,
        gives_up,
        sized_at_start=sized,
        source=SYSTEM_VARIABLES,
        safe=safe,
    )


def _bytes(
    name: str, dynamic: bool, low: int, default: int, high: int = MAX_BYTES, *, sized: bool = False
) -> SettingSpec:
    return SettingSpec(name, "bytes", dynamic, low, high, (), default, sized_at_start=sized, source=SYSTEM_VARIABLES)


def _switch(name: str, dynamic: bool, default: bool, gives_up: str | None = None) -> SettingSpec:
    return SettingSpec(name, "boolean", dynamic, default=default, gives_up=gives_up, source=SYSTEM_VARIABLES)


def _choice(
    name: str,
    dynamic: bool,
    choices: tuple[str, ...],
    default: str,
    gives_up: str | None = None,
    safe: tuple[str, ...] = (),
) -> SettingSpec:
    return SettingSpec(
        name, "text", dynamic, None, None, choices, default, gives_up, source=SYSTEM_VARIABLES, safe=safe
    )


_COMMITS = "0 and 2: about the last second of commits may be lost at power loss (0: also when the server dies)"
_TIMEOUT = (
    "more than 1: with innodb_flush_log_at_trx_commit 0 or 2 the commits of that many seconds may be lost at power loss"
)
_EVENTS = (
    "all but 1: at power loss the last events may be missing in the binary log, so that its replicas, and backups that "
    "are rolled forward by it, lack commits which the server has"
)
_RELAYED = "all but 1: at power loss a replica may lose its place in what it has received"
_ENGINES = (
    "MEMORY: all rows are gone when the server ends; others but InnoDB: a crash may leave half of a transaction, or a "
    "table that has to be repaired"
)
_FLUSH = ("fsync", "O_DSYNC", "littlesync", "nosync", "O_DIRECT", "O_DIRECT_NO_FSYNC")
_THREADS = ("one-thread-per-connection", "no-threads", "pool-of-threads")

CATALOGUE = Catalogue(
    kind="mariadb",
    source="The settings are those of `mariadbd --no-defaults --verbose --help`.",
    specs=(
        # tables, files, connections: fitted to one another and to RLIMIT_NOFILE when the server starts
        _integer("table_open_cache", True, 10, 1048576, 2000, sized=True),
        _integer("table_open_cache_instances", False, 1, 64, 8, sized=True),
        _integer("table_definition_cache", True, 400, 2097152, None, sized=True),
        _integer("open_files_limit", False, 0, 4294967295, 0, sized=True),
        _integer("innodb_open_files", False, 0, 2**63 - 1, 0, sized=True),
        _integer("max_connections", True, 10, 100000, 151, sized=True),
        _integer("thread_cache_size", True, 0, 16384, None, sized=True),
        _integer("back_log", False, 0, 65535, None, sized=True),
        # threads
        _choice("thread_handling", False, _THREADS, "one-thread-per-connection"),
        _integer("thread_pool_size", True, 1, 100000, None, sized=True),
        # InnoDB
        # SET GLOBAL resizes the pool behind the answer, and refuses a log below the log buffer, where a start does not
        _bytes("innodb_buffer_pool_size", True, 2097152, 134217728, sized=True),
        _integer("innodb_flush_log_at_trx_commit", True, 0, 3, 1, gives_up=_COMMITS, safe=(1, 3)),
        _integer("innodb_flush_log_at_timeout", True, 0, 2700, 1, gives_up=_TIMEOUT, safe=range(2)),
        _bytes("innodb_log_file_size", True, 4194304, 100663296, sized=True),
        _bytes("innodb_log_buffer_size", False, 2097152, 16777216, 2147479552),
        _choice(
            "innodb_flush_method",
            False,
            _FLUSH,
            "O_DIRECT",
            "nosync, littlesync: the data files may be lost at power loss; O_DIRECT_NO_FSYNC: what the file system "
            "keeps of a file that grew",
            ("fsync", "O_DSYNC", "O_DIRECT"),
        ),
        _switch("innodb_doublewrite", False, True, "OFF: a page torn by power loss cannot be repaired"),
        _switch("innodb_file_per_table", True, True),
        _switch("innodb_stats_persistent", True, True),
        _switch("innodb_adaptive_hash_index", True, False),
        _integer("innodb_io_capacity", True, 100, 4294967295, 200),
        _integer("innodb_read_io_threads", True, 1, 64, 4),
        _integer("innodb_write_io_threads", True, 2, 64, 4),
        _integer("innodb_lock_wait_timeout", True, 0, 100000000, 50),
        # durability outside InnoDB
        _switch("sync_frm", True, True, "OFF: a table just created may be lost at power loss"),
        _integer("sync_binlog", True, 0, 4294967295, 0, gives_up=_EVENTS, safe=(1,)),
        _integer("sync_relay_log", True, 0, 4294967295, 10000, gives_up=_RELAYED, safe=(1,)),
        _integer("sync_relay_log_info", True, 0, 4294967295, 10000, gives_up=_RELAYED, safe=(1,)),
        _integer("sync_master_info", True, 0, 4294967295, 10000, gives_up=_RELAYED, safe=(1,)),
        # caches and temporary tables
        _bytes("key_buffer_size", True, 0, 134217728),
        _bytes("aria_pagecache_buffer_size", False, 131072, 134217728),
        _bytes("tmp_table_size", True, 0, 16777216),
        _bytes("max_heap_table_size", True, 16384, 16777216),
        _bytes("query_cache_size", True, 0, 1048576),
        _choice("query_cache_type", True, ("OFF", "ON", "DEMAND"), "OFF"),
        _bytes("sort_buffer_size", True, 1024, 2097152),
        _bytes("join_buffer_size", True, 128, 262144),
        _integer("max_prepared_stmt_count", True, 0, 4294967295, 16382),
        _choice("default_storage_engine", True, ENGINES, "InnoDB", _ENGINES),
        _switch("performance_schema", False, False),
    ),
)

RESERVED = frozenset(
    {
        "basedir",
        "bind_address",
        "bootstrap",
        "character_sets_dir",
        "chroot",
        "datadir",
        "defaults_extra_file",
        "defaults_file",
        "help",
        "init_file",
        "innodb_data_home_dir",
        "innodb_log_group_home_dir",
        "lc_messages_dir",
        "log_bin",
        "log_error",
        "no_defaults",
        "pid_file",
        "plugin_dir",
        "port",
        "print_defaults",
        "skip_grant_tables",
        "skip_networking",
        "skip_name_resolve",
        "socket",
        "table_cache",
        "tmpdir",
        "user",
        "verbose",
        "version",
    }
)
"""Options that a private instance decides itself; table_cache is an old name of table_open_cache."""
