"""What PostgreSQL counts."""

from pathlib import Path

from loadframe.knowledge.metric import Derived, connections, of_both, requests, share

ROWS = Path(__file__).with_name("metrics.txt").read_text(encoding="utf-8", errors="strict")
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
