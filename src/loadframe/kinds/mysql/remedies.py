"""Remedies of MariaDB and MySQL."""

from dataclasses import dataclass
from functools import partial

from loadframe.knowledge.remedy import (
    OTHER_FILES,
    Builders,
    Situation,
    enlarged,
    link,
    more_open_files,
    raised,
    raised_alone,
    server_change,
    text,
    whole,
)
from loadframe.model import Change, Price, Remedy


@dataclass(frozen=True, slots=True)
class _Remedies:
    kind: str
    documentation: str
    redo_setting: str

    def builders(self) -> Builders:
        return {
            f"{self.kind}.table_open_cache": (self.raise_table_open_cache,),
            f"{self.kind}.table_definition_cache": (
                raised_alone(
                    f"{self.kind}.table_definition_cache",
                    "set the table definition cache to {} definitions",
                    "the tables in use at the highest level, plus a fifth",
                    "each cached definition takes memory",
                    f"{self.documentation}, table_definition_cache",
                ),
            ),
            f"{self.kind}.max_connections": (
                raised_alone(
                    f"{self.kind}.max_connections",
                    "allow {} connections",
                    "the connections that the highest level opens, plus a fifth",
                    "each connection takes a thread and its buffers",
                    "mysqld's start-up arithmetic: files = max(10 + C + 2 T, 5 C)",
                    _files_of_connections,
                ),
            ),
            f"{self.kind}.open_files_limit": (self.raise_open_files,),
            "process.open_files": (self.raise_open_files,),
            f"{self.kind}.buffer_pool": (
                enlarged(
                    "innodb_buffer_pool_size",
                    f"{self.kind}.buffer_pool",
                    "set the buffer pool to {}",
                    "pages requested again stay in memory",
                    "memory, which the server takes as it fills",
                    self.kind,
                    documentation=self.documentation,
                ),
            ),
            f"{self.kind}.redo_log": (
                enlarged(
                    self.redo_setting,
                    f"{self.kind}.redo_log",
                    "set the redo log to {}",
                    "the log can advance with fewer page writes",
                    "disk space, and a longer recovery after a crash",
                    self.kind,
                    documentation=self.documentation,
                    on_disk=True,
                ),
            ),
        }

    def raise_table_open_cache(self, situation: Situation) -> Remedy | None:
        size = raised(situation, f"{self.kind}.table_open_cache", "table_open_cache")
        if size is None:
            return None
        others = OTHER_FILES + whole(situation.effective, "max_connections", 151)
        most = (situation.most_open_files - others) // 2
        if most <= situation.ceilings[f"{self.kind}.table_open_cache"]:
            return None  # the machine allows no more files: the chain ends at its hard limit
        note = "each open table takes memory and, for most engines, two file descriptors"
        if size > most:
            files_here = f"the {situation.most_open_files:,} files this machine allows"
            note += f"; {size:,} tables are needed; {files_here} hold {most:,}"
            size = most
        files = others + 2 * size
        return Remedy(
            id=f"{self.kind}.table_open_cache.raise",
            title=f"set the table cache to {size:,} tables",
            addresses=(f"{self.kind}.table_open_cache",),
            changes=(
                *_file_chain(situation, files, "expect two files per cached table, and one for each connection"),
                server_change(
                    situation, "table_open_cache", size, "the tables that the highest level keeps in use, plus a fifth"
                ),
            ),
            price=Price(note=note),
            source="mysqld's start-up arithmetic: files = max_connections + 2 x table_open_cache, and room for others",
        )

    def raise_open_files(self, situation: Situation) -> Remedy | None:
        if situation.target_kind != self.kind:
            return None
        chain = partial(_file_chain, situation, why="the files open at the highest level, plus a fifth")
        return more_open_files(situation, chain, f"{self.kind}.open_files_limit")


def _files_of_connections(situation: Situation, connections: int) -> tuple[Change, ...]:
    tables = whole(situation.effective, "table_open_cache", 2000)
    files = max(OTHER_FILES + connections + 2 * tables, 5 * connections)
    return _file_chain(situation, files, "each connection needs a descriptor besides the cached tables")


def _file_chain(situation: Situation, files: int, why: str) -> tuple[Change, ...]:
    return (
        link(situation, "process", "RLIMIT_NOFILE", files, f"the server cannot exceed its process's limit: {why}"),
        link(situation, "server", "open_files_limit", files, f"the server silently clamps its caches to this: {why}"),
    )


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
        source="MariaDB documentation, innodb_flush_log_at_trx_commit",
    )


def _flush_logs_each_second(situation: Situation) -> Remedy | None:
    """A commit flushes both logs, so that changing one alone gains little."""
    if situation.target_kind != "mysql":
        return None
    logs = text(situation.effective, "log_bin") in ("true", "on", "1")
    relaxed = (
        ("innodb_flush_log_at_trx_commit", 2, text(situation.effective, "innodb_flush_log_at_trx_commit") == "1"),
        ("sync_binlog", 1000, logs and text(situation.effective, "sync_binlog") == "1"),
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
        source="MySQL manual, innodb_flush_log_at_trx_commit and sync_binlog",
    )


_MARIADB = _Remedies("mariadb", "MariaDB documentation", "innodb_log_file_size").builders()
_MYSQL = _Remedies("mysql", "MySQL manual", "innodb_redo_log_capacity").builders()
BUILDERS: Builders = {
    **_MARIADB,
    **_MYSQL,
    "process.open_files": (*_MARIADB["process.open_files"], *_MYSQL["process.open_files"]),
    "disk.fsync": (_flush_log_each_second, _flush_logs_each_second),
}
