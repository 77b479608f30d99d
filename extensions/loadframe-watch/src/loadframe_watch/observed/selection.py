"""The rows of production data that count (those with a load and any other value, in time order), and these as levels
and blocks of a curve (docs/observed.md, "Curve"). A bin's value in a block is the median of its rows there (a
throughput, a response time), or their mean (a use: the utilisation law is one of means), moved to the load of the level
along the curve's own slope."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from loadframe.analysis.arrays import Floats, Whole
from loadframe.errors import SampleError
from loadframe_watch.observed import blocks as in_blocks
from loadframe_watch.observed.blocks import Blocks
from loadframe_watch.observed.records import Observed

LONGER = "Export a longer range, in which the load is low and high at times."
FEWEST_CELLS = 4
MOST_CELLS = 12
"""Values of a level: more blocks are averaged, neighbours in time first."""
PER_DOUBLING, MOST_LEVELS = 4.0, 14
PER_DOUBLING_AHEAD, MOST_LEVELS_AHEAD = 2.0, 8
"""Levels of a forecast: about as far apart as on the curves that forecasts are calibrated on."""
FEW_LOADS = 20
"""Up to this many different loads, each seen often, are levels already."""
STEEPEST = 3.0
"""Steepest slope, in logarithms, for moving a value within its bin."""
LEAST_USE = 1e-9
TRIMMED = 0.05
"""Share of the rows at either end that is left out of a mean."""


@dataclass(frozen=True, slots=True)
class Level:
    """cells: by column, one for each of at most MOST_CELLS groups of blocks; NaN where no row has the column."""

    load: float
    cells: Mapping[str, Floats]

    def known(self, column: str) -> Floats:
        values = self.cells[column]
        return values[np.isfinite(values)]


def _bins(load: Floats, *, ahead: bool) -> Whole:
    different = np.unique(load)
    most = MOST_LEVELS_AHEAD if ahead else MOST_LEVELS
    if len(different) <= (most if ahead else FEW_LOADS) and len(load) >= 5 * len(different):
        return np.searchsorted(different, load)
    low, high = float(np.quantile(load, 0.005)), float(load.max())
    doublings = np.log2(high / low) if low < high else 0.0
    count = int(np.clip(round((PER_DOUBLING_AHEAD if ahead else PER_DOUBLING) * doublings), 4, most))
    edges = np.geomspace(low, high, count + 1)[1:-1] if low < high else np.array([])
    return np.searchsorted(edges, load, side="right")


def _merged(bins: Whole, load: Floats, label: Whole) -> Whole:
    """Bins that too few blocks visited are joined with the next lower one, the lowest with the next higher one."""
    bins = bins.copy()
    while True:
        numbers = np.unique(bins)
        if len(numbers) < 2:
            return bins
        visits = np.array([len(np.unique(label[bins == number])) for number in numbers])
        few = np.flatnonzero(visits < FEWEST_CELLS)
        if not len(few):
            return bins
        at = int(few[-1])
        bins[bins == numbers[at]] = numbers[at - 1] if at else numbers[1]


def _at_centre(values: Floats, load: Floats, bins: Whole, numbers: Whole, centre: Floats, column: str) -> Floats:
    """Moved to the loads of their levels, along the slope between the neighbouring levels."""
    middle = np.array([_middle(values[bins == number], column) for number in numbers])
    place = np.searchsorted(numbers, bins)
    if len(numbers) < 2:
        return values
    slope = np.gradient(np.log(np.maximum(middle, LEAST_USE)), np.log(centre))
    slope = np.clip(np.where(np.isfinite(slope), slope, 0.0), -STEEPEST, STEEPEST)
    return np.asarray(values * np.exp(-slope[place] * np.log(load / centre[place])))


def _middle(values: Floats, column: str) -> float:
    known = values[np.isfinite(values)]
    if not len(known):
        return float("nan")
    if not column.startswith("use."):
        return float(np.median(known))
    cut = int(TRIMMED * len(known))
    return float(np.sort(known)[cut : len(known) - cut].mean())


FEWEST_ROWS = 40
"""Used rows. Fewer are a handful of measurements, which `curve` accepts as such if they have levels."""
LEAST_RANGE = 1.3
"""The load must vary by this factor (its 1st to 99th percentile), or its effect cannot be determined."""
MOST_ZERO = 0.5
"""Share of the rows with a load; with more zeros the median of a level is 0."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Those that count. columns: "throughput", "response" and `use_of` each resource."""

    time_s: Floats
    load: Floats
    columns: dict[str, Floats]

    @classmethod
    def of(cls, observed: Observed) -> "Rows":
        given = {"throughput": observed.throughput, "response": observed.response_s}
        given |= {use_of(name): shares for name, shares in observed.use.items()}
        columns = {name: np.array(values, dtype=np.float64) for name, values in given.items() if values is not None}
        rows = cls(np.array(observed.time_s, dtype=np.float64), np.array(observed.load, dtype=np.float64), columns)
        rows = rows.at(np.argsort(rows.time_s, kind="stable"))
        anything = np.zeros(len(rows.load), dtype=np.bool_)
        for values in rows.columns.values():
            anything |= np.isfinite(values)
        return rows.at(np.flatnonzero(np.isfinite(rows.load) & (rows.load >= 0) & anything))

    def at(self, indices: np.ndarray) -> "Rows":
        picked = {name: values[indices] for name, values in self.columns.items()}
        return Rows(self.time_s[indices], self.load[indices], picked)

    def counted(self) -> "tuple[Rows, list[str]]":
        """The rows without a throughput that is 0 in most rows with a load, as medians would then be 0; and a note on
        that."""
        served = self.columns.get("throughput")
        if served is None:
            return self, []
        known = np.isfinite(served) & (self.load > 0)
        share = float((served[known] == 0).mean()) if known.any() else 0.0
        if share <= MOST_ZERO:
            return self, []
        often = "all rows" if share == 1 else f"{100 * share:.0f} % of the rows"
        columns = {name: values for name, values in self.columns.items() if name != "throughput"}
        note = f"The throughput is 0 in {often} with a load: hardly anything is counted, and it was left out."
        return replace(self, columns=columns), [note]

    def check(self, observed: Observed) -> None:
        """SampleError where nothing can be learnt from them."""
        above, why = self.load[self.load > 0], ""
        low, high = np.quantile(above, (0.01, 0.99)).tolist() if len(above) else (0.0, 0.0)
        if not self.columns:
            why = "there is a load, and nothing else: no throughput, no response time, no use"
        elif len(self.load) < FEWEST_ROWS:
            why = f"{len(self.load)} of {len(observed.time_s)} rows have a load and anything else; at least "
            why += f"{FEWEST_ROWS} are needed"
        elif not len(above):
            why = "every load is 0"
        elif high < LEAST_RANGE * low:
            why = f"the load hardly varies: 98 % of the rows lie from {low:g} to {high:g}, less than a factor of "
            why += f"{LEAST_RANGE:g}"
        if why:
            raise SampleError(f"{observed.name} says too little: {why}", remedy=LONGER)

    def without(self, residuals: list[Floats]) -> "Rows":
        columns = {
            name: np.where(np.abs(away) > in_blocks.FAR, np.nan, values)
            for (name, values), away in zip(self.columns.items(), residuals, strict=True)
        }
        return replace(self, columns=columns)

    def relations(self) -> dict[str, Floats]:
        return {named(name): values for name, values in self.columns.items()}

    def levels(self, blocks: Blocks, *, ahead: bool = False) -> tuple[Level, ...]:
        """The rows as levels, ascending. ahead: only as many as a forecast needs. Rows without a positive load are left
        out."""
        there = np.isfinite(self.load) & (self.load > 0)
        load, label = self.load[there], blocks.label[there]
        if not len(load):
            return ()
        bins = _merged(_bins(load, ahead=ahead), load, label)
        numbers = np.unique(bins)
        centre = np.array([np.exp(np.log(load[bins == number]).mean()) for number in numbers])
        moved = {
            name: _at_centre(values[there], load, bins, numbers, centre, name) for name, values in self.columns.items()
        }
        level_rows = []
        for index, number in enumerate(numbers):
            mine = bins == number
            in_level, place = np.unique(label[mine], return_inverse=True)
            groups = place * min(len(in_level), MOST_CELLS) // len(in_level)  # of neighbouring blocks
            cells = {
                name: np.array([_middle(values[mine][groups == group], name) for group in np.unique(groups)])
                for name, values in moved.items()
            }
            # a mean of many: known to no more digits
            level_rows.append(Level(float(f"{float(centre[index]):.4g}"), cells))
        return tuple(level_rows)


def use_of(name: str) -> str:
    return f"use.{name}"


def named(column: str) -> str:
    return f"the use of {column.removeprefix('use.')}" if column.startswith("use.") else f"the {column}"
