"""Whether a step met the objective, and what it missed."""

import math

from loadframe.model import OUT_OF_BALANCE, CapacityObjective, Step, Steps

LOSS_RATIO = 0.01
"""Default: within the counting error of a step of seconds. Networks are tested for 0.5 % in 30 s or more (RFC 9971)."""
FAR_BEHIND = 0.1
"""A target that is behind by this share of a step's requests will not catch up within the step."""
FEWEST_WAITING = 10
NOTHING = 1e-6
"""Floor of allowed ratios: a single loss exceeds an allowance of zero many times, not infinitely often."""


def missed(objective: CapacityObjective, step: Step) -> str:
    if "ended-early" in step.flags:
        return "it fell so far behind that the trial was stopped"
    if not step.requests:
        return "no request was served"
    lost, failed = lost_share(step), failed_share(step)
    if objective.loss_ratio is not None and lost > objective.loss_ratio:
        return f"{100 * lost:.3g} % of the requests were lost, more than {100 * objective.loss_ratio:.3g} %"
    if objective.error_ratio is not None and failed > objective.error_ratio:
        return f"{100 * failed:.3g} % of the requests failed, more than {100 * objective.error_ratio:.3g} %"
    limits = latency_limits(objective)
    if limits and OUT_OF_BALANCE in step.flags:
        return "requests came faster than they were answered, so no response time is known"
    for name, limit_ms in limits.items():
        seen_ms = getattr(step.latency, name)
        if seen_ms > limit_ms:
            return f"{WORDS[name]} latency {seen_ms:.3g} ms, more than {limit_ms:g} ms"
    return ""


CLEARLY = 1.5
"""p95 scatters: in windows of one second its logarithm has a standard deviation of 0.19
(docs/journal/2026-11-22-tuning.md). A trial with this multiple of what is allowed, two deviations, misses for sure."""


def clearly_missed(objective: CapacityObjective | None, steps: Steps) -> str:
    if objective is None:
        return ""
    clear = [step for step in steps if use(objective, step) > CLEARLY]
    return "; ".join(f"at {step.level:g}: {missed(objective, step)}" for step in clear)


WORDS = {"p95_ms": "p95", "mean_ms": "mean", "p50_ms": "p50", "p99_ms": "p99", "p999_ms": "p99.9", "max_ms": "largest"}


def latency_limits(objective: CapacityObjective) -> dict[str, float]:
    p95 = {} if objective.latency_p95_ms is None else {"p95_ms": objective.latency_p95_ms}
    return {**p95, **objective.latencies_ms}


def use(objective: CapacityObjective, step: Step) -> float:
    """The largest share of an allowance that the step uses; above 1 it misses."""
    if not step.requests or (latency_limits(objective) and OUT_OF_BALANCE in step.flags):
        return 1.0 / NOTHING
    shares = [0.0]
    shares += [getattr(step.latency, name) / limit_ms for name, limit_ms in latency_limits(objective).items()]
    if objective.error_ratio is not None:
        shares.append(failed_share(step) / max(objective.error_ratio, NOTHING))
    if objective.loss_ratio is not None:
        shares.append(lost_share(step) / max(objective.loss_ratio, NOTHING))
    return max(shares)


def failed_share(step: Step) -> float:
    ended = step.requests + step.errors
    return step.errors / ended if ended else 0.0


def lost_share(step: Step) -> float:
    """Share (0..1) of requests that failed or, in an open loop, were not served. One in flight at the end of the window
    is not lost."""
    offered = step.metrics.get("workload.offered")
    if offered is None:
        return failed_share(step)
    asked = round(offered * (step.window_end_s - step.window_start_s))
    return max(asked - step.requests - 1, 0) / asked if asked else 0.0


def most_waiting(rate: float, seconds: float) -> int:
    """With more waiting requests a step at `rate` for `seconds` can only miss."""
    return max(math.ceil(FAR_BEHIND * rate * seconds), FEWEST_WAITING)
