"""Remedies of MariaDB."""

from __future__ import annotations

from loadframe.knowledge.remedy import (
    OTHER_FILES,
    Builders,
    Situation,
    enlarged,
    link,
    raised,
    raised_alone,
    server_change,
    text,
    whole,
)
from loadframe.model import Change, Price, Remedy

DOCUMENTATION = "MariaDB documentation"


def _raise_table_open_cache(situation: Situation) -> Remedy | None:
    size = raised(situation, "mariadb.table_open_cache", "table_open_cache")
    if size is None:
        return None
    others = OTHER_FILES + whole(situation.effective, "max_connections", 151)
    most = (situation.most_open_files - others) // 2
    if most <= situation.ceilings["mariadb.table_open_cache"]:
        return None  # the machine allows no more files: the chain ends at its hard limit
    note = "each open table takes memory and, for most engines, two file descriptors"
    if size > most:
        note += (
            f"; {size:,} tables are needed; the {situation.most_open_files:,} files this machine allows hold {most:,}"
        )
        size = most
    files = others + 2 * size
    return Remedy(
        id="mariadb.table_open_cache.raise",
        title=f"set the table cache to {size:,} tables",
        addresses=("mariadb.table_open_cache",),
        changes=(
            *_file_chain(situation, files, "expect two files per cached table, and one for each connection"),
            server_change(
                situation, "table_open_cache", size, "the tables that the highest level keeps in use, plus a fifth"
            ),
        ),
        price=Price(note=note),
        source="mysqld's start-up arithmetic: files = max_connections + 2 x table_open_cache, and room for others",
    )


def _raise_table_definition_cache(situation: Situation) -> Remedy | None:
    return raised_alone(
        situation,
        "mariadb.table_definition_cache",
        "set the table definition cache to {} definitions",
        "the tables in use at the highest level, plus a fifth",
        "each cached definition takes memory",
        f"{DOCUMENTATION}, table_definition_cache",
    )


def _raise_max_connections(situation: Situation) -> Remedy | None:
    size = raised(situation, "mariadb.max_connections", "max_connections")
    if size is None:
        return None
    files = max(OTHER_FILES + size + 2 * whole(situation.effective, "table_open_cache", 2000), 5 * size)
    return Remedy(
        id="mariadb.max_connections.raise",
        title=f"allow {size:,} connections",
        addresses=("mariadb.max_connections",),
        changes=(
            *_file_chain(situation, files, "each connection needs a descriptor besides the cached tables"),
            server_change(
                situation, "max_connections", size, "the connections that the highest level opens, plus a fifth"
            ),
        ),
        price=Price(note="each connection takes a thread and its buffers"),
        source="mysqld's start-up arithmetic: files = max(10 + C + 2 T, 5 C)",
    )


def _raise_open_files(situation: Situation) -> Remedy | None:
    files = raised(situation, "process.open_files", "RLIMIT_NOFILE")
    if files is None or situation.target_kind != "mariadb":
        return None
    files = min(files, situation.most_open_files)
    if files <= situation.ceilings["process.open_files"]:
        return None  # the machine allows no more
    return Remedy(
        id="process.open_files.raise",
        title=f"allow the target {files:,} open files",
        addresses=("process.open_files", "mariadb.open_files_limit"),
        changes=_file_chain(situation, files, "the files open at the highest level, plus a fifth"),
        price=Price(note="kernel memory for each open file"),
        source="getrlimit(2), RLIMIT_NOFILE",
    )


def _raise_buffer_pool(situation: Situation) -> Remedy | None:
    return enlarged(
        situation,
        "innodb_buffer_pool_size",
        "mariadb.buffer_pool",
        "set the buffer pool to {}",
        "pages requested again stay in memory",
        "memory, which the server takes as it fills",
        kind="mariadb",
        documentation=DOCUMENTATION,
    )


def _raise_redo_log(situation: Situation) -> Remedy | None:
    return enlarged(
        situation,
        "innodb_log_file_size",
        "mariadb.redo_log",
        "set the redo log to {}",
        "the log can advance with fewer page writes",
        "disk space, and a longer recovery after a crash",
        kind="mariadb",
        documentation=DOCUMENTATION,
        on_disk=True,
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
        source=f"{DOCUMENTATION}, innodb_flush_log_at_trx_commit",
    )


def _file_chain(situation: Situation, files: int, why: str) -> tuple[Change, ...]:
    """The two links below every setting of MariaDB that costs descriptors, in the order in which they are raised."""
    return (
        link(situation, "process", "RLIMIT_NOFILE", files, f"the server cannot exceed its process's limit: {why}"),
        link(situation, "server", "open_files_limit", files, f"the server silently clamps its caches to this: {why}"),
    )


BUILDERS: Builders = {
    "mariadb.table_open_cache": (_raise_table_open_cache,),
    "mariadb.table_definition_cache": (_raise_table_definition_cache,),
    "mariadb.max_connections": (_raise_max_connections,),
    "mariadb.open_files_limit": (_raise_open_files,),
    "process.open_files": (_raise_open_files,),
    "mariadb.buffer_pool": (_raise_buffer_pool,),
    "mariadb.redo_log": (_raise_redo_log,),
    "disk.fsync": (_flush_log_each_second,),
}
