"""Where a curve is flat, and how many requests are in service at once there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from loadframe.analysis.in_service import InService, in_service
from loadframe.analysis.saturation import line
from loadframe.model import CLIENT_AXES, OPEN_LOOP_AXES, Curve, CurvePoint, Step, Steps
from loadframe.model import by_level as of_levels

FLAT = 0.95
"""Levels with this share of the highest throughput are the plateau."""
NOISY = 0.85
"""... or this share, where its interval and that of the highest throughput overlap."""
SPAN = 1.2
BEFORE = {True: 0.75, False: 0.5}
"""Share of the plateau's throughput, by whether the axis counts clients, below which no request should queue (Erlang
C)."""
UNCHANGED = 1.25
"""Tolerance of a response time over the lowest one, for noise and shared caches, CPUs and connections."""
ALIKE = 0.2
"""Tolerance, relative to the response time at the lowest load: threads are counted only a few times in a step."""
AS_LOW = 1.1
"""Factor between response times of two levels: then no request queued at the lower level."""
ONE = 2.0
"""Where fewer than two can be in service it is one: n <= X R."""


@dataclass(frozen=True, slots=True)
class Plateau:
    """levels: rising. lowest: of all measured; whole: the plateau begins there. served: None, with the reason in
    `because`. refuses: answers are as fast as at the lowest load, so nothing queues. own_queues: requests queue without
    holding a thread: each server thread has its own queue."""

    levels: tuple[float, ...]
    lowest: float
    whole: bool
    served: InService | None
    because: str = ""
    refuses: bool = False
    own_queues: bool = False


def plateau_of(curve: Curve, steps: Steps) -> Plateau | None:
    """None where throughput is not flat over several levels, falls off a cliff, or levels change what a request
    does."""
    levels, loads = flat_levels(curve), [point.load for point in curve.points]
    by_level = of_levels(step for step in steps if step.level in loads)
    if not levels or not by_level or not all(level in by_level for level in levels):
        return None
    lowest, whole = min(by_level), min(by_level) == levels[0]
    if any(step.latency.mean_ms <= 0 or step.throughput <= 0 for group in by_level.values() for step in group):
        return Plateau(levels, lowest, whole, None, "some steps have no response time")
    if whole and not (lowest == 1 and curve.axis in CLIENT_AXES):
        return Plateau(levels, lowest, whole, None, f"the lowest level, {lowest:g}, is on the plateau already")
    grown = _grown(curve, by_level, levels)
    apart = grown is not None and lowest == 1 and curve.axis in CLIENT_AXES and _held_alike(by_level)
    if grown is not None and not apart:
        return Plateau(levels, lowest, whole, None, grown)
    queues = _response_ms(by_level[levels[-1]]) > UNCHANGED * _response_ms(by_level[lowest])
    served = _served(curve, by_level, levels, own_queues=apart)
    return Plateau(levels, lowest, whole, served, refuses=not queues, own_queues=apart)


def flat_levels(curve: Curve) -> tuple[float, ...]:
    """The last levels, except those at which throughput falls a little."""
    if curve.shape not in ("plateau", "decline") or curve.axis not in CLIENT_AXES | OPEN_LOOP_AXES:
        return ()
    flat = [point.load for point in curve.points if _as_high(point, curve)]
    after = [point for point in curve.points if point.load > flat[-1]]
    if len(flat) < 2 or flat[-1] < SPAN * flat[0] or len(after) > len(flat):
        return ()
    between = [point.load for point in curve.points if flat[0] <= point.load <= flat[-1]]
    return tuple(flat) if between == flat else ()


def is_flat(curve: Curve) -> bool:
    return len(curve.points) > 1 and all(_as_high(point, curve) for point in curve.points)


def _as_high(point: CurvePoint, curve: Curve) -> bool:
    peak = curve.at_peak
    near, possible = point.throughput >= FLAT * peak.throughput, point.throughput_high >= peak.throughput_low
    return near or (possible and point.throughput >= NOISY * peak.throughput)


def _grown(curve: Curve, by_level: dict[float, list[Step]], levels: Sequence[float]) -> str | None:
    """Why X R is not the number in service: a request takes longer before the throughput is used up."""
    most = BEFORE[curve.axis in CLIENT_AXES] * curve.peak.throughput
    first = _response_ms(by_level[min(by_level)])
    for level, steps in sorted(by_level.items()):
        if level in levels or fmean(step.throughput for step in steps) > most:
            continue
        if (times := _response_ms(steps) / first) > UNCHANGED:
            return f"a request takes {times:.2g} times as long at {level:g} already, where throughput still grows"
    return None


def _held_alike(by_level: Mapping[float, Steps]) -> bool:
    """A request holds a thread as long as its whole response takes at the lowest level (Little's law)."""
    steps = [step for group in by_level.values() for step in group]
    if not all(name in step.metrics for step in steps for name in ("target.threads.count", "target.waits.idle")):
        return False
    taken = [step.metrics["target.threads.count"] - step.metrics["target.waits.idle"] for step in steps]
    rates = [step.throughput for step in steps]
    fitted = line(rates, taken)
    return fitted is not None and abs(1000 * fitted.slope / _response_ms(by_level[min(by_level)]) - 1) <= ALIKE


def _served(curve: Curve, by_level: dict[float, list[Step]], levels: Sequence[float], *, own_queues: bool) -> InService:
    """own_queues: longer responses come from queues, not from noise."""
    rising = sorted(by_level)
    timed = rising[:1] if own_queues else rising
    flat = [step for level in levels for step in by_level[level]]
    first, second = rising[:2]
    as_low = second not in levels and _response_ms(by_level[second]) <= AS_LOW * _response_ms(by_level[first])
    queued = not (first == 1 and curve.axis in CLIENT_AXES) and not as_low
    cpu = [_per_request(steps, "target.cpu.cores", "driver.cpu.cores") for steps in by_level.values()]
    known = [value for value in cpu if value is not None]
    waits = _per_request(by_level[min(by_level)], "target.cpu.run_delay", "driver.cpu.run_delay")
    return in_service(
        [[step.throughput for step in by_level[level]] for level in levels],
        [[step.latency.mean_ms / 1000 for step in by_level[level]] for level in timed],
        outside_s=min(known) + (waits or 0.0) if known else None,
        waits_s=_per_request(flat, "target.cpu.run_delay") or 0.0,
        grain=max(1 / max(step.requests, 1) for step in flat),
        bounded=queued,
        clients=levels[-1] if own_queues else None,
    )


def _response_ms(steps: Steps) -> float:
    return fmean(step.latency.mean_ms for step in steps)


def _per_request(steps: Steps, *metrics: str) -> float | None:
    if not all(name in step.metrics for step in steps for name in metrics):
        return None
    return fmean(sum(step.metrics[name] for name in metrics) / step.throughput for step in steps)
