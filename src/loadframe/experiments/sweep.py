"""One treatment over all levels, in randomised blocks, and a bisection where throughput falls."""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from statistics import mean

from loadframe.analysis import curve as curves
from loadframe.analysis import queueing
from loadframe.analysis.curve import next_probe
from loadframe.analysis.selection import select
from loadframe.analysis.window import LIKELY, unsettled
from loadframe.bench.bookkeeping import FEWEST_BLOCKS, LONGER, OVERDRAWN, Bookkeeping
from loadframe.bench.settling import MOST_TIMES
from loadframe.errors import NotRecovered, TooFewRequests
from loadframe.experiments.stopping import go_on_below
from loadframe.model import (
    CLIENT_AXES,
    NOT_RECOVERED,
    OUT_OF_BALANCE,
    TOO_FEW,
    Curve,
    Step,
    StepRequest,
    Steps,
    by_block,
    by_level,
    of_treatment,
)
from loadframe.progress import counted
from loadframe.study import Study
from loadframe.units import show

MOST_STEPS = 0.5
SWEEP_SHARE = 0.4
FEWEST_LEVELS = 2


def curve_of(steps: Steps, study: Study, treatment: str, *, decided: Collection[int] = ()) -> Curve:
    taken = [step for step in _taken(steps, treatment) if step.number not in decided]
    mine = [step for step in taken if step.counts] or taken  # after a change that made it too slow, which is not kept
    counting = select(mine).steps
    samples = [
        curves.LevelSample(
            load=level,
            throughputs=tuple(step.throughput for step in there),
            latencies_p95_ms=tuple(
                math.inf if OUT_OF_BALANCE in step.flags else step.latency.p95_ms
                for step in there
                if step.latency_known or OUT_OF_BALANCE in step.flags
            ),
        )
        for level, there in by_level(counting).items()
    ]
    fitted = curves.fit(
        samples,
        axis=study.load.axis,
        treatment=treatment,
        within_latency_p95_ms=study.objective.within.latency_p95_ms,
        scalability=study.load.axis in CLIENT_AXES,
    )
    loops = {step.closed_loop for step in mine}
    warnings = (*_window_warnings(taken), *_driver_warnings(mine), *queueing.warnings(mine))
    climbing = unsettled(counting)
    if climbing:
        warnings += (
            f"not-settled: at {_listed(climbing)} the warm-up had not ended: the throughput there is higher than these "
            "numbers; give measure.warmup, measure.window or measure.budget more time",
        )
    return replace(
        fitted,
        points=tuple(replace(point, settled=point.load not in climbing) for point in fitted.points),
        warnings=(*fitted.warnings, *warnings),
        closed_loop=loops.pop() if len(loops) == 1 else None,
    )


def _taken(steps: Iterable[Step], treatment: str) -> list[Step]:
    return [step for step in of_treatment(steps, treatment) if step.purpose != "warming"]


def check_enough(steps: Steps, treatment: str) -> None:
    steps = _taken(steps, treatment)
    if not steps or any(step.counts for step in steps):
        return
    needed_s = {level: there[-1].needed_s for level, there in by_level(steps).items()}
    budget_s = LONGER * FEWEST_BLOCKS * sum(needed_s.values())
    windows = "; ".join(f"{show(needed, 's')} at {level:g}" for level, needed in needed_s.items())
    raise TooFewRequests(
        f"too-few: no window had 20 requests and 5 response times in it. It would have to be {windows}",
        remedy=f"Give measure.budget {show(budget_s, 's')} at least: windows are made longer as far as it goes.",
        needed_s=needed_s,
    )


def _window_warnings(steps: Steps) -> list[str]:
    few: dict[float, float] = {}
    unknown = []
    for level, there in by_level(steps).items():
        counting = [step for step in there if step.counts]
        short = [step for step in there if TOO_FEW in step.flags and NOT_RECOVERED not in step.flags]
        if short and not counting:
            few[level] = short[-1].needed_s
        if counting and all(OUT_OF_BALANCE in step.flags for step in counting):
            unknown.append(level)
    warnings = []
    if few:
        warnings.append(
            f"too-few: at {_listed(few)} no window had 20 requests and 5 response times in it: not part of the curve; "
            f"a window of {show(max(few.values()), 's')} would have: give measure.budget more time"
        )
    if unknown:
        warnings.append(
            f"out-of-balance: at {_listed(unknown)} throughput times response time differed from the requests in "
            "flight by more than 20 %, so no response time is shown: requests came and went at other rates, or the "
            "driver's times are wrong"
        )
    return warnings


def _listed(levels: Iterable[float]) -> str:
    return ", ".join(f"{level:g}" for level in levels)


def _driver_warnings(steps: Steps) -> list[str]:
    said = {
        "driver-limited": "driver.limited: at {} the load driver was the bottleneck, so the curve is not the target's "
        "there",
        "driver-beside": "driver.beside: at {} the load driver had a quarter or more of the CPUs that the target was "
        "short of; with CPUs of its own for the driver (cage.driver.cpus) the target would do more",
    }
    warnings = []
    for flag, words in said.items():
        often = [
            level for level, there in by_level(steps).items() if mean(flag in step.flags for step in there) > MOST_STEPS
        ]
        if often:
            warnings.append(words.format(_listed(often)))
    return warnings


