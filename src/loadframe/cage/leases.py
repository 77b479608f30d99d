"""Nothing that was started stays running and no temporary data stay behind, also after `kill -9`.

Before anything is started, a lease on disk says who owns it and where its data are. Servers started with
processes.spawn die with their owner at once; what is left - data, or a process that detached itself - is ended and
removed by the next command's sweep.

Leases are kept in the state directory (state.py); data go to $LOADFRAME_SCRATCH, else /var/tmp, which is a disk where
/tmp often is memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from loadframe.cage import groups, identity
from loadframe.cage.identity import Identity
from loadframe.cage.signals import undisturbed
from loadframe.cage.state import locked, remove_torn, state_directory, writable, write_durably
from loadframe.errors import CageError

SCHEMA = "loadframe.lease/1"
GRACE_S = 2.0
SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Record:
    """What a lease says on disk. boot and host: a pid means something only on this machine, this boot."""

    id: str
    what: str
    host: str
    boot: str
    owner: Identity
    folder: Path
    run: Path | None
    processes: tuple[Identity, ...] = ()
    groups: tuple[Path, ...] = ()


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
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, mount, name, *_ = line.split(" ")
        mount = mount.replace("\\040", " ")
        if len(mount) >= len(best) and path.is_relative_to(mount):
            best, kind = mount, name
    return kind


class Lease:
    """Owned by the process that acquired it. A context manager: leaving it releases."""

    def __init__(self, record: Record, file: Path) -> None:
        self._record = record
        self._file = file

    @classmethod
    def acquire(cls, what: str, *, scratch: Path | None = None, run: Path | None = None) -> Lease:
        """Write the lease, then make its folder. what: words for people. run: the run folder it serves.

        CageError where the state or the scratch directory cannot be written.
        """
        name = secrets.token_hex(6)
        place = scratch_directory() if scratch is None else writable(scratch, "put temporary data", "LOADFRAME_SCRATCH")
        owner = identity.identify(os.getpid())
        assert owner is not None, "a process that runs has an entry in /proc"
        folder = place.absolute() / f"loadframe-{name}"
        record = Record(name, what, socket.gethostname(), identity.boot_id(), owner, folder, run)
        lease = cls(record, _leases() / f"{name}.json")
        try:
            lease._write()
            folder.mkdir()
            folder.chmod(0o755)  # a server under another user must be able to enter, whatever our umask
        except OSError as error:
            lease.release()
            raise CageError(f"Cannot make {folder}: {error.strerror}", remedy="Set LOADFRAME_SCRATCH.") from error
        except BaseException:  # Ctrl-C: nobody has the lease yet who could release it
            lease.release()
            raise
        return lease

    @property
    def id(self) -> str:
        return self._record.id

    @property
    def folder(self) -> Path:
        """The temporary folder, with a name that nothing else has."""
        return self._record.folder

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
            for process in (*self._record.processes, *self._strays()):
                identity.end(process, GRACE_S)
            _empty(self._record)
            kept = [folder for folder in self._record.groups if not groups.remove(folder)]
            remove_shared_memory(self.shared_name)
            shutil.rmtree(self.folder, ignore_errors=True)
            if not self.folder.exists() and not kept:  # else the next sweep tries again
                self._file.unlink(missing_ok=True)

    def _strays(self) -> list[Identity]:
        """Our own children that work in the folder: Ctrl-C may come when one is started and before anybody knows of
        it, such as a load driver, and what writes into a folder keeps it from being removed."""
        ours = set(identity.children(os.getpid()))
        return [process for process in identity.naming(self.folder.name) if process.pid in ours]

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _write(self) -> None:
        text = json.dumps({"schema": SCHEMA, **asdict(self._record)}, default=str, indent=1)
        try:
            write_durably(self._file, text)
        except OSError as error:
            raise CageError(
                f"Cannot write {self._file}: {error.strerror}", remedy="Make room, or set LOADFRAME_STATE."
            ) from error


def sweep() -> list[Swept]:
    """End and remove what dead owners left behind; say what was done. Leases of living owners are not touched.

    Safe to run at the same time in several processes: one at a time works, the others find nothing left.
    """
    folder = _leases()
    remove_torn(folder)
    with locked(folder / "lock"):
        return [swept for file in sorted(folder.glob("*.json")) if (swept := _sweep_one(file)) is not None]


def _sweep_one(file: Path) -> Swept | None:
    try:
        record = _read(file)
    except FileNotFoundError:  # released by its owner meanwhile
        return None
    except (ValueError, KeyError, TypeError) as error:
        reason = f"{file} is not a lease that this version knows ({error}); left as it is - delete it when in doubt"
        return Swept(file.stem, "unknown lease", None, (reason,))
    if record.host != socket.gethostname():  # a state directory shared between machines
        return None
    same_boot = record.boot == identity.boot_id()
    if same_boot and identity.alive(record.owner):
        return None
    actions = [f"its owner (pid {record.owner.pid}) is gone"]
    if same_boot:
        actions += [_end(process) for process in record.processes if identity.alive(process)]
        actions += [_end(process) for process in identity.naming(record.folder.name)]
        actions += _empty(record)
        actions += remove_shared_memory(_shared_name(record.id))
    actions += _remove_groups([folder for folder in record.groups if folder.exists()])
    actions += _remove(record.folder)
    if not record.folder.exists() and not any(folder.exists() for folder in record.groups):
        file.unlink(missing_ok=True)
    return Swept(record.id, record.what, record.run, tuple(actions))


def _end(process: Identity) -> str:
    try:
        ended = identity.end(process, GRACE_S)
    except PermissionError:
        return f"process {process.pid} belongs to another user: end it with `sudo kill {process.pid}`"
    return f"ended process {process.pid}" if ended else f"process {process.pid} does not end (stuck in the kernel)"


def _empty(record: Record) -> list[str]:
    """End whoever is still in the lease's control groups: nobody else has any business there."""
    left = {pid for folder in record.groups for pid in groups.members(folder)} - {os.getpid()}
    return [_end(process) for pid in sorted(left) if (process := identity.identify(pid)) is not None]


