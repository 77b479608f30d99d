"""PostgreSQL's settings and counters: a statement per version ("The Cumulative Statistics System", "System Views")."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadframe.kinds.catalogue import catalogue_in, counters_in, tunables_in
from loadframe.kinds.own_counts import Waited
from loadframe.knowledge.rows import toml_rows

_FILE, _METRICS = (Path(__file__).with_name(name) for name in ("settings.toml", "metrics.txt"))
CATALOGUE, TUNABLES = catalogue_in(_FILE), tunables_in(_FILE)
"""dynamic: a reload is enough; everything else has the context "postmaster"."""

RESERVED, HARMLESS_TEXTS = (frozenset(toml_rows(_FILE)[names]) for names in ("reserved", "harmless_texts"))

ASKED = tuple(counters_in(_METRICS, "activity", "ceiling", "counted", "wait").values())
"""What is asked for. activity: as it is at this moment; without our own connection, except in `connections`. counted:
sums over all databases; a connection reports at most once a second and when it ends (pgstat.c), so in a window of a
second or two these are right to about a fifth; wal_bytes and checkpoints are exact. wait: seconds that connections
waited, by cause."""
REFUSALS = tuple(counters_in(_METRICS, "log").values())

OLDEST = 14
"""The first version with pg_stat_wal and pg_stat_database.sessions."""

SEPARATE_CHECKPOINTER = 170000
"""From this server_version_num on checkpoints are in pg_stat_checkpointer, before in pg_stat_bgwriter."""
RESERVED_CONNECTIONS = 160000

WAITING = {
    "waiting_lock": "wait_event_type = 'Lock'",
    "waiting_lwlock": "wait_event_type IN ('LWLock', 'BufferPin') AND wait_event <> 'WALWrite'",
    "waiting_io": "wait_event_type = 'IO' AND wait_event NOT LIKE 'WAL%'",
    "waiting_wal": "wait_event LIKE 'WAL%' AND wait_event_type IN ('IO', 'LWLock')",
}
"""Waits of a connection that works on a statement ("Wait Events"): WALSync and WALWrite are the wait for a commit to
reach the disk."""

_THEIRS = "backend_type = 'client backend' AND pid <> pg_backend_pid()"
_ACTIVE = f"{_THEIRS} AND state = 'active'"
_WAITS = ", ".join(f"count(*) FILTER (WHERE {_ACTIVE} AND {wait}) AS {name}" for name, wait in WAITING.items())
_ACTIVITY = f"""
    SELECT count(*) FILTER (WHERE backend_type = 'client backend') AS connections,
           count(*) FILTER (WHERE {_ACTIVE}) AS active,
           count(*) FILTER (WHERE {_THEIRS} AND state LIKE 'idle in transaction%') AS idle_in_transaction,
           count(*) FILTER (WHERE {_THEIRS} AND {WAITING["waiting_lock"]}) AS lock_waiters,
           count(*) FILTER (WHERE backend_type = 'autovacuum worker') AS autovacuum_workers,
           count(*) FILTER (WHERE backend_type IN ('parallel worker', 'logical replication worker')
                            OR backend_type LIKE '%background worker%') AS worker_processes,
           {_WAITS}
    FROM pg_stat_activity
"""

_DATABASES = """
    SELECT sum(xact_commit) AS commits, sum(xact_rollback) AS rollbacks, sum(sessions) AS sessions,
           sum(blks_hit) AS blocks_hit, sum(blks_read) AS blocks_read, sum(temp_files) AS temp_files,
           sum(temp_bytes) AS temp_bytes, sum(deadlocks) AS deadlocks,
           sum(tup_returned - tup_fetched) AS rows_scanned
    FROM pg_stat_database
"""

_CHECKPOINTS = """
    SELECT checkpoints_timed, checkpoints_req AS checkpoints_requested, buffers_checkpoint AS checkpoint_buffers,
           buffers_clean AS cleaner_buffers, maxwritten_clean AS cleaner_stops
    FROM pg_stat_bgwriter
"""
_CHECKPOINTER = """
    SELECT c.num_timed AS checkpoints_timed, c.num_requested AS checkpoints_requested,
           c.buffers_written AS checkpoint_buffers, w.buffers_clean AS cleaner_buffers,
           w.maxwritten_clean AS cleaner_stops
    FROM pg_stat_checkpointer c, pg_stat_bgwriter w
"""

_WAL = """
    SELECT wal_records, wal_fpi AS wal_pages, wal_buffers_full, pg_wal_lsn_diff(at, '0/0') AS wal_bytes,
           pg_wal_lsn_diff(at, redo_lsn) AS wal_since_checkpoint
    FROM pg_stat_wal, pg_control_checkpoint(),
         (SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
                 ELSE pg_current_wal_insert_lsn() END AS at) AS position
"""

# lock_slots: NLOCKENTS() of storage/lmgr/lock.c. checkpoint_distance: CalculateCheckpointSegments() of
# access/transam/xlog.c, the log after which a checkpoint is requested. transaction_age_limit: SetTransactionIdLimit()
# of access/transam/varsup.c, three millions before a number would come again.
_CEILINGS = """
    SELECT jit, max_connections, max_connections - {reserved} AS connections_allowed, autovacuum_max_workers,
           max_worker_processes,
           max_locks_per_transaction * (max_connections + autovacuum_max_workers + 1 + max_worker_processes
                                        + max_wal_senders + max_prepared_transactions) AS lock_slots,
           max_wal_bytes / (1 + checkpoint_completion_target) AS checkpoint_distance,
           (SELECT count(*) FROM pg_locks WHERE NOT fastpath) AS locks,
           (SELECT max(age(datfrozenxid)) FROM pg_database) AS transaction_age,
           2147483647 - 3000000 AS transaction_age_limit
    FROM (SELECT {settings}, pg_size_bytes(current_setting('max_wal_size')) AS max_wal_bytes) AS settings
"""
_SETTINGS = (
    "max_connections", "superuser_reserved_connections", "autovacuum_max_workers", "max_worker_processes",
    "max_locks_per_transaction", "max_wal_senders", "max_prepared_transactions",
)  # fmt: skip


def statement(version: int) -> str:
    """version: server_version_num, from 140000 on. One row has every number."""
    kept = ("superuser_reserved_connections", *(("reserved_connections",) if version >= RESERVED_CONNECTIONS else ()))
    names = dict.fromkeys((*_SETTINGS, *kept))
    settings = [f"current_setting('{name}')::int AS {name}" for name in names]
    settings.append("current_setting('checkpoint_completion_target')::float8 AS checkpoint_completion_target")
    settings.append("current_setting('jit')::bool::int AS jit")
    ceilings = _CEILINGS.format(reserved=" - ".join(kept), settings=", ".join(settings))
    checkpoints = _CHECKPOINTER if version >= SEPARATE_CHECKPOINTER else _CHECKPOINTS
    parts = enumerate((_ACTIVITY, _DATABASES, checkpoints, _WAL, ceilings))
    return "SELECT * FROM " + ", ".join(f"({part.strip()}) AS part_{number}" for number, part in parts)


def counted(row: Mapping[str, Any], waited: Waited) -> dict[str, float]:
    values = {name: float(value) for name, value in row.items() if value is not None}
    return values | waited.look(values)
