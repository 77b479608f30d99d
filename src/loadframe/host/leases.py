"""Nothing that was started stays running and no temporary data stay behind, also after `kill -9`.

Before anything is started, a lease on disk says who owns it and where its data are. Servers started with
processes.spawn die with their owner at once; what is left - data, or a process that detached itself - is ended and
removed by the next command's sweep. Ended is only what is ours for certain: the processes that the lease names, those
in its control groups, those that carry its mark in their environment, and what these have started. Whether the owner
lives is told by a lock (state.Life), which holds across PID namespaces; pids do not, and are not used there.

Leases are kept in the state directory (state.py); data go to $LOADFRAME_SCRATCH, else /var/tmp, which is a disk where
/tmp often is memory.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import signal
import stat
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType

from loadframe.cages import groups
from loadframe.errors import CageError
from loadframe.host import identity, own_user, postgres_memory
from loadframe.host.identity import Identity
from loadframe.host.own_user import make_private
from loadframe.host.processes import MARK, mark_with, no_longer_mark_with
from loadframe.host.records import check_keys, folder_of, identity_of, list_of, read_record, text_of
from loadframe.host.signals import undisturbed
from loadframe.host.state import (
    Damaged,
    Life,
    held,
    locked,
    private_folder,
    remove_torn,
    state_directory,
    writable,
    write_durably,
)
from loadframe.host.trust import user

KIND, VERSION = "lease", 3
"""Version 1 had no machine, no namespaces of its processes, and no sign of life beside it; 2 had no mounts."""
KEYS = {"id", "what", "host", "boot", "owner", "folder", "run", "processes"}
GRACE_S = 2.0
SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Record:
    """What a lease says on disk. boot and machine: a pid means something only on this machine, this boot; host: its
    name, for people. mounts: the namespace of mounts (identity.namespace) in which its folder has that path; "" in
    versions before it was kept."""

    id: str
    what: str
    host: str
    machine: str
    boot: str
    owner: Identity
    folder: Path
    run: Path | None
    processes: tuple[Identity, ...] = ()
    groups: tuple[Path, ...] = ()
    mounts: str = ""


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep did about one lease, in words."""

    id: str
    what: str
    run: Path | None
    actions: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.what}: {', '.join(self.actions)}"


def scratch_directory() -> Path:
    """Where temporary data go. CageError where it cannot be written."""
    path = Path(os.environ.get("LOADFRAME_SCRATCH") or "/var/tmp")
    return writable(path, "put temporary data", "LOADFRAME_SCRATCH")


def filesystem(path: Path) -> str:
    """The type of the file system that `path` is on ("ext4", "tmpfs"): on tmpfs an fsync costs nothing."""
    best, kind = "", "unknown"
    for line in Path("/proc/self/mounts").read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        _, mount, name, *_ = line.split(" ")
        mount = mount.replace("\\040", " ")
        if len(mount) >= len(best) and path.is_relative_to(mount):
            best, kind = mount, name
    return kind


