"""The STATS lines in the log of RobinHood 2.4 to 3, a policy engine: what its pipeline's stages and its readers of
change logs did.

Facts from its sources, versions 2.4, 2.5, 3.2: EntryProcessor_DumpCurrentStages (entry_proc_impl.c) has a line per
stage, "number: name | Wait | Curr | Done | Total | ms/op |" and, where entries were batched, their share and the mean
size of a batch; cl_reader_dump_stats (chglog_reader.c) what was read, what is pending, and log time over real time.
Total and ms/op are of the period since the last report from 3.1 on: they are added up here. Before that they are since
its start; this is told by totals none of which goes back. ms/op is the time of a batch over its entries, so Total x
ms/op are the seconds of workers. It counts entries, waiting and in work, where we count operations: they are divided by
the mean batch. "Idle threads" (2.4: "Threads waiting") are those of the one pool that works on all stages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

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
"""How the line of a stage begins."""
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
"""Of ms/op, which has two digits."""


class UnreadableStatsError(ValueError):
    """The line of a stage whose numbers are none."""


@dataclass(frozen=True, slots=True)
class Row:
    """kind: "stage" or "log". values: by the fields of stage_lines."""

    kind: str
    name: str
    values: Mapping[str, float]


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

    def read(self, line: str) -> list[Row]:
        """What a line with STATS says; most say nothing that is used. UnreadableStatsError."""
        said = line.partition("STATS")[2]
        if (found := _IDLE.search(said)) is not None:
            self._idle = float(found[1])
            return []
        if (stage := _STAGE.search(said)) is not None:
            return self._stage(stage)
        if _STAGE_LINE.search(said) is not None:
            raise UnreadableStatsError("it is no line of a stage as RobinHood prints it")
        return self._log(said)

    def _stage(self, found: re.Match[str]) -> list[Row]:
        name, total, ms = found["name"], float(found["total"]), float(found["ms"])
        if name not in self._done and len(self._done) >= MOST:
            return []
        batched = total * min(1.0, float(found["share"] or 0.0) / 100)
        size = max(1.0, float(found["size"] or 1.0))
        more = {"entries": total, "done": total - batched + batched / size, "busy_s": total * ms / 1000}
        self._compare(name, total, ms)
        sums = self._done.setdefault(name, dict.fromkeys(more, 0.0))
        for key, value in more.items():
            sums[key] += value
        if not self.of_periods:  # two digits of a mean over all its life say nothing of the seconds of a window
            sums = {"entries": total, "done": more["done"], "ms_per_op": ms * total / max(more["done"], 1.0)}
        each = more["done"] / more["entries"] if total else 1.0
        waiting, current = each * float(found["wait"]), each * float(found["curr"])
        levels = {"order": float(found["order"]), "waiting": waiting, "current": current}
        pool = {} if self._idle is None else {"pool_idle": self._idle}
        return [Row("stage", name, {**levels, **pool, **sums})]

    def _compare(self, name: str, total: float, ms: float) -> None:
        """Whether a stage has done less than in the report before: then these are not since its start."""
        before, before_s = self._before.get(name, (0.0, 0.0))
        self._again |= before > 0
        self._went_back |= total < before or total * (ms + ROUNDED_MS) < before_s
        self._before[name] = total, total * (ms - ROUNDED_MS)

    @property
    def since_start(self) -> bool:
        """Whether all that was told twice has only grown. Totals of periods seldom do in all stages."""
        return self._again and not self._went_back

    def _log(self, said: str) -> list[Row]:
        if (found := _READER.search(said)) is not None:
            self._reader = f"reader{found[1]}"
        elif not self._reader:
            return []
        elif (count := _COUNT.search(said)) is not None:
            return [Row("log", self._reader, {count[1]: float(count[2])})]
        elif (last := _LAST.search(said)) is not None:
            recorded, reached = (_seconds(text) for text in last.groups()[1:])
            lag_s = None if recorded is None or reached is None else reached - recorded
            return [] if lag_s is None else [Row("log", self._reader, {"lag_s": max(0.0, lag_s)})]
        elif (ratio := _RATIO.search(said)) is not None:
            return [Row("log", self._reader, {"follow": float(ratio[1])})]
        return []


def _seconds(text: str) -> float | None:
    """Both times of a line are of one clock: only their difference is used."""
    try:
        return datetime.strptime(text, "%Y/%m/%d %H:%M:%S.%f").timestamp()
    except (ValueError, OverflowError):
        return None
