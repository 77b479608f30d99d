"""What the ledger asks a MariaDB besides the counters of a step. Names and meanings: MariaDB 10.11's SHOW GLOBAL STATUS
and SHOW GLOBAL VARIABLES."""

from __future__ import annotations

from loadframe.kinds.mariadb import settings as mariadb_settings
from loadframe.model import CounterSpec

STATUS = (
    *mariadb_settings.STATUS,
    CounterSpec("Threads_created", "mariadb.threads_created", cumulative=True),
    CounterSpec("Connections", "mariadb.new_connections", cumulative=True),
    CounterSpec("Created_tmp_tables", "mariadb.temporary_tables", cumulative=True),
    CounterSpec("Table_locks_immediate", "mariadb.table_locks_immediate", cumulative=True),
    CounterSpec("Prepared_stmt_count", "mariadb.prepared_statements", cumulative=False),
    CounterSpec("Innodb_buffer_pool_pages_dirty", "mariadb.pool_pages_dirty", cumulative=False),
    CounterSpec("Innodb_log_write_requests", "mariadb.log_write_requests", cumulative=True),
    CounterSpec("Innodb_checkpoint_age", "mariadb.checkpoint_age", cumulative=False),
    CounterSpec("Innodb_checkpoint_max_age", "mariadb.checkpoint_max_age", cumulative=False),
)

VARIABLES = (
    *mariadb_settings.VARIABLES,
    CounterSpec("table_open_cache_instances", "mariadb.table_open_cache_instances", cumulative=False),
    CounterSpec("max_prepared_stmt_count", "mariadb.max_prepared_stmt_count", cumulative=False),
)