class Lease:
    """Owned by the process that acquired it. A context manager: leaving it releases."""

    def __init__(self, record: Record, file: Path, life: Life) -> None:
        self._record = record
        self._file = file
        self._life = life
        self._user = own_user.free_user()

    @classmethod
    def acquire(cls, what: str, *, scratch: Path | None = None, run: Path | None = None) -> Lease:
        """Write the lease, then make its folder. what: words for people. run: the run folder it serves.

        CageError where the state or the scratch directory cannot be written, or others could change what is in it.
        """
        name = secrets.token_hex(6)
        place = scratch_directory() if scratch is None else writable(scratch, "put temporary data", "LOADFRAME_SCRATCH")
        folder = place.absolute() / f"loadframe-{name}"
        owner, boot = identity.own(), identity.boot_id()
        record = Record(name, what, identity.host_name(), identity.machine(), boot, owner, folder, run)
        record = replace(record, mounts=identity.namespace("mnt"))
        file = _leases() / f"{name}.json"
        lease = cls(record, file, _life(file))
        try:
            lease._write()
            make_private(folder, group=lease.user)
        except OSError as error:
            lease.release()
            raise CageError(f"Cannot make {folder}: {error.strerror}", remedy="Set LOADFRAME_SCRATCH.") from error
        except BaseException:  # Ctrl-C: nobody has the lease yet who could release it
            lease.release()
            raise
        mark_with(name)
        return lease

    @property
    def id(self) -> str:
        return self._record.id

    @property
    def folder(self) -> Path:
        """The temporary folder, with a name that nothing else has."""
        return self._record.folder

    @property
    def user(self) -> int | None:
        """A user whom nothing else on the machine has, for processes of this lease that need no rights: none where we
        are not root, or may not start any under it. Whoever is in its group may pass through the folder, and no other
        user: servers that run under users of their own are in it too (Allowance.shared_group)."""
        return self._user

    @property
    def shared_name(self) -> str:
        """What the names of a server's shared memory (shm_open(3)) must begin with, so that none of it stays."""
        return _shared_name(self._record.id)

    def add_process(self, pid: int) -> None:
        """Remember a process that was started, so that a sweep can end it. Does nothing for one that has ended."""
        process = identity.identify(pid)
        if process is not None:
            living = tuple(known for known in self._record.processes if identity.alive(known))
            self._record = replace(self._record, processes=(*living, process))
            self._write()

    def add_groups(self, folders: Iterable[Path]) -> None:
        """Remember control groups before they are made, so that they are removed whatever happens."""
        self._record = replace(self._record, groups=tuple(dict.fromkeys((*self._record.groups, *folders))))
        self._write()

    def release(self) -> None:
        """End what is still running, remove the control groups, the folder and the lease. Idempotent; in a forked child
        it does nothing. Ctrl-C waits until it is done."""
        if os.getpid() != self._record.owner.pid:
            return
        with undisturbed():
            no_longer_mark_with(self.id)
            identity.end_all((*self._record.processes, *self._strays()), GRACE_S)
            _empty(self._record)
            kept = [folder for folder in self._record.groups if not groups.remove(folder)]
            _remove_memory(self._record)
            shutil.rmtree(self.folder, ignore_errors=True)
            if not self.folder.exists() and not kept:  # else the next sweep tries again
                with contextlib.suppress(OSError):  # the same where the disk of the state has gone: all else is done
                    self._file.unlink(missing_ok=True)
                    self._life.end()

    def _strays(self) -> list[Identity]:
        """What has our mark, and our own children that work in the folder: Ctrl-C may come when one is started and
        before anybody knows of it, such as a load driver, and what writes into a folder keeps it from being removed."""
        ours = set(identity.children(os.getpid()))
        working = [process for process in identity.naming(self.folder.name) if process.pid in ours]
        in_group = [] if self.user is None else identity.of_group(self.user, self.folder)
        return [*identity.marked(_mark(self.id)), *working, *in_group]

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _write(self) -> None:
        text = json.dumps({"schema": f"loadframe.{KIND}/{VERSION}", **asdict(self._record)}, default=str, indent=1)
        try:
            write_durably(self._file, text)
        except OSError as error:
            raise CageError(
                f"Cannot write {self._file}: {error.strerror}", remedy="Make room, or set LOADFRAME_STATE."
            ) from error


def _life(file: Path) -> Life:
    try:
        return Life(file)
    except OSError as error:
        raise CageError(
            f"Cannot write beside {file}: {error.strerror}", remedy="Make room, or set LOADFRAME_STATE."
        ) from error


def sweep() -> list[Swept]:
    """End and remove what dead owners left behind; say what was done. Leases of living owners are not touched.

    Safe to run at the same time in several processes: one at a time works, the others find nothing left.
    """
    folder = _leases()
    remove_torn(folder)
    if not any(folder.glob("*.json")):
        return []
    with locked(folder / "lock"):
        return [swept for file in sorted(folder.glob("*.json")) if (swept := _sweep_one(file)) is not None]


