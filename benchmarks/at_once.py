"""Rows of benchmarks/sceptic.py on the number of requests that are served at once: simulated closed loops whose number
is known, and curves that have none."""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from claims import Figure, rate, row
from loadframe.analysis.curve import LevelSample, fit
from loadframe.analysis.in_service import InService
from loadframe.diagnosis.plateau import plateau_of
from loadframe.model import Curve, Latency, Step
from simulated import step

FEWER = 20
"""Of this many series one is drawn: a curve is fitted to each."""
LEVELS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
BLOCKS = 3
WINDOW_S = 1.0


def measured(random: np.random.Generator, throughputs: dict[float, float], noise: float, cpu_s: float) -> list[Step]:
    """A sweep of a closed loop without think time: counts of a window, with noise. cpu_s: CPU time per request, which
    target and driver share."""
    steps = []
    for block in range(1, BLOCKS + 1):
        for level, expected in throughputs.items():
            throughput = max(1.0, round(expected * float(np.exp(random.normal(0, noise))) * WINDOW_S)) / WINDOW_S
            mean = 1000 * level / throughput
            metrics = {
                "target.cpu.cores": 0.7 * cpu_s * throughput,
                "driver.cpu.cores": 0.3 * cpu_s * throughput,
                "target.cpu.run_delay": 0.1 * cpu_s * throughput,
                "driver.cpu.run_delay": 0.02 * cpu_s * throughput,
            }
            latency = Latency(mean, mean, mean, mean, mean)
            steps.append(step(level, throughput, metrics, block=block, requests=int(throughput), latency=latency))
    return steps


def curve_of(steps: list[Step]) -> Curve:
    """Fitted as a run's curve is."""
    samples = [LevelSample(level, tuple(one.throughput for one in steps if one.level == level), ()) for level in LEVELS]
    return fit(samples, axis="concurrency", treatment="A")


@cache
def pools(series: int, size: int, noise: float) -> tuple[InService | None, ...]:
    """Pools of a size; 0 to 12 % of a request's time lie outside, of which half is CPU time."""
    random = np.random.default_rng(51)
    found = []
    for _ in range(series // FEWER):
        service_s = float(np.exp(random.uniform(np.log(0.005), np.log(0.05))))
        outside_s = service_s * float(random.uniform(0, 0.12))
        whole_s = service_s + outside_s
        expected = {level: min(level / whole_s, size / service_s) for level in LEVELS}
        steps = measured(random, expected, noise, outside_s / 2)
        plateau = plateau_of(curve_of(steps), steps)
        found.append(None if plateau is None else plateau.served)
    return tuple(found)


def wrong(size: int, noise: float, series: int) -> Figure:
    """Pools told by another whole number, or compared with sizes of which none is theirs; beside X R rounded."""
    seen = [one for one in pools(series, size, noise) if one is not None]
    missed = sum(one.known and not one.holds(size) for one in seen)
    rounded = 100 * sum(round(one.value) != size for one in seen) / max(len(seen), 1)
    return rate(missed, series // FEWER, rival=f"X R rounded {rounded:.0f}")


def told(size: int, noise: float, series: int) -> Figure:
    """Pools that things of their size are compared with."""
    seen = pools(series, size, noise)
    whole = 100 * sum(one is not None and one.whole == size for one in seen) / len(seen)
    right = sum(one is not None and one.holds(size) for one in seen)
    return rate(right, len(seen), 90.0, f"by its whole number {whole:.0f}")


for _size in (1, 3, 4, 6, 12):
    for _noise in (0.01, 0.04):
        _said = f"pool of {_size}, noise {100 * _noise:g} %"
        row(f"at once: {_said}, wrong", f"requests served at once, {_said}: told as another number", section=1, goal=5)(
            partial(wrong, _size, _noise)
        )
        row(
            f"at once: {_said}, told",
            f"requests served at once, {_said}: told with things of that size",
            section=1,
            goal=90,
            most=False,
        )(partial(told, _size, _noise))


@row("at once: no pool", "curves of the scalability law, which are no pool, told a number", section=1, goal=5)
def no_pool(series: int) -> Figure:
    """Contention of 10 to 50 %, from the second client on; beside X R rounded, which has a number for each plateau."""
    random, drawn = np.random.default_rng(52), series // FEWER
    named = flat = 0
    for _ in range(drawn):
        sigma = float(random.uniform(0.1, 0.5))
        expected = {level: 100 * level / (1 + sigma * (level - 1)) for level in LEVELS}
        steps = measured(random, expected, 0.02, 0.0005)
        plateau = plateau_of(curve_of(steps), steps)
        flat += plateau is not None
        named += plateau is not None and plateau.served is not None and plateau.served.known
    return rate(named, drawn, rival=f"X R rounded {100 * flat / drawn:.0f}")
