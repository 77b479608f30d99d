"""Simulated curves for benchmarks/sceptic.py: the same curve on ladders of levels of other spacings, and a limit that
runs out at a known load."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import combinations

import numpy as np

from loadframe.analysis import queueing
from loadframe.analysis.curve import LevelSample, fit
from loadframe.diagnosis.windows import bend_of
from loadframe.model import Bend, LoadInterval, Step
from loadframe.study import parse
from simulated import step
from simulated_study import examined

SPACINGS = (1.5, 2.0, 3.0, 4.0)
"""Factors from level to level."""
HIGHEST = 512
NOISE = 0.02

Shape = Callable[[float], float]
SHAPES: Mapping[str, Shape] = {
    "a corner": lambda n: min(n / 30, 1),
    "a corner, then N^-0.5": lambda n: n / 30 if n < 30 else (n / 30) ** -0.5,
    "flat, then N^-0.6": lambda n: min(1, (n / 30) ** -0.6),
    "N / (N + 20)": lambda n: n / (n + 20),
    "1 - exp(-N / 20)": lambda n: 1 - math.exp(-n / 20),
    "scalability law": lambda n: 0.1 * n / (1 + 0.05 * (n - 1) + 0.001 * n * (n - 1)),
    "one queue": lambda n: float(queueing.throughputs([0.01], int(n), 0.3)[-1]) / 100,
}


def ladder(spacing: float) -> list[float]:
    """Whole levels from 1 to about HIGHEST."""
    count = round(math.log(HIGHEST) / math.log(spacing)) + 1
    return sorted({float(round(spacing**i)) for i in range(count)})


def knee(shape: Shape, spacing: float, random: np.random.Generator) -> LoadInterval | None:
    """Of the curve on a ladder, three blocks."""
    rows = [
        LevelSample(level, tuple(shape(level) * np.exp(random.normal(0, NOISE, 3))), ()) for level in ladder(spacing)
    ]
    return fit(rows, axis="n", treatment="A").knee


def apart(random: np.random.Generator) -> tuple[int, int]:
    """Of pairs of ladders that see a knee of the same curve: whose intervals do not meet; all."""
    wrong = pairs = 0
    for shape in SHAPES.values():
        seen = [found for spacing in SPACINGS if (found := knee(shape, spacing, random)) is not None]
        met = [one.low <= two.high and two.low <= one.high for one, two in combinations(seen, 2)]
        wrong, pairs = wrong + met.count(False), pairs + len(met)
    return wrong, pairs


# --- a limit that explains the bend ---

STUDY = """
[study]
name = "farm"
question = "?"
[target]
kind = "mariadb"
[workload]
kind = "render-farm"
[load]
axis = "active_jobs"
levels = [1, 2]
"""
CACHE = "mariadb.table_open_cache"
TABLES = 5
"""That a job keeps open."""


def told(random: np.random.Generator, spacing: float) -> tuple[float, LoadInterval | None, Bend | None]:
    """Where a table cache runs out; the knee of the curve alone; the bend as it is told."""
    at = math.exp(random.uniform(math.log(12), math.log(150)))
    steps = [_step(random, level, block, at) for level in ladder(spacing) if level <= 12 * at for block in (1, 2, 3)]
    found = examined(steps, parse(STUDY))
    return at, found.curve.knee, bend_of(found)


def acts(random: np.random.Generator, spacing: float) -> tuple[float, LoadInterval | None]:
    """Where a table cache with leftovers is too small; from where on it is told to act. From 4 jobs on, as
    cases/render-farm has it."""
    at, held = math.exp(random.uniform(math.log(12), math.log(150))), _leftovers(random)
    levels = [level for level in ladder(spacing) if 4 <= level <= 12 * at]
    steps = [_step(random, level, block, at, held()) for level in levels for block in (1, 2, 3)]
    first = next(iter(examined(steps, parse(STUDY)).findings), None)
    return at, first.reached_at if first is not None and first.id == CACHE else None


def _leftovers(random: np.random.Generator) -> Callable[[], float]:
    """Tables of jobs that have ended, and second copies: open until another table needs their place. 5 to 15 of them
    in each step of cases/render-farm, whatever the load."""
    usual = random.uniform(0, 15)
    return lambda: float(max(0.0, random.normal(usual, 3)))


def _step(random: np.random.Generator, level: float, block: int, at: float, held: float = 0.0) -> Step:
    """Throughput is flat up to that load, and beyond it falls with the share of tables that are not kept. held: tables
    that are open and are not asked for again; the cache drops them first."""
    missed = max(0.0, 1 - at / level)
    throughput = 9000 / (1 + 4 * missed) * float(np.exp(random.normal(0, NOISE)))
    ceiling = TABLES * at
    metrics = {
        "mariadb.open_tables": min(TABLES * level + held + random.normal(0, 2), ceiling),
        "mariadb.table_open_cache": ceiling,
        "mariadb.opened_tables": 1 + 4 * missed * throughput,
        "system.cpu.utilization": 0.5,
    }
    return step(level, throughput, metrics, number=block, block=block)
