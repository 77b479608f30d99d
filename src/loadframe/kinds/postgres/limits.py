"""Limits of a PostgreSQL server."""

from __future__ import annotations

from loadframe.knowledge.limit import LimitRule

DOCUMENTATION = "PostgreSQL documentation"
TUNER = "postgresqltuner"
ASKED = "it follows from the configured settings alone"

LIMITS: tuple[LimitRule, ...] = (
    LimitRule(
        id="postgres.max_connections",
        title="the number of client connections",
        use="postgres.connections",
        ceiling="postgres.connections_allowed",
        loud=True,
        source=f"{DOCUMENTATION}, max_connections less superuser_reserved_connections (and reserved_connections, from "
        "16 on); client backends in pg_stat_activity; refusals: SQLSTATE 53300 in the log of a private server, there "
        "is no counter; near: 80 %, our choice",
        configured="max_connections",
        errors="postgres.connections_refused",
        chain=("postgres.memory_budget", "user.threads", "cgroup.pids"),
        near=0.8,
        on_harm="reached",
    ),
    LimitRule(
        id="postgres.memory_budget",
        title="the memory of the server with every connection taken",
        use="postgres.memory_at_full",
        ceiling="target.memory.allowed",
        unit="bytes",
        loud=True,
        source="resident memory of all its processes, what they share counted once, regressed on connections and taken "
        "at max_connections, plus the shared buffers not touched yet: measured, where tuning scripts multiply; near: "
        "80 %, our choice",
        chain=("cgroup.memory", "system.memory"),
        near=0.8,
    ),
    LimitRule(
        id="postgres.memory_promised",
        title="the memory that the settings let the server take",
        use="postgres.memory_promised",
        ceiling="target.memory.allowed",
        unit="bytes",
        loud=True,
        source=f"{TUNER}: shared_buffers + max_connections x work_mem x 1.5 + autovacuum_max_workers x "
        "maintenance_work_mem; a statement may take several times work_mem; near: all",
        configured="work_mem",
        chain=("cgroup.memory", "system.memory"),
        near=1.0,
        pressure=True,
        now_only=ASKED,
    ),
    LimitRule(
        id="postgres.locks",
        title="locks in the table that all connections share",
        use="postgres.locks",
        ceiling="postgres.lock_slots",
        loud=True,
        source=f"{DOCUMENTATION}, max_locks_per_transaction: slots for each connection that may be, shared by all; "
        "pg_locks without the fast path; near: 80 %, our choice",
        configured="max_locks_per_transaction",
        near=0.8,
    ),
    LimitRule(
        id="postgres.shared_buffers",
        title="pages asked of the shared buffers that they did not have",
        use="postgres.buffer_miss_share",
        ceiling="one",
        unit="share",
        source=f"shared_buffers; blks_read over blks_hit + blks_read in pg_stat_database (the page cache may have had "
        f"them); near: 10 %, {TUNER}",
        configured="shared_buffers",
        thrash="postgres.blocks_read",
        near=0.1,
        pressure=True,
    ),
    LimitRule(
        id="postgres.wal_distance",
        title="write-ahead log since the last checkpoint",
        use="postgres.wal_since_checkpoint",
        ceiling="postgres.checkpoint_distance",
        unit="bytes",
        source=f"{DOCUMENTATION}, WAL Configuration: max_wal_size / (1 + checkpoint_completion_target), then a "
        "checkpoint is requested; near: 80 %, our choice",
        configured="max_wal_size",
        thrash="postgres.checkpoints_requested",
        chain=("disk.space",),
        near=0.8,
    ),
    LimitRule(
        id="postgres.checkpoints",
        title="checkpoints that the growing log requested before it was time",
        use="postgres.requested_share",
        ceiling="one",
        unit="share",
        source=f"{DOCUMENTATION}, WAL Configuration: raise max_wal_size; checkpoints_req over both kinds in "
        "pg_stat_bgwriter (from 17 on pg_stat_checkpointer); near: more requested than timed",
        configured="max_wal_size",
        thrash="postgres.checkpoints_requested",
        near=0.5,
        pressure=True,
    ),
    LimitRule(
        id="postgres.temporary_files",
        title="transactions that spilled to a temporary file",
        use="postgres.spill_share",
        ceiling="one",
        unit="share",
        source=f"{DOCUMENTATION}, work_mem: sorts and hashes beyond it go to disk; temp_files in pg_stat_database; "
        "near: any",
        configured="work_mem",
        thrash="postgres.temp_files",
        near=0.0,
        pressure=True,
    ),
    LimitRule(
        id="postgres.worker_processes",
        title="background workers",
        use="postgres.worker_processes",
        ceiling="postgres.max_worker_processes",
        source=f"{DOCUMENTATION}, max_worker_processes: queries get fewer parallel workers than planned; near: full",
        configured="max_worker_processes",
        near=0.97,
    ),
    LimitRule(
        id="postgres.autovacuum_workers",
        title="autovacuum workers",
        use="postgres.autovacuum_workers",
        ceiling="postgres.autovacuum_max_workers",
        source=f"{DOCUMENTATION}, autovacuum_max_workers: further tables wait for their vacuum; near: full",
        configured="autovacuum_max_workers",
        near=0.97,
    ),
    LimitRule(
        id="postgres.transaction_ids",
        title="transactions since the oldest number that is not frozen",
        use="postgres.transaction_age",
        ceiling="postgres.transaction_age_limit",
        loud=True,
        source=f"{DOCUMENTATION}, Preventing Transaction ID Wraparound Failures: age(datfrozenxid); near: "
        "vacuum_failsafe_age's default, 1.6 of 2.1 thousand million",
        near=0.745,
    ),
)
