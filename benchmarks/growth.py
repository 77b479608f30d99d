"""How often a cost that grows is seen, and one that only scatters or drifts is called so: python benchmarks/growth.py

Sweeps of simulated services in blocks of random order, whose truth is known. Beside it the rival that everyone has: a
correlation of the response time with the requests served so far, over all steps (p < 5 %), and the same within levels.
Ends with 1 where a goal is missed: at most 5 % false alarms under every noise, and 90 % of costs that double found.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from loadframe.analysis.growth import growth
from loadframe.experiments.growing_costs import PAUSE_SHARE

Numbers = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Numbers]

SWEEPS: Mapping[str, tuple[tuple[float, ...], int]] = {
    "3 levels, 3 blocks": ((1.0, 2.0, 4.0), 3),
    "5 levels, 3 blocks": ((1.0, 2.0, 4.0, 8.0, 16.0), 3),
    "5 levels, 6 blocks": ((1.0, 2.0, 4.0, 8.0, 16.0), 6),
}
SERIES = 300
STEP_S = 1.6
SERVICE_S = 0.004
MOST_FALSE, LEAST_FOUND = 5.0, 90.0


def white(deviation: float) -> Noise:
    return lambda random, count: random.normal(0, deviation, count)


def correlated(deviation: float, share: float) -> Noise:
    """AR(1)."""

    def draw(random: np.random.Generator, count: int) -> Numbers:
        noise = random.normal(0, deviation, count)
        for i in range(1, count):
            noise[i] = share * noise[i - 1] + math.sqrt(1 - share**2) * noise[i]
        return noise

    return draw


NOISES: Mapping[str, Noise] = {
    "white 2 %": white(0.02),
    "white 10 %": white(0.1),
    "AR(1) 0.8 of 5 %": correlated(0.05, 0.8),
    "walk of 2 % a step": lambda random, count: random.normal(0, 0.02, count).cumsum(),
    "walk of 5 % a step": lambda random, count: random.normal(0, 0.05, count).cumsum(),
    "drift of 10 % and 2 %": lambda random, count: np.linspace(0, 0.1, count) + random.normal(0, 0.02, count),
    "drift of 20 % and 5 %": lambda random, count: np.linspace(0, 0.2, count) + random.normal(0, 0.05, count),
    "a third slower, from half on": lambda random, count: (
        np.log(1.33) * (np.arange(count) >= random.integers(1, count)) + random.normal(0, 0.02, count)
    ),
}


class Sweep:
    """One simulated sweep. times: how many times a request costs at the end what it costs at first; by: "requests" or
    "time"; pauses: whether a pause and a block follow, as in the loop; mixed: whether half of the first cost does not
    grow, by chance. Whether one is served at a time is by chance, too."""

    def __init__(
        self,
        random: np.random.Generator,
        shape: str,
        noise: Noise,
        *,
        times: float = 1.0,
        by: str = "requests",
        mixed: bool = False,
        pauses: bool = False,
    ) -> None:
        levels, blocks = SWEEPS[shape]
        whole = blocks * len(levels)
        order = [float(level) for _ in range(blocks + pauses) for level in random.permutation(levels)]
        noises, serial = noise(random, len(order)), bool(random.integers(2))
        fixed = 0.5 * int(random.integers(2)) if mixed else 0.0
        total_s = STEP_S * whole
        # What the last step has seen, near enough, so that the cost there is `times` what it is at first.
        expected = total_s / SERVICE_S * (1.0 if serial else float(np.mean(levels))) / (1 + (times - 1) / 2)
        per = (times - 1) / (expected if by == "requests" else total_s)
        self.levels, self.costs, self.served, self.times_s = order, list[float](), list[float](), list[float]()
        done, now_s = 0.0, 0.0
        for place, (level, near) in enumerate(zip(order, noises, strict=True)):
            now_s += PAUSE_SHARE * total_s if place == whole else 0.0
            x = done if by == "requests" else now_s
            cost_s = SERVICE_S * (fixed + (1 - fixed) * (1 + per * x)) * (level if serial else 1.0) * math.exp(near)
            throughput = level / cost_s
            self.costs.append(cost_s)
            self.served.append(done + throughput * STEP_S / 2)
            self.times_s.append(now_s + STEP_S / 2)
            done, now_s = done + throughput * STEP_S, now_s + STEP_S

    def correlates(self) -> bool:
        """The rival: over all steps."""
        return bool(stats.pearsonr(self.served, self.costs).pvalue < 0.05)

    def correlates_within(self) -> bool:
        """The rival: less each level's mean."""
        costs, levels = np.log(self.costs), np.array(self.levels)
        for level in set(self.levels):
            costs[levels == level] -= costs[levels == level].mean()
        found = stats.pearsonr(self.served, costs)
        return bool(found.pvalue < 0.05 and found.statistic > 0)

    def found(self) -> str:
        """What is said: "requests" or "time", with "?" where the two are not told apart; "" for no growth."""
        said = growth(self.levels, self.costs, self.served, self.times_s)
        return "" if said is None else said.by + ("" if said.distinct else "?")


