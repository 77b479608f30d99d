"""A lease: who owns what was started, and where its data are, written to the disk before anything is started. What a
dead owner leaves is ended and removed by the next command's sweep (leftovers.py). Only what is certainly ours is ended:
the processes that the lease names, those in its control groups, those that carry its mark in their environment, and
their descendants. Whether the owner lives is known from a lock (state.Life), which holds across PID namespaces. Data
are in $LOADFRAME_SCRATCH, else /var/tmp: /tmp often is memory."""

import contextlib
import os
import pwd
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

from loadframe.cages import groups
from loadframe.errors import CageError
from loadframe.formats.json_text import write_json
from loadframe.host import identity, privilege, shared_memory
from loadframe.host.identity import Identity
from loadframe.host.privilege import US, LeaseUser, NamedUser, Privilege, Us, make_private
from loadframe.host.processes import MARK, Allowance, held_leases
from loadframe.host.signals import undisturbed
from loadframe.host.state import (
    Damaged,
    Life,
    check_keys,
    folder_of,
    identity_of,
    list_of,
    private_folder,
    read_record,
    scratch_directory,
    state_directory,
    text_of,
    write_durably,
    writing,
)
from loadframe.system.trees import remove_tree

KIND, VERSION = "lease", 3
"""Version 1 had no machine, no namespaces of its processes, and no sign of life; 2 had no mounts."""
KEYS = {"id", "what", "host", "boot", "owner", "folder", "run", "processes"}
GRACE_S = 2.0


@dataclass(frozen=True, slots=True)
class Record:
    """boot and machine: a pid means something only on this machine, this boot; host: its name, for people. mounts: the
    namespace of mounts in which its folder has that path; "" in older versions."""

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


def filesystem(path: Path) -> str:
    """Its type ("ext4", "tmpfs")."""
    best, kind = "", "unknown"
    for line in Path("/proc/self/mounts").read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        _, mount, name, *_ = line.split(" ")
        mount = mount.replace("\\040", " ")
        if len(mount) >= len(best) and path.is_relative_to(mount):
            best, kind = mount, name
    return kind


