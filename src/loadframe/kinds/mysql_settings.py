"""What the settings of MariaDB and MySQL have in common."""

from __future__ import annotations

from loadframe.kinds.catalogue import SettingSpec, specs_from
from loadframe.kinds.tunable import MB, Tunable

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


def shared(row: specs_from) -> tuple[SettingSpec, ...]:
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
        "initialize",
        "initialize_insecure",
        "innodb_data_home_dir",
        "innodb_log_group_home_dir",
        "lc_messages_dir",
        "log_bin",
        "log_error",
        "mysqlx",
        "no_defaults",
        "pid_file",
        "plugin_dir",
        "port",
        "print_defaults",
        "skip_grant_tables",
        "skip_name_resolve",
        "skip_networking",
        "socket",
        "table_cache",
        "tmpdir",
        "user",
        "validate_config",
        "verbose",
        "version",
    }
)
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
