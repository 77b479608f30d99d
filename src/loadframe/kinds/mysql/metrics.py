"""What a MySQL counts."""

from __future__ import annotations

from loadframe.knowledge.metric import Derived
from loadframe.knowledge.mysql_family.metrics import agreements_of, derived_of, files_wanted, rows_of

ROWS = (
    rows_of("mysql")
    + """\
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

WITHOUT_LIMIT = 5000


def _files_wanted(connections: float, tables: float, asked: float) -> float:
    """Without an open_files_limit MySQL wants 5000 at least (sql/mysqld.cc, adjust_open_files_limit)."""
    return files_wanted(connections, tables, asked or WITHOUT_LIMIT)


def _checkpoint_max_age(capacity: float) -> float:
    return OF_CAPACITY * capacity


def _tables_kept(opened: float, size: float, rate: float, overflows: float) -> float:
    """A connection uses one of the cache's instances, by its number (sql/table_cache.h): with fewer connections than
    instances the cache is full, for those that there are, long before all of it is. Then tables that are opened
    displace others."""
    return size if overflows > 0 and 2 * overflows >= rate else opened


def _both(redo: float, binary: float) -> float:
    return redo + binary


DERIVED = (
    *derived_of("mysql", _files_wanted),
    Derived("mysql.checkpoint_max_age", ("mysql.redo_log_capacity",), _checkpoint_max_age),
    Derived(
        "mysql.tables_kept",
        ("mysql.open_tables", "mysql.table_open_cache", "mysql.opened_tables", "mysql.table_cache_overflows"),
        _tables_kept,
    ),
    Derived("mysql.commit_wait", ("mysql.redo_log_wait", "mysql.binary_log_wait"), _both),
)

AGREEMENTS = agreements_of("mysql")
