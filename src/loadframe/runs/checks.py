"""What a step must be, beyond its types, so that everything computed from it can be: whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loadframe.errors import RunError
from loadframe.model import LatencyDistribution, Round, Step
from loadframe.runs.formats import DAMAGED

MOST_STEPS = 2**31
"""Numbers of steps, rounds and blocks lie below it: tables hold them in 64 bits."""


def check_steps(steps: Sequence[tuple[Step, str]]) -> None:
    """RunError for a step that no run can have, and for two of one number; each with where it stands."""
    seen: set[int] = set()
    for step, where in steps:
        if (wrong := _wrong(step)) is not None:
            raise RunError(f"{where}: {wrong}", remedy=DAMAGED)
        if step.number in seen:
            raise RunError(f"{where}: there is a step {step.number} before it already", remedy=DAMAGED)
        seen.add(step.number)


ROW = ("step", "level", "throughput", "errors")
"""What every row of a footprint has (record.footprint)."""


def check_rounds(rounds: Iterable[Round], where: str) -> None:
    """RunError for a round with a row that is no step's, or at a level that is none."""
    for one in rounds:
        for row in one.footprint:
            if missing := [name for name in ROW if name not in row]:
                raise RunError(f"{where}: a row of round {one.number} has no {missing[0]}", remedy=DAMAGED)
        levels = [row["level"] for row in one.footprint] + [point.load for point in one.curve.points]
        if (lowest := min(levels, default=1.0)) <= 0:
            raise RunError(f"{where}: round {one.number} has the level {lowest:g}", remedy=DAMAGED)


SHORTEST_MS = 1e-9
"""Of a latency: a hundredth of what light takes from one end of a CPU to the other."""


def check_latencies(found: Iterable[LatencyDistribution], where: str) -> None:
    """RunError for a distribution without a request, or with a point that none has."""
    for one in found:
        if one.requests < 1 or not one.points or one.level <= 0:
            raise RunError(f"{where}: the latencies of {one.treatment!a} have no request", remedy=DAMAGED)
        for point in one.points:
            if point.one_in < 1 or point.latency_ms < SHORTEST_MS:
                told = f"one request in {point.one_in:g} above {point.latency_ms:g} ms"
                raise RunError(f"{where}: the latencies of {one.treatment!a} have {told}", remedy=DAMAGED)


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
        "requests": (step.requests, *(one.requests for one in step.operations)),
        "errors": (step.errors, *(one.errors for one in step.operations)),
        "waiting_share": (step.waiting_share,),
        "think_s": (step.think_s,),
        "needed_s": (step.needed_s,),
        "latency": (latency.mean_ms, latency.p50_ms, latency.p95_ms, latency.p99_ms, latency.max_ms),
        "operations": (time_ms for one in step.operations for time_ms in (one.mean_ms, one.p95_ms)),
    }
    for name, values in counted.items():
        if (bad := min(values, default=0.0)) < 0:
            return f"{name} of step {step.number} is {bad:g}"
    times = (step.started_s, step.window_start_s, step.window_end_s, step.ended_s)
    if min(times) < 0 or step.window_end_s < step.window_start_s or step.ended_s < step.started_s:
        told = (f"{at_s:g}" for at_s in times)
        return f"step {step.number} began, was counted from, until, and ended at {', '.join(told)} s"
    return None