def _sweep_one(file: Path) -> Swept | None:
    try:
        record = _read(file)
    except FileNotFoundError:  # released by its owner meanwhile
        return None
    except Damaged as error:
        reason = f"{file} is not a lease that this version can use: {error}; left as it is - delete it when in doubt"
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
    actions += _end_all(_left_running(record))
    actions += _empty(record)
    certain = record.owner.namespace != "" and identity.here(record.owner)
    if not certain and (why := _in_use(record.folder)) is not None:
        unsure = f"left {record.folder}: its owner worked in another PID namespace (a container), and {why}"
        if lives is None:
            unsure = f"left {record.folder}: whether its owner has ended cannot be seen from here, and {why}"
        what_to_do = f"once nothing uses it, delete it and {file}"
        return Swept(record.id, record.what, record.run, (unsure, what_to_do))
    actions += _remove_memory(record)
    return _swept(file, record, actions)


def _swept(file: Path, record: Record, actions: list[str]) -> Swept:
    actions += _remove_groups([folder for folder in record.groups if folder.exists()])
    actions += _remove(record.folder)
    if not record.folder.exists() and not any(folder.exists() for folder in record.groups):
        file.unlink(missing_ok=True)
        remove_torn(file.parent)
    return Swept(record.id, record.what, record.run, tuple(actions))


def _out_of_sight(record: Record, same_boot: bool) -> Path | None:
    """What of it is not here because it never was, None where all can be seen: another file system may have the
    folder's path where we are, and no control groups, or a part of them, may be mounted."""
    if record.mounts in ("", identity.namespace("mnt")):
        return None
    if not os.path.lexists(record.folder):
        return record.folder
    shown = tuple(hierarchy.top for hierarchy in groups.hierarchies())
    there = record.groups if same_boot else ()
    return next((group for group in there if not any(group.is_relative_to(top) for top in shown)), None)


def _left_running(record: Record) -> list[Identity]:
    """The processes of a dead owner that are ours for certain. Who merely names the folder, or has a file of it open,
    may be its user's editor."""
    named = [process for process in record.processes if identity.alive(process)]
    sessions = [each for process in record.processes for each in identity.of_session(process, record.folder)]
    groups = [each for group in _own_group(record.folder) for each in identity.of_group(group, record.folder)]
    return list(dict.fromkeys((*named, *identity.marked(_mark(record.id)), *sessions, *groups)))


def _own_group(folder: Path) -> tuple[int, ...]:
    """Lease.user of a dead owner: the group whose processes may pass through its folder; none where it had none."""
    try:
        status = folder.lstat()
    except OSError:
        return ()
    ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return (status.st_gid,) if ours and status.st_gid in own_user.FREE else ()


def _mark(lease: str) -> str:
    return f"{MARK}={lease}"


def _in_use(folder: Path) -> str | None:
    """Why data whose processes cannot be seen are better left, in words; None where no process of this kernel, of
    whatever namespace, has any file of the folder open for writing: then it grants a lease on it (fcntl(2))."""
    try:
        for place, _, names in os.walk(folder):
            for name in names:
                if stat.S_ISREG((file := Path(place) / name).lstat().st_mode) and _written(file):
                    return f"{file} is open for writing"
    except FileNotFoundError:  # somebody works in it
        return "its files come and go"
    except OSError as error:
        return f"who uses it cannot be told here ({error.strerror})"
    return None


def _written(file: Path) -> bool:
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        # Whoever opens it at this moment has the kernel send us a signal: one that does nothing, not SIGIO.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _end_all(processes: Iterable[Identity]) -> list[str]:
    words = {
        True: "ended process {pid}",
        False: "process {pid} does not end (stuck in the kernel)",
        None: "process {pid} belongs to another user: end it with `sudo kill {pid}`",
    }
    found = identity.end_all(processes, GRACE_S)
    return [words[ended].format(pid=process.pid) for process, ended in found.items()]


