"""Limits of a MariaDB."""

from __future__ import annotations

from loadframe.knowledge.limit import LimitRule

FILES = ("mariadb.open_files_limit", "process.open_files")
START_UP = "mysqld's start-up arithmetic: max(10 + C + 2 T, 5 C, open_files_limit asked for)"
TUNER = "MySQLTuner"
ASKED = "it follows from the configured settings alone; a study reports them as clamped"

LIMITS: tuple[LimitRule, ...] = (
    LimitRule(
        id="mariadb.table_open_cache",
        title="the table cache",
        use="mariadb.open_tables",
        ceiling="mariadb.table_open_cache",
        source="MySQL manual, table_open_cache; Open_tables and Opened_tables in SHOW GLOBAL STATUS: full is near",
        configured="table_open_cache",
        thrash="mariadb.opened_tables",
        chain=FILES,
        near=0.97,
    ),
    LimitRule(
        id="mariadb.tables_at_once",
        title="the tables that running statements hold at once",
        use="mariadb.tables_at_once",
        ceiling="mariadb.table_open_cache",
        source="MySQL manual, table_open_cache: Threads_running times tables per join; tables per statement are "
        "measured, look-ups in the cache over Questions; near: full",
        configured="table_open_cache",
        thrash="mariadb.opened_tables",
        chain=FILES,
        near=0.97,
    ),
    LimitRule(
        id="mariadb.table_definition_cache",
        title="the table definition cache",
        use="mariadb.open_table_definitions",
        ceiling="mariadb.table_definition_cache",
        source="MariaDB documentation, table_definition_cache; Opened_table_definitions in SHOW GLOBAL STATUS; "
        f"{TUNER}: it should hold all tables; near: full",
        configured="table_definition_cache",
        thrash="mariadb.opened_table_definitions",
        near=0.97,
    ),
    LimitRule(
        id="mariadb.max_connections",
        title="the number of client connections",
        use="mariadb.max_used_connections",
        use_now="mariadb.connections",
        ceiling="mariadb.max_connections",
        loud=True,
        source="MariaDB documentation, max_connections; Threads_connected now, Max_used_connections in steps, which it "
        f"may have passed between two readings; Connection_errors_max_connections; near: {TUNER}, 80 %",
        configured="max_connections",
        errors="mariadb.connection_errors_max",
        chain=FILES,
        near=0.8,
        on_harm="reached",
    ),
    LimitRule(
        id="mariadb.open_files_limit",
        title="the server's own limit on open files",
        use="mariadb.open_files",
        ceiling="mariadb.open_files_limit",
        loud=True,
        source="mysqld's start-up arithmetic; Open_files in SHOW GLOBAL STATUS; near: 80 %, as for RLIMIT_NOFILE",
        configured="open_files_limit",
        errors="workload.errors",
        chain=("process.open_files",),
        near=0.8,
    ),
    LimitRule(
        id="mariadb.files_wanted",
        title="the files that the connections and the table cache asked for want",
        use="mariadb.files_wanted",
        ceiling="mariadb.open_files_limit",
        source=f"{START_UP}; below what is wanted the server cuts other settings and only its log says so. Where no "
        "open_files_limit is asked for MySQL wants 5000, MariaDB 10.11 does not (seen: 373 of 20,000 taken); near: "
        "more than there are",
        configured="open_files_limit",
        chain=("process.open_files",),
        near=1.001,
        pressure=True,
        now_only=ASKED,
    ),
    LimitRule(
        id="mariadb.files_of_full_cache",
        title="the files of a full table cache in all its instances",
        use="mariadb.files_of_full_cache",
        ceiling="mariadb.open_files_limit",
        source="MariaDB 10.11's start: table_open_cache x instances x 2 (two files per MyISAM table); seen: 12000 x 8 "
        "x 2 + 184 wanted; near: all",
        configured="open_files_limit",
        chain=("process.open_files",),
        near=1.0,
        pressure=True,
    ),
    LimitRule(
        id="mariadb.memory_budget",
        title="the memory of the server with every connection taken",
        use="mariadb.memory_at_full",
        ceiling="target.memory.allowed",
        unit="bytes",
        loud=True,
        source="resident memory regressed on Threads_connected, taken at max_connections, plus the buffer pool's free "
        "pages: measured, where tuning scripts multiply buffer sizes; near: 80 %, our choice",
        chain=("cgroup.memory", "system.memory"),
        near=0.8,
    ),
    LimitRule(
        id="mariadb.new_threads",
        title="connections for which a thread had to be made",
        use="mariadb.new_thread_share",
        ceiling="one",
        unit="share",
        source=f"thread_cache_size; Threads_created over Connections; near: {TUNER}, 50 %",
        configured="thread_cache_size",
        thrash="mariadb.threads_created",
        near=0.5,
        pressure=True,
    ),
    LimitRule(
        id="mariadb.threads_running",
        title="statements running at once, against the CPUs",
        use="mariadb.threads_running",
        ceiling="system.cpu.count",
        source="Threads_running; near: pt-stalk's default trigger, 25 threads (Percona Toolkit)",
        near_use=25.0,
        pressure=True,
    ),
    LimitRule(
        id="mariadb.buffer_pool",
        title="InnoDB's buffer pool",
        use="mariadb.pool_pages_used",
        ceiling="mariadb.pool_pages",
        source="Innodb_buffer_pool_pages_total and _free; what it costs is misses: Innodb_buffer_pool_reads over "
        "Innodb_buffer_pool_read_requests; near: full",
        thrash="mariadb.pool_miss_share",
        chain=("mariadb.memory_budget",),
        near=0.97,
    ),
    LimitRule(
        id="mariadb.dirty_pages",
        title="changed pages in InnoDB's buffer pool",
        use="mariadb.pool_pages_dirty",
        ceiling="mariadb.pool_pages",
        source="Innodb_buffer_pool_pages_dirty; threads wait for a clean page: Innodb_buffer_pool_wait_free; near: "
        "innodb_max_dirty_pages_pct's default, 90 %",
        thrash="mariadb.pool_wait_free",
        near=0.9,
        now_only="the page cleaner writes them as time goes on: they follow the time, not the load of a step; a step "
        "has the waits for a clean page, mariadb.pool_wait_free",
    ),
    LimitRule(
        id="mariadb.log_buffer",
        title="writes to the redo log that waited because InnoDB's log buffer was too small",
        use="mariadb.log_buffer_waits",
        ceiling="one",
        unit="share",
        source="innodb_log_buffer_size; Innodb_log_waits over Innodb_log_write_requests (no counter tells how full it "
        "is: Innodb_lsn_flushed lags by design where commits do not wait for the disk); near: any",
        configured="innodb_log_buffer_size",
        thrash="mariadb.log_waits",
        near=0.0,
        pressure=True,
    ),
    LimitRule(
        id="mariadb.redo_log",
        title="InnoDB's redo log since the last checkpoint",
        use="mariadb.checkpoint_age",
        ceiling="mariadb.checkpoint_max_age",
        unit="bytes",
        source="Innodb_checkpoint_age and Innodb_checkpoint_max_age (innodb_log_file_size): at the ceiling all writes "
        "wait for pages to be flushed; near: 80 %, our choice",
        configured="innodb_log_file_size",
        near=0.8,
    ),
    LimitRule(
        id="mariadb.temporary_tables",
        title="temporary tables that did not fit into memory",
        use="mariadb.disk_table_share",
        ceiling="one",
        unit="share",
        source=f"tmp_table_size; Created_tmp_disk_tables over Created_tmp_tables; near: {TUNER}, 25 %",
        configured="tmp_table_size",
        thrash="mariadb.temporary_disk_tables",
        near=0.25,
        pressure=True,
    ),
    LimitRule(
        id="mariadb.table_locks",
        title="table locks that had to wait",
        use="mariadb.lock_wait_share",
        ceiling="one",
        unit="share",
        source=f"Table_locks_waited and Table_locks_immediate; near: {TUNER}, less than 95 % immediate",
        thrash="mariadb.table_locks_waited",
        near=0.05,
        pressure=True,
    ),
    LimitRule(
        id="mariadb.prepared_statements",
        title="prepared statements",
        use="mariadb.prepared_statements",
        ceiling="mariadb.max_prepared_stmt_count",
        loud=True,
        source="MariaDB documentation, max_prepared_stmt_count: further ones are refused; near: 80 %, our choice",
        configured="max_prepared_stmt_count",
        near=0.8,
    ),
)
