"""An objective in addition to throughput: on which levels it is judged, how much of it a trial used, what a proof
shows."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from statistics import median

from loadframe.analysis import objective as objectives
from loadframe.model import OPEN_LOOP_AXES, CapacityObjective, Curve, Step
from loadframe_tune.model import ObjectiveLevel, ObjectiveSide, TuningObjective


def loads_within(curve: Curve, start: Sequence[Step], objective: CapacityObjective) -> Curve:
    """The levels of the start's curve on which settings are judged: below the first that misses the objective, or the
    lowest. In an open loop that first one, too: below it all that is offered is served already."""
    levels = [point.load for point in curve.points]
    met = list(takewhile(lambda level: side(objective, start, level).met, levels))
    count = len(met) + 1 if curve.axis in OPEN_LOOP_AXES else max(len(met), 1)
    return replace(curve, points=curve.points[:count])


def used(objective: CapacityObjective | None, steps: Sequence[Step]) -> float | None:
    if objective is None or not steps:
        return None
    return max(
        median(objectives.use(objective, step) for step in steps if step.level == level)
        for level in {step.level for step in steps}
    )


def side(objective: CapacityObjective, steps: Sequence[Step], level: float) -> ObjectiveSide:
    mine = [step for step in steps if step.level == level]
    return ObjectiveSide(
        latency_p95_ms=median([step.latency.p95_ms for step in mine if step.latency_known] or [0.0]),
        lost_share=median(objectives.lost_share(step) for step in mine),
        met=median(objectives.use(objective, step) for step in mine) <= 1,
    )


def shown(
    objective: CapacityObjective | None, levels: Sequence[float], before: Sequence[Step], after: Sequence[Step]
) -> TuningObjective | None:
    if objective is None:
        return None
    return TuningObjective(
        objective,
        tuple(
            ObjectiveLevel(level, side(objective, before, level), side(objective, after, level) if after else None)
            for level in sorted(levels)
        ),
    )
