"""POSIX shared memory that servers leave behind when they are killed (shm_overview(7))."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from loadframe.host import postgres_memory

FOLDER = Path("/dev/shm")


def name_of(lease: str) -> str:
    """What the names of the shared memory of a lease's servers begin with."""
    return f"loadframe{lease}"


def remove_left(lease: str, folder: Path) -> list[str]:
    """Remove what a lease's servers have left; say what was done. Call it before its folder goes, which
    tells which is theirs."""
    return [*remove(name_of(lease), _owners(folder)), *postgres_memory.remove(folder)]


def remove(name: str, owners: Iterable[int] = ()) -> list[str]:
    """Remove the shared memory whose names begin with Lease.shared_name; a server that was killed leaves it behind. Say
    what was done. owners: users whose segments these may be besides our own."""
    allowed, removed, kept = {os.geteuid(), *owners}, 0, []
    for segment in FOLDER.glob(f"{name}-*"):
        try:
            status = segment.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_uid in allowed:  # any user may give theirs a name like ours
                segment.unlink(missing_ok=True)
                removed += 1
        except PermissionError:  # of a server's user
            kept.append(segment)
        except FileNotFoundError:
            continue
    actions = [f"removed {removed} piece{'s' * (removed != 1)} of shared memory"] if removed else []
    return [*actions, *(f"could not remove {segment}: remove it as its owner" for segment in kept)]


def _owners(folder: Path) -> set[int]:
    """Who has files in a lease's folder: its servers' users. What of them others can write is known to us alone."""
    try:
        return {entry.lstat().st_uid for entry in folder.iterdir()}
    except OSError:
        return set()
