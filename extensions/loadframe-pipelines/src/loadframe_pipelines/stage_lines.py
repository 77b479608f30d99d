"""Statistics that a pipeline prints about its stages and about a change log that it follows: lines of JSON, and the
STATS lines in the log of RobinHood 2.4 to 3, a policy engine. docs/pipelines.md has the fields. Other lines of a log
are ignored; malformed lines of statistics are counted with their reason.

RobinHood, from its sources (2.4, 2.5, 3.2): EntryProcessor_DumpCurrentStages (entry_proc_impl.c) has a line per stage,
"number: name | Wait | Curr | Done | Total | ms/op |" and, if entries were batched, their share and the mean size of a
batch; cl_reader_dump_stats (chglog_reader.c) what was read, what is pending, and log time over real time. From 3.1 on
Total and ms/op are of the period since the last report; before that they are since its start, which shows in totals
that never go back. Total x ms/op are the seconds of workers. It counts entries where we count operations: they are
divided by the mean batch. "Idle threads" (2.4: "Threads waiting") are those of the one pool that works on all
stages."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from loadframe.formats.json_text import JsonError, parse_json
from loadframe.formats.plain_numbers import is_number
from loadframe.formats.said import words

MOST = 64
"""Stages, and readers: RobinHood has seven, and one reader for each metadata target."""
_STAGE = re.compile(
    r"(?P<order>\d{1,3}): (?:STAGE_)?(?P<name>[A-Za-z]\w{0,39}) *\| *(?:Wait: *)?(?P<wait>\d{1,12}) \|"
    r" *(?:Curr: *)?(?P<curr>\d{1,12}) \| *(?:Done: *)?\d{1,12} \| *(?:Total: *)?(?P<total>\d{1,15}) \|"
    r" *(?:ms/op: *)?(?P<ms>\d{1,12}(?:\.\d{1,6})?)(?: \||\s*$)"
    r"(?: *(?P<share>\d{1,3}(?:\.\d{1,4})?)% batched \(avg batch size: (?P<size>\d{1,9}(?:\.\d{1,4})?)\))?",
    re.ASCII,
)
_STAGE_LINE = re.compile(r"\d{1,3}: [A-Za-z]\w* *\|", re.ASCII)
_IDLE = re.compile(r"(?:Idle threads|Threads waiting): (\d{1,6})", re.ASCII)
_READER = re.compile(r"ChangeLog reader #(\d{1,3}):", re.ASCII)
_COUNT = re.compile(r"records (read|pending) *= (\d{1,15})", re.ASCII)
_TIME = r"(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{6})"
_LAST = re.compile(rf"last (received|pushed|committed): rec_id=\d+, rec_time={_TIME}, \w+ at {_TIME}", re.ASCII)
_RATIO = re.compile(
    r"(?:(?:receive|push|commit) speed: .*log/real time ratio: |processing speed ratio *= )(\d{1,9}(?:\.\d{1,4})?)",
    re.ASCII,
)
ROUNDED_MS = 0.005
STAGE, LOG = "stage", "log"
LONGEST_LINE = 16 << 10
LARGEST = 2.0**53
SUMMED = ("done", "entries", "busy_s", "idle_s", "blocked_s", "server_s", "read", "applied")
OF_STAGES = frozenset(
    {"order", "waiting", "current", "ms_per_op", "batch", "idle", "workers", "queue", "pool_idle"}
    | {"done", "entries", "busy_s", "idle_s", "blocked_s", "server_s"}
)
OF_LOGS = frozenset({"read", "applied", "pending", "lag_s", "follow"})
_OF_ANY = frozenset({STAGE, "time", "process", "ended"})
"""Keys of any line of a stage, in addition to its numbers: other programs call something else a stage (production)."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}", re.ASCII)
_MEANT = (b'"stage"', b'"log"')
MARKS = (*_MEANT, b"STATS")
_OTHER = re.compile(r"[^A-Za-z0-9_-]+", re.ASCII)


@dataclass
class RobinHood:
    """What its lines have said so far. of_periods: totals are since the last report, else since its start."""

    of_periods: bool = True
    _before: dict[str, tuple[float, float]] = field(default_factory=dict)
    _again: bool = False
    _went_back: bool = False
    _done: dict[str, dict[str, float]] = field(default_factory=dict)
    _idle: float | None = None
    _reader: str = ""

    def read(self, line: str) -> "list[StageLine]":
        """What follows from a line with STATS, mostly nothing. StageLineError."""
        said = line.partition("STATS")[2]
        if (idle := _IDLE.search(said)) is not None:
            self._idle = float(idle[1])
            return []
        if (stage := _STAGE.search(said)) is not None:
            return self._stage(stage)
        if _STAGE_LINE.search(said) is not None:
            raise StageLineError("it is no line of a stage as RobinHood prints it")
        return self._log(said)

    def _stage(self, match: re.Match[str]) -> "list[StageLine]":
        name, total, ms = match["name"], float(match["total"]), float(match["ms"])
        if name not in self._done and len(self._done) >= MOST:
            return []
        batched = total * min(1.0, float(match["share"] or 0.0) / 100)
        size = max(1.0, float(match["size"] or 1.0))
        more = {"entries": total, "done": total - batched + batched / size, "busy_s": total * ms / 1000}
        before, before_s = self._before.get(name, (0.0, 0.0))
        self._again |= before > 0
        self._went_back |= total < before or total * (ms + ROUNDED_MS) < before_s
        self._before[name] = total, total * (ms - ROUNDED_MS)
        sums = self._done.setdefault(name, dict.fromkeys(more, 0.0))
        for key, value in more.items():
            sums[key] += value
        if not self.of_periods:  # two digits of a mean over all its life say nothing of the seconds of a window
            sums = {"entries": total, "done": more["done"], "ms_per_op": ms * total / max(more["done"], 1.0)}
        per_entry = more["done"] / more["entries"] if total else 1.0
        waiting, current = per_entry * float(match["wait"]), per_entry * float(match["curr"])
        levels = {"order": float(match["order"]), "waiting": waiting, "current": current}
        pool = {} if self._idle is None else {"pool_idle": self._idle}
        return [StageLine(STAGE, name, "", None, {**levels, **pool, **sums})]

    @property
    def since_start(self) -> bool:
        """Whether all totals reported twice only grew. Totals of periods seldom do in all stages."""
        return self._again and not self._went_back

    def _log(self, said: str) -> "list[StageLine]":
        if (reader := _READER.search(said)) is not None:
            self._reader = f"reader{reader[1]}"
        elif not self._reader:
            return []
        elif (count := _COUNT.search(said)) is not None:
            return [StageLine(LOG, self._reader, "", None, {count[1]: float(count[2])})]
        elif (last := _LAST.search(said)) is not None:
            with suppress(ValueError, OverflowError):
                recorded, reached = (datetime.strptime(text, "%Y/%m/%d %H:%M:%S.%f") for text in last.groups()[1:])
                lag_s = reached.timestamp() - recorded.timestamp()
                return [StageLine(LOG, self._reader, "", None, {"lag_s": max(0.0, lag_s)})]
        elif (ratio := _RATIO.search(said)) is not None:
            return [StageLine(LOG, self._reader, "", None, {"follow": float(ratio[1])})]
        return []