def _remove_groups(folders: Sequence[Path]) -> list[str]:
    kept = [folder for folder in folders if not groups.remove(folder)]
    removed = len(folders) - len(kept)
    actions = [f"removed {removed} control group{'s' * (removed != 1)}"] if removed else []
    return [*actions, *(f"could not remove {folder}: somebody is in it" for folder in kept)]


def _shared_name(lease: str) -> str:
    return f"loadframe{lease}"


def remove_shared_memory(name: str) -> list[str]:
    """Remove the shared memory whose names begin with Lease.shared_name; a server that was killed leaves it behind. Say
    what was done."""
    segments = list(SHARED_MEMORY.glob(f"{name}-*"))
    for segment in segments:
        with contextlib.suppress(PermissionError):  # of another user: it is told, as it is still there
            segment.unlink(missing_ok=True)
    kept = [segment for segment in segments if segment.exists()]
    removed = len(segments) - len(kept)
    actions = [f"removed {removed} piece{'s' * (removed != 1)} of shared memory"] if removed else []
    return [*actions, *(f"could not remove {segment}: remove it as its owner" for segment in kept)]


def _remove(folder: Path) -> list[str]:
    if not folder.exists():
        return []
    shutil.rmtree(folder, ignore_errors=True)
    return [f"removed {folder}" if not folder.exists() else f"could not remove all of {folder}: remove it as its owner"]


def _read(file: Path) -> Record:
    data: dict[str, Any] = json.loads(file.read_text())
    if data["schema"] != SCHEMA:
        raise ValueError(f"schema {data['schema']}")
    folder = Path(data["folder"])
    if folder.name != f"loadframe-{data['id']}":  # never remove what is not a lease's own folder
        raise ValueError(f"folder {folder}")
    cages = tuple(Path(group) for group in data.get("groups", ()))
    if foreign := [group for group in cages if not group.name.startswith(folder.name)]:
        raise ValueError(f"group {foreign[0]}")
    return Record(
        id=data["id"],
        what=data["what"],
        host=data["host"],
        boot=data["boot"],
        owner=Identity(**data["owner"]),
        folder=folder,
        run=Path(data["run"]) if data["run"] else None,
        processes=tuple(Identity(**process) for process in data["processes"]),
        groups=cages,
    )


def _leases() -> Path:
    return writable(state_directory() / "leases", "keep its leases", "LOADFRAME_STATE")