def sweep(book: Bookkeeping, treatment: str, *, round_number: int) -> Curve:
    """Measure all levels, except what is done, below the load at which a private target fails. At least two blocks, the
    study's fewest within the budget, and more until all intervals are narrow; then a cliff is bisected. TooFewRequests
    where no window decides anything."""
    while True:
        try:
            return _swept(book, treatment, round_number)
        except NotRecovered as error:
            go_on_below(book, error)


def _swept(book: Bookkeeping, treatment: str, round_number: int) -> Curve:
    study = book.bench.study
    levels = book.levels(treatment)
    blocks = study.measure.blocks
    mine = book.of(treatment)
    done = min(len(by_block(step for step in mine if step.level == level)) for level in levels)
    if done < blocks.min:
        book.progress.phase(
            f"measuring {counted(len(levels), 'level')}: {book.called(treatment)}", len(levels) * (blocks.min - done)
        )
    started_left = book.budget.left_s()
    for block in range(done + 1, blocks.max + 1):
        if block > FEWEST_BLOCKS and not book.budget.affords(levels, book.remedy_s(FEWEST_BLOCKS)):
            break
        spent = started_left - book.budget.left_s()
        if block > blocks.min and (
            spent + book.budget.cost_s(levels) > SWEEP_SHARE * started_left
            or not book.budget.affords(levels, book.remedy_s(blocks.max))
            or all(
                point.throughput > 0
                and (point.throughput_high - point.throughput_low) / 2 <= study.measure.precision * point.throughput
                for point in _curve(book, treatment).points
            )
        ):
            break
        if _overdrawn(book, treatment):
            steps = len(book.of(treatment))
            book.progress.say(
                f"The budget of {show(book.budget.total_s, 's')} is spent {OVERDRAWN:g} times over after "
                f"{counted(steps, 'step')}: this is concluded from them. A target that takes long to serve again after "
                "a step needs a larger measure.budget."
            )
            break
        measure_block(book, treatment, levels, block, round_number=round_number)
    check_enough(book.steps, treatment)
    _settle(book, treatment, round_number)
    return _bisect(book, treatment, round_number, _curve(book, treatment))


def _settle(book: Bookkeeping, treatment: str, round_number: int) -> None:
    """All blocks of a level together may show what no single step does."""
    for _ in range(MOST_TIMES if book.bench.study.measure.warmup is None else 0):
        last = {step.level: step for step in book.of(treatment)}
        counting = select(book.of(treatment)).steps
        slow = [
            level
            for level in unsettled(counting, LIKELY)
            if book.settling.lengthen(last[level], book.budget, FEWEST_BLOCKS)
        ]
        if not slow:
            break
        book.progress.phase(
            f"longer warm-ups at {counted(len(slow), 'level')}: {book.called(treatment)}", FEWEST_BLOCKS * len(slow)
        )
        for level in slow:
            longer = [
                book.take(StepRequest(treatment, level, round_number, block)) for block in range(1, FEWEST_BLOCKS + 1)
            ]
            before = [step.throughput for step in counting if step.level == level]
            book.settling.keep(level, mean(before), mean(step.throughput for step in longer))


def measure_block(book: Bookkeeping, treatment: str, levels: Sequence[float], block: int, *, round_number: int) -> None:
    """Measure the levels that this block lacks, in random order; in the first block of an attached target in rising
    order, so that a level at which it fails comes last."""
    done = {step.level for step in book.of(treatment) if step.block == block}
    first = block == 1 and book.bench.endpoint.attached
    for level in sorted(levels) if first else book.random.sample(list(levels), len(levels)):
        if level not in done and not _overdrawn(book, treatment):
            book.take(StepRequest(treatment, level, round_number, block))


def _overdrawn(book: Bookkeeping, treatment: str) -> bool:
    least_s = book.budget.guessed_s(FEWEST_BLOCKS * len(book.levels(treatment)))
    if book.budget.spent_s() < OVERDRAWN * max(book.budget.total_s, least_s):
        return False
    return len({step.level for step in _taken(book.steps, treatment)}) >= FEWEST_LEVELS


def _bisect(book: Bookkeeping, treatment: str, round_number: int, curve: Curve) -> Curve:
    least, most = book.bench.study.measure.blocks.min, book.bench.study.measure.blocks.max
    while (probe := next_probe(curve)) is not None:
        if probe in {step.level for step in _taken(book.steps, treatment)}:
            break
        if not book.budget.affords([probe] * least, book.remedy_s(most)):
            break
        book.progress.phase(f"looking closer: {book.bench.study.load.axis} {probe:g}", least)
        for block in range(1, least + 1):
            book.take(StepRequest(treatment, probe, round_number, block))
        curve = _curve(book, treatment)
    return curve


def _curve(book: Bookkeeping, treatment: str) -> Curve:
    return curve_of(book.steps, book.bench.study, treatment)
