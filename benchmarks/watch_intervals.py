"""How often the interval of a limit's load holds, by how long was watched: python benchmarks/watch_intervals.py
    [--seed N] [--watches N] [--every SECONDS]

The use of a limit follows a load with a daily cycle, and is full at 250; what is on top of it lasts for so many hours
(an autoregression), alone or behind noise from row to row, added or as a share of the use. Of each watch: whether the
limit is told, and whether the interval of 95 % has 250 in it. A limit may be told later; one that is told must hold.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from loadframe.model import LoadInterval
from loadframe_watch.saturation_of_rows import of_rows

FULL = 250.0
DAYS = (0.25, 0.5, 1.0, 2.0, 3.0, 7.0)
HOURS = (0.0, 0.25, 0.8, 2.7, 8.0)
GOAL, FROM_DAYS = 0.9, 1.0
"""Of all that were told after so many days or more, together."""
Floats = NDArray[np.float64]
Shape = Callable[[Floats, Floats, Floats], Floats]
SHAPES: dict[str, Shape] = {
    "added": lambda load, lasting, noise: load / FULL + 0.02 * lasting,
    "behind noise": lambda load, lasting, noise: load / FULL + 0.01 * lasting + 0.02 * noise,
    "a share": lambda load, lasting, noise: load / FULL * np.exp(0.05 * lasting),
}
"""From the load, what lasts and what does not, both of deviation 1."""


def watch(shape: str, hours: float, days: float, every_s: float, seed: int) -> LoadInterval | None:
    """One watch: what is told of the limit."""
    draw = np.random.default_rng([seed, round(100 * hours), round(100 * days)])
    count, stays = int(days * 86400 / every_s), math.exp(-every_s / 3600 / hours) if hours else 0.0
    day = np.arange(count) * every_s / 86400 + draw.random()
    load = 100 * (0.55 - 0.45 * np.cos(2 * np.pi * day)) * np.exp(draw.normal(0, 0.05, count))
    lasting = draw.normal(size=count)
    for at in range(1, count):
        lasting[at] = stays * lasting[at - 1] + math.sqrt(1 - stays**2) * lasting[at]
    use = SHAPES[shape](load, lasting, draw.normal(size=count))
    return of_rows(load, use).at


def main() -> int:
    """Simulate, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--watches", type=int, default=100, help="of each kind")
    parser.add_argument("--every", type=float, default=300.0, help="seconds between rows")
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.watches)
    all_told = all_held = 0
    print("held of told (the middle width, as a share of the load)")
    for shape in SHAPES:
        for hours in HOURS:
            cells = []
            for days in DAYS:
                found = [watch(shape, hours, days, arguments.every, seed) for seed in seeds]
                told = [one for one in found if one is not None]
                held = sum(one.low <= FULL <= one.high for one in told)
                if days >= FROM_DAYS:
                    all_told, all_held = all_told + len(told), all_held + held
                width = statistics.median((one.high - one.low) / FULL for one in told) if told else math.nan
                cells.append(f"{days:g} d: {held}/{len(told)} ({width:.2f})")
            print(f"  {shape:12} {hours:4g} h  " + " | ".join(cells), flush=True)
    met = all_held >= GOAL * all_told
    print(f"after a day or more: {all_held} of {all_told} that were told hold: {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