class StageLineError(ValueError): ...


@dataclass(frozen=True, slots=True)
class StageLine:
    """process: who prints it, where several print lines of a stage. at_s: CLOCK_MONOTONIC, or None. values: by field,
    at or above 0. ended: the last line of its process: cumulative values stay, gauges are dropped."""

    kind: str
    name: str
    process: str
    at_s: float | None
    values: Mapping[str, float]
    ended: bool = False


@dataclass
class StageLines:
    """A growing file of lines, read piece by piece. strange: reason -> number of malformed lines of statistics."""

    strange: Counter[str] = field(default_factory=Counter)
    read: int = 0
    _rest: bytes = b""
    _skips: bool = False
    _robinhood: RobinHood = field(default_factory=RobinHood)

    @classmethod
    def of(cls, pieces: Iterable[bytes | None]) -> "StageLines":
        """None stands where the file begins again. Only several reports show what RobinHood's totals are of."""
        scout = cls()
        for piece in pieces:
            if piece is None:
                scout.restart()
            elif b"STATS" in piece or scout._rest:
                for _ in scout.feed(piece):
                    pass
        return cls(_robinhood=RobinHood(of_periods=not scout._robinhood.since_start))

    def feed(self, piece: bytes) -> Iterator[StageLine]:
        """A line longer than LONGEST_LINE is ignored."""
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
        self._rest, self._skips = b"", False

    def _too_long(self, line: bytes) -> None:
        if any(word in line[:LONGEST_LINE] for word in _MEANT):
            self.strange[f"it has more than {LONGEST_LINE >> 10} KiB"] += 1

    def _line(self, line: bytes) -> Iterator[StageLine]:
        try:
            lines = self._lines_in(line)
        except StageLineError as error:
            self.strange[str(error)] += 1
            return
        self.read += len(lines)
        yield from lines

    def _lines_in(self, line: bytes) -> list[StageLine]:
        if b"STATS" in line and not line.lstrip().startswith(b"{"):
            rows = self._robinhood.read(line.decode("utf-8", "replace"))
            if any(value > LARGEST for row in rows for value in row.values.values()):
                raise StageLineError("a number is above 2^53")
            if rows or b"{" not in line:
                return rows
        stage_line = parse_stage_line(line)
        return [] if stage_line is None else [stage_line]


def parse_stage_line(line: bytes) -> StageLine | None:
    """What a line says, whatever a logger puts around it; None for another line. StageLineError for a malformed one."""
    text = line.strip()
    if b"{" not in text or not any(word in text for word in _MEANT):
        return None
    try:
        fields = _object_in(text)
    except JsonError as error:
        if not text.startswith(b"{"):
            return None
        raise StageLineError(f"it is no JSON: {words(error, 80)}") from error
    kind = next((word for word in (STAGE, LOG) if isinstance(fields, dict) and isinstance(fields.get(word), str)), None)
    if kind is None:
        return None
    known = OF_STAGES if kind == STAGE else OF_LOGS
    if known.isdisjoint(fields) and (kind == LOG or not _OF_ANY.issuperset(fields)):
        return None  # a log of another program in JSON
    values = {name: _number(name, fields[name]) for name in sorted(known & fields.keys()) if fields[name] is not None}
    if not values:
        raise StageLineError(f"it has none of {', '.join(sorted(known))}")
    at_s = None if fields.get("time") is None else _number("time", fields["time"])
    ended = fields.get("ended", False)
    if not isinstance(ended, bool):
        raise StageLineError("ended is neither true nor false")
    process = fields.get("process", "")
    if isinstance(process, bool) or not isinstance(process, str | int):
        raise StageLineError("process is neither a word nor a whole number")
    return StageLine(kind, _name(fields[kind]), words(process, 40), at_s, values, ended)


def _object_in(text: bytes) -> Any:
    """The text from the first brace on, or from the one before the marking word, if a logger has braces of its own."""
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


def _number(name: str, value: Any) -> float:
    if not is_number(value):
        raise StageLineError(f"{name} is no number")
    if not 0 <= value <= LARGEST:
        raise StageLineError(f"{name} is below 0 or above 2^53")
    return float(value)
