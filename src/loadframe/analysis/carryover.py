"""Whether a treatment serves another throughput right after another than after itself (docs/mathematics.md,
"Carry-over")."""

import math
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import fmean, pvariance, stdev

from loadframe.analysis import student
from loadframe.model import Steps

ERROR = 0.01
"""Error of each test: there are many, and false warnings cost the reader's trust."""
LEAST = 0.1
FEWEST = 3


@dataclass(frozen=True, slots=True)
class CarryOver:
    """ratio: throughput after another treatment over that after itself, 99 % interval. left_out: only steps that do not
    count show it."""

    treatment: str
    ratio: float
    low: float
    high: float
    left_out: bool

    def __str__(self) -> str:
        effect = f"{self.ratio:.2g} times (99 % interval {self.low:.2g} to {self.high:.2g})"
        if self.left_out:
            return (
                f"Carry-over: right after another state {self.treatment} served {effect} what it served in the step "
                "after that; the steps right after a change of state are left out."
            )
        return (
            f"Carry-over: in steps that count {self.treatment} served {effect} as much after another state as after "
            "itself: the comparison includes what the other state leaves behind. Give measure.window more time."
        )


def carried_over(steps: Steps) -> tuple[CarryOver, ...]:
    ordered = sorted(steps, key=lambda step: step.number)
    effects = []
    for treatment in dict.fromkeys(step.treatment for step in ordered):
        for effect, left_out in ((_counted, False), (_left_out, True)):
            mean, half = effect(ordered, treatment)
            if abs(mean) - half > LEAST:
                ratio, low, high = (math.exp(mean + side * half) for side in (0, -1, 1))
                effects.append(CarryOver(treatment, ratio, low, high, left_out))
                break
    return tuple(effects)


UNKNOWN = (0.0, math.inf)
"""Mean and half of its interval, where too few steps show the noise."""


def _left_out(steps: Steps, treatment: str) -> tuple[float, float]:
    logs = [
        math.log(first.throughput / second.throughput)
        for first, second in pairwise(steps)
        if first.purpose == "warming"
        and second.counts
        and first.treatment == second.treatment == treatment
        and first.level == second.level
        and min(first.throughput, second.throughput) > 0
    ]
    if len(logs) < FEWEST:
        return UNKNOWN
    return fmean(logs), _critical(len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))


def _counted(steps: Steps, treatment: str) -> tuple[float, float]:
    """Of repeated steps the last counts, and none before the round's first change of treatment."""
    cells: dict[tuple[int | None, float], tuple[list[float], list[float]]] = {}
    alternating = set[int | None]()
    counting = (step for step in steps if step.counts)
    measured = groupby(counting, lambda step: (step.round, step.block, step.treatment, step.level))
    for before, step in pairwise([list(again)[-1] for _, again in measured]):
        sized = step.purpose == "sizing"
        if step.treatment != treatment or sized or before.round != step.round or step.throughput <= 0:
            continue
        if before.treatment != treatment:
            alternating.add(step.round)
        if step.round in alternating:
            kinds = cells.setdefault((step.round, step.level), ([], []))
            kinds[before.treatment == treatment].append(math.log(step.throughput))
    both = [(other, same) for other, same in cells.values() if other and same]
    freedom = sum(len(other) + len(same) - 2 for other, same in both)
    if freedom < FEWEST - 1:
        return UNKNOWN
    squares = sum(len(kind) * pvariance(kind) for pair in both for kind in pair)
    weights = [len(other) * len(same) / (len(other) + len(same)) for other, same in both]
    mean = sum(weight * (fmean(other) - fmean(same)) for weight, (other, same) in zip(weights, both, strict=True))
    return mean / sum(weights), _critical(freedom) * math.sqrt(squares / freedom / sum(weights))


def _critical(freedom: int) -> float:
    return float(student.quantile(1 - ERROR / 2, freedom))
