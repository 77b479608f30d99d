"""Signatures of PostgreSQL, and the traces of their causes."""

from __future__ import annotations

from loadframe.knowledge.signature import DIRECT_RECLAIM, DISK_IDLE, OWN_CPU_BUSY, Condition, Rank, Signature, Trace

SIGNATURES = (
    Signature(
        id="disk.fsync",
        rank=Rank.DISK,
        title="every commit waits for the disk",
        present=(
            Condition("postgres.waiting_wal", ">=", 0.5, "on average half a connection waits for the log or more"),
            Condition("system.disk.flushes_per_request", ">=", 0.1, "the log is flushed for one request in ten"),
        ),
        absent=(OWN_CPU_BUSY, DIRECT_RECLAIM, DISK_IDLE),
        explanation="A commit is done only when the disk has confirmed it; connections flush for one another, and "
        "wait.",
    ),
    Signature(
        id="postgres.shared_buffers",
        rank=Rank.CACHES,
        title="the shared buffers are too small for the pages requested",
        present=(
            Condition(
                "postgres.blocks_read",
                ">=",
                0.5,
                "one request in two has to fetch a page that was there",
                per_request=True,
            ),
            Condition("postgres.waiting_io", ">=", 0.2, "on average a connection in five waits for data files"),
        ),
        absent=(OWN_CPU_BUSY,),
        explanation="Pages are read repeatedly, because other pages displace them from the shared buffers.",
        explains_falling=True,
    ),
    Signature(
        id="postgres.checkpoints",
        rank=Rank.CACHES,
        title="checkpoints come as fast as the write-ahead log grows",
        present=(
            Condition(
                "postgres.checkpoints_requested",
                ">=",
                0.1,
                "documentation: checkpoint_warning, 30 s; three times as often",
            ),
            Condition(
                "postgres.wal_pages", ">=", 0.1, "one request in ten writes a whole page to the log", per_request=True
            ),
        ),
        absent=(),
        explanation="After each checkpoint every page goes whole into the log when it is first changed, so the log "
        "grows the faster, and data files have to be flushed the more often.",
        explains_falling=True,
    ),
    Signature(
        id="lock.row",
        rank=Rank.LOCKS,
        title="transactions wait for row locks",
        present=(
            Condition("postgres.waiting_lock", ">=", 0.5, "on average half a connection or more waits for a lock"),
        ),
        absent=(OWN_CPU_BUSY,),
        explanation="Transactions change the same rows and wait for one another.",
        explains_falling=True,
    ),
)

TRACES = {
    "postgres.shared_buffers": Trace("postgres.blocks_read"),
    "postgres.checkpoints": Trace("postgres.wal_pages", price=False),
}

RULED_OUT_BY = {
    "lock.busy_errors": (Condition("postgres.connections_refused", ">", 1.0, "it is connections that are refused"),)
}
"""By a cause that is not of one kind of server alone: what is seen where it is another cause."""
