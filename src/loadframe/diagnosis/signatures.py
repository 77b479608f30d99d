"""Signatures, as data: what must be seen, and what must be absent, before a cause is suspected.

A threshold is a starting point with its source; what confirms a finding is the intervention, not the threshold. The
order is that of their ranks (`knowledge/signature.py`), from the hardware upwards: where two signatures hold alike, the
one further down comes first. A cause may have several signatures under its one id: a server that tells what its
connections wait for is a better witness than the machine.

Here is what the machine shows of any target; what only a kind of server shows is in its `kinds/NAME/signatures.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

from loadframe.diagnosis.service_signatures import OF_SERVICES
from loadframe.knowledge.kinds import rows, tables
from loadframe.knowledge.signature import (
    CPU_BUSY,
    DIRECT_RECLAIM,
    DISK_BUSY,
    DISK_IDLE,
    OWN_CPU_BUSY,
    OWN_PIPELINE,
    Condition,
    Rank,
    Signature,
)
from loadframe.metrics import IN_FRONT
from loadframe.model import DRIVER_BESIDE, OTHERS

DRIVER_LIMITED = "driver.limited"
"""Where the driver is the bottleneck, nothing that is seen at the target is its limit."""

SATURATED = "cpu.saturated"

LIMITED_DRIVER = Signature(
    id=DRIVER_LIMITED,
    rank=Rank.DRIVER,
    title="the load driver is the bottleneck, not the target",
    present=(Condition("driver.saturation", ">=", 0.9, "USE method: a resource at 90 % and above has queues"),),
    absent=(Condition("target.saturation", ">=", 0.9, "the target has no CPU time left either"), OWN_PIPELINE),
    explanation="The driver has no CPU time left to send more requests; the target still has some.",
    explains_falling=True,
)


DRIVER_BESIDE_TARGET = Signature(
    id=DRIVER_BESIDE,
    rank=Rank.CPU,
    title="the load driver takes a large part of the CPUs that the target is short of",
    present=(
        Condition(
            "driver.cpu.beside", ">=", 0.25, "without a quarter of its CPUs a target does three quarters of its work"
        ),
        Condition("target.cpus.busy", ">=", 0.9, "USE method: a resource at 90 % and above has queues"),
        Condition(
            "target.cpus.wait", ">=", 0.2, "a fifth of the time its threads could run and do not: it could use more"
        ),
    ),
    absent=(
        Condition("target.cage.cpu.throttled_share", ">=", 0.5, "the target's own quota keeps its threads waiting"),
        OWN_PIPELINE,
    ),
    explanation="The curve is that of driver and target together: alone, the target would do more. Give the driver "
    "CPUs of its own "
    "(cage.cpus and cage.driver.cpus), or another machine; or use a driver that needs less CPU per request.",
    explains=("cpu.saturated",),
)


STRANGERS = Condition("system.cpu.foreign", ">=", 0.2, "a fifth of the CPUs changes what two of them can do")
STOLEN = Condition("system.cpu.steal", ">=", 0.1, "netdata: the warning level for stolen CPU time")

PROGRAMS = Signature(
    id=OTHERS,
    rank=Rank.OTHERS,
    title="others take the CPU",
    present=(
        STRANGERS,
        Condition("workload.cpu_wait", ">=", 0.2, "a fifth of the requests' time: their threads could run and do not"),
    ),
    absent=(
        Condition("target.saturation", ">=", 0.9, "it has the CPU time that its CPUs and its quota let it have"),
        Condition("workload.cpus_busy", "<", 0.9, "USE method: CPUs that are idle a tenth of the time are free"),
    ),
    explanation="Processes outside the study run while its threads wait for a CPU. End them, or "
    "measure when the machine is quiet: until then a cause of the target's own can be judged only where it costs "
    "more than they take, or in steps that they left alone.",
    explains_falling=True,
)

CROWDED: tuple[Signature, ...] = (
    PROGRAMS,
    Signature(
        id=OTHERS,
        rank=Rank.OTHERS,
        title="others take the CPU",
        present=(STOLEN,),
        absent=(),
        explanation="The hypervisor gives the CPU to other machines. Measure when these are quiet, or on CPUs of its "
        "own: until then a cause of the target's own can be judged only where it costs more than they take, or in "
        "steps that they left alone.",
        explains_falling=True,
    ),
)


def _cage_signatures(component: str, layer: str, whose: str) -> tuple[Signature, ...]:
    """layer: what the ids begin with."""
    cage = f"{component}.cage"
    return (
        Signature(
            id=f"{layer}.cpu_quota",
            rank=Rank.CAGE,
            title=f"the CPU time allowed by {whose} is used up",
            present=(
                Condition(f"{cage}.cpu.utilization", ">=", 0.8, "a quota that binds is used up but for slack"),
                Condition(
                    f"{cage}.cpu.throttled_share", ">=", 0.5, "sched-bwc: the quota runs out in every second period"
                ),
            ),
            absent=(),
            explanation="Whenever the quota of a period of 100 ms is used up, every thread waits for the next one.",
        ),
        *(
            signature
            for metric, what in (
                ("read_bytes", "bytes read"),
                ("write_bytes", "bytes written"),
                ("reads", "disk reads"),
                ("writes", "disk writes"),
            )
            for signature in _rate_signatures(f"{layer}.{metric}", f"{cage}.{metric}.utilization", what, whose)
        ),
    )


def _rate_signatures(cause: str, used: str, what: str, whose: str) -> tuple[Signature, ...]:
    """One limit of blk-throttle: used up, or mostly so by clients who wait for it while the disk is idle."""
    whole = Signature(
        id=cause,
        rank=Rank.CAGE,
        title=f"{what} are throttled by {whose}",
        present=(Condition(used, ">=", 0.9, "blk-throttle lets no more than the limit pass"),),
        absent=(OWN_CPU_BUSY,),
        explanation="Requests wait for the allowed rate, even while the disk is idle.",
    )
    mostly = (
        Condition(used, ">=", 0.6, "of a slice of 100 ms is lost what few clients, or a second limit, leave unused"),
        Condition("system.pressure.io.some", ">=", 0.5, "psi: some task waited for I/O half of the time"),
        DISK_IDLE,
    )
    return whole, replace(whole, present=mostly, whole=True)


CAGE_SIGNATURES: tuple[Signature, ...] = (
    *_cage_signatures("target", "cage", "the cage"),
    *(
        signature
        for component in (*IN_FRONT, "driver")
        for signature in _cage_signatures(component, f"cage.{component}", f"the cage of the {component}")
    ),
)
"""What the cages allow: a limit set from outside is the deeper cause of whatever waits behind it."""


def _saturated(*present: Condition) -> Signature:
    """One of the ways in which full CPUs show themselves, where it is the study that fills them."""
    return Signature(
        id=SATURATED,
        rank=Rank.CPU,
        title="the CPUs are saturated",
        present=present,
        absent=(STRANGERS, STOLEN),
        explanation="All CPUs are busy with the requested work.",
    )


_OF_ALL_KINDS: tuple[Signature, ...] = (
    LIMITED_DRIVER,
    *CROWDED,
    *CAGE_SIGNATURES,
    Signature(
        id="memory.swap",
        rank=Rank.MEMORY,
        title="the machine swaps",
        present=(Condition("system.paging.swap_in", ">=", 10.0, "USE method: any sustained swapping is saturation"),),
        absent=(),
        explanation="Memory is overcommitted, and pages move to the disk and back.",
        explains_falling=True,
    ),
    Signature(
        id="memory.reclaim",
        rank=Rank.MEMORY,
        title="memory is reclaimed while requests wait",
        present=(
            DIRECT_RECLAIM,
            Condition("system.pressure.memory.some", ">=", 0.1, "psi: some task waited for memory 10 % of the time"),
        ),
        absent=(Condition("system.paging.swap_in", ">=", 10.0, "that would be swapping"),),
        explanation="Allocations stall until the kernel has freed pages.",
        explains_falling=True,
    ),
    Signature(
        id="memory.mmap_page_faults",
        rank=Rank.MEMORY,
        title="a mapped file is larger than memory, and requests wait for each page of it",
        present=(
            Condition(
                "target.paging.major_faults", ">=", 1.0, "a request waits for the disk at least once", per_request=True
            ),
            Condition("target.cage.memory.refaults", ">=", 1.0, "what was dropped is wanted again", per_request=True),
        ),
        absent=(Condition("system.paging.swap_in", ">=", 10.0, "that would be swapping"),),
        explanation="A page that is not in memory is read when it is touched, one after the other, and unmapped from "
        "all CPUs to make room for the next; files that are read or sent are fetched many pages at a time.",
        explains_falling=True,
        explains=("cage.memory", "system.memory"),
    ),
    Signature(
        id="disk.saturated",
        rank=Rank.DISK,
        title="the disk is saturated",
        present=(
            DISK_BUSY,
            Condition("system.disk.queue", ">=", 1.0, "USE method: a queue is saturation"),
            Condition(
                "system.pressure.io.full", ">=", 0.3, "psi: nothing else ran 30 % of the time while I/O was waited for"
            ),
        ),
        absent=(
            DIRECT_RECLAIM,
            Condition("system.disk.flushes_per_request", ">=", 0.5, "flushes, not the amount of data, are waited for"),
        ),
        explanation="Requests wait for a disk that has no idle time left.",
    ),
    Signature(
        id="disk.fsync",
        rank=Rank.DISK,
        title="every commit waits for the disk",
        present=(
            Condition(
                "system.disk.flushes_per_request", ">=", 0.5, "one cache flush for at most two requests: no grouping"
            ),
            Condition(
                "target.cage.writes",
                ">=",
                0.5,
                "what is flushed was written: others flush disks too",
                per_request=True,
            ),
            Condition("system.pressure.io.some", ">=", 0.2, "psi: some task waited for I/O 20 % of the time"),
        ),
        absent=(
            OWN_CPU_BUSY,
            DIRECT_RECLAIM,
            DISK_IDLE,
            Condition(
                "target.io.write_bytes",
                "<",
                512.0,
                "/proc/PID/io: its processes write less than a sector, so what is flushed is of others",
                per_request=True,
            ),
        ),
        explanation="The disk must confirm each commit before the next can start, however few bytes it writes.",
    ),
    Signature(
        id="lock.busy_errors",
        rank=Rank.FAILURES,
        title="requests give up waiting for a lock",
        present=(
            Condition("workload.errors", ">", 0.01, "more than one request in a hundred fails", per_request=True),
        ),
        absent=(),
        explanation="Requests fail at once where they could wait for the lock.",
        explains_falling=True,
    ),
    *OF_SERVICES,
    DRIVER_BESIDE_TARGET,
    _saturated(
        CPU_BUSY,
        Condition("system.pressure.cpu.some", ">=", 0.3, "psi: some task waited for a CPU 30 % of the time"),
    ),
    _saturated(
        CPU_BUSY,
        Condition(
            "target.saturation",
            ">=",
            0.9,
            "it has the CPUs; the queue of one that schedules by itself, as Go does, is not seen",
        ),
    ),
    _saturated(
        Condition("system.cpu.utilization", ">=", 0.95, "USE method: hardly any of their time is left"),
        Condition("target.saturation", ">=", 0.75, "the target has them: driver and others have less than a quarter"),
    ),
    Signature(
        id=SATURATED,
        rank=Rank.CPU,
        title="the CPUs that the target may use are saturated",
        present=(
            Condition(
                "target.cpu.utilization", ">=", 0.9, "sched_getaffinity(2): of the CPUs that its processes may use"
            ),
        ),
        absent=(Condition("target.cage.cpu.throttled_share", ">=", 0.2, "its own quota runs out"),),
        explanation="The CPUs that the target may use are busy with the requested work, and other CPUs of the machine "
        "are not for it (cage.cpus, taskset, a cpuset).",
    ),
)
"""What the machine shows of any target."""


def _beside_others(signature: Signature) -> Signature:
    """With what each kind of server shows where it is another cause."""
    found = tables("signatures", "RULED_OUT_BY", dict).values()
    return replace(
        signature, absent=(*signature.absent, *chain.from_iterable(one.get(signature.id, ()) for one in found))
    )


SIGNATURES: tuple[Signature, ...] = tuple(
    sorted(
        (
            *map(_beside_others, _OF_ALL_KINDS),
            *chain.from_iterable(rows("signatures", "SIGNATURES", Signature).values()),
        ),
        key=lambda signature: (signature.failing_others, signature.rank),
    )
)
"""Of one rank, those of any target come before those of a kind of server."""


def is_driver_limited(metrics: Mapping[str, float]) -> bool:
    """Whether the driver is the bottleneck where these metrics were measured."""
    return all(one.metric in metrics for one in LIMITED_DRIVER.present) and _holds(LIMITED_DRIVER, metrics)


def is_driver_beside(metrics: Mapping[str, float]) -> bool:
    """Whether the driver takes CPUs that the target is short of where these metrics were measured."""
    share, busy, *_ = DRIVER_BESIDE_TARGET.present
    return share.metric in metrics and busy.metric in metrics and _holds(DRIVER_BESIDE_TARGET, metrics)


def is_crowded(metrics: Mapping[str, float]) -> bool:
    """Whether others take the CPU where these metrics were measured."""
    return any(one.present[0].metric in metrics and _holds(one, metrics) for one in CROWDED)


def _holds(signature: Signature, metrics: Mapping[str, float]) -> bool:
    """Of what was measured all that must be present, and nothing that must be absent."""
    present = all(one.holds(metrics[one.metric]) for one in signature.present if one.metric in metrics)
    return present and not any(one.holds(metrics[one.metric]) for one in signature.absent if one.metric in metrics)
