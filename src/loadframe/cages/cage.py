"""A cage: the control groups of one component of a study, with its limits. What is used inside, the recorder reads.

Limits have the names of version 2 (kernel, Documentation/admin-guide/cgroup-v2.rst) and whole numbers, also where
version 1 keeps them:

    cpu.max     CPU time in microseconds per period of 100 ms (50000: half a CPU)
    memory.max  bytes; without swap, as a machine of this size would have it
    pids.max    processes and threads
    io.rbps, io.wbps, io.riops, io.wiops  bytes and operations per second, on the disk that the data are on
"""

import contextlib
import errno
import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from loadframe.cages import groups
from loadframe.cages.groups import IO_FILES_V1, Place, put, text
from loadframe.errors import CageError
from loadframe.host.leases import Lease, filesystem

PERIOD_US = 100_000
"""The kernel's default period of the CPU quota."""
LIMITS = {name: name.partition(".")[0] for name in ("cpu.max", "memory.max", "pids.max", *IO_FILES_V1)}
"""The controller that holds each limit."""
SWAP_BYTES = 1 << 20
"""In version 1 the limit on memory and swap lies this much above the one on memory, as hits of the former are not
counted (Linux 6.18: memory.memsw.failcnt stays 0)."""
NO_LIMIT_V1 = 1 << 62
"""memory.limit_in_bytes shows "none" as the largest multiple of the page size that fits."""


@dataclass(frozen=True, slots=True)
class Group:
    version: int
    controllers: frozenset[str]
    folder: Path


class Cage:
    """The control groups of a component, made once; processes join them when they are spawned (Allowance.groups);
    removed with its lease. No groups where nothing is limited and the machine grants none."""

    def __init__(self, component: str, members: tuple[Group, ...], device: str | None) -> None:
        """device: the disk of the I/O limits (major:minor)."""
        self.component = component
        self._groups = members
        self._device = device
        self._limits: dict[str, int] = {}
        self._ended = 0 if self._group("memory") is not None else self._ended_for_memory()

    @classmethod
    def make(
        cls,
        component: str,
        limits: Mapping[str, int],
        *,
        lease: Lease,
        cpus: frozenset[int] | None = None,
        of: str = "",
        root: Path = Path("/"),
        make_folder: Callable[[Path], None] = Path.mkdir,
    ) -> "Cage":
        """CageError, with what is needed, where the machine does not grant the limits. cpus: also bound by a cpuset
        where there is one. of: distinguishes two of the same name."""
        wanted = {LIMITS[name] for name in limits}
        device = block_device(lease.folder, root) if "io" in wanted else None
        places = groups.find(wanted, root) if wanted else _permitted((), root)  # then use is only counted
        cpu_sets = _permitted(("cpuset",), root) if cpus is not None else []  # in addition to the affinity
        name = "-".join(part for part in ("loadframe", lease.id, component, of) if part)
        planned: dict[Path, Group] = {}
        for place in (*places, *(place for place in cpu_sets if "cpuset" in place.controllers)):
            folder = place.parent / name
            known = planned[folder].controllers if folder in planned else frozenset()
            planned[folder] = Group(place.hierarchy.version, known | place.controllers, folder)
        lease.add_groups(planned)
        made = []
        for group in planned.values():
            try:
                make_folder(group.folder)
            except OSError as error:
                if needed := sorted(group.controllers & wanted):
                    raise groups.refusal(needed, [f"{group.folder}: {error.strerror}"]) from error
                continue
            made.append(group)
            if group.version == 1 and "io" in group.controllers:
                start_counting(group.folder, root)
        cage = cls(component, tuple(made), device)
        if cpus is not None:
            cage._bind(cpus)
        cage.set(limits)
        return cage

    @property
    def folders(self) -> tuple[Path, ...]:
        return tuple(group.folder for group in self._groups)

    def set(self, limits: Mapping[str, int]) -> None:
        for name in (*limits, *(name for name in self._limits if name not in limits)):
            group = self._group(LIMITS[name])
            if group is None:
                raise groups.refusal([LIMITS[name]], ["the cage was made without it"])
            value = limits.get(name)
            try:
                self._write(group, name, value)
            except OSError as error:
                shown = "no limit" if value is None else value
                remedy = (
                    f"Ask for less or for more: the group above ({group.folder.parent}) may allow less, and no kernel "
                    "takes less than 1 ms of CPU time."
                )
                raise CageError(
                    f"{name} = {shown} was refused by the kernel for the {self.component}: {error.strerror}",
                    remedy="More than that is in use; allow more." if error.errno == errno.EBUSY else remedy,
                ) from error
        self._limits = dict(limits)

    def limits(self) -> dict[str, int]:
        limits = {name: self._read(group, name) for name in self._limits if (group := self._group(LIMITS[name]))}
        return {name: value for name, value in limits.items() if value is not None}

    def forget(self) -> None:
        """Have the kernel reclaim memory, above all page cache. Needs a memory group; in version 2 Linux 5.19."""
        group = self._group("memory")
        if group is None:
            return
        with contextlib.suppress(OSError):  # what is in use stays, and the kernel reports that
            if group.version == 1:
                put(group.folder / "memory.force_empty", 0)
            else:
                put(group.folder / "memory.reclaim", text(group.folder / "memory.current").strip())

    def _write(self, group: Group, name: str, value: int | None) -> None:
        folder, v1 = group.folder, group.version == 1
        number, limit = (-1, "max") if value is None else (value, value)
        match name:
            case "cpu.max" if v1:
                put(folder / "cpu.cfs_period_us", PERIOD_US)
                put(folder / "cpu.cfs_quota_us", number)
            case "cpu.max":
                put(folder / name, f"{limit} {PERIOD_US}")
            case "memory.max" if v1:
                swap = folder / "memory.memsw.limit_in_bytes"  # not there where swap is not accounted
                if swap.exists():
                    put(swap, -1)
                put(folder / "memory.limit_in_bytes", number)
                if swap.exists() and value is not None:
                    put(swap, value + SWAP_BYTES)
            case "memory.max" | "pids.max":
                put(folder / name, limit)
                if name == "memory.max" and (folder / "memory.swap.max").exists():
                    put(folder / "memory.swap.max", "max" if value is None else 0)
            case _ if v1:
                put(folder / IO_FILES_V1[name], f"{self._device} {value or 0}")
            case _:
                put(folder / "io.max", f"{self._device} {name[3:]}={limit}")

    def _read(self, group: Group, name: str) -> int | None:
        folder, v1 = group.folder, group.version == 1
        if v1 and name in IO_FILES_V1:
            return _of_device(text(folder / IO_FILES_V1[name]), self._device, "")
        if name in IO_FILES_V1:
            return _of_device(text(folder / "io.max"), self._device, f"{name[3:]}=")
        file = {"cpu.max": "cpu.cfs_quota_us", "memory.max": "memory.limit_in_bytes"}.get(name, name) if v1 else name
        words = text(folder / file).split()
        value = int(words[0]) if words and words[0] not in ("max", "-1") else None
        return None if value is not None and value >= NO_LIMIT_V1 else value

    def _bind(self, cpus: frozenset[int]) -> None:
        """Version 1 also needs memory nodes before a process joins."""
        group = self._group("cpuset")
        if group is None:
            return
        shown = ",".join(map(str, sorted(cpus)))
        try:
            if group.version == 1:
                put(group.folder / "cpuset.mems", text(group.folder.parent / "cpuset.effective_mems").strip())
            put(group.folder / "cpuset.cpus", shown)
        except OSError as error:
            raise CageError(
                f"CPUs {shown} were refused for the {self.component}: {error.strerror}",
                remedy=f"The group above ({group.folder.parent}) has: "
                f"{text(group.folder.parent / 'cpuset.effective_cpus').strip() or 'unknown'}.",
            ) from error

    def _group(self, controller: str) -> Group | None:
        return next((group for group in self._groups if controller in group.controllers), None)

    def begin(self) -> None:
        self._ended = self._ended_for_memory()

    def ended_for_memory(self) -> int:
        """Processes that the kernel ended for lack of memory since `begin`; without a memory group, of any program."""
        return self._ended_for_memory() - self._ended

    def _ended_for_memory(self) -> int:
        group = self._group("memory")
        files = {1: "memory.oom_control", 2: "memory.events"}
        place = Path("/proc/vmstat") if group is None else group.folder / files[group.version]
        match = re.search(r"^oom_kill (\d+)$", text(place), re.MULTILINE)
        return int(match[1]) if match else 0


