"""What a search may vary of MariaDB, and how far. The most promising come first."""

from __future__ import annotations

from loadframe.kinds.tunable import GB, MB, SWITCH, Tunable

TABLE_BYTES = 20 << 10
"""Of an open table in MariaDB's cache: 5.5 GB at 64,000 tables was seen in the story of the render farm, connections
and buffers included; a fifth of that is the table's own."""

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
    Tunable("innodb_write_io_threads", values=(2, 4, 8, 16)),
    Tunable("innodb_read_io_threads", values=(1, 4, 8, 16)),
    Tunable("table_open_cache_instances", values=(1, 2, 4, 8, 16)),
    Tunable("thread_cache_size", values=(0, 16, 64, 256)),
    Tunable("tmp_table_size", low=4 * MB, high=64 * MB, unit_bytes=1, per="connection"),
    Tunable("sort_buffer_size", low=MB / 4, high=16 * MB, unit_bytes=1, per="connection"),
    Tunable("innodb_doublewrite", values=(True,), relaxed=(False,)),
)
"""O_DIRECT_NO_FSYNC: what the file system keeps of a file that grew may be lost at power loss
(https://mariadb.com/kb/en/innodb-system-variables/#innodb_flush_method)."""
