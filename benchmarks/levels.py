"""Verdicts at several levels that hold at once, from few blocks: python benchmarks/levels.py [--series N]

Log ratios without a true difference are drawn N times for each kind of noise (docs/mathematics.md, "Side by side"). A
row says how often any level was called different (%), and how wide the interval of the last level is (its median half,
as a factor), for three rules: each level by itself (Bonferroni), all levels' noise taken for equal (a pooled t), and
Loadframe's. The goal: at most 5 % of wrong answers. Ends with 1 where Loadframe's rule misses it by more than
chance.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping
from itertools import product
from statistics import median

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

from loadframe.analysis.comparison import at_each_level
from loadframe.analysis.sequential import NEIGHBOURS

Numbers = NDArray[np.float64]
Rule = Callable[[Numbers], list[tuple[float, float]]]
"""From log ratios, shape (levels, blocks), to the interval of each level."""

ERROR = 0.05
BLOCKS = (2, 3, 4)
SHARED = 0.4
KINDS = ("normal", "shared", "outliers", "reversed")
"""Shared: two fifths of the variance by all levels of a block. Reversed: a block and the next one, which has its order
reversed, are correlated by as much as AR(1) noise can do."""
LEVELS = {
    "3 levels, 1 to 4": [0.05, 0.1, 0.2],
    "4 alike": [0.1] * 4,
    "4, one five times": [0.05, 0.05, 0.05, 0.25],
    "4, two four times": [0.05, 0.05, 0.2, 0.2],
    "4, the last quiet": [0.25, 0.05, 0.05, 0.05],
    "7 alike": [0.1] * 7,
    "7, one four times": [0.06] * 6 + [0.25],
    "7, three loud": [0.06] * 4 + [0.2] * 3,
    "7 as measured": [0.113, 0.056, 0.079, 0.214, 0.054, 0.103, 0.056],
}
"""Standard deviations of a level's log ratios. As measured: the media cache's default profile, 2026-11-22."""


def drawn(random: np.random.Generator, noise: list[float], blocks: int, kind: str) -> Numbers:
    """Log ratios of one comparison, shape (levels, blocks)."""
    shape = (len(noise), blocks)
    values = random.standard_t(3, shape) / math.sqrt(3) if kind == "outliers" else random.standard_normal(shape)
    if kind == "reversed":
        values[:, 1] = NEIGHBOURS * values[:, 0] + math.sqrt(1 - NEIGHBOURS**2) * values[:, 1]
    if kind == "shared":
        values = math.sqrt(1 - SHARED) * values + math.sqrt(SHARED) * random.standard_normal(blocks)
    return values * np.array(noise)[:, None]


def around(table: Numbers, halves: Numbers) -> list[tuple[float, float]]:
    """Intervals of these halves around the levels' means."""
    return [(mean - half, mean + half) for mean, half in zip(table.mean(axis=1), halves, strict=True)]


def by_itself(table: Numbers) -> list[tuple[float, float]]:
    """Bonferroni."""
    levels, blocks = table.shape
    return around(table, t.ppf(1 - ERROR / levels / 2, blocks - 1) * table.std(axis=1, ddof=1) / math.sqrt(blocks))


def pooled(table: Numbers) -> list[tuple[float, float]]:
    """One variance for all levels."""
    levels, blocks = table.shape
    half = t.ppf(1 - ERROR / levels / 2, levels * (blocks - 1)) * math.sqrt(table.var(axis=1, ddof=1).mean() / blocks)
    return around(table, np.full(levels, half))


def loadframe(table: Numbers) -> list[tuple[float, float]]:
    """What an investigation does with its alternatives."""
    before = {float(level): [1.0] * table.shape[1] for level in range(len(table))}
    after = {float(level): list(np.exp(row)) for level, row in enumerate(table)}
    return [(math.log(one.low), math.log(one.high)) for one in at_each_level(before, after, error=ERROR)]


RULES: Mapping[str, Rule] = {"by itself": by_itself, "pooled": pooled, "Loadframe": loadframe}


def judged(rule: Rule, tables: list[Numbers]) -> tuple[float, float]:
    """Share of comparisons with a wrong answer at any level, and the factor of the last level's interval."""
    found = [rule(table) for table in tables]
    wrong = sum(any(low > 0 or high < 0 for low, high in one) for one in found) / len(found)
    return wrong, math.exp(median((one[-1][1] - one[-1][0]) / 2 for one in found))


def main() -> int:
    """Draw, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=4000, help="comparisons of each kind")
    series = parser.parse_args().series
    doubt = 3 * math.sqrt(ERROR * (1 - ERROR) / series)
    worst = 0.0
    print(f"{'blocks':>6}  {'levels':20} {'noise':9}" + "".join(f"{name:>20}" for name in RULES))
    for blocks, (title, noise), kind in product(BLOCKS, LEVELS.items(), KINDS):
        random = np.random.default_rng(blocks)
        tables = [drawn(random, noise, blocks, kind) for _ in range(series)]
        told = {name: judged(rule, tables) for name, rule in RULES.items()}
        worst = max(worst, told["Loadframe"][0])
        cells = "".join(f"{100 * wrong:9.1f} % {factor:8.3g}" for wrong, factor in told.values())
        print(f"{blocks:>6}  {title:20} {kind:9}{cells}", flush=True)
    print(f"at most {100 * worst:.1f} % wrong answers of Loadframe's (goal 5 %, doubt {100 * doubt:.1f})")
    return 0 if worst <= ERROR + doubt else 1


if __name__ == "__main__":
    sys.exit(main())
