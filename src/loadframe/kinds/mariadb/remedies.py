"""Remedies of MariaDB."""

from __future__ import annotations

from loadframe.knowledge.mysql_family.remedies import FamilyRemedies
from loadframe.knowledge.remedy import Builders, Situation, server_change, text
from loadframe.model import Price, Remedy

DOCUMENTATION = "MariaDB documentation"


def _flush_log_each_second(situation: Situation) -> Remedy | None:
    if situation.target_kind != "mariadb" or text(situation.effective, "innodb_flush_log_at_trx_commit") != "1":
        return None
    return Remedy(
        id="mariadb.flush_log_each_second",
        title="flush the redo log once a second instead of at each commit",
        addresses=("disk.fsync",),
        changes=(server_change(situation, "innodb_flush_log_at_trx_commit", 2, "commits no longer wait for the disk"),),
        price=Price(
            durability="about the last second of commits may be lost when the machine loses power; "
            "a crash of the server alone loses nothing"
        ),
        source=f"{DOCUMENTATION}, innodb_flush_log_at_trx_commit",
    )


BUILDERS: Builders = {
    **FamilyRemedies("mariadb", DOCUMENTATION, "innodb_log_file_size").builders(),
    "disk.fsync": (_flush_log_each_second,),
}
