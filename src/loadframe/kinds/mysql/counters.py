"""What a MariaDB and a MySQL are asked in the steps of a study and by the ledger, of a private server and of one that
runs already.

Names and meanings: SHOW GLOBAL STATUS and SHOW GLOBAL VARIABLES of MariaDB 10.11 and MySQL 9.7, MySQL's performance
schema; its counters of the redo log came with 8.0.30.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from loadframe.errors import TargetError
from loadframe.formats.plain_numbers import finite
from loadframe.kinds.catalogue import count, gauge
from loadframe.kinds.mysql.metrics import OF_CAPACITY
from loadframe.model import CounterSpec

if TYPE_CHECKING:
    from loadframe.kinds.mysql.control import Control  # a watch, which asks in its own way, has no use for it

PICOSECONDS = 1e12
WAITED = (
    "SELECT EVENT_NAME, SUM_TIMER_WAIT FROM performance_schema.events_waits_summary_global_by_event_name"
    " WHERE EVENT_NAME IN ({})"
)
FILLED = "redo_fill"


def _status_of(kind: str) -> tuple[CounterSpec, ...]:
    """Of SHOW GLOBAL STATUS, what both MariaDB and MySQL tell."""
    gauged, counted = partial(gauge, kind), partial(count, kind)
    return (
        gauged("Open_tables", "open_tables"),
        counted("Opened_tables", "opened_tables"),
        counted("Table_open_cache_hits", "table_cache_hits"),
        counted("Table_open_cache_misses", "table_cache_misses"),
        counted("Table_open_cache_overflows", "table_cache_overflows"),
        gauged("Open_table_definitions", "open_table_definitions"),
        counted("Opened_table_definitions", "opened_table_definitions"),
        gauged("Open_files", "open_files"),
        counted("Opened_files", "opened_files"),
        gauged("Threads_connected", "connections"),
        gauged("Max_used_connections", "max_used_connections"),
        gauged("Threads_running", "threads_running"),
        counted("Connection_errors_max_connections", "connection_errors_max"),
        counted("Aborted_connects", "aborted_connects"),
        counted("Questions", "questions"),
        counted("Innodb_data_fsyncs", "data_fsyncs"),
        gauged("Innodb_buffer_pool_pages_total", "pool_pages"),
        gauged("Innodb_buffer_pool_pages_free", "pool_pages_free"),
        gauged("Innodb_page_size", "pool_page_bytes"),
        counted("Innodb_buffer_pool_reads", "pool_reads"),
        counted("Innodb_buffer_pool_read_requests", "pool_read_requests"),
        counted("Innodb_buffer_pool_wait_free", "pool_wait_free"),
        counted("Innodb_buffer_pool_pages_flushed", "pages_flushed"),
        counted("Innodb_log_waits", "log_waits"),
        counted("Table_locks_waited", "table_locks_waited"),
        counted("Innodb_row_lock_waits", "row_lock_waits"),
        counted("Created_tmp_disk_tables", "temporary_disk_tables"),
        counted("Created_tmp_tables", "temporary_tables"),
        counted("Threads_created", "threads_created"),
        counted("Connections", "new_connections"),
        counted("Table_locks_immediate", "table_locks_immediate"),
        gauged("Prepared_stmt_count", "prepared_statements"),
        gauged("Innodb_buffer_pool_pages_dirty", "pool_pages_dirty"),
        counted("Innodb_log_write_requests", "log_write_requests"),
    )


def _variables_of(kind: str) -> tuple[CounterSpec, ...]:
    """Of SHOW GLOBAL VARIABLES: ceilings that belong next to their use."""
    names = (
        "table_open_cache",
        "table_definition_cache",
        "open_files_limit",
        "max_connections",
        "table_open_cache_instances",
        "max_prepared_stmt_count",
    )
    return tuple(gauge(kind, name) for name in names)


@dataclass(frozen=True, slots=True)
class Counting:
    """What a kind is asked. redo: of `status`, how much of the redo log is in use, and how large it may be: bytes;
    usable: the share of the latter that is used before pages have to be written. waits: seconds that threads have
    waited, by performance schema's names."""

    kind: str
    status: tuple[CounterSpec, ...]
    variables: tuple[CounterSpec, ...]
    redo: tuple[str, str]
    waits: tuple[CounterSpec, ...] = ()
    usable: float = 1.0

    @property
    def specs(self) -> tuple[CounterSpec, ...]:
        """All of them, with what follows from others at one moment."""
        return (*self.status, *self.variables, gauge(self.kind, FILLED), *self.waits)

    def read(self, control: Control) -> dict[str, float]:
        """Two SHOW statements on the kept connection, and one to the performance schema where it has something."""
        told = control.pairs("SHOW GLOBAL STATUS", [spec.name for spec in self.status])
        told |= control.pairs("SHOW GLOBAL VARIABLES", [spec.name for spec in self.variables])
        return self.counted(told) | self._waited(control)

    def counted(self, told: Mapping[str, str]) -> dict[str, float]:
        """What the two SHOW statements told, by CounterSpec.name; what is no number is left out."""
        found = {name: number for name, text in told.items() if (number := finite(text)) is not None}
        age, most = (found.get(name, 0.0) for name in self.redo)
        return found | ({FILLED: age / (self.usable * most)} if most > 0 else {})

    def _waited(self, control: Control) -> dict[str, float]:
        """Nothing where the performance schema is off, or closed to the account."""
        if not self.waits:
            return {}
        names = [spec.name for spec in self.waits]
        try:
            rows = control.ask(WAITED.format(", ".join(["%s"] * len(names))), names)
        except TargetError:  # a server that has died says so to the next SHOW statement
            return {}
        numbers = ((str(row[0]), finite(str(row[1]))) for row in rows if len(row) == 2 and row[0] in names)
        return {name: number / PICOSECONDS for name, number in numbers if number is not None}


