"""Samples averaged over intervals, a bounded list of such rows, and which leaks they cannot have told yet. Light: the
lasting process imports it."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadframe.analysis import kept
from loadframe.analysis.saturation import FEWEST_ROWS, FORESIGHT_OF_GROWTH, LONGEST_S, WORTH, Leak

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


SLOWER = "slower ones"
SLOW_S = LONGEST_S / FORESIGHT_OF_GROWTH
"""Watched so long, all leaks that end within LONGEST_S are judged."""


def unjudged(
    name: str,
    times_s: Sequence[float],
    use: float,
    ceiling: float | None,
    row_s: float,
    waits: tuple[Leak, float] | None,
) -> dict[str, Any] | None:
    """Of one metric, JSON-ready: `why`, `from_s` (of the clock of times_s, those of its rows; None: it will not be),
    `per_hour` (growth from which on it is judged by now; None: none is). use: now. waits: a leak that is seen and not
    told yet, and from when on. None where all is judged."""
    if ceiling is None:
        return {"metric": name, "why": "its end is not known", "from_s": None, "per_hour": None}
    if len(times_s) < FEWEST_ROWS:
        first_s = times_s[0] if times_s else None
        from_s = None if first_s is None else first_s + FEWEST_ROWS * row_s
        return {"metric": name, "why": "a few minutes are too few", "from_s": from_s, "per_hour": None}
    if waits is not None:
        grows, from_s = waits
        return {"metric": name, "why": "files may be rotated", "from_s": from_s,
                "per_hour": grows.slope * 3600}  # fmt: skip
    watched_s = times_s[-1] - times_s[0]
    if not 0 < watched_s < SLOW_S:
        return None
    slowest = max(WORTH * use / watched_s, (ceiling - use) / (FORESIGHT_OF_GROWTH * watched_s))
    return {"metric": name, "why": SLOWER, "from_s": times_s[0] + SLOW_S, "per_hour": slowest * 3600}


def in_words(found: Iterable[Mapping[str, Any]], names: Mapping[str, str], amount: Callable[[str, float], str]) -> str:
    """One sentence, or nothing. amount: words of a metric's value, by name and value; from_s of the wall clock."""
    said: dict[str, list[str]] = {}
    for one in found:
        name, per_hour = names[one["metric"]], one["per_hour"]
        if one["why"] == SLOWER:
            name = f"{name} by less than {amount(one['metric'], per_hour)} an hour"
        elif per_hour is not None:
            name = f"{name}, which grows by {amount(one['metric'], per_hour)} an hour and may be a log"
        when = "" if one["from_s"] is None else f"from {_moment(one['from_s'])} on"
        said.setdefault(when or f"no time can be named: {one['why']}", []).append(name)
    each = "; ".join(f"{', '.join(which)} ({when})" for when, which in said.items())
    return f"Leaks that cannot be judged yet: {each}" if each else ""


def _moment(at_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(min(at_s, 4e9)))