def _permitted(wanted: Collection[str], root: Path) -> list[Place]:
    with contextlib.suppress(CageError):
        return groups.find(wanted, root)
    return []


def block_device(path: Path, root: Path) -> str:
    """The disk under a path as major:minor; for a partition its whole disk, which is what the kernel limits. CageError
    where the path is on none (memory, network, layers)."""
    number = path.stat().st_dev
    name = f"{os.major(number)}:{os.minor(number)}"
    entry = root / "sys/dev/block" / name
    if not entry.exists():
        raise CageError(
            f"An I/O rate is limited per disk, and {path} is on {filesystem(path)}, which is not a disk",
            remedy="Set LOADFRAME_SCRATCH to a folder on a disk.",
        )
    return text(entry.resolve().parent / "dev").strip() if (entry / "partition").exists() else name


def _of_device(lines: str, device: str | None, key: str) -> int | None:
    """The number after `key`; None for "max", 0 or no line."""
    match = re.search(rf"^{re.escape(device or '')} (?:.* )?{re.escape(key)}(\d+)\b", lines, re.MULTILINE)
    return int(match[1]) or None if match else None


RULES, COUNTS = "blkio.throttle.read_bps_device", "blkio.throttle.io_service_bytes"
NO_RULE = 0
"""Written as a rate, it removes a rule; without one it creates none, and the kernel counts from then on."""


def start_counting(group: Path, root: Path) -> None:
    """Write "no rule" for every disk that is not counted yet, to our group of version 1: no rule is ever in force, and
    the kernel counts until the disk goes. Without the permission or the disk nothing happens: metrics.agreements
    detects a counter that stays 0."""
    if not (group / RULES).exists():
        return
    above = [folder for folder in group.parents if (folder / COUNTS).exists()]  # the topmost lists every counted disk
    counted = {line.split(" ")[0] for line in text((above or [group])[-1] / COUNTS).splitlines()}
    for folder in sorted((root / "sys/block").glob("*")):
        disk = text(folder / "dev").strip()
        if disk and disk not in counted and text(folder / "size").strip() not in ("", "0"):
            with contextlib.suppress(OSError):
                put(group / RULES, f"{disk} {NO_RULE}")