_count = partial(count, "mysql")
MARIADB = Counting(
    "mariadb",
    (
        *_status_of("mariadb"),
        gauge("mariadb", "Table_open_cache_active_instances", "table_cache_instances"),
        gauge("mariadb", "Innodb_checkpoint_age", "checkpoint_age"),
        gauge("mariadb", "Innodb_checkpoint_max_age", "checkpoint_max_age"),
    ),
    _variables_of("mariadb"),
    ("Innodb_checkpoint_age", "Innodb_checkpoint_max_age"),
)
"""MariaDB 10.11 has no Innodb_os_log_fsyncs any more: fsyncs of the redo log count in Innodb_data_fsyncs (seen: 20
single-row commits raise it by 21)."""
MYSQL = Counting(
    "mysql",
    (
        *_status_of("mysql"),
        _count("Innodb_os_log_fsyncs", "log_fsyncs"),
        gauge("mysql", "Innodb_redo_log_logical_size", "checkpoint_age"),
        gauge("mysql", "Innodb_redo_log_capacity_resized", "redo_log_capacity"),
        _count("Innodb_dblwr_writes", "doublewrites"),
        _count("Binlog_cache_use", "binlog_transactions"),
        _count("Binlog_cache_disk_use", "binlog_cache_disk_uses"),
        gauge("mysql", "Innodb_row_lock_current_waits", "row_locks_waited_for"),
    ),
    _variables_of("mysql"),
    ("Innodb_redo_log_logical_size", "Innodb_redo_log_capacity_resized"),
    waits=(
        _count("wait/io/file/innodb/innodb_log_file", "redo_log_wait"),
        _count("wait/io/file/sql/binlog", "binary_log_wait"),
        _count("wait/io/file/innodb/innodb_data_file", "data_file_wait"),
        _count("wait/io/file/innodb/innodb_dblwr_file", "doublewrite_wait"),
        _count("wait/lock/metadata/sql/mdl", "metadata_lock_wait"),
        _count("wait/lock/table/sql/handler", "table_lock_wait"),
    ),
    usable=OF_CAPACITY,
)
"""Waits: those that are measured unless the server is told otherwise; seconds of all threads."""
