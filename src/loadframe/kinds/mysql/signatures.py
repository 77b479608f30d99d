"""Signatures of MySQL, and the traces of their causes."""

from __future__ import annotations

from loadframe.knowledge.mysql_family.signatures import ruled_out_by, signatures_of, traces_of
from loadframe.knowledge.signature import DIRECT_RECLAIM, DISK_IDLE, OWN_CPU_BUSY, Condition, Rank, Signature, Trace

SIGNATURES = (
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
    *signatures_of("mysql"),
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

TRACES = {**traces_of("mysql"), "lock.metadata": Trace("mysql.metadata_lock_wait")}
RULED_OUT_BY = ruled_out_by("mysql")
