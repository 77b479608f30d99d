"""Signatures: what must be seen, and what must be absent, before a cause is suspected; thresholds have their sources.
Ordered by rank (`knowledge/signature.py`), from the hardware upwards: of two that hold alike the later comes first. A
cause may have several: a server's report is a better witness than the machine. Those of any target are in
signatures.toml, those of a kind of server in its `kinds/NAME/signatures.toml`."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path

from loadframe.knowledge.kinds import rows, tables
from loadframe.knowledge.signature import DISK_IDLE, OWN_CPU_BUSY, Condition, Rank, Signature, signature_rows
from loadframe.metrics import IN_FRONT
from loadframe.model import DRIVER_BESIDE, OTHERS

DRIVER_LIMITED, SATURATED, HOT_THREAD = "driver.limited", "cpu.saturated", "cpu.hot_thread"
GC_SAMPLED, GC_SAMPLED_CORES = "target.runtime.gc_sampled_share", "target.runtime.gc_sampled_cores"
OF_ANY_TARGET = signature_rows(Path(__file__).with_suffix(".toml"))


def _rows_of(cause: str) -> tuple[Signature, ...]:
    return tuple(signature for signature in OF_ANY_TARGET if signature.id == cause)


LIMITED_DRIVER, *_ = _rows_of(DRIVER_LIMITED)
"""Where the driver is the bottleneck, nothing seen at the target is its limit."""
DRIVER_BESIDE_TARGET, *_ = _rows_of(DRIVER_BESIDE)
CROWDED = _rows_of(OTHERS)
PROGRAMS, *_ = CROWDED
HOT = _rows_of(HOT_THREAD)[0].present[0].threshold
THROTTLED: Mapping[str, str] = {
    "read_bytes": "bytes read",
    "write_bytes": "bytes written",
    "reads": "disk reads",
    "writes": "disk writes",
}


def _cage_signatures(component: str, layer: str, whose: str) -> tuple[Signature, ...]:
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
            for metric, what in THROTTLED.items()
            for signature in _rate_signatures(f"{layer}.{metric}", f"{cage}.{metric}.utilization", what, whose)
        ),
    )


def _rate_signatures(cause: str, used: str, what: str, whose: str) -> tuple[Signature, ...]:
    """A limit of blk-throttle: used up, or mostly so by clients who wait for it while the disk is idle."""
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
"""A limit set from outside is the deeper cause of whatever waits behind it."""


def _beside_others(signature: Signature) -> Signature:
    of_kinds = tables("signatures", "RULED_OUT_BY", dict).values()
    return replace(
        signature,
        absent=(*signature.absent, *chain.from_iterable(conditions.get(signature.id, ()) for conditions in of_kinds)),
    )


SIGNATURES: tuple[Signature, ...] = tuple(
    sorted(
        (
            *map(_beside_others, (*OF_ANY_TARGET, *CAGE_SIGNATURES)),
            *chain.from_iterable(rows("signatures", "SIGNATURES", Signature).values()),
        ),
        key=lambda signature: (signature.failing_others, signature.rank),
    )
)
"""Of equal rank, those of any target come first."""


def is_driver_limited(metrics: Mapping[str, float]) -> bool:
    return all(condition.metric in metrics for condition in LIMITED_DRIVER.present) and _holds(LIMITED_DRIVER, metrics)


def is_driver_beside(metrics: Mapping[str, float]) -> bool:
    """Whether the driver takes CPUs that the target is short of."""
    share, busy, *_ = DRIVER_BESIDE_TARGET.present
    return share.metric in metrics and busy.metric in metrics and _holds(DRIVER_BESIDE_TARGET, metrics)


def is_crowded(metrics: Mapping[str, float]) -> bool:
    return any(signature.present[0].metric in metrics and _holds(signature, metrics) for signature in CROWDED)


def _holds(signature: Signature, metrics: Mapping[str, float]) -> bool:
    """Conditions on metrics that were not measured are skipped."""
    present = all(
        condition.holds(metrics[condition.metric]) for condition in signature.present if condition.metric in metrics
    )
    return present and not any(condition.met(metrics) for condition in signature.absent)
