"""Samples averaged over intervals, and a bounded list of such rows. Light: the lasting process imports it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadframe.analysis import kept

MOST_ROWS = 1024
LONGEST_STEP_S = 1200.0
"""1,024 rows of this are two weeks; what is older is left out."""


@dataclass(frozen=True, slots=True)
class Row:
    """The means of what was known in one interval, and its middle."""

    t_s: float
    means: Mapping[str, float]


class Gathering:
    """Gives a row for each interval of row_s in which anything was known, once the next one begins."""

    def __init__(self, row_s: float) -> None:
        self.row_s = row_s
        self._slot: float | None = None
        self._sums: dict[str, tuple[float, int]] = {}

    def take(self, t_s: float, known: Mapping[str, float | None]) -> Iterator[Row]:
        """The next sample; the row that it ends, if any."""
        slot = t_s // self.row_s
        if self._slot is not None and slot != self._slot and self._sums:
            yield Row((self._slot + 0.5) * self.row_s, {name: total / n for name, (total, n) in self._sums.items()})
            self._sums = {}
        self._slot = slot
        for name, value in known.items():
            if value is not None:
                total, count = self._sums.get(name, (0.0, 0))
                self._sums[name] = (total + value, count + 1)

    def clear(self) -> None:
        """Forget the row in progress."""
        self._slot, self._sums = None, {}


class Thinned:
    """Rows of several columns, at most MOST_ROWS: once there are as many, neighbours are averaged, and from then on
    rows come half as often."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        self.rows: list[tuple[float, list[float | None]]] = []
        self._step = 1
        self._waiting: list[tuple[float, list[float | None]]] = []

    @property
    def first_s(self) -> float:
        """The time of the first row; of none it is infinitely late."""
        rows = self.rows or self._waiting
        return rows[0][0] if rows else float("inf")

    def add(self, t_s: float, values: Sequence[float | None]) -> None:
        """A row."""
        self._waiting.append((t_s, list(values)))
        if len(self._waiting) < self._step:
            return
        self.rows.append(_mean(self._waiting))
        self._waiting = []
        if len(self.rows) < MOST_ROWS:
            return
        if (self.rows[-1][0] - self.rows[0][0]) / MOST_ROWS >= LONGEST_STEP_S:
            del self.rows[0]
        else:
            self.rows = [_mean(self.rows[at : at + 2]) for at in range(0, len(self.rows), 2)]
            self._step *= 2

    def clear(self) -> None:
        """Begin again."""
        self.rows, self._waiting, self._step = [], [], 1

    def as_json(self) -> dict[str, Any]:
        """For `of_json`."""
        return {"columns": list(self.columns), "rows": self.rows, "step": self._step}

    @classmethod
    def of_json(cls, data: Any, columns: Sequence[str]) -> "Thinned":
        """ValueError for what is none, or has other columns."""

        def values(row: Any) -> list[float | None]:
            found = kept.listed(row, lambda one: kept.optional(one, kept.number))
            if len(found) != len(columns):
                raise ValueError("a row has other columns")
            return found

        known = kept.fields(data, ("columns", "rows", "step"))
        if known["columns"] != list(columns):
            raise ValueError("it has other columns")
        found = cls(columns)
        found._step = kept.whole(known["step"], least=1)
        found.rows = kept.pairs(known["rows"], kept.number, values)
        return found


def _mean(rows: Sequence[tuple[float, list[float | None]]]) -> tuple[float, list[float | None]]:
    columns = []
    for at in range(len(rows[0][1])):
        known = [value for _, row in rows if (value := row[at]) is not None]
        columns.append(sum(known) / len(known) if known else None)
    return sum(t_s for t_s, _ in rows) / len(rows), columns
