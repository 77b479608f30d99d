"""Ends, removes and reports what dead owners left behind, by their leases (leases.py)."""

import fcntl
import os
import signal
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from loadframe.cages import groups
from loadframe.host import identity, privilege, shared_memory
from loadframe.host.identity import Identity
from loadframe.host.leases import GRACE_S, Record, folder_of_leases, mark_of, members, read
from loadframe.host.state import Damaged, held, locked, remove_torn
from loadframe.system.files import regular_file
from loadframe.system.trees import closing, remove_tree
from loadframe.system.trust import user


@dataclass(frozen=True, slots=True)
class Swept:
    id: str
    what: str
    run: Path | None
    actions: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.what}: {', '.join(self.actions)}"


def sweep() -> list[Swept]:
    """Leases of living owners are not touched. Of several processes only one works at a time, the others find nothing
    left."""
    folder = folder_of_leases()
    remove_torn(folder)
    if not any(folder.glob("*.json")):
        return []
    with locked(folder / "lock"):
        return [swept for file in sorted(folder.glob("*.json")) if (swept := _sweep_one(file)) is not None]


def _sweep_one(file: Path) -> Swept | None:
    try:
        record = read(file)
    except FileNotFoundError:  # released by its owner meanwhile
        return None
    except Damaged as error:
        reason = f"{file} is not a lease that this version can use: {error}. It was left alone; delete it when in doubt"
        return Swept(file.stem, "unknown lease", None, (reason,))
    lives, same_boot = held(file), record.boot == identity.boot_id()
    if lives or not (same_boot or record.machine == identity.machine()):  # a directory that machines share
        return None
    if lives is None and same_boot and identity.alive(record.owner):
        return None
    if (unseen := _out_of_sight(record, same_boot)) is not None:
        unsure = f"it had {unseen} in another mount namespace (a container), which is not seen from here"
        what_to_do = f"run a command there; once that is gone, delete {file}"
        return Swept(record.id, record.what, record.run, (unsure, what_to_do))
    if not same_boot:
        return _swept(file, record, ["the machine was started again since"])
    actions = [f"its owner (pid {record.owner.pid}) is gone"]
    # Not one that merely names the folder, or has a file of it open: that may be its user's editor.
    named = [process for process in record.processes if identity.alive(process)]
    sessions = [member for process in record.processes for member in identity.of_session(process, record.folder)]
    grouped = [member for group in _own_group(record.folder) for member in identity.of_group(group, record.folder)]
    actions += _end_all(dict.fromkeys((*named, *identity.marked(mark_of(record.id)), *sessions, *grouped)))
    actions += _end_all(members(record))
    certain = record.owner.namespace != "" and identity.here(record.owner)
    if not certain and (why := _in_use(record.folder)) is not None:
        unsure = f"left {record.folder}: its owner worked in another PID namespace (a container), and {why}"
        if lives is None:
            unsure = f"left {record.folder}: whether its owner has ended cannot be seen from here, and {why}"
        what_to_do = f"once nothing uses it, delete it and {file}"
        return Swept(record.id, record.what, record.run, (unsure, what_to_do))
    actions += shared_memory.remove_left(record.id, record.folder)
    return _swept(file, record, actions)


def _swept(file: Path, record: Record, actions: list[str]) -> Swept:
    there = [folder for folder in record.groups if folder.exists()]
    kept = [folder for folder in there if not groups.remove(folder)]
    if removed := len(there) - len(kept):
        actions.append(f"removed {removed} control group{'s' * (removed != 1)}")
    actions += [f"could not remove {folder}: a process is in it" for folder in kept]
    actions += _remove(record.folder)
    if not record.folder.exists() and not any(folder.exists() for folder in record.groups):
        file.unlink(missing_ok=True)
        remove_torn(file.parent)
    return Swept(record.id, record.what, record.run, tuple(actions))


def _out_of_sight(record: Record, same_boot: bool) -> Path | None:
    """In our mount namespace another file system may have the folder's path, and control groups may not be mounted."""
    if record.mounts in ("", identity.namespace("mnt")):
        return None
    if not os.path.lexists(record.folder):
        return record.folder
    shown = tuple(hierarchy.top for hierarchy in groups.hierarchies())
    there = record.groups if same_boot else ()
    return next((group for group in there if not any(group.is_relative_to(top) for top in shown)), None)


def _own_group(folder: Path) -> tuple[int, ...]:
    """Lease.user of a dead owner; none if it had none."""
    with suppress(OSError):
        status = folder.lstat()
        if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and status.st_gid in privilege.FREE:
            return (status.st_gid,)
    return ()


def _in_use(folder: Path) -> str | None:
    """None if no process of this kernel, in any namespace, has a file of the folder open for writing: then the kernel
    grants a lease on it (fcntl(2))."""
    try:
        for place, _, names in os.walk(folder):
            for name in names:
                if stat.S_ISREG((file := Path(place) / name).lstat().st_mode) and _written(file):
                    return f"{file} is open for writing"
    except FileNotFoundError:  # a process works in it
        return "its files come and go"
    except OSError as error:
        return f"its users are not visible here ({error.strerror})"
    return None


def _written(file: Path) -> bool:
    with closing(regular_file(file)) as descriptor, suppress(BlockingIOError):
        # If another process opens it at this moment, the kernel sends us a signal: one that does nothing, not SIGIO.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        return False
    return True


OUTCOMES = {
    True: "ended process {pid}",
    False: "process {pid} does not end (stuck in the kernel)",
    None: "process {pid} belongs to another user: end it with `sudo kill {pid}`",
}
"""Of identity.end_all."""


def _end_all(processes: Iterable[Identity]) -> list[str]:
    ended = identity.end_all(processes, GRACE_S)
    return [OUTCOMES[outcome].format(pid=process.pid) for process, outcome in ended.items()]


def _remove(folder: Path) -> list[str]:
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return []
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return [f"left {folder}: the folder now belongs to {user(status.st_uid)}"]
    remove_tree(folder)
    return [f"removed {folder}" if not folder.exists() else f"could not remove all of {folder}: remove it as its owner"]