def false_alarms(series: int) -> bool:
    """Print the table; whether the goal is met."""
    print(f"{'false alarms, %':34} {'sweep':20} {'growth':>7} {'correlation':>12} {'within levels':>14}")
    met = True
    for name, noise in NOISES.items():
        for shape in SWEEPS:
            random = np.random.default_rng(1)
            sweeps = [Sweep(random, shape, noise) for _ in range(series)]
            ours, rival, within = (
                100 * sum(bool(say(one)) for one in sweeps) / series
                for say in (Sweep.found, Sweep.correlates, Sweep.correlates_within)
            )
            held = ours <= MOST_FALSE + 100 * 2 * math.sqrt(0.05 * 0.95 / series)
            met &= held
            print(f"{name:34} {shape:20} {ours:7.1f}{' ' if held else '!'} {rival:11.0f} {within:14.0f}", flush=True)
    return met


def power(series: int) -> bool:
    """Print the table; whether the goal is met."""
    print(f"\n{'growth found, %':34} {'sweep':20} {'found':>7} {'named right':>12} {'named wrong':>12}")
    met = True
    for by in ("requests", "time"):
        for times in (1.2, 1.5, 2.0, 4.0):
            for shape in SWEEPS:
                random = np.random.default_rng(2)
                said = [Sweep(random, shape, white(0.03), times=times, by=by).found() for _ in range(series)]
                found = 100 * sum(map(bool, said)) / series
                right, wrong = 100 * said.count(by) / series, 100 * sum(s in _OTHER[by] for s in said) / series
                held = times < 2 or found >= LEAST_FOUND
                met &= held
                what = f"x{times:g} with {by}, noise 3 %"
                print(
                    f"{what:34} {shape:20} {found:7.0f}{' ' if held else '!'} {right:11.0f} {wrong:12.1f}", flush=True
                )
    return met


def told_apart(series: int) -> bool:
    """Print the table: what is said after the sweep alone, and after a pause; whether the goal is met."""
    print(f"\n{'told apart, %':34} {'sweep':20} {'right':>7} {'wrong':>7} {'after a pause: right':>21} {'wrong':>7}")
    met = True
    for by in ("requests", "time"):
        for times in (2.0, 4.0):
            for shape in SWEEPS:
                row = []
                for pauses in (False, True):
                    random = np.random.default_rng(3)
                    drawn = [
                        Sweep(random, shape, white(0.03), times=times, by=by, mixed=True, pauses=pauses)
                        for _ in range(series)
                    ]
                    said = [one.found() for one in drawn]
                    row += [100 * said.count(by) / series, 100 * sum(s in _OTHER[by] for s in said) / series]
                held = row[3] <= MOST_FALSE
                met &= held
                what = f"x{times:g} with {by}, noise 3 %"
                shown = f"{row[0]:7.0f} {row[1]:7.1f} {row[2]:21.0f} {row[3]:7.1f}{' ' if held else '!'}"
                print(f"{what:34} {shape:20} {shown}", flush=True)
    return met


_OTHER = {"requests": ("time",), "time": ("requests",)}


def main() -> int:
    """Print the tables; 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--series", type=int, default=SERIES)
    series = parser.parse_args().series
    met = [false_alarms(series), power(series), told_apart(series)]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