def _empty(record: Record) -> list[str]:
    """End whoever is still in the lease's control groups: nobody else has any business there."""
    left = {pid for folder in record.groups for pid in groups.members(folder)} - {os.getpid()}
    return _end_all(process for pid in sorted(left) if (process := identity.identify(pid)) is not None)


def _remove_groups(folders: Sequence[Path]) -> list[str]:
    kept = [folder for folder in folders if not groups.remove(folder)]
    removed = len(folders) - len(kept)
    actions = [f"removed {removed} control group{'s' * (removed != 1)}"] if removed else []
    return [*actions, *(f"could not remove {folder}: somebody is in it" for folder in kept)]


def _remove_memory(record: Record) -> list[str]:
    """What of shared memory its servers have left that were killed. Before the folder goes: that tells which is
    theirs."""
    named = remove_shared_memory(_shared_name(record.id), _owners(record.folder))
    return [*named, *postgres_memory.remove(record.folder)]


def _shared_name(lease: str) -> str:
    return f"loadframe{lease}"


def remove_shared_memory(name: str, owners: Iterable[int] = ()) -> list[str]:
    """Remove the shared memory whose names begin with Lease.shared_name; a server that was killed leaves it behind. Say
    what was done. owners: users whose segments these may be besides our own."""
    allowed = {os.geteuid(), *owners}
    segments = [path for path in SHARED_MEMORY.glob(f"{name}-*") if _removable(path, allowed)]
    kept = []
    for segment in segments:
        try:
            segment.unlink(missing_ok=True)
        except PermissionError:  # of a server's user
            kept.append(segment)
    removed = len(segments) - len(kept)
    actions = [f"removed {removed} piece{'s' * (removed != 1)} of shared memory"] if removed else []
    return [*actions, *(f"could not remove {segment}: remove it as its owner" for segment in kept)]


def _removable(path: Path, owners: set[int]) -> bool:
    """Whether it is a segment of one of these users: anybody may give theirs a name like ours."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid in owners


def _owners(folder: Path) -> set[int]:
    """Who has files in a lease's folder: its servers' users. What of them others can write is known to us alone."""
    try:
        return {entry.lstat().st_uid for entry in folder.iterdir()}
    except OSError:
        return set()


def _remove(folder: Path) -> list[str]:
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return []
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return [f"left {folder}: it is not our folder any more, it belongs to {user(status.st_uid)}"]
    shutil.rmtree(folder, ignore_errors=True)
    return [f"removed {folder}" if not folder.exists() else f"could not remove all of {folder}: remove it as its owner"]


def _read(file: Path) -> Record:
    version, data = read_record(file, KIND, VERSION)
    data = check_keys(
        data,
        KEYS | ({"machine", "groups"} if version > 1 else set()) | ({"mounts"} if version > 2 else set()),
        {"groups"},
    )
    name, folder = text_of(data, "id"), folder_of(data, "folder")
    if file.stem != name or folder.name != f"loadframe-{name}":  # never remove what is not a lease's own folder
        raise Damaged(f"its folder {folder} is not its own")
    cages = tuple(folder_of({"group": group}, "group") for group in list_of(data, "groups"))
    if foreign := [group for group in cages if not group.name.startswith(folder.name)]:
        raise Damaged(f"its group {foreign[0]} is not its own")
    host = text_of(data, "host")
    return Record(
        id=name,
        what=text_of(data, "what"),
        host=host,
        # Version 1 knew a machine by its host name alone.
        machine=text_of(data, "machine") if version > 1 else identity.machine() if host == identity.host_name() else "",
        boot=text_of(data, "boot"),
        owner=identity_of(data["owner"]),
        folder=folder,
        run=Path(text_of(data, "run")) if data["run"] is not None else None,
        processes=tuple(identity_of(process) for process in list_of(data, "processes")),
        groups=cages,
        mounts=text_of(data, "mounts") if version > 2 else "",
    )


def _leases() -> Path:
    return private_folder(state_directory() / "leases", "keep its leases", "LOADFRAME_STATE")
