"""Signatures of MariaDB and MySQL, and the traces of their causes."""

from __future__ import annotations

from loadframe.knowledge.signature import DIRECT_RECLAIM, DISK_IDLE, OWN_CPU_BUSY, Condition, Rank, Signature, Trace


def _signatures_of(kind: str) -> tuple[Signature, ...]:
    """Of one kind."""
    return (
        Signature(
            id=f"{kind}.buffer_pool",
            rank=Rank.CACHES,
            title="the buffer pool is too small for the pages requested",
            present=(
                Condition(
                    f"{kind}.pool_reads",
                    ">=",
                    0.1,
                    "one request in ten has to fetch a page that was there",
                    per_request=True,
                ),
            ),
            absent=(OWN_CPU_BUSY,),
            explanation="Pages are read from the disk repeatedly, because other pages displace them from memory.",
            explains_falling=True,
        ),
        Signature(
            id=f"{kind}.redo_log",
            rank=Rank.CACHES,
            title="the redo log is too small for the write load",
            present=(
                Condition(f"{kind}.redo_fill", ">=", 0.75, "InnoDB flushes unconditionally from 7/8 of the log on"),
                Condition(
                    f"{kind}.pages_flushed",
                    ">=",
                    0.1,
                    "one request in ten makes the server write a page",
                    per_request=True,
                ),
            ),
            absent=(OWN_CPU_BUSY,),
            explanation="The log can advance only once the pages it protects are written; a small log forces these "
            "writes often.",
            explains_falling=True,
        ),
        Signature(
            id="lock.table",
            rank=Rank.LOCKS,
            title="statements wait for table locks",
            present=(
                Condition(
                    f"{kind}.table_locks_waited", ">=", 0.05, "MySQLTuner: 95 % should be immediate", per_request=True
                ),
            ),
            absent=(OWN_CPU_BUSY,),
            explanation="A statement locks the whole table and the others wait for it.",
            explains_falling=True,
        ),
        Signature(
            id="lock.row",
            rank=Rank.LOCKS,
            title="transactions wait for row locks",
            present=(Condition(f"{kind}.row_lock_waits", ">=", 0.05, "one request in twenty waits", per_request=True),),
            absent=(OWN_CPU_BUSY,),
            explanation="Transactions change the same rows and wait for one another.",
            explains_falling=True,
        ),
    )


SIGNATURES = (
    *_signatures_of("mariadb"),
    Signature(
        id="disk.fsync",
        rank=Rank.DISK,
        title="every commit waits for the disk",
        present=(
            Condition("mysql.commit_wait", ">=", 0.5, "half of the time a thread flushes one of the two logs"),
            Condition("system.disk.flushes_per_request", ">=", 0.1, "a log is flushed for one request in ten"),
        ),
        absent=(OWN_CPU_BUSY, DIRECT_RECLAIM, DISK_IDLE),
        explanation="A commit is done only when the disk has confirmed it: in the binary log, which is on by default, "
        "and in InnoDB's redo log. Connections flush for one another, and wait.",
    ),
    *_signatures_of("mysql"),
    Signature(
        id="lock.metadata",
        rank=Rank.LOCKS,
        title="statements wait for metadata locks",
        present=(
            Condition("mysql.metadata_lock_wait", ">=", 0.5, "on average half a connection or more waits for one"),
        ),
        absent=(OWN_CPU_BUSY,),
        explanation="A statement that changes a table's definition, or FLUSH TABLES, waits for transactions that have "
        "used the table, and all others queue behind it.",
        explains_falling=True,
    ),
)

_KINDS = ("mariadb", "mysql")
TRACES = {
    **{f"{kind}.buffer_pool": Trace(f"{kind}.pool_reads") for kind in _KINDS},
    # How full the log is falls with its size alone; pages are flushed in the background, too.
    **{f"{kind}.redo_log": Trace(f"{kind}.pages_flushed", "rate") for kind in _KINDS},
    "lock.metadata": Trace("mysql.metadata_lock_wait"),
}

RULED_OUT_BY = {
    "lock.busy_errors": tuple(
        Condition(f"{kind}.connection_errors_max", ">", 1.0, "it is connections that are refused") for kind in _KINDS
    )
}
"""By a cause that is not of one kind of server alone: what is seen where it is another cause."""
