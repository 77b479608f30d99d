"""Control groups, version 1 and 2. Controllers have their names of version 2 (cgroups(7)); a machine may have some in
version 1 and others in version 2. New groups are made below our own, so that whatever limits us still holds;
`parent_of` has the exception that version 2 demands."""

import math
import os
import re
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadframe.errors import CageError

CONTROLLERS = ("cpu", "cpuset", "memory", "io", "pids")
ACCOUNTING = "cpuacct"
"""Version 1 counts CPU time with a controller of its own, version 2 in every group."""
NAMES_IN_V1 = {"blkio": "io"}
DELEGATE = "systemd-run --scope -p Delegate=yes -p TasksMax=infinity loadframe ..."
"""Without TasksMax systemd limits the scope to its default."""
LIMITS = ("cpu.max", "cpuset.cpus", "io.max", "memory.high", "memory.max", "pids.max")
"""The files with which a group of version 2 limits its children (cgroup-v2.rst)."""
IO_FILES_V1 = {
    "io.rbps": "blkio.throttle.read_bps_device",
    "io.wbps": "blkio.throttle.write_bps_device",
    "io.riops": "blkio.throttle.read_iops_device",
    "io.wiops": "blkio.throttle.write_iops_device",
}
QUOTA_V1, PERIOD_V1 = "cpu.cfs_quota_us", "cpu.cfs_period_us"


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """top: where it is mounted; own: the folder of the group that the process is in."""

    version: int
    controllers: frozenset[str]
    top: Path
    own: Path


@dataclass(frozen=True, slots=True)
class Place:
    """Where a group can be made: below `parent`, with these of the hierarchy's controllers."""

    hierarchy: Hierarchy
    parent: Path
    controllers: frozenset[str]


def hierarchies(root: Path = Path("/"), of: str = "self") -> tuple[Hierarchy, ...]:
    own: dict[str, str] = {}
    """Controller (version 1) or "" (version 2) -> path."""
    for line in text(root / f"proc/{of}/cgroup").splitlines():
        _, controllers_of, path = (*line.split(":", 2), "", "")[:3]
        own |= dict.fromkeys(controllers_of.split(","), path)
    mounted: dict[tuple[int, frozenset[str]], Hierarchy] = {}
    for line in text(root / "proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = (*right.split(" ", 2), "", "")[:3]
        places = [_unescaped(word) for word in left.split(" ")[3:5]]
        if kind not in ("cgroup", "cgroup2") or len(places) < 2:
            continue
        inside, mount = places
        top = root / mount.lstrip("/")
        if kind == "cgroup2":
            version, group, controllers = 2, own.get("", "/"), frozenset(text(top / "cgroup.controllers").split())
        else:
            named = [word for word in options.split(",") if word in own]
            version, group = 1, own[named[0]] if named else "/"
            controllers = frozenset(NAMES_IN_V1.get(name, name) for name in named)
        known = controllers & {*CONTROLLERS, ACCOUNTING}
        mounted.setdefault((version, known), Hierarchy(version, known, top, _below(top, inside, group)))
    return tuple(mounted.values())


def _below(top: Path, inside: str, group: str) -> Path:
    """The mount may show only a part of the hierarchy, from `inside` on (containers)."""
    shown = group if inside == "/" else group.removeprefix(inside) if group.startswith(inside) else "/"
    folder = top / shown.strip("/")
    return folder if folder.is_dir() else top


def _unescaped(word: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), word)


def parent_of(hierarchy: Hierarchy, wanted: Collection[str]) -> Place | str:
    """Where a group with these controllers can be made, or the reason why not. Version 1: below our own group. Version
    2 lets a group with processes in it have no children with controllers (cgroups(7), "no internal processes"): there
    it is the nearest group above ours that can, but never above one that limits us."""
    because = f"{hierarchy.own} is not writable for this user"
    if hierarchy.version == 1:
        usable = os.access(hierarchy.own, os.W_OK)
        return Place(hierarchy, hierarchy.own, hierarchy.controllers) if usable else because
    for folder in (hierarchy.own, *hierarchy.own.parents):
        if not os.access(folder, os.W_OK):
            return because
        refused = [name for name in wanted if not _enable(folder, name, hierarchy.top)]
        if not refused:
            optional = [name for name in CONTROLLERS if name not in wanted and wanted and name != "cpu"]
            there = [name for name in optional if _enable(folder, name, hierarchy.top)]
            return Place(hierarchy, folder, frozenset((*wanted, *there)))
        because = f"{folder} has processes of its own, or its controllers {', '.join(refused)} are not delegated"
        if folder == hierarchy.top:
            return because
        if limit := _limits_of(folder):
            return f"{because}; {folder} limits Loadframe itself ({limit}), so no group is made outside of it"
    return because


