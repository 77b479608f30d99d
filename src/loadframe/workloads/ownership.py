"""A schema of our own on a server that Loadframe did not start: who made it is noted in it, so that no other owner's is
ever taken for ours, and what a killed run left there is not in the way of the next one."""

from __future__ import annotations

import os
from pathlib import Path

from loadframe.errors import TargetError
from loadframe.host.identity import Identity, alive, boot_id, identify

TABLE = "loadframe_run"
COLUMNS = "boot VARCHAR(100) NOT NULL, pid BIGINT NOT NULL, started_ticks BIGINT NOT NULL"

Note = tuple[str, int, int]
"""A row of the table: the boot and the namespace of pids in which the process runs, and which process it is."""


def own_note() -> Note:
    """That of this process."""
    own = identify(os.getpid())
    assert own is not None, "this process runs"
    return _boot(), own.pid, own.started_ticks


def noting() -> list[str]:
    """The statements that note it in a schema that is new."""
    boot, pid, ticks = own_note()
    return [f"CREATE TABLE {TABLE} ({COLUMNS})", f"INSERT INTO {TABLE} VALUES ('{boot}', {pid}, {ticks})"]


def may_drop(note: Note | None) -> bool:
    """Whether the schema with this note is ours, or that of a run on this machine that has ended. None: it has none."""
    if note is None or note[0] != _boot():
        return False
    return tuple(note) == own_note() or not alive(Identity(note[1], note[2]))


def refusal(where: str, schema: str, drop: str) -> TargetError:
    """That the server has a schema of this name. drop: the statement that would remove it."""
    return TargetError(
        f"The server at {where} has a schema {schema!r} already, and Loadframe makes its own.",
        remedy=f"Rename it. If it is not needed, for example because a run before the last boot left it: {drop};",
    )


def _boot() -> str:
    return f"{boot_id()} {Path('/proc/self/ns/pid').readlink()}"
