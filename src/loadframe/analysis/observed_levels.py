"""Rows in time order as a curve's levels and blocks: bins of the load, each with a value for every block of time that
visited it, so that what is known of measured curves (curve.py, prediction/) holds for observed ones.

A bin's value in a block is the median of its rows there (a throughput, a response time), or their mean (a use: the
utilisation law is one of means), moved to the load of the level along the curve's own slope. Bins that fewer than
FEWEST_CELLS blocks visited are joined with the next lower one: the highest loads are the rarest, and the only ones that
tell what comes next.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from loadframe.analysis.observed_blocks import Floats, Whole
from loadframe.model import Observation, Observations

FEWEST_CELLS = 4
MOST_CELLS = 12
"""Values of a level: more blocks are averaged, neighbours in time first."""

PER_DOUBLING, MOST_LEVELS = 4.0, 14
"""Levels of a curve."""

PER_DOUBLING_AHEAD, MOST_LEVELS_AHEAD = 2.0, 8
"""Levels of a forecast: those of the curves that forecasts are calibrated on lie about as far apart."""

FEW_LOADS = 20
"""As many different loads, each seen often, are levels already."""

STEEPEST = 3.0
"""No slope of a curve, in logarithms, is taken to be steeper when a value is moved within its bin."""

LEAST_USE = 1e-9


@dataclass(frozen=True, slots=True)
class Level:
    """cells: one for each of at most MOST_CELLS groups of blocks, by column; NaN where none of the group's rows has
    it."""

    load: float
    cells: Mapping[str, Floats]

    def known(self, column: str) -> Floats:
        """The cells of a column that are there."""
        values = self.cells[column]
        return values[np.isfinite(values)]


def levels(
    load: Floats, columns: Mapping[str, Floats], label: Whole, *, ahead: bool = False, by_mean: frozenset[str]
) -> tuple[Level, ...]:
    """The levels, ascending. load, label and each column: (n,). ahead: as few as a forecast takes. by_mean: columns
    whose cells are means. Rows without load, or with none, are left out."""
    there = np.isfinite(load) & (load > 0)
    load, label = load[there], label[there]
    columns = {name: values[there] for name, values in columns.items()}
    if not len(load):
        return ()
    bins = _merged(_bins(load, ahead=ahead), load, label)
    numbers = np.unique(bins)
    centre = np.array([np.exp(np.log(load[bins == one]).mean()) for one in numbers])
    found = []
    moved = {name: _at_centre(values, load, bins, numbers, centre, name in by_mean) for name, values in columns.items()}
    for index, one in enumerate(numbers):
        mine = bins == one
        groups = _groups(label[mine])
        cells = {
            name: np.array([_middle(values[mine][groups == group], name in by_mean) for group in np.unique(groups)])
            for name, values in moved.items()
        }
        found.append(Level(float(f"{float(centre[index]):.4g}"), cells))  # a mean of many: no more is known of it
    return tuple(found)


def observations(
    found: tuple[Level, ...], name: str, axis: str, resources: Mapping[str, str], servers: Mapping[str, float]
) -> Observations:
    """The levels' cells as what a forecast takes; cells without a throughput, or without a resource's use, are left
    out. resources: by name the column; the column "response" becomes the p95 latency."""
    rows = []
    for level in found:
        for at, throughput in enumerate(level.cells["throughput"]):
            uses = {one: float(level.cells[column][at]) for one, column in resources.items()}
            if not np.isfinite([throughput, *uses.values()]).all():
                continue
            slow = float(level.cells["response"][at]) if "response" in level.cells else np.nan
            held = {one: float(np.clip(use, 0.0, 1.0)) for one, use in uses.items()}
            p95_ms = 1000 * slow if np.isfinite(slow) else None
            rows.append(Observation(level.load, float(throughput), p95_ms, utilizations=held))
    return Observations(name, tuple(rows), axis=axis, servers={one: servers.get(one, 1.0) for one in resources})


def _bins(load: Floats, *, ahead: bool) -> Whole:
    """The bin of each row: of the few different loads each its own, else of equal width in logarithms."""
    different = np.unique(load)
    most = MOST_LEVELS_AHEAD if ahead else MOST_LEVELS
    if len(different) <= min(FEW_LOADS, most if ahead else FEW_LOADS) and len(load) >= 5 * len(different):
        return np.searchsorted(different, load)
    low, high = float(np.quantile(load, 0.005)), float(load.max())
    doublings = np.log2(high / low) if low < high else 0.0
    count = int(np.clip(round((PER_DOUBLING_AHEAD if ahead else PER_DOUBLING) * doublings), 4, most))
    edges = np.geomspace(low, high, count + 1)[1:-1] if low < high else np.array([])
    return np.searchsorted(edges, load, side="right")


def _merged(bins: Whole, load: Floats, label: Whole) -> Whole:
    """The same with those that too few blocks visited joined with a neighbour: the next lower one, of the lowest the
    next higher one."""
    bins = bins.copy()
    while True:
        numbers = np.unique(bins)
        if len(numbers) < 2:
            return bins
        visits = np.array([len(np.unique(label[bins == one])) for one in numbers])
        few = np.flatnonzero(visits < FEWEST_CELLS)
        if not len(few):
            return bins
        at = int(few[-1])
        bins[bins == numbers[at]] = numbers[at - 1] if at else numbers[1]


def _at_centre(values: Floats, load: Floats, bins: Whole, numbers: Whole, centre: Floats, by_mean: bool) -> Floats:
    """The values moved to the loads of their levels, along the slope between the neighbouring levels."""
    middle = np.array([_middle(values[bins == one], by_mean) for one in numbers])
    place, off = np.searchsorted(numbers, bins), np.zeros(len(load))
    off = np.log(load / centre[place])
    if len(numbers) < 2:
        return values
    logs = np.log(np.maximum(middle, LEAST_USE))
    slope = np.gradient(logs, np.log(centre)) if len(numbers) > 1 else np.zeros(1)
    slope = np.clip(np.where(np.isfinite(slope), slope, 0.0), -STEEPEST, STEEPEST)
    return np.asarray(values * np.exp(-slope[place] * off))


def _groups(label: Whole) -> Whole:
    """Of each row which of at most MOST_CELLS groups of its level's blocks it belongs to, in time order."""
    _, place = np.unique(label, return_inverse=True)
    count = int(place.max()) + 1
    return place * min(count, MOST_CELLS) // count


def _middle(values: Floats, by_mean: bool) -> float:
    known = values[np.isfinite(values)]
    if not len(known):
        return float("nan")
    return _trimmed_mean(known) if by_mean else float(np.median(known))


def _trimmed_mean(values: Floats, share: float = 0.05) -> float:
    """Without the highest and the lowest twentieth."""
    cut = int(share * len(values))
    return float(np.sort(values)[cut : len(values) - cut].mean())
