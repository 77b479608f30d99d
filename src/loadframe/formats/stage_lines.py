"""Statistics that a pipeline prints of its stages and of a change log that it follows: lines of JSON, and the STATS
lines in the log of RobinHood.

docs/pipelines.md has the fields. A line that is neither is another line of a log and is passed over; one that is meant
to be one and cannot be is counted with its reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from loadframe.formats.json_text import JsonError, parse_json
from loadframe.formats.robinhood_stats import RobinHood, UnreadableStatsError
from loadframe.formats.said import words

STAGE, LOG = "stage", "log"
LONGEST_LINE = 16 << 10
"""Bytes of a line that is read; one of statistics has 300."""
LARGEST = 2.0**53
"""A number above this is no count: a float no longer holds each of them."""
SUMMED = ("done", "entries", "busy_s", "idle_s", "blocked_s", "server_s", "read", "applied")
"""Fields that only grow, from the start of their process."""
OF_STAGES = frozenset(
    {"order", "waiting", "current", "ms_per_op", "batch", "idle", "workers", "queue", "pool_idle"}
    | {"done", "entries", "busy_s", "idle_s", "blocked_s", "server_s"}
)
OF_LOGS = frozenset({"read", "applied", "pending", "lag_s", "follow"})
_OF_ANY = frozenset({STAGE, "time", "process", "ended"})
"""Of a line of a stage, beside what it tells: other programs call something else a stage (production)."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}", re.ASCII)
_MEANT = (b'"stage"', b'"log"')
MARKS = (*_MEANT, b"STATS")
"""What a line of statistics has one of."""
_OTHER = re.compile(r"[^A-Za-z0-9_-]+", re.ASCII)


class StageLineError(ValueError):
    """Why a line of statistics cannot be one, in words."""


@dataclass(frozen=True, slots=True)
class StageLine:
    """What one line says. kind: STAGE or LOG. process: who says it, where several print lines of the same stage.
    at_s: CLOCK_MONOTONIC, None where the line has no time. values: by field, at or above 0. ended: it is the last line
    of its process: what only grows stays, what is now is over."""

    kind: str
    name: str
    process: str
    at_s: float | None
    values: Mapping[str, float]
    ended: bool = False


@dataclass
class StageLines:
    """A file of lines that grows, read piece by piece. strange: lines that were meant and cannot be read, by reason."""

    strange: Counter[str] = field(default_factory=Counter)
    read: int = 0
    _rest: bytes = b""
    _skips: bool = False
    _robinhood: RobinHood = field(default_factory=RobinHood)

    @classmethod
    def of(cls, pieces: Iterable[bytes | None]) -> StageLines:
        """To read a file that has these pieces, None where it begins again. RobinHood's totals mean one thing or
        another, which only several reports show."""
        scout = cls()
        for piece in pieces:
            if piece is None:
                scout.restart()
            elif b"STATS" in piece or scout._rest:
                for _ in scout.feed(piece):
                    pass
        return cls(_robinhood=RobinHood(of_periods=not scout._robinhood.since_start))

    def feed(self, piece: bytes) -> Iterator[StageLine]:
        """The lines that end in a piece. One longer than LONGEST_LINE is passed over."""
        whole, newline, rest = (self._rest + piece).rpartition(b"\n")
        if newline:
            for number, line in enumerate(whole.split(b"\n")):
                if number == 0 and self._skips:
                    continue
                if len(line) <= LONGEST_LINE:
                    yield from self._line(line)
                else:
                    self._too_long(line)
            self._skips = False
        if len(rest) > LONGEST_LINE:
            if not self._skips:
                self._too_long(rest)
            self._skips, rest = True, b""
        self._rest = rest

    def restart(self) -> None:
        """The file begins again: the half line that was there has no other half."""
        self._rest, self._skips = b"", False

    def _too_long(self, line: bytes) -> None:
        """It is counted where it begins as one of statistics."""
        if any(word in line[:LONGEST_LINE] for word in _MEANT):
            self.strange[f"it has more than {LONGEST_LINE >> 10} KiB"] += 1

    def _line(self, line: bytes) -> Iterator[StageLine]:
        try:
            found = self._told(line)
        except StageLineError as error:
            self.strange[str(error)] += 1
            return
        self.read += len(found)
        yield from found

    def _told(self, line: bytes) -> list[StageLine]:
        if b"STATS" in line and not line.lstrip().startswith(b"{"):
            try:
                rows = self._robinhood.read(line.decode("utf-8", "replace"))
            except UnreadableStatsError as error:
                raise StageLineError(str(error)) from error
            if any(value > LARGEST for row in rows for value in row.values.values()):
                raise StageLineError("a number is above 2^53")
            if rows or b"{" not in line:
                return [StageLine(row.kind, row.name, "", None, row.values) for row in rows]
        one = parse_stage_line(line)
        return [] if one is None else [one]


def parse_stage_line(line: bytes) -> StageLine | None:
    """The statistics in one line, whatever a logger or a container puts before or behind them; None for a line of
    something else. StageLineError for one that cannot be."""
    text = line.strip()
    if b"{" not in text or not any(word in text for word in _MEANT):
        return None
    try:
        found = _object_in(text)
    except JsonError as error:
        if not text.startswith(b"{"):
            return None
        raise StageLineError(f"it is no JSON: {words(error, 80)}") from error
    kind = next((word for word in (STAGE, LOG) if isinstance(found, dict) and isinstance(found.get(word), str)), None)
    if kind is None:
        return None
    known = OF_STAGES if kind == STAGE else OF_LOGS
    if known.isdisjoint(found) and (kind == LOG or not _OF_ANY.issuperset(found)):
        return None  # a log of another program in JSON
    values = {name: _number(name, found[name]) for name in sorted(known & found.keys()) if found[name] is not None}
    if not values:
        raise StageLineError(f"it has none of {', '.join(sorted(known))}")
    at_s = None if found.get("time") is None else _number("time", found["time"])
    ended = found.get("ended", False)
    if not isinstance(ended, bool):
        raise StageLineError("ended is neither true nor false")
    return StageLine(kind, _name(found[kind]), _process(found.get("process", "")), at_s, values, ended)


def _object_in(text: bytes) -> Any:
    """The object of a line: from its first brace on, or from the one before the word that marks it, where a logger has
    braces of its own. JsonError where neither is one."""
    end = text.rfind(b"}") + 1
    marked = min(place for word in _MEANT if (place := text.find(word)) >= 0)
    try:
        return parse_json(text[text.find(b"{") : end or None])
    except JsonError:
        nearest = text.rfind(b"{", 0, marked)
        if nearest <= text.find(b"{"):
            raise
        return parse_json(text[nearest : end or None])


def _name(text: str) -> str:
    name = _OTHER.sub("_", text.strip())
    if _NAME.fullmatch(name) is None:
        raise StageLineError("its name does not begin with a letter, or has more than 40 characters")
    return name


def _process(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise StageLineError("process is neither a word nor a whole number")
    return words(value, 40)


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise StageLineError(f"{name} is no number")
    if not 0 <= value <= LARGEST:
        raise StageLineError(f"{name} is below 0 or above 2^53")
    return float(value)
