"""What a MySQL is asked. Names and meanings: MySQL 9.7's SHOW GLOBAL STATUS, SHOW GLOBAL VARIABLES and performance
schema; those of the redo log came with MySQL 8.0.30."""

from __future__ import annotations

from functools import partial

from loadframe.kinds.catalogue import count, gauge
from loadframe.kinds.mysql.metrics import OF_CAPACITY
from loadframe.kinds.mysql_counters import Counting, status_of, variables_of

_count = partial(count, "mysql")

STATUS = (
    *status_of("mysql"),
    _count("Innodb_os_log_fsyncs", "log_fsyncs"),
    gauge("mysql", "Innodb_redo_log_logical_size", "checkpoint_age"),
    gauge("mysql", "Innodb_redo_log_capacity_resized", "redo_log_capacity"),
    _count("Innodb_dblwr_writes", "doublewrites"),
    _count("Binlog_cache_use", "binlog_transactions"),
    _count("Binlog_cache_disk_use", "binlog_cache_disk_uses"),
    gauge("mysql", "Innodb_row_lock_current_waits", "row_locks_waited_for"),
)

WAITS = (
    _count("wait/io/file/innodb/innodb_log_file", "redo_log_wait"),
    _count("wait/io/file/sql/binlog", "binary_log_wait"),
    _count("wait/io/file/innodb/innodb_data_file", "data_file_wait"),
    _count("wait/io/file/innodb/innodb_dblwr_file", "doublewrite_wait"),
    _count("wait/lock/metadata/sql/mdl", "metadata_lock_wait"),
    _count("wait/lock/table/sql/handler", "table_lock_wait"),
)
"""Those that are measured unless the server is told otherwise; seconds of all threads."""

COUNTING = Counting(
    "mysql",
    STATUS,
    variables_of("mysql"),
    ("Innodb_redo_log_logical_size", "Innodb_redo_log_capacity_resized"),
    WAITS,
    usable=OF_CAPACITY,
)
COUNTERS = COUNTING.specs
