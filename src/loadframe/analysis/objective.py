"""Whether a step met the objective; where it did not, what it missed, in words."""

from __future__ import annotations

import math

from loadframe.model import CapacityObjective, Step

LOSS_RATIO = 0.01
"""The share of requests that may be lost where the study says nothing: a hundredth is within the counting error of a
step of a few seconds. Networks are asked for 0.5 % in 30 s or more (RFC 9971)."""

FAR_BEHIND = 0.1
"""A target that is behind by a tenth of what a step offers will not catch up in it."""

FEWEST_WAITING = 10

NOTHING = 1e-6
"""An objective that allows no loss at all is used up many times over by a single lost request, not infinitely often."""


def missed(objective: CapacityObjective, step: Step) -> str:
    """What the step missed; "" where it met the objective."""
    if "ended-early" in step.flags:
        return "it was so far behind that the trial was ended"
    if not step.requests:
        return "no request was served"
    lost, limit_ms = lost_share(step), objective.latency_p95_ms
    if objective.loss_ratio is not None and lost > objective.loss_ratio:
        return f"{100 * lost:.3g} % of the requests were lost, more than {100 * objective.loss_ratio:.3g} %"
    if limit_ms is not None and step.latency.p95_ms > limit_ms:
        return f"p95 latency {step.latency.p95_ms:.3g} ms, more than {limit_ms:g} ms"
    return ""


def use(objective: CapacityObjective, step: Step) -> float:
    """How much of what the objective allows a step uses, of what it uses most: above 1 it misses."""
    shares = [0.0]
    if objective.latency_p95_ms is not None:
        shares.append(step.latency.p95_ms / objective.latency_p95_ms)
    if objective.loss_ratio is not None:
        shares.append(lost_share(step) / max(objective.loss_ratio, NOTHING))
    return max(shares)


def lost_share(step: Step) -> float:
    """Requests that failed or, in an open loop, were offered and not served, as a share (0..1) of all.

    One that is on its way when the window ends is not lost: with few requests it alone would be more than a hundredth.
    """
    offered = step.metrics.get("workload.offered")
    if offered is None:
        asked = step.requests + step.errors
        return step.errors / asked if asked else 0.0
    asked = round(offered * (step.window_end_s - step.window_start_s))
    return max(asked - step.requests - 1, 0) / asked if asked else 0.0


def most_waiting(rate: float, seconds: float) -> int:
    """With more requests waiting than this, a step at `rate` for so many seconds can only miss."""
    return max(math.ceil(FAR_BEHIND * rate * seconds), FEWEST_WAITING)
