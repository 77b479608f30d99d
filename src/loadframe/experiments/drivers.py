"""Whether the drivers of a fleet, and not the target, are what a curve shows: all of them beside one fewer, at the same
level, in alternating blocks. Where fewer give as much, the target is full, or the link that leads from it."""

from collections.abc import Sequence
from statistics import fmean
from typing import Protocol, runtime_checkable

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.experiments.proof import compared
from loadframe.model import CLIENT_AXES, RATE_AXES, Curve, Step, StepRequest, Verdict
from loadframe.model.fleet_step import DriversLimit, FleetDrivers
from loadframe.runs import fleet_files

ALIKE = 0.5
"""Where drivers are the limit, all of n give n / m of what m give. They are not, where the interval leaves out half of
that difference: that each has fewer connections to see to may be worth a per cent by itself."""
FULL = 0.85
"""Of what a link carries by itself: HTTP, TCP and IP take the rest."""


@runtime_checkable
class DrivenByHosts(Protocol):
    """A bench whose load comes from several hosts."""

    @property
    def drivers(self) -> tuple[str, ...]:
        """The hosts that may drive."""

    def drive_from(self, hosts: Sequence[str]) -> None:
        """Who takes part in the steps to come."""

    def link_bytes_per_s(self) -> float | None:
        """The most that one link from the target to a driver carries by itself; None where that is not known. Measured
        when it is first asked for, and kept in the run."""


def beside_fewer(book: Bookkeeping, treatment: str, curve: Curve) -> FleetDrivers | None:
    """All drivers beside all but the last one, at one load of the curve. None where one host drives, or
    where the budget has no room for the study's fewest blocks of both. Kept in the run. StepVoid."""
    bench, blocks = book.bench, book.bench.study.measure.blocks
    if not isinstance(bench, DrivenByHosts) or not curve.points:
        return None
    bench.link_bytes_per_s()  # kept in the run, also where nothing else is asked
    if len(bench.drivers) < 2:
        return None
    level = _asked_at(bench.study.load.axis, curve)
    if level < len(bench.drivers) or not book.budget.affords([level] * 2 * blocks.min):
        return None
    return beside(book, treatment, level, bench.drivers[:-1])


def _asked_at(axis: str, curve: Curve) -> float:
    """Where more clients are the load: at the highest throughput. Where there is more to ask for by as many clients:
    where there is most of it, as that is what the curve shows; what comes before, its drivers may limit."""
    if axis in CLIENT_AXES | RATE_AXES:
        return curve.peak.load
    return curve.points[-1].load


def beside(book: Bookkeeping, treatment: str, level: float, fewer: tuple[str, ...]) -> FleetDrivers:
    """All drivers beside these of them, with as many connections, on a bench that hosts drive. Kept in the run.
    StepVoid."""
    bench, blocks = book.bench, book.bench.study.measure.blocks
    assert isinstance(bench, DrivenByHosts), "hosts drive it"
    everyone = bench.drivers
    less = book.next_treatment(f"driven by {', '.join(fewer)}", bench.start_state)
    sides = {treatment: everyone, less: fewer}
    book.progress.phase(f"{len(everyone)} drivers beside {len(fewer)} at {level:g}", 2 * blocks.min)
    taken: list[Step] = []
    try:
        for block in range(1, blocks.max + 1):
            if block > blocks.min and not book.budget.affords([level] * 2):
                break
            for name in book.random.sample(list(sides), len(sides)):
                bench.drive_from(sides[name])
                taken.append(book.take(StepRequest(name, level, block=block, purpose="proof")))
    finally:
        bench.drive_from(everyone)
    found = judge(taken, treatment, less, everyone, fewer, bench.link_bytes_per_s())
    fleet_files.DRIVERS.add(bench.run, found)
    return found


def judge(
    steps: Sequence[Step],
    treatment: str,
    less: str,
    everyone: tuple[str, ...],
    fewer: tuple[str, ...],
    link_bytes_per_s: float | None,
) -> FleetDrivers:
    """What such steps, all of one level, say."""
    found = compared(steps, less, treatment)
    of_all = [step for step in steps if step.treatment == treatment]
    moved = [step.metrics["workload.bytes"] for step in of_all if "workload.bytes" in step.metrics]
    moved_bytes_per_s = fmean(moved) if len(moved) == len(of_all) else None
    limit = _limit(found.verdict, len(everyone) / len(fewer), moved_bytes_per_s, link_bytes_per_s)
    return FleetDrivers(
        of_all[0].level, everyone, fewer, limit, moved_bytes_per_s, link_bytes_per_s,
        verdict=found.verdict, levels=found.levels,
    )  # fmt: skip


def _limit(verdict: Verdict, more: float, moved: float | None, link: float | None) -> DriversLimit:
    """more: how many times as many drivers all of them are: what they give where drivers are the limit."""
    if verdict.high < 1 + ALIKE * (more - 1):
        return "link" if moved is not None and link is not None and moved >= FULL * link else "target"
    return "drivers" if verdict.decision == "better" else "not proven"
