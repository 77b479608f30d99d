"""What a profile shows of garbage collection, for runtimes that tell nothing of it from outside: as metrics of the
steps at the level and in the state that were sampled."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from loadframe.analysis.frame_classes import Collecting, collecting
from loadframe.analysis.proportion import wilson
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.diagnosis.operational import UNKNOWN_KINDS
from loadframe.diagnosis.others import COLLECTING, TOLD_BY
from loadframe.diagnosis.signatures import GC_SAMPLED, GC_SAMPLED_CORES
from loadframe.experiments.profiling import profile_at, stacks_of
from loadframe.model import Finding, ProfiledStep, ProfileSource, Step
from loadframe.runs.folder import RunFolder

BUSY = {"target.cpu.hottest_thread": 0.5, "target.saturation": 0.5}
"""Of a target that computes less, a collector limits nothing."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """found: the collector's share of the target's samples at that level; all_cores: CPUs that the target used."""

    level: float
    found: Collecting
    all_cores: float


def sampled(run: RunFolder, treatment: str, *, named: bool = False) -> Iterator[Sampled]:
    """By profile of a state past its bend, or at its highest level, in the order in which they were taken. named: it is
    known that the collector's functions have names, so that a profile without any of them says that it did nothing."""
    for step, source in _sources(run, treatment):
        stacks, _ = stacks_of(run, source)
        total = sum(stack.count for stack in stacks)
        found = collecting(stacks)
        if found is None and named and total:
            found = Collecting(0.0, *wilson(0, total))
        if found is not None and source.rate > 0 and source.seconds > 0:
            yield Sampled(step.level, found, total / (source.rate * source.seconds))


def _sources(run: RunFolder, treatment: str) -> Iterator[tuple[ProfiledStep, ProfileSource]]:
    for step in run.profiled():
        if step.treatment == treatment and step.place in ("past", "highest"):
            yield from ((step, one) for one in step.sources if (one.kind, one.component) == ("cpu", "target"))


def with_collecting(run: RunFolder, steps: Sequence[Step]) -> list[Step]:
    """The same steps, with what the profiles of their state show at their level."""
    known = {
        (treatment, one.level): {GC_SAMPLED: one.found.share, GC_SAMPLED_CORES: one.found.share * one.all_cores}
        for treatment in {step.treatment for step in steps}
        for one in sampled(run, treatment)
    }
    return [
        replace(step, metrics={**step.metrics, **known[step.treatment, step.level]})
        if (step.treatment, step.level) in known
        else step
        for step in steps
    ]


def looks_for_a_collector(kind: str, steps: Sequence[Step], level: float) -> bool:
    """Whether a profile at a level would say what nothing else does: the target computes much of the time, and nothing
    of it tells what its collector takes. kind: of the target."""
    here = [step.metrics for step in steps if step.level == level]
    if kind not in UNKNOWN_KINDS or not here or any(name in metrics for metrics in here for name in TOLD_BY):
        return False
    return any(fmean(metrics.get(name, 0.0) for metrics in here) >= least for name, least in BUSY.items())


def receded(book: Bookkeeping, findings: Sequence[Finding], before: str, after: str) -> Mapping[str, float]:
    """By treatment, the CPUs that the collector used in the profiles of both states, the one after sampled for this:
    the least that they can have been before, and the most after (95 % each). Empty where no finding rests on a profile,
    and where the budget has no room for another."""
    if not any(one.id == COLLECTING and one.evidence and one.evidence[0].metric == GC_SAMPLED for one in findings):
        return {}
    run = book.bench.run
    first = next(iter(reversed(list(sampled(run, before)))), None)
    place = next((step.place for step, _ in _sources(run, before)), None)
    if first is None or place is None or not profile_at(book, place, after, first.level):
        return {}
    last = next((one for one in reversed(list(sampled(run, after, named=True))) if one.level == first.level), None)
    return {} if last is None else {before: first.found.low * first.all_cores, after: last.found.high * last.all_cores}


def with_collector(steps: Sequence[Step], cores: Mapping[str, float]) -> list[Step]:
    """The same steps with the CPUs of their treatment's collector, where that was sampled."""
    return [
        replace(step, metrics={**step.metrics, GC_SAMPLED_CORES: cores[step.treatment]})
        if step.treatment in cores
        else step
        for step in steps
    ]
