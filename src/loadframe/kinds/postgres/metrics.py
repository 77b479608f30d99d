"""What PostgreSQL counts."""

from __future__ import annotations

from loadframe.knowledge.metric import Derived, connections, of_both, requests, share

ROWS = """
postgres.connections              | count | client connections open, of the fullest server
postgres.connections_allowed      | count | client connections allowed to ordinary users
postgres.max_connections          | count | client connections allowed, those kept for administrators included
postgres.connections_refused      | 1/s   | connections refused because all were taken
postgres.sessions                 | 1/s   | connections made
postgres.active                   | count | connections that work on a statement
postgres.idle_in_transaction      | count | connections that hold a transaction open and ask for nothing
postgres.lock_waiters             | count | connections that wait for a lock
postgres.waiting_lock             | s/s   | connections that wait for a lock, average
postgres.waiting_lwlock           | s/s   | connections that wait for the server's own short locks, average
postgres.waiting_io               | s/s   | connections that wait for data files, average
postgres.waiting_wal              | s/s   | connections that wait for the write-ahead log, average
postgres.commits                  | 1/s   | transactions committed
postgres.rollbacks                | 1/s   | transactions rolled back
postgres.deadlocks                | 1/s   | deadlocks
postgres.locks                    | count | locks in the shared table
postgres.lock_slots               | count | locks that the shared table has room for
postgres.blocks_hit               | 1/s   | pages found in the shared buffers
postgres.blocks_read              | 1/s   | pages that the shared buffers did not have
postgres.buffer_miss_share        | share | pages asked of the shared buffers that they did not have
postgres.temp_files               | 1/s   | temporary files made
postgres.temp_bytes               | bytes/s | bytes written to temporary files
postgres.spill_share              | share | transactions that spilled to a temporary file
postgres.checkpoints_timed        | 1/s   | checkpoints because it was time
postgres.checkpoints_requested    | 1/s   | checkpoints because the write-ahead log had grown
postgres.requested_share          | share | checkpoints that were requested
postgres.checkpoint_buffers       | 1/s   | pages written by checkpoints
postgres.cleaner_buffers          | 1/s   | pages written by the background writer
postgres.cleaner_stops            | 1/s   | times the background writer stopped because it had written too many
postgres.wal_records              | 1/s   | records written to the log
postgres.wal_pages                | 1/s   | whole pages written to the log, after checkpoints
postgres.wal_bytes                | bytes/s | bytes written to the log
postgres.wal_buffers_full         | 1/s   | times the log was written because its buffers were full
postgres.wal_since_checkpoint     | bytes | log since the last checkpoint began
postgres.checkpoint_distance      | bytes | log after which a checkpoint is requested
postgres.transaction_age          | count | transactions since the oldest number that is not frozen yet
postgres.transaction_age_limit    | count | transactions after which the server takes no more
postgres.autovacuum_workers       | count | autovacuum workers at work
postgres.autovacuum_max_workers   | count | autovacuum workers allowed
postgres.worker_processes         | count | background workers, parallel ones included
postgres.max_worker_processes     | count | background workers allowed
postgres.memory_at_full           | bytes | resident memory expected with every connection taken
postgres.memory_promised          | bytes | memory that the settings let the server take
postgres.max_connections.asked    | count | client connections asked for
postgres.shared_buffers.asked     | bytes | shared buffers asked for
postgres.work_mem.asked           | bytes | memory for each sort or hash asked for
postgres.maintenance_work_mem.asked | bytes | memory for each maintenance command asked for
postgres.autovacuum_max_workers.asked | count | autovacuum workers asked for
"""
"""name | unit | what."""


def _promised(buffers: float, connections: float, work: float, workers: float, maintenance: float) -> float:
    """postgresqltuner's arithmetic: one and a half sorts or hashes for each connection."""
    return buffers + connections * work * 1.5 + workers * maintenance


def _of_transactions(part: float, commits: float, rollbacks: float) -> float:
    return share(part, commits + rollbacks)


DERIVED = (
    Derived("postgres.buffer_miss_share", ("postgres.blocks_read", "postgres.blocks_hit"), of_both),
    Derived("postgres.requested_share", ("postgres.checkpoints_requested", "postgres.checkpoints_timed"), of_both),
    Derived(
        "postgres.spill_share", ("postgres.temp_files", "postgres.commits", "postgres.rollbacks"), _of_transactions
    ),
    Derived(
        "postgres.memory_promised",
        (
            "postgres.shared_buffers.asked",
            "postgres.max_connections.asked",
            "postgres.work_mem.asked",
            "postgres.autovacuum_max_workers.asked",
            "postgres.maintenance_work_mem.asked",
        ),
        _promised,
    ),
)

AGREEMENTS = (
    requests(
        "postgres.commits",
        "postgres.rollbacks",
        also=(
            "postgres.blocks_hit",
            "postgres.blocks_read",
            "postgres.temp_files",
            "postgres.temp_bytes",
            "postgres.deadlocks",
            "postgres.wal_records",
            "postgres.wal_pages",
        ),
    ),
    connections("postgres.connections"),
)
