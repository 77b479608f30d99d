"""Extra steps that are sampled: below and past the bend of the state as given, and past it for the final state.

They come after a sweep or after the last proof, are in no curve and no verdict, and are left out where the budget has
no room: sampling never touches a step that is judged.
"""

from __future__ import annotations

import json
from pathlib import Path

from loadframe import reporting
from loadframe.analysis import stacks
from loadframe.bench.examination import Examined
from loadframe.bench.proof import judged_levels
from loadframe.bench.sweep import Bookkeeping
from loadframe.errors import RunError, UserError
from loadframe.model import (
    Profile,
    ProfileBaseline,
    ProfiledStep,
    ProfilePlace,
    ProfileSource,
    Requirement,
    Stack,
)
from loadframe.recording.profiles import collapsed
from loadframe.runs.folder import RunFolder

WINDOW_S = 2.0
"""A profile's window is the study's, and at least this: short windows have too few samples."""
AROUND_S = 3.0
"""Starting perf, and unwinding and naming what it copied."""


def profile_around(book: Bookkeeping, examined: Examined) -> None:
    """One step below the bend and one past it, of the state that was examined."""
    loads = [point.load for point in examined.round.curve.points]
    bend = examined.bend
    if bend is None:
        wanted: list[tuple[ProfilePlace, float]] = [("lowest", loads[0]), ("highest", loads[-1])]
    else:
        held = [load for load in loads if load <= bend] or loads[:1]
        wanted = [("below", held[-1]), ("past", judged_levels(examined.round.curve, bend)[0])]
    if len(loads) == 1:
        wanted = wanted[-1:]
    for place, level in wanted:
        _profile(book, place, examined.round.treatment, level, reserve_s=book.remedy_s())


def profile_after(book: Bookkeeping, first: str, last: str) -> None:
    """The final state where the state as given was past its bend; nothing where nothing was kept."""
    taken = [
        step for step in book.bench.run.profiled() if step.treatment == first and step.place in ("past", "highest")
    ]
    if last != first and taken:
        _profile(book, taken[0].place, last, taken[0].level, reserve_s=0.0)


def _profile(book: Bookkeeping, place: ProfilePlace, treatment: str, level: float, *, reserve_s: float) -> None:
    """One sampled step, or a line that says why there is none."""
    measure = book.bench.study.measure
    if measure.profile == "off":
        return
    window_s = max(measure.window, WINDOW_S)
    cost_s = book.budget.cost_s([level]) + window_s - measure.window + AROUND_S
    if cost_s + reserve_s > book.budget.left_s():
        because = "give measure.budget more time: it had no room for this step"
    else:
        book.progress.phase(f"profiling {treatment} at {book.bench.study.load.axis} {level:g}", 1)
        try:
            book.bench.take_profile(place, treatment=treatment, level=level, window_s=window_s)
        except UserError as error:
            because = f"it failed: {error.fact}"
        else:
            return
    lacking = Requirement("profiles", f"a profile of {treatment} at {level:g}", None, because)
    book.bench.run.add_profiled(ProfiledStep(place, treatment, level, 0.0, 0, 0.0, (), (lacking,)))


# --- from the run folder to the report ------------------------------------------------------------------------------


def profiles_of(run: RunFolder) -> tuple[tuple[Profile, ...], tuple[Requirement, ...]]:
    """Every profile of a run, computed from its collapsed stacks, and what could not be sampled and why. Files
    that were lost or damaged are told of as missing."""
    steps = run.profiled()
    missing = [requirement for step in steps for requirement in step.missing]
    read: dict[str, tuple[Stack, ...]] = {}
    for source in (source for step in steps for source in step.sources):
        read[source.file], lacking = _stacks(run.path, source)
        missing += lacking
    profiles = [
        profile
        for step in steps
        for source in step.sources
        if (profile := _profile_of(step, source, read, _baseline(step, source, steps))) is not None
    ]
    return tuple(profiles), tuple(dict.fromkeys(missing))


def write_speedscope(run: RunFolder, path: Path) -> None:
    """All sampled stacks of a run in speedscope's format. RunError where there are none or `path` cannot be written."""
    titled = [
        reporting.TitledStacks(
            f"{source.component}, {source.kind}: {step.treatment} at {step.level:g} ({step.place})",
            stacks_,
            1 / source.rate,
            source.kind == "cpu",
        )
        for step in run.profiled()
        for source in step.sources
        if (stacks_ := _stacks(run.path, source)[0])
    ]
    if not titled:
        raise RunError(
            f"{run.path} has no profiles",
            remedy='Run it again with measure.profile = "auto" and a budget that has room for them.',
        )
    try:
        path.write_text(json.dumps(reporting.speedscope_json(run.path.name, titled)), encoding="utf-8")
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror}", remedy="Choose another place.") from error


def _stacks(run: Path, source: ProfileSource) -> tuple[tuple[Stack, ...], list[Requirement]]:
    try:
        found = collapsed.read(run / "profiles" / Path(source.file).name)
    except UserError as error:
        return (), [Requirement("profiles", source.file, None, str(error))]
    if found.damaged:
        how = f"{found.damaged} of its lines are damaged and were left out"
        return found.stacks, [Requirement("profiles", f"a part of {source.file}", None, how)]
    return found.stacks, []


def _baseline(
    step: ProfiledStep, source: ProfileSource, steps: list[ProfiledStep]
) -> tuple[ProfiledStep, ProfileSource] | None:
    """What a CPU profile is compared with: past the bend with below it; a later state with the first at that place."""
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
                return other, candidate
    return None


def _profile_of(
    step: ProfiledStep,
    source: ProfileSource,
    read: dict[str, tuple[Stack, ...]],
    against: tuple[ProfiledStep, ProfileSource] | None,
) -> Profile | None:
    mine = read[source.file]
    other = against[0] if against is not None else None
    baseline = stacks.Baseline(read[against[1].file], _per_request(*against)) if against is not None else None
    shares = stacks.shares(
        mine,
        source.kind,
        rate=source.rate,
        seconds=step.seconds,
        throughput=step.throughput,
        baseline=baseline,
    )
    if shares is None:
        return None
    return Profile(
        kind=source.kind,
        component=source.component,
        place=step.place,
        treatment=step.treatment,
        level=step.level,
        throughput=step.throughput,
        samples=shares.samples,
        lost=source.lost,
        seconds=step.seconds,
        kernel_share=shares.kernel_share,
        unresolved_share=shares.unresolved_share,
        truncated_share=shares.truncated_share,
        classes=shares.classes,
        hottest=shares.hottest,
        flame=stacks.flame(mine, source.kind, now_s=_per_request(step, source), baseline=baseline),
        against=ProfileBaseline(other.place, other.treatment, other.level) if other is not None else None,
    )


def _per_request(step: ProfiledStep, source: ProfileSource) -> float:
    return stacks.per_request(source.rate, step.seconds, step.throughput)
