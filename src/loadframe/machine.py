"""What this machine can do for Loadframe: every requirement of targets, workloads, recording and profiles."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from loadframe.cage import groups
from loadframe.cage.leases import filesystem, scratch_directory
from loadframe.cage.state import state_directory
from loadframe.model import Requirement
from loadframe.recording.profiles.perf import permission
from loadframe.targets import registry as targets
from loadframe.workloads import registry as workloads

FLUSH_FIELDS = 20
"""Lines of /proc/diskstats have this many fields where the kernel counts cache flushes (Linux 5.5 and later)."""


CAGED = {
    "cpu": "CPU quota",
    "cpuset": "CPU set",
    "memory": "memory",
    "io": "I/O rate",
    "pids": "process count",
}
"""What each controller limits, as `[cage]` of a study says it."""


def examine(root: Path = Path("/")) -> list[Requirement]:
    """Everything that `loadframe doctor` shows; found is None where it is missing. root: for recorded trees."""
    rows = targets.check()
    for kind in workloads.KINDS:
        rows += workloads.check(kind)
    return [*dict.fromkeys(rows), *_recording(root), *_profiles(), *_cage(root), *_places()]


def _recording(root: Path) -> list[Requirement]:
    pressure = root / "proc/pressure/io"
    disks = _text(root / "proc/diskstats").splitlines()
    flushes = any(len(line.split()) >= FLUSH_FIELDS for line in disks)
    return [
        Requirement(
            "recording",
            "pressure stall information",
            str(pressure) if _text(pressure) else None,
            "a kernel with CONFIG_PSI, booted with psi=1; without it findings rest on fewer counters",
        ),
        Requirement(
            "recording",
            "disk cache flushes",
            "counted in /proc/diskstats" if flushes else None,
            "Linux 5.5 or later; without it commits that wait for the disk are not told apart",
        ),
    ]


def _profiles() -> list[Requirement]:
    allowed = permission()
    can = [Requirement("profiles", "CPU sampling with perf", allowed.scope, "")] if allowed.scope else []
    return [*can, *allowed.missing]


def _cage(root: Path) -> list[Requirement]:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    raising = "root: may raise limits" if os.geteuid() == 0 else None
    return [
        Requirement("cage", "open files (hard limit)", f"{hard:,}", ""),
        Requirement(
            "cage", "raising limits", raising, f"run as root; else remedies stay below the hard limit {hard:,}"
        ),
        Requirement("cage", "CPUs", ",".join(map(str, sorted(os.sched_getaffinity(0)))), ""),
        *(
            Requirement("cage", f"control group: {CAGED[name]}", found, groups.refusal([name], []).remedy)
            for name, found in groups.available(root).items()
        ),
    ]


def _places() -> list[Requirement]:
    scratch = scratch_directory()
    kind = filesystem(scratch)
    on_disk = None if kind in ("tmpfs", "ramfs") else f"{scratch} ({kind})"
    return [
        Requirement("places", "temporary data", on_disk, f"{scratch} is in memory: set LOADFRAME_SCRATCH to a disk"),
        Requirement("places", "state", str(state_directory()), ""),
    ]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
