"""What this machine offers: every requirement of targets, workloads, recording and profiles."""

import os
import resource
from collections.abc import Callable
from pathlib import Path

from loadframe.bench.driver_user import BY_HAND, cannot_run
from loadframe.cages import groups
from loadframe.cages.groups import text
from loadframe.errors import CageError, MachineError
from loadframe.host.environment import importing
from loadframe.host.leases import filesystem
from loadframe.host.privilege import LeaseUser, free_user, why_no_free_user
from loadframe.host.processes import cpu_list, may_have_mounts
from loadframe.host.state import scratch_directory, state_directory
from loadframe.kinds import registry as targets
from loadframe.model import Requirement
from loadframe.recording.profiles.perf import permission
from loadframe.workloads import http_driver
from loadframe.workloads import registry as workloads

FLUSH_FIELDS = 20
"""Fields of a line of /proc/diskstats where the kernel counts cache flushes (Linux 5.5 and later)."""


CAGED = {"cpu": "CPU quota", "cpuset": "CPU set", "memory": "memory", "io": "I/O rate", "pids": "process count"}
"""What controllers limit, as in `[cage]` of a study."""


def examine(root: Path = Path("/")) -> list[Requirement]:
    """The rows of `loadframe doctor`. root: for recorded trees."""
    allowed = permission()
    sampling = [Requirement("profiles", "CPU sampling with perf", allowed.scope, "")] if allowed.scope else []
    return [
        *dict.fromkeys((*targets.check(), *workloads.check())),
        *_recording(root),
        *sampling,
        *allowed.missing,
        *_cage(root),
        *(row for kind in workloads.KINDS for row in workloads.KINDS.needs(kind, lambda known: known.examined())),
        *_drivers(),
        _place("temporary data", scratch_directory, "{place} is in memory: set LOADFRAME_SCRATCH to a disk"),
        _place("state", state_directory),
    ]


def _recording(root: Path) -> list[Requirement]:
    pressure = root / "proc/pressure/io"
    disks = text(root / "proc/diskstats").splitlines()
    flushes = any(len(line.split()) >= FLUSH_FIELDS for line in disks)
    return [
        Requirement(
            "recording",
            "pressure stall information",
            str(pressure) if text(pressure) else None,
            "a kernel with CONFIG_PSI, booted with psi=1; without it findings rest on fewer counters",
        ),
        Requirement(
            "recording",
            "disk cache flushes",
            "counted in /proc/diskstats" if flushes else None,
            "Linux 5.5 or later; without it commits that wait for the disk are not told apart",
        ),
    ]


def _cage(root: Path) -> list[Requirement]:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    raising = "root: may raise limits" if os.geteuid() == 0 else None
    return [
        Requirement("cage", "open files (hard limit)", f"{hard:,}", ""),
        Requirement(
            "cage", "raising limits", raising, f"run as root; else remedies stay below the hard limit {hard:,}"
        ),
        Requirement("cage", "CPUs", cpu_list(os.sched_getaffinity(0)), ""),
        *(
            Requirement("cage", f"control group: {CAGED[name]}", available, groups.refusal([name], []).remedy)
            for name, available in groups.available(root).items()
        ),
    ]


def _drivers() -> list[Requirement]:
    """Whether load drivers may run as an unprivileged user of their own, where Loadframe is called by root."""
    ways = {"in Python": (importing("loadframe.workloads.job_queue_worker"),), "others": http_driver.trials()[1:]}
    number = free_user()
    if number is None:
        user = None if os.geteuid() == 0 else "as the user who calls Loadframe"
        return [Requirement("drivers", "a user without rights", user, f"{why_no_free_user()}; {BY_HAND}")]
    own = "one for each process, and a /var/tmp" if may_have_mounts() else None
    return [
        Requirement(
            "drivers",
            "a /tmp of their own",
            own,
            "run with CAP_SYS_ADMIN and outside of a chroot; else they share the machine's",
        ),
        *(
            Requirement(
                "drivers",
                f"a user without rights, {which}",
                "one of its own for each run" if (refused := cannot_run(trials, LeaseUser(number))) is None else None,
                f"{refused}; install it where other users may read it, or {BY_HAND}",
            )
            for which, trials in ways.items()
        ),
    ]


def _place(name: str, find: Callable[[], Path], wanted: str = "") -> Requirement:
    """wanted: what to do about one in memory; "" where it may be there."""
    try:
        place = find()
    except CageError as error:
        return Requirement("places", name, None, f"{error.fact}. {error.remedy}")
    kind = filesystem(place)
    if wanted and kind in ("tmpfs", "ramfs"):
        return Requirement("places", name, None, wanted.format(place=place))
    return Requirement("places", name, f"{place} ({kind})" if wanted else str(place), "")


LEAST_ADDRESS_SPACE = 2 * 2**30
"""Bytes. A library that writes tables of a run ends the whole process where it cannot reserve memory: seen on two CPUs
with 1,000,000 KiB (`ulimit -v`), and not with 1,500,000."""


def check_address_space() -> None:
    """MachineError where a limit would end us amid a run, with nothing put back."""
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most != resource.RLIM_INFINITY and most < LEAST_ADDRESS_SPACE:
        raise MachineError(
            f"The limit of address space is {most / 2**20:,.0f} MiB; a run needs {LEAST_ADDRESS_SPACE >> 20:,} MiB",
            remedy="Raise the limit: `ulimit -v unlimited`.",
        )
