"""Short records that only a run folder has: the states of the target, and what the bench found out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from loadframe.errors import RunError
from loadframe.model import (
    NOT_RECOVERED,
    WORK,
    AnswersCompared,
    LatencyDistribution,
    Round,
    SettingValue,
    Step,
    Stop,
    TargetState,
    Variant,
)
from loadframe.runs.formats import DAMAGED


@dataclass(frozen=True, slots=True)
class Treatment:
    """A state of the target under a short name ("A", "B", ...). kind: of the target, "" in runs of one target. cold_of:
    the treatment of which this is the cold one, or ""."""

    name: str
    title: str
    state: TargetState
    kind: str = ""
    cold_of: str = ""


@dataclass(frozen=True, slots=True)
class Effective:
    """Settings of the target in a state, as read back."""

    treatment: str
    values: Mapping[str, SettingValue]


@dataclass(frozen=True, slots=True)
class BenchFacts:
    """version: of the target. axis_unit, work_unit: what the load axis and throughput count, in words; "" where the run
    was stopped before that was known. seed: of the
    random order. distributions: others that registered the study's kinds. notes: sentences of its targets, and on what
    of a recorded load is sent (only this after a kill). answers: of the target and of comparable programs; empty after
    a kill. versions: by kind of target, where there are several."""

    version: str = ""
    axis_unit: str = ""
    seed: int = 0
    distributions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    work_unit: str = WORK
    answers: tuple[AnswersCompared, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds of an investigation as far as they went."""

    rounds: tuple[Round, ...]


def flagged(steps: Sequence[Step], stops: Sequence[Stop]) -> list[Step]:
    """The steps, with those flagged after which the target had failed, which was not known when they were written."""
    after = {stop.step for stop in stops}
    return [
        replace(step, flags=tuple(dict.fromkeys((*step.flags, NOT_RECOVERED)))) if step.number in after else step
        for step in steps
    ]


MOST_STEPS = 2**31
"""Bound of the numbers of steps, rounds and blocks: tables hold them in 64 bits."""


def check_steps(steps: Sequence[Step], where: str) -> None:
    """RunError for an impossible step, and for two of one number. where: their file, with a step in each line."""
    seen: set[int] = set()
    for line, step in enumerate(steps, start=1):
        if (wrong := _wrong(step)) is not None:
            raise RunError(f"{where}, line {line}: {wrong}", remedy=DAMAGED)
        if step.number in seen:
            raise RunError(f"{where}, line {line}: there is a step {step.number} before it already", remedy=DAMAGED)
        seen.add(step.number)


ROW = ("step", "level", "throughput", "errors")
"""Keys of every row of a footprint (record.footprint)."""


def check_rounds(rounds: Iterable[Round], where: str) -> None:
    """RunError for a round with an incomplete row, an invalid level, or a peak that is no point of its curve."""
    for round_ in rounds:
        for row in round_.footprint:
            if missing := [name for name in ROW if name not in row]:
                raise RunError(f"{where}: a row of round {round_.number} has no {missing[0]}", remedy=DAMAGED)
        levels = [row["level"] for row in round_.footprint] + [point.load for point in round_.curve.points]
        if (lowest := min(levels, default=1.0)) <= 0:
            raise RunError(f"{where}: round {round_.number} has the level {lowest:g}", remedy=DAMAGED)
        if (peak := round_.curve.peak.load) not in [point.load for point in round_.curve.points]:
            raise RunError(
                f"{where}: the curve of round {round_.number} has no point at its peak, {peak:g}", remedy=DAMAGED
            )


def check_variants(variants: Iterable[Variant], where: str) -> None:
    """RunError for a variant without the load that its answer is about."""
    for variant in variants:
        if variant.at not in [row.load for row in variant.levels]:
            raise RunError(f"{where}: the gain has no load {variant.at:g}, which it is told at", remedy=DAMAGED)


SHORTEST_MS = 1e-9
"""Shortest latency: a hundredth of the time that light takes across a CPU."""


def check_latencies(distributions: Iterable[LatencyDistribution], where: str) -> None:
    """RunError for a distribution without requests, or with an impossible point."""
    for distribution in distributions:
        if distribution.requests < 1 or not distribution.points or distribution.level <= 0:
            raise RunError(f"{where}: the latencies of {distribution.treatment!a} have no request", remedy=DAMAGED)
        for point in distribution.points:
            if point.one_in < 1 or point.latency_ms < SHORTEST_MS:
                what = f"one request in {point.one_in:g} above {point.latency_ms:g} ms"
                raise RunError(f"{where}: the latencies of {distribution.treatment!a} have {what}", remedy=DAMAGED)


def _wrong(step: Step) -> str | None:
    whole = {"number": step.number, "round": step.round, "block": step.block}
    for name, number in whole.items():
        if number is not None and not 0 <= number < MOST_STEPS:
            return f"{name} is {number}"
    if not step.level > 0:
        return f"step {step.number} has level {step.level:g} and throughput {step.throughput:g}"
    latency = step.latency
    counted: dict[str, Iterable[float]] = {
        "throughput": (step.throughput, *step.batches),
        "requests": (step.requests, *(operation.requests for operation in step.operations)),
        "errors": (step.errors, *(operation.errors for operation in step.operations)),
        "waiting_share": (step.waiting_share,),
        "think_s": (step.think_s,),
        "needed_s": (step.needed_s,),
        "latency": (latency.mean_ms, latency.p50_ms, latency.p95_ms, latency.p99_ms, latency.max_ms),
        "operations": (time_ms for operation in step.operations for time_ms in (operation.mean_ms, operation.p95_ms)),
    }
    for name, values in counted.items():
        if (bad := min(values, default=0.0)) < 0:
            return f"{name} of step {step.number} is {bad:g}"
    times = (step.started_s, step.window_start_s, step.window_end_s, step.ended_s)
    if min(times) < 0 or step.window_end_s < step.window_start_s or step.ended_s < step.started_s:
        shown = (f"{at_s:g}" for at_s in times)
        return f"step {step.number} began, was counted from, until, and ended at {', '.join(shown)} s"
    return None
