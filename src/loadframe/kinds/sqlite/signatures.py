"""Signatures of SQLite, and the traces of their causes."""

from __future__ import annotations

from loadframe.knowledge.signature import OWN_CPU_BUSY, Condition, Rank, Signature, Trace

SIGNATURES = (
    Signature(
        id="lock.writer",
        rank=Rank.ONE_WRITER,
        title="one writer holds the lock, the others wait",
        present=(
            Condition("workload.lock_waiting", ">=", 0.5, "on average half a request or more waits for the lock"),
            Condition(
                "workload.lock_held", ">=", 0.3, "held, or free only because those who wait sleep between their tries"
            ),
        ),
        absent=(OWN_CPU_BUSY,),
        explanation="Only one writer can hold the lock; additional workers queue up, or sleep and retry.",
        explains_falling=True,
    ),
)

TRACES = {
    "lock.writer": Trace("workload.lock_waiting", "waiting"),
}
