"""Remedies of MySQL."""

from __future__ import annotations

from loadframe.knowledge.mysql_family.remedies import FamilyRemedies
from loadframe.knowledge.remedy import Builders, Situation, server_change, text
from loadframe.model import Price, Remedy

MANUAL = "MySQL manual"


def _flush_logs_each_second(situation: Situation) -> Remedy | None:
    """Both logs are flushed by a commit, so that one alone changes little."""
    if situation.target_kind != "mysql":
        return None
    relaxed = (
        ("innodb_flush_log_at_trx_commit", 2, text(situation.effective, "innodb_flush_log_at_trx_commit") == "1"),
        ("sync_binlog", 1000, _is_on(situation) and text(situation.effective, "sync_binlog") == "1"),
    )
    changes = tuple(
        server_change(situation, name, after, "commits no longer wait for the disk")
        for name, after, strict in relaxed
        if strict
    )
    if not changes:
        return None
    return Remedy(
        id="mysql.flush_logs_each_second",
        title="flush the redo log once a second, and the binary log every thousand commits",
        addresses=("disk.fsync",),
        changes=changes,
        price=Price(
            durability="about the last second of commits, and up to a thousand events of the binary log, may be lost "
            "when the machine loses power; a crash of the server alone loses nothing"
        ),
        source=f"{MANUAL}, innodb_flush_log_at_trx_commit and sync_binlog",
    )


def _is_on(situation: Situation) -> bool:
    return text(situation.effective, "log_bin") in ("true", "on", "1")


BUILDERS: Builders = {
    **FamilyRemedies("mysql", MANUAL, "innodb_redo_log_capacity").builders(),
    "disk.fsync": (_flush_logs_each_second,),
}
