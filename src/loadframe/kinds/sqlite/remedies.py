"""Remedies of SQLite."""

from loadframe.knowledge.remedy import Builders, Situation, server_change, text, whole
from loadframe.model import Price, Remedy


def _write_ahead_log(situation: Situation) -> Remedy | None:
    if situation.target_kind != "sqlite" or text(situation.effective, "journal_mode") in ("wal", "memory", "off"):
        return None
    return Remedy(
        id="sqlite.journal_mode.wal",
        title="commit to a write-ahead log",
        addresses=("disk.fsync", "lock.writer"),
        changes=(
            server_change(situation, "journal_mode", "WAL", "one append and one flush per commit instead of several"),
        ),
        price=Price(note="two more files next to the database; every process that uses it must be on this machine"),
        source="SQLite, Write-Ahead Logging",
    )


def _synchronous_normal(situation: Situation) -> Remedy | None:
    full = text(situation.effective, "synchronous") in ("full", "2", "extra", "3")
    if situation.target_kind != "sqlite" or not full or text(situation.effective, "journal_mode") != "wal":
        return None
    return Remedy(
        id="sqlite.synchronous.normal",
        title="flush at checkpoints only",
        addresses=("disk.fsync", "lock.writer"),
        changes=(server_change(situation, "synchronous", "NORMAL", "commits no longer wait for the disk"),),
        price=Price(
            durability="the last commits may be lost when the machine loses power; "
            "the database is never corrupted by it"
        ),
        source="SQLite, PRAGMA synchronous: with WAL, NORMAL is consistent but not durable across power loss",
    )


def _busy_timeout(situation: Situation) -> Remedy | None:
    waits = whole(situation.effective, "busy_timeout", 0)
    if situation.target_kind != "sqlite" or waits >= 5000:
        return None
    return Remedy(
        id="sqlite.busy_timeout.raise",
        title="let a request wait for the lock",
        addresses=("lock.busy_errors",),
        changes=(server_change(situation, "busy_timeout", 5000, "wait for the lock instead of failing at once"),),
        price=Price(note="a request may take up to five seconds before it fails"),
        source="SQLite, PRAGMA busy_timeout",
    )


BUILDERS: Builders = {
    "disk.fsync": (_write_ahead_log, _synchronous_normal),
    "lock.writer": (_write_ahead_log, _synchronous_normal),
    "lock.busy_errors": (_busy_timeout,),
}