def _enable(folder: Path, controller: str, top: Path) -> bool:
    """To the children of a group of version 2, from the top on where necessary."""
    if controller in text(folder / "cgroup.subtree_control").split():
        return True
    if controller not in text(folder / "cgroup.controllers").split() and (
        folder == top or not _enable(folder.parent, controller, top)
    ):
        return False
    try:
        (folder / "cgroup.subtree_control").write_text(f"+{controller}", encoding="utf-8")
    except OSError:  # EBUSY: it has processes of its own; EACCES: it is not ours
        return False
    return True


def _limits_of(folder: Path) -> str:
    """In words, or "". "max", "max 100000" and a device without a number are no limits."""
    limits = []
    for name in LIMITS:
        lines = [line.split() for line in text(folder / name).splitlines()]
        if name == "io.max":
            lines = [words for words in lines if any(not word.endswith("=max") for word in words[1:])]
        if value := ", ".join(" ".join(words) for words in lines if words and words[0] != "max"):
            limits.append(f"{name} = {value}")
    return ", ".join(limits)


def limiting(pid: int, root: Path = Path("/")) -> tuple[Path, ...]:
    """The group of a process, its own or one above, with the smallest CPU quota. Empty without one."""
    folders = (folder for tree in hierarchies(root, str(pid)) for folder in (tree.own, *tree.own.parents))
    quotas = {folder: _cpus_of(folder) for folder in folders}
    return tuple(sorted((folder for folder in quotas if quotas[folder] < math.inf), key=quotas.__getitem__)[:1])


def _cpus_of(folder: Path) -> float:
    """Infinite without a quota (max, -1)."""
    words = [*text(folder / "cpu.max").split(), *text(folder / QUOTA_V1).split(), *text(folder / PERIOD_V1).split()]
    quota, period = (*words, "", "")[:2]
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else math.inf


def find(wanted: Collection[str], root: Path = Path("/")) -> list[Place]:
    """One place per hierarchy where a group with these controllers, or those that only count, can be made. CageError,
    with what is needed."""
    places, reasons, mounted = list[Place](), list[str](), hierarchies(root)
    counted = any(ACCOUNTING in hierarchy.controllers for hierarchy in mounted)
    for hierarchy in mounted:
        mine = hierarchy.controllers & set(wanted)
        # A group in `cpu` has its own share of the CPUs against other groups, one in `cpuset` needs CPUs first.
        free = hierarchy.version == 2 or (hierarchy.controllers and not hierarchy.controllers & {"cpu", "cpuset"})
        if not mine and not (free and (hierarchy.version == 1 or not counted)):
            continue
        place = parent_of(hierarchy, sorted(mine))
        if isinstance(place, Place):
            places.append(place)
        elif mine:
            reasons.append(place)
    if missing := set(wanted).difference(*(place.controllers for place in places)):
        raise refusal(sorted(missing), reasons)
    return places


def refusal(missing: Sequence[str], reasons: Sequence[str]) -> CageError:
    because = "; ".join(dict.fromkeys(reasons)) or "no hierarchy that is mounted has it"
    return CageError(
        f"This machine does not provide control groups with {', '.join(missing)}: {because}",
        remedy=f"Run as root, or in a group of your own ({DELEGATE}); in a container, with its own "
        "writable /sys/fs/cgroup. Without control groups only cpus and open_files can be caged.",
    )


def available(root: Path = Path("/")) -> dict[str, str | None]:
    there: dict[str, str | None] = dict.fromkeys(CONTROLLERS)
    for hierarchy in hierarchies(root):
        if os.access(hierarchy.own, os.W_OK):
            words = f"version {hierarchy.version}, {hierarchy.own}"
            there |= dict.fromkeys(hierarchy.controllers.intersection(CONTROLLERS), words)
    return there


def remove(folder: Path, patience_s: float = 2.0) -> bool:
    """True once it is gone. A process that has just ended may count for a moment longer."""
    until = time.monotonic() + patience_s
    while folder.exists():
        try:
            folder.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
    return True


def members(folder: Path) -> tuple[int, ...]:
    return tuple(int(word) for word in text(folder / "cgroup.procs").split())


def put(path: Path, value: int | str) -> None:
    """The kernel takes each write as a whole."""
    path.write_text(str(value), encoding="utf-8")


def text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
