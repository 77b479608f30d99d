"""Limits of an SQLite database."""

from __future__ import annotations

from loadframe.knowledge.limit import LimitRule

LIMITS: tuple[LimitRule, ...] = (
    LimitRule(
        id="lock.writer",
        title="the lock that only one writer can hold",
        layer="application",
        use="workload.lock_held",
        ceiling="one",
        unit="share",
        source="SQLite, File Locking And Concurrency: one writer at a time",
    ),
)
