"""The rows of production data that count: those with a load and anything beside it, in time order."""

import numpy as np

from loadframe.analysis import observed_blocks as in_blocks
from loadframe.analysis import observed_levels
from loadframe.analysis.observed_blocks import Blocks, Floats
from loadframe.analysis.observed_levels import Level
from loadframe.model import Observed

FEWEST_ROWS = 40
"""Used rows. Fewer are a handful of measurements: `curve` takes them as such, if they have levels."""

LEAST_RANGE = 1.3
"""The load must vary by this factor (its 1st to 99th percentile) or nothing can be told of what it does."""

MOST_ZERO = 0.5
"""Of the rows with a load: with more of them the middle of a level is 0."""


class TooLittleError(ValueError):
    """What is missing, in words."""


class Rows:
    """The used rows: those with a load and anything beside it, in time order."""

    def __init__(self, time_s: Floats, load: Floats, columns: dict[str, Floats], uses: frozenset[str]) -> None:
        self.time_s, self.load, self.columns, self.uses = time_s, load, columns, uses

    @classmethod
    def of(cls, observed: Observed) -> "Rows":
        """From the record; throughput and response under these names, each resource under its own."""
        columns: dict[str, Floats] = {}
        if observed.throughput is not None:
            columns["throughput"] = np.array(observed.throughput, dtype=np.float64)
        if observed.response_s is not None:
            columns["response"] = np.array(observed.response_s, dtype=np.float64)
        columns |= {use_of(name): np.array(values, dtype=np.float64) for name, values in observed.use.items()}
        time_s, load = np.array(observed.time_s, dtype=np.float64), np.array(observed.load, dtype=np.float64)
        order = np.argsort(time_s, kind="stable")
        rows = cls(time_s, load, columns, frozenset(use_of(name) for name in observed.use)).at(order)
        anything = np.zeros(len(rows.load), dtype=np.bool_)
        for values in rows.columns.values():
            anything |= np.isfinite(values)
        return rows.at(np.flatnonzero(np.isfinite(rows.load) & (rows.load >= 0) & anything))

    def at(self, indices: np.ndarray) -> "Rows":
        """Some of them."""
        picked = {name: values[indices] for name, values in self.columns.items()}
        return Rows(self.time_s[indices], self.load[indices], picked, self.uses)

    def counted(self) -> "tuple[Rows, list[str]]":
        """Without a throughput that is 0 in most rows that have a load: a level's middle would be 0, whatever is
        served."""
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
        return Rows(self.time_s, self.load, columns, self.uses), [note]

    def check(self, observed: Observed) -> None:
        """TooLittleError where nothing can be learnt from them."""
        if not self.columns:
            raise TooLittleError("there is a load, and nothing beside it: no throughput, no response time, no use")
        if len(self.load) < FEWEST_ROWS:
            raise TooLittleError(
                f"{len(self.load)} of {len(observed.time_s)} rows have a load and anything beside it; at least "
                f"{FEWEST_ROWS} are needed"
            )
        above = self.load[self.load > 0]
        if not len(above):
            raise TooLittleError("every load is 0")
        low, high = (float(end) for end in np.quantile(above, (0.01, 0.99)))
        if high < LEAST_RANGE * low:
            raise TooLittleError(
                f"the load hardly varies: 98 % of the rows lie from {low:g} to {high:g}, less than a factor of "
                f"{LEAST_RANGE:g}"
            )

    def without(self, residuals: list[Floats]) -> "Rows":
        """Outliers as missing cells."""
        columns = {
            name: np.where(np.abs(away) > in_blocks.FAR, np.nan, values)
            for (name, values), away in zip(self.columns.items(), residuals, strict=True)
        }
        return Rows(self.time_s, self.load, columns, self.uses)

    def relations(self) -> dict[str, Floats]:
        """The columns that a change of the system shows in, as words name them."""
        return {named(name): values for name, values in self.columns.items()}

    def levels(self, blocks: Blocks, *, ahead: bool = False) -> tuple[Level, ...]:
        """As levels and blocks of a curve."""
        return observed_levels.levels(self.load, self.columns, blocks.label, ahead=ahead, by_mean=self.uses)


def use_of(name: str) -> str:
    """The column that has the use of a resource."""
    return f"use.{name}"


def named(column: str) -> str:
    """A column, in words."""
    return f"the use of {column.removeprefix('use.')}" if column.startswith("use.") else f"the {column}"
