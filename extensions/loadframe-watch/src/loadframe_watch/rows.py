"""Averages of samples over intervals, and the leaks that they cannot show yet. Light imports only."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadframe_watch import kept
from loadframe_watch.leaks import FEWEST_ROWS, FORESIGHT_OF_GROWTH, LONGEST_S, WORTH, Leak

MOST_ROWS = 1024
LONGEST_STEP_S = 1200.0
"""1,024 rows of this are two weeks; older ones are dropped."""


@dataclass(frozen=True, slots=True)
class Row:
    """The means of one interval, and its middle."""

    t_s: float
    means: Mapping[str, float]


class Gathering:
    """Gives a row for each interval of row_s in which anything was known, once the next one begins."""

    def __init__(self, row_s: float) -> None:
        self.row_s = row_s
        self._slot: float | None = None
        self._sums: dict[str, tuple[float, int]] = {}

    def take(self, t_s: float, known: Mapping[str, float | None]) -> Iterator[Row]:
        """Take the next sample; yields the row that it ends, if any."""
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
        """Drop the row in progress."""
        self._slot, self._sums = None, {}


class Thinned:
    """At most MOST_ROWS rows of several columns: once full, neighbours are averaged, and rows come half as often."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        self.rows: list[tuple[float, list[float | None]]] = []
        self._step = 1
        self._waiting: list[tuple[float, list[float | None]]] = []

    @property
    def first_s(self) -> float:
        """The time of the first row; infinite where there is none."""
        rows = self.rows or self._waiting
        return rows[0][0] if rows else float("inf")

    def add(self, t_s: float, values: Sequence[float | None]) -> None:
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
        self.rows, self._waiting, self._step = [], [], 1

    def as_json(self) -> dict[str, Any]:
        return {"columns": list(self.columns), "rows": self.rows, "step": self._step}

    @classmethod
    def of_json(cls, data: Any, columns: Sequence[str]) -> "Thinned":
        """ValueError for invalid data, or other columns."""

        def values(row: Any) -> list[float | None]:
            numbers = kept.listed(row, lambda value: kept.optional(value, kept.number))
            if len(numbers) != len(columns):
                raise ValueError("a row has other columns")
            return numbers

        known = kept.fields(data, ("columns", "rows", "step"))
        if known["columns"] != list(columns):
            raise ValueError("it has other columns")
        thinned = cls(columns)
        thinned._step = kept.whole(known["step"], least=1)
        thinned.rows = kept.pairs(known["rows"], kept.number, values)
        return thinned


def _mean(rows: Sequence[tuple[float, list[float | None]]]) -> tuple[float, list[float | None]]:
    columns = []
    for at in range(len(rows[0][1])):
        known = [value for _, row in rows if (value := row[at]) is not None]
        columns.append(sum(known) / len(known) if known else None)
    return sum(t_s for t_s, _ in rows) / len(rows), columns


SLOWER, FROM = "slower ones", "from %Y-%m-%d %H:%M UTC on"
SLOW_S = LONGEST_S / FORESIGHT_OF_GROWTH
"""After this time all leaks that end within LONGEST_S are judged."""


def unjudged(
    name: str,
    times_s: Sequence[float],
    use: float,
    ceiling: float | None,
    row_s: float,
    waits: tuple[Leak, float] | None,
) -> dict[str, Any] | None:
    """Which leaks of a metric cannot be judged yet, JSON-ready, else None. `from_s`: from when on, by times_s (None:
    never); `per_hour`: growth that can be judged already. waits: a leak that is seen, and when it will be reported."""
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


def in_words(leaks: Iterable[Mapping[str, Any]], names: Mapping[str, str], amount: Callable[[str, float], str]) -> str:
    """One sentence, or "". amount: a metric's value in words, by name and value; from_s: by the wall clock."""
    said: dict[str, list[str]] = {}
    for leak in leaks:
        name, per_hour = names[leak["metric"]], leak["per_hour"]
        if leak["why"] == SLOWER:
            name = f"{name} by less than {amount(leak['metric'], per_hour)} an hour"
        elif per_hour is not None:
            name = f"{name}, which grows by {amount(leak['metric'], per_hour)} an hour and may be a log"
        when = "" if leak["from_s"] is None else time.strftime(FROM, time.gmtime(min(leak["from_s"], 4e9)))
        said.setdefault(when or f"no time can be named: {leak['why']}", []).append(name)
    text = "; ".join(f"{', '.join(which)} ({when})" for when, which in said.items())
    return f"Leaks that cannot be judged yet: {text}" if text else ""