class Lease:
    """Owned by the process that acquired it."""

    def __init__(self, record: Record, file: Path, life: Life, commands: str) -> None:
        self._record = record
        self._file = file
        self._life = life
        self._user = privilege.free_user()
        self._visible = commands

    @classmethod
    def acquire(cls, what: str, *, run: Path | None = None, visible: str = "") -> "Lease":
        """what: words for people. run: the run folder it serves. visible: the words of its processes' commands, which
        see what these name of the common temporary folders. CageError if the state or the scratch directory cannot be
        written, or others could change what is in it."""
        name = secrets.token_hex(6)
        folder = scratch_directory() / f"loadframe-{name}"
        owner, boot = identity.own(), identity.boot_id()
        host, mounts = identity.host_name(), identity.namespace("mnt")
        record = Record(name, what, host, identity.machine(), boot, owner, folder, run, mounts=mounts)
        file = folder_of_leases() / f"{name}.json"
        with writing(f"next to {file}", CageError):
            life = Life(file)
        lease = cls(record, file, life, visible)
        try:
            lease._write()
            make_private(folder, US, group=lease.user)
        except OSError as error:
            lease.release()
            raise CageError(f"Cannot make {folder}: {error.strerror}", remedy="Set LOADFRAME_SCRATCH.") from error
        except BaseException:  # Ctrl-C: the caller has no lease yet to release
            lease.release()
            raise
        held_leases.append(name)
        return lease

    @property
    def id(self) -> str:
        return self._record.id

    @property
    def folder(self) -> Path:
        return self._record.folder

    @property
    def user(self) -> int | None:
        """A user of no other process of the machine, for processes of this lease that need no rights. None if we are
        not root, or may not start any under it. Only its group may pass through the folder."""
        return self._user

    @property
    def runs_as(self) -> Us | LeaseUser:
        return self._unprivileged(self._user)

    @cached_property
    def runs_services_as(self) -> Us | LeaseUser:
        """Another such user for a service, kept from the driver's memory and files. CageError."""
        return self._unprivileged(privilege.free_user(besides=self._user))

    def account(self, *preferred: str) -> Privilege:
        """The first of these accounts that exists, else that of `runs_services_as`. Do not name `nobody`: other
        programs run under it."""
        if os.geteuid() != 0:
            return US
        known = {entry.pw_name for entry in pwd.getpwall()}
        account = next((name for name in preferred if name in known), None)
        return self.runs_services_as if account is None else NamedUser(account)

    def _unprivileged(self, user: int | None) -> Us | LeaseUser:
        if user is not None:
            return LeaseUser(user)
        if os.geteuid() != 0:
            return US
        raise CageError(
            f"Nothing can be started without root's rights here: {privilege.why_no_free_user()}",
            remedy="Run Loadframe as another user, or with the capabilities that `loadframe doctor` names.",
        )

    def admitted(self, allowance: Allowance, within: Path | None = None) -> Allowance:
        """The allowance with access to the folder, and for another user a place for temporary files there or `within`.
        CageError."""
        if allowance.user == US:
            return allowance
        place = (within or self.folder) / f"tmp-{allowance.user}"
        if not place.exists():
            make_private(place, allowance.user)
        return replace(allowance, shared_group=self.user, temporary=place, visible=f"{self.folder} {self._visible}")

    @property
    def shared_name(self) -> str:
        """The prefix of the names of a server's shared memory (shm_open(3)), by which it is removed."""
        return shared_memory.name_of(self._record.id)

    def add_process(self, pid: int) -> None:
        if (process := identity.identify(pid)) is not None:
            living = tuple(known for known in self._record.processes if identity.alive(known))
            self._record = replace(self._record, processes=(*living, process))
            self._write()

    def add_groups(self, folders: Iterable[Path]) -> None:
        """Called before they are made, so that they are always removed."""
        self._record = replace(self._record, groups=tuple(dict.fromkeys((*self._record.groups, *folders))))
        self._write()

    def release(self) -> None:
        """End what is still running; remove all that it made, and the lease. Idempotent; does nothing in a forked
        child."""
        if os.getpid() != self._record.owner.pid:
            return
        with undisturbed():
            if self.id in held_leases:
                held_leases.remove(self.id)
            # Ctrl-C may come when a child, such as a load driver, is started and not recorded yet.
            ours = set(identity.children(os.getpid()))
            working = [process for process in identity.naming(self.folder.name) if process.pid in ours]
            in_group = [] if self.user is None else identity.of_group(self.user, self.folder)
            strays = (*identity.marked(mark_of(self.id)), *working, *in_group)
            identity.end_all((*self._record.processes, *strays), GRACE_S)
            identity.end_all(members(self._record), GRACE_S)
            kept = [folder for folder in self._record.groups if not groups.remove(folder)]
            shared_memory.remove_left(self._record.id, self.folder)
            remove_tree(self.folder)
            if not self.folder.exists() and not kept:  # else the next sweep tries again
                with contextlib.suppress(OSError):  # the disk of the state may be gone: all else is done
                    self._file.unlink(missing_ok=True)
                    self._life.end()

    def __enter__(self) -> "Lease":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _write(self) -> None:
        text = write_json({"schema": f"loadframe.{KIND}/{VERSION}", **asdict(self._record)}, indent=1)
        with writing(self._file, CageError):
            write_durably(self._file, text)


def mark_of(lease: str) -> str:
    return f"{MARK}={lease}"


def members(record: Record) -> tuple[Identity, ...]:
    left = {pid for folder in record.groups for pid in groups.members(folder)} - {os.getpid()}
    return identity.identified(sorted(left))


def read(file: Path) -> Record:
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
        # Version 1 knew a machine only by its host name.
        machine=text_of(data, "machine") if version > 1 else identity.machine() if host == identity.host_name() else "",
        boot=text_of(data, "boot"),
        owner=identity_of(data["owner"]),
        folder=folder,
        run=Path(text_of(data, "run")) if data["run"] is not None else None,
        processes=tuple(identity_of(process) for process in list_of(data, "processes")),
        groups=cages,
        mounts=text_of(data, "mounts") if version > 2 else "",
    )


def folder_of_leases() -> Path:
    return private_folder(state_directory() / "leases", "keep its leases")
