"""Sampled steps, below and past the bend; they count for no curve and no verdict."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from loadframe.analysis import stacks
from loadframe.analysis.stacks import Collecting, collecting, wilson
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.diagnosis.operational import UNKNOWN_KINDS
from loadframe.diagnosis.others import COLLECTING, COLLECTOR_METRICS
from loadframe.diagnosis.signatures import GC_SAMPLED, GC_SAMPLED_CORES
from loadframe.errors import RunError, UserError
from loadframe.experiments.examination import Examined
from loadframe.formats.json_text import write_json
from loadframe.formats.named_files import write_whole
from loadframe.model import (
    Finding,
    Profile,
    ProfileBaseline,
    ProfiledStep,
    ProfilePlace,
    ProfileSource,
    Requirement,
    Stack,
    Step,
    Steps,
)
from loadframe.recording.profiles import profiler
from loadframe.reporting.flame import TitledStacks, speedscope_json
from loadframe.runs.folder import RunFolder

WINDOW_S = 2.0
"""Least window of a profile: shorter ones have too few samples."""
AROUND_S = 2.5


@dataclass(frozen=True, slots=True)
class Wanted:
    place: ProfilePlace
    treatment: str
    level: float


def profile_around(book: Bookkeeping, examined: Examined) -> None:
    for wanted in _missing(book, around(examined)):
        profile_at(book, wanted, reserve_s=book.remedy_s(book.bench.study.measure.blocks.max))


def profile_after(book: Bookkeeping, first: Examined, last: str) -> None:
    """Profile the final state, and what there was no time for before; the rest is recorded as missing."""
    profiles = around(first)
    final = [replace(profiles[-1], treatment=last)] if last != first.round.treatment else []
    for wanted in _missing(book, [*final, *profiles]):
        profile_at(book, wanted, no_room="give measure.budget more time: it had no room for this step")


def _missing(book: Bookkeeping, profiles: Sequence[Wanted]) -> list[Wanted]:
    done = {(step.place, step.treatment) for step in book.bench.run.profiled()}
    return [wanted for wanted in profiles if (wanted.place, wanted.treatment) not in done]


def around(examined: Examined) -> list[Wanted]:
    """The level below the bend and the one past it, which shows what limits; of a curve without a bend both ends."""
    name, loads = examined.round.treatment, [point.load for point in examined.round.curve.points]
    if examined.bend is None:
        ends = [Wanted("lowest", name, loads[0]), Wanted("highest", name, loads[-1])]
        return ends[-1:] if len(loads) == 1 else ends
    held = [load for load in loads if load <= examined.bend] or loads[:1]
    return [Wanted("below", name, held[-1]), Wanted("past", name, examined.levels[0])]


def profile_at(book: Bookkeeping, wanted: Wanted, *, reserve_s: float = 0.0, no_room: str = "") -> bool:
    """Returns whether the step was taken: only if the budget has room for it and a reserve. A failure is recorded, and
    the run goes on."""
    measure = book.bench.study.measure
    longer_s = max(WINDOW_S - measure.window, 0.0) + AROUND_S
    if measure.profile != "auto":
        return False
    if not book.budget.affords([wanted.level], reserve_s + longer_s):
        if no_room:
            _leave_out(book, wanted, no_room)
        return False
    book.progress.phase(
        f"profiling at {book.bench.study.load.axis} {wanted.level:g}: {book.called(wanted.treatment)}", 1
    )
    window_s = max(measure.window, WINDOW_S)
    try:
        book.bench.take_profile(wanted.place, treatment=wanted.treatment, level=wanted.level, window_s=window_s)
    except UserError as error:
        _leave_out(book, wanted, f"it failed: {error.fact}")
        return False
    return True


def _leave_out(book: Bookkeeping, wanted: Wanted, because: str) -> None:
    lacking = Requirement("profiles", f"{wanted.treatment} at level {wanted.level:g}", None, because)
    empty = ProfiledStep(wanted.place, wanted.treatment, wanted.level, 0.0, 0, 0.0, (), (lacking,))
    book.bench.run.add_profiled(empty)


def profiles_of(run: RunFolder) -> tuple[tuple[Profile, ...], tuple[Requirement, ...]]:
    steps = sorted(run.profiled(), key=_in_order)
    sources = [(step, source) for step in steps for source in step.sources]
    missing = [requirement for step in steps for requirement in step.missing]
    read: dict[str, tuple[Stack, ...]] = {}
    for _, source in sources:
        read[source.file], lacking = stacks_of(run, source)
        missing += lacking
    profiles = [
        profile
        for step, source in sources
        if (profile := stacks.profile(read[source.file], source, step, _baseline(step, source, steps, read)))
    ]
    return tuple(profiles), tuple(dict.fromkeys(missing))


def _in_order(step: ProfiledStep) -> tuple[int, str, bool]:
    """By letters (A, B, ... AA), below the bend before past it."""
    return len(step.treatment), step.treatment, step.place in ("past", "highest")


def speedscope(run: RunFolder) -> bytes:
    titled = [
        TitledStacks(
            f"{source.component}, {source.kind}: {step.treatment} at {step.level:g} ({step.place})",
            stacks_,
            1 / source.rate,
            source.kind == "cpu",
        )
        for step in sorted(run.profiled(), key=_in_order)
        for source in step.sources
        if (stacks_ := stacks_of(run, source)[0])
    ]
    if not titled:
        raise RunError(
            f"{run.path} has no profiles",
            remedy='Run it again with measure.profile = "auto" and a budget that has room for them.',
        )
    return write_json(speedscope_json(run.path.name, titled)).encode()


def write_speedscope(run: RunFolder, path: Path) -> None:
    data = speedscope(run)
    try:
        write_whole(path, data)
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror}", remedy="Choose another place.") from error


def stacks_of(run: RunFolder, source: ProfileSource) -> tuple[tuple[Stack, ...], list[Requirement]]:
    try:
        parsed = profiler.parse_stacks(run.stacks_text(source.file))
    except UserError as error:
        return (), [Requirement("profiles", source.file, None, str(error))]
    if parsed.damaged:
        how = f"{parsed.damaged} of its lines are damaged and were left out"
        return parsed.stacks, [Requirement("profiles", f"a part of {source.file}", None, how)]
    return parsed.stacks, []


def _baseline(
    step: ProfiledStep, source: ProfileSource, steps: list[ProfiledStep], read: dict[str, tuple[Stack, ...]]
) -> stacks.Baseline | None:
    if source.kind != "cpu" or source.component == "rest":
        return None
    first = steps[0].treatment
    for other in steps:
        below = other.treatment == step.treatment == first and (other.place, step.place) in (
            ("below", "past"),
            ("lowest", "highest"),
        )
        earlier = step.treatment != first == other.treatment and other.place == step.place
        for candidate in other.sources:
            if (below or earlier) and (candidate.kind, candidate.component) == (source.kind, source.component):
                per_request = stacks.per_request(candidate.rate, candidate.seconds, other.throughput)
                of = ProfileBaseline(other.place, other.treatment, other.level)
                return stacks.Baseline(read[candidate.file], per_request, of)
    return None


BUSY = {"target.cpu.hottest_thread": 0.5, "target.saturation": 0.5}


@dataclass(frozen=True, slots=True)
class Sampled:
    """collector: its share of samples; all_cores: CPUs that the target used."""

    level: float
    collector: Collecting
    all_cores: float


def sampled(run: RunFolder, treatment: str, *, named: bool = False) -> Iterator[Sampled]:
    """What each profile shows, past the bend or at the highest level. named: the collector's functions have names: none
    among the samples means that it did nothing."""
    for step, source in _sources(run, treatment):
        stacks, _ = stacks_of(run, source)
        total = sum(stack.count for stack in stacks)
        collector = collecting(stacks)
        if collector is None and named and total:
            collector = Collecting(0.0, *wilson(0, total))
        if collector is not None and source.rate > 0 and source.seconds > 0:
            yield Sampled(step.level, collector, total / (source.rate * source.seconds))


def _sources(run: RunFolder, treatment: str) -> Iterator[tuple[ProfiledStep, ProfileSource]]:
    for step in run.profiled():
        if step.treatment == treatment and step.place in ("past", "highest"):
            yield from (
                (step, source) for source in step.sources if (source.kind, source.component) == ("cpu", "target")
            )


def with_collecting(run: RunFolder, steps: Steps) -> list[Step]:
    known = {
        (treatment, profile.level): {
            GC_SAMPLED: profile.collector.share,
            GC_SAMPLED_CORES: profile.collector.share * profile.all_cores,
        }
        for treatment in {step.treatment for step in steps}
        for profile in sampled(run, treatment)
    }
    return [replace(step, metrics={**step.metrics, **known.get((step.treatment, step.level), {})}) for step in steps]


def looks_for_a_collector(kind: str, steps: Steps, level: float) -> bool:
    """Whether only a profile can show its cost: the target is busy, and no metric reports it."""
    here = [step.metrics for step in steps if step.level == level]
    if kind not in UNKNOWN_KINDS or not here or any(name in metrics for metrics in here for name in COLLECTOR_METRICS):
        return False
    return any(fmean(metrics.get(name, 0.0) for metrics in here) >= least for name, least in BUSY.items())


def receded(book: Bookkeeping, findings: Sequence[Finding], before: str, after: str) -> Mapping[str, float]:
    """CPUs of the collector by treatment: a lower 95 % bound before, an upper one after (a profile taken here). Empty
    where no finding rests on a profile."""
    if not any(
        finding.id == COLLECTING and finding.evidence and finding.evidence[0].metric == GC_SAMPLED
        for finding in findings
    ):
        return {}
    run = book.bench.run
    profiles = list(sampled(run, before))
    place = next((step.place for step, _ in _sources(run, before)), None)
    if not profiles or place is None or not profile_at(book, Wanted(place, after, profiles[-1].level)):
        return {}
    first = profiles[-1]
    same = [profile for profile in sampled(run, after, named=True) if profile.level == first.level]
    if not same:
        return {}
    return {before: first.collector.low * first.all_cores, after: same[-1].collector.high * same[-1].all_cores}


def with_collector(steps: Steps, cores: Mapping[str, float]) -> list[Step]:
    known = {treatment: {GC_SAMPLED_CORES: used} for treatment, used in cores.items()}
    return [replace(step, metrics={**step.metrics, **known.get(step.treatment, {})}) for step in steps]
