"""Limits of MariaDB and MySQL."""

from __future__ import annotations

from loadframe.knowledge.limit import LimitRule

START_UP = "mysqld's start-up arithmetic: max(10 + C + 2 T, 5 C, open_files_limit asked for)"
TUNER = "MySQLTuner"
ASKED = "it follows from the configured settings alone; a study reports them as clamped"


def files_of(kind: str) -> tuple[str, ...]:
    """The limits below all that costs descriptors."""
    return (f"{kind}.open_files_limit", "process.open_files")


def limits_of(
    kind: str,
    documentation: str,
    *,
    redo_told: str,
    redo_setting: str,
    tables: str = "open_tables",
    more_files: tuple[LimitRule, ...] = (),
) -> tuple[LimitRule, ...]:
    """Of one kind. documentation: whose pages on settings are the sources. redo_told: by which counters it tells how
    full its redo log is; redo_setting: what decides how large that is. tables: which metric tells how full the table
    cache is. more_files: its own, below files_wanted."""
    return (
        LimitRule(
            id=f"{kind}.table_open_cache",
            title="the table cache",
            use=f"{kind}.{tables}",
            ceiling=f"{kind}.table_open_cache",
            source="MySQL manual, table_open_cache; Open_tables and Opened_tables in SHOW GLOBAL STATUS: full is near",
            configured="table_open_cache",
            thrash=f"{kind}.opened_tables",
            chain=files_of(kind),
            near=0.97,
        ),
        LimitRule(
            id=f"{kind}.tables_at_once",
            title="the tables that running statements hold at once",
            use=f"{kind}.tables_at_once",
            ceiling=f"{kind}.table_open_cache",
            source="MySQL manual, table_open_cache: Threads_running times tables per join; tables per statement are "
            "measured, look-ups in the cache over Questions; near: full",
            configured="table_open_cache",
            thrash=f"{kind}.opened_tables",
            chain=files_of(kind),
            near=0.97,
        ),
        LimitRule(
            id=f"{kind}.table_definition_cache",
            title="the table definition cache",
            use=f"{kind}.open_table_definitions",
            ceiling=f"{kind}.table_definition_cache",
            source=f"{documentation}, table_definition_cache; Opened_table_definitions in SHOW GLOBAL STATUS; "
            f"{TUNER}: it should hold all tables; near: full",
            configured="table_definition_cache",
            thrash=f"{kind}.opened_table_definitions",
            near=0.97,
        ),
        LimitRule(
            id=f"{kind}.max_connections",
            title="the number of client connections",
            use=f"{kind}.max_used_connections",
            use_now=f"{kind}.connections",
            ceiling=f"{kind}.max_connections",
            loud=True,
            source=f"{documentation}, max_connections; Threads_connected now, Max_used_connections in steps, which it "
            f"may have passed between two readings; Connection_errors_max_connections; near: {TUNER}, 80 %",
            configured="max_connections",
            errors=f"{kind}.connection_errors_max",
            chain=files_of(kind),
            near=0.8,
            on_harm="reached",
        ),
        LimitRule(
            id=f"{kind}.open_files_limit",
            title="the server's own limit on open files",
            use=f"{kind}.open_files",
            ceiling=f"{kind}.open_files_limit",
            loud=True,
            source="mysqld's start-up arithmetic; Open_files in SHOW GLOBAL STATUS; near: 80 %, as for RLIMIT_NOFILE",
            configured="open_files_limit",
            errors="workload.errors",
            chain=("process.open_files",),
            near=0.8,
        ),
        LimitRule(
            id=f"{kind}.files_wanted",
            title="the files that the connections and the table cache asked for want",
            use=f"{kind}.files_wanted",
            ceiling=f"{kind}.open_files_limit",
            source=f"{START_UP}; below what is wanted the server cuts other settings and only its log says so. Where "
            "no open_files_limit is asked for MySQL wants 5000, MariaDB 10.11 does not (seen: 373 of 20,000 taken); "
            "near: more than there are",
            configured="open_files_limit",
            chain=("process.open_files",),
            near=1.001,
            pressure=True,
            now_only=ASKED,
        ),
        *more_files,
        LimitRule(
            id=f"{kind}.memory_budget",
            title="the memory of the server with every connection taken",
            use=f"{kind}.memory_at_full",
            ceiling="target.memory.allowed",
            unit="bytes",
            loud=True,
            source="resident memory regressed on Threads_connected, taken at max_connections, plus the buffer pool's "
            "free pages: measured, where tuning scripts multiply buffer sizes; near: 80 %, our choice",
            chain=("cgroup.memory", "system.memory"),
            near=0.8,
        ),
        LimitRule(
            id=f"{kind}.new_threads",
            title="connections for which a thread had to be made",
            use=f"{kind}.new_thread_share",
            ceiling="one",
            unit="share",
            source=f"thread_cache_size; Threads_created over Connections; near: {TUNER}, 50 %",
            configured="thread_cache_size",
            thrash=f"{kind}.threads_created",
            near=0.5,
            pressure=True,
        ),
        LimitRule(
            id=f"{kind}.threads_running",
            title="statements running at once, against the CPUs",
            use=f"{kind}.threads_running",
            ceiling="system.cpu.count",
            source="Threads_running; near: pt-stalk's default trigger, 25 threads (Percona Toolkit)",
            near_use=25.0,
            pressure=True,
        ),
        LimitRule(
            id=f"{kind}.buffer_pool",
            title="InnoDB's buffer pool",
            use=f"{kind}.pool_pages_used",
            ceiling=f"{kind}.pool_pages",
            source="Innodb_buffer_pool_pages_total and _free; what it costs is misses: Innodb_buffer_pool_reads over "
            "Innodb_buffer_pool_read_requests; near: full",
            thrash=f"{kind}.pool_miss_share",
            chain=(f"{kind}.memory_budget",),
            near=0.97,
        ),
        LimitRule(
            id=f"{kind}.dirty_pages",
            title="changed pages in InnoDB's buffer pool",
            use=f"{kind}.pool_pages_dirty",
            ceiling=f"{kind}.pool_pages",
            source="Innodb_buffer_pool_pages_dirty; threads wait for a clean page: Innodb_buffer_pool_wait_free; near: "
            "innodb_max_dirty_pages_pct's default, 90 %",
            thrash=f"{kind}.pool_wait_free",
            near=0.9,
            now_only="the page cleaner writes them as time goes on: they follow the time, not the load of a step; a "
            f"step has the waits for a clean page, {kind}.pool_wait_free",
        ),
        LimitRule(
            id=f"{kind}.log_buffer",
            title="writes to the redo log that waited because InnoDB's log buffer was too small",
            use=f"{kind}.log_buffer_waits",
            ceiling="one",
            unit="share",
            source="innodb_log_buffer_size; Innodb_log_waits over Innodb_log_write_requests (no counter tells how full "
            "it is: the LSN that is flushed lags by design where commits do not wait for the disk); near: any",
            configured="innodb_log_buffer_size",
            thrash=f"{kind}.log_waits",
            near=0.0,
            pressure=True,
        ),
        LimitRule(
            id=f"{kind}.redo_log",
            title="InnoDB's redo log since the last checkpoint",
            use=f"{kind}.checkpoint_age",
            ceiling=f"{kind}.checkpoint_max_age",
            unit="bytes",
            source=f"{redo_told} ({redo_setting}): at the ceiling all writes "
            "wait for pages to be flushed; near: 80 %, our choice",
            configured=redo_setting,
            near=0.8,
        ),
        LimitRule(
            id=f"{kind}.temporary_tables",
            title="temporary tables that did not fit into memory",
            use=f"{kind}.disk_table_share",
            ceiling="one",
            unit="share",
            source=f"tmp_table_size; Created_tmp_disk_tables over Created_tmp_tables; near: {TUNER}, 25 %",
            configured="tmp_table_size",
            thrash=f"{kind}.temporary_disk_tables",
            near=0.25,
            pressure=True,
        ),
        LimitRule(
            id=f"{kind}.table_locks",
            title="table locks that had to wait",
            use=f"{kind}.lock_wait_share",
            ceiling="one",
            unit="share",
            source=f"Table_locks_waited and Table_locks_immediate; near: {TUNER}, less than 95 % immediate",
            thrash=f"{kind}.table_locks_waited",
            near=0.05,
            pressure=True,
        ),
        LimitRule(
            id=f"{kind}.prepared_statements",
            title="prepared statements",
            use=f"{kind}.prepared_statements",
            ceiling=f"{kind}.max_prepared_stmt_count",
            loud=True,
            source=f"{documentation}, max_prepared_stmt_count: further ones are refused; near: 80 %, our choice",
            configured="max_prepared_stmt_count",
            near=0.8,
        ),
    )
