"""What the page shows of a watch (docs/watching.md). Lines in another form are left out. The folder may be foreign:
what is kept of it is bounded line by line."""

import math
import os
import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from types import SimpleNamespace
from typing import Any, Literal

from loadframe.errors import RecordingError, UserError
from loadframe.formats.plain_numbers import is_number
from loadframe.ledger.rules import RULES
from loadframe.metrics import is_known, metric
from loadframe.model.limit import REACHED
from loadframe.progress import counted
from loadframe.reporting.openmetrics import Sample
from loadframe.system.files import Folder, is_held
from loadframe_watch import days
from loadframe_watch.openmetrics import FAMILIES, Seen
from loadframe_watch.records import LOADLESS

WATCH = "loadframe.live-watch/1"
LOCK = "watch.lock"
MINUTE_S = 60
MOST_MINUTES, MOST_EVENTS, MOST_USES, MOST_LIMITS = 1440, 100, 100, 400
"""The most minutes of a day, alarms and gaps, uses of a sample, and limits, of which Loadframe itself knows 174."""
LONGEST_EVENT = 1 << 14
"""Bytes up to which a line is kept whole: an alarm has some 2 KiB."""
LONGEST_WORD, LONGEST_SENTENCE = 100, 500
EARLIER_DAYS = 31
"""Days before the last two, of which only the alarms, and when the watch began, are shown."""
OF_BEFORE = re.compile(rb'"kind":\s*"(head|alarm)"')
LOADLESS_MINUTES = 3
"""Connections are counted once a minute: a load that no sample of so many minutes has is not read at all."""
FEW_MINUTES, MOST_RECENT = 10, 120
"""A watch of so few minutes is shown by its samples, at most the last MOST_RECENT."""
TITLES: Mapping[str, str] = {rule.id: rule.title for rule in RULES}
"""Titles of limits; those that a study declares are in the line `ledger`."""
EVENTS = ("alarm", "gap")
OF_AN_ALARM = ("alarm", "about", "title", "evidence", "try", "at_load", "ends_s")
OF_AN_INTERVAL = ("load", "value", "low", "high")
OF_THE_COST = ("cpu_s", "children_cpu_s", "elapsed_s", "rss_bytes", "written_bytes")
Change = dict[str, Any]


def is_watch(storage: Folder) -> bool:
    return not storage.exists("run.json") and any(days.DAY.fullmatch(name) for name in storage.names(4000))


class WatchView:
    def __init__(self, storage: Folder, view_id: str) -> None:
        self.id = view_id
        self.status: Literal["watching", "ended", "stopped"] = "watching"
        self._ended = False
        self._storage = storage
        self._days: dict[str, _Day] = {}
        self._budget = days.Budget(storage.path)
        self._gathering, self._last_minute = days.Gathering(MINUTE_S), 0
        self.heading: Change = {}
        self.minutes: dict[int, Change] = {}
        self._recent: deque[Change] = deque(maxlen=MOST_RECENT)
        self.limits: dict[str, Change] = {}
        self.alarms: list[Change] = []
        self.gaps: list[Change] = []
        self.model: Change = {}
        self.cost: Change | None = None
        self.error = ""
        self._shown_minutes = False

    def over(self) -> bool:
        """It may begin again in its folder at any time."""
        return False

    @property
    def blind(self) -> str:
        load, read = self.heading.get("load"), any(minute["load"] is not None for minute in self.minutes.values())
        if not load or read or len(self.minutes) < LOADLESS_MINUTES:
            return ""
        return f"The load ({load}) was not read: {LOADLESS}. `loadframe watch --load NAME` names one that is read."

    def row(self) -> Change:
        answer = "No alarm."
        if self.alarms:
            answer = f"{counted(len(self.alarms), 'alarm')}. The last: {self.alarms[-1]['title']}"
        return {
            "id": self.id,
            "name": self._storage.path.name,
            "study": self._storage.path.name,
            "status": self.status,
            "version": self.heading.get("subject", ""),
            "started_at": self.heading.get("since", ""),
            "answer": answer,
            "watch": True,
        }

    def refresh(self) -> Change:
        before, touched, blind = (self.status, self.heading), set[str](), self.blind
        try:
            for line in self._lines():
                touched |= self._take(line)
            self.status = "watching" if self._held() else "ended" if self._ended else "stopped"
        except UserError as error:
            if not self.error:
                self.error = str(error)
                touched.add("error")
        self._show(self._gathering.row())
        self._forget()
        if self.blind != blind:
            touched.add("blind")
        change = {name: part for name, part in self.whole().items() if name in touched}
        if "minutes" in touched and self._shown_minutes:
            change["minutes"] = change["minutes"][-2:]
        if before != (self.status, self.heading):
            change |= {"heading": self.heading, "status": self.status}
        self._shown_minutes = True
        return {"id": self.id, **change} if change else {}

    def whole(self) -> Change:
        return {
            "schema": WATCH,
            "id": self.id,
            "status": self.status,
            "heading": self.heading,
            "minutes": list(self.minutes.values()),
            "recent": list(self._recent) if len(self.minutes) <= FEW_MINUTES else [],
            "limits": self.limits,
            "alarms": self.alarms,
            "gaps": self.gaps,
            "model": self.model,
            "cost": self.cost,
            "blind": self.blind,
            "error": self.error,
        }

    def _take(self, line: days.WatchLine) -> set[str]:
        at_s, data = line.at_s, line.data
        match line.kind:
            case "head":
                self._ended = False
                load = str(data.get("load", "load"))[:LONGEST_WORD]
                self.heading = {
                    "subject": str(data.get("subject", ""))[:LONGEST_SENTENCE],
                    "load": metric(load).what if is_known(load) else load.rpartition(".")[2].replace("_", " "),
                    "interval_s": _number(data.get("interval_s")),
                    "every_s": _number(data.get("every_s")),
                    "host": str(data.get("host", ""))[:LONGEST_WORD],
                    "since": self.heading.get("since") or _iso(at_s),
                }
                return {"heading"}
            case "sample" | "unit":
                return self._sample(data, at_s)
            case "ledger" | "model" as kind:
                for limit in days.tables_in(data.get("limits")):
                    self._limit(limit)
                if kind == "ledger":
                    return {"limits"}
                kept = ("rows", "bend", "highest_load", "leaks", "limits", "learning")
                self.model = {name: data[name] for name in kept if name in data}
                return {"model", "limits"}
            case "alarm":
                self.alarms.append({"at_s": at_s, **{name: data.get(name) for name in OF_AN_ALARM}})
                del self.alarms[:-MOST_EVENTS]
                return {"alarms"}
            case "gap":
                self.gaps.append({name: data.get(name) for name in ("from_s", "to_s", "seconds", "reason", "words")})
                del self.gaps[:-MOST_EVENTS]
                return {"gaps"}
            case "cost":
                self.cost = {name: _number(data.get(name)) for name in OF_THE_COST}
                return {"cost"}
            case "end":
                self._ended = True
        return set()

    def _sample(self, data: Mapping[str, Any], at_s: float) -> set[str]:
        items = islice(days.table_in(data.get("use")).items(), MOST_USES)
        shares = {str(name)[:LONGEST_WORD]: finite for name, share in items if (finite := _number(share)) is not None}
        numbers = days.numbers_of({**data, "use": shares})
        self._show(self._gathering.take(at_s, numbers))
        self._recent.append(_point(at_s, numbers))
        for name, share in shares.items():
            known = self._known_limit(name)
            known.setdefault("title", TITLES.get(name, name.replace("_", " ")))
            known |= {"share": round(share, 4), "reached": share >= REACHED}
        return {"minutes", "recent", "limits"} if shares else {"minutes", "recent"}

    def _show(self, minute: days.Row | None) -> None:
        if minute is not None:
            self._last_minute = int(minute.t_s // MINUTE_S)
            self.minutes[self._last_minute] = _point(self._last_minute * MINUTE_S, minute.means)
            if len(self.minutes) > 2 * MOST_MINUTES:
                self._forget()

    def _limit(self, entry: Mapping[str, Any]) -> None:
        limit = str(entry.get("id", ""))[:LONGEST_WORD]
        known = self._known_limit(limit)
        known["title"] = str(entry.get("title") or limit)[:LONGEST_SENTENCE]
        known |= {name: str(entry[name])[:LONGEST_WORD] for name in ("unit", "status") if name in entry}
        for name in ("at_load", "at_s"):
            if name in entry:
                ends = days.table_in(entry[name])
                known[name] = {end: _number(ends[end]) for end in OF_AN_INTERVAL if end in ends} or None
        use, ceiling = _number(entry.get("use")), _number(entry.get("ceiling"))
        if use is not None and ceiling:
            share = use / ceiling
            known |= {"use": use, "ceiling": ceiling, "share": round(share, 4), "reached": share >= REACHED}

    def _known_limit(self, name: str) -> Change:
        """An unstored entry beyond the first MOST_LIMITS."""
        return self.limits.setdefault(name, {}) if name in self.limits or len(self.limits) < MOST_LIMITS else {}

    def _forget(self) -> None:
        last = self._last_minute  # a clock that was set back begins again there
        self.minutes = {at: minute for at, minute in self.minutes.items() if last - MOST_MINUTES < at <= last}

    def _lines(self) -> Iterator[days.WatchLine]:
        """The new ones of the last two days, and of earlier days the alarms and the first line. Nothing is read while
        the page has no viewer: days may have ended, and have been compacted, since."""
        of_days = days.by_day(self._storage.names(4000))
        shown = list(of_days)[-2 - EARLIER_DAYS :]
        for day in shown:
            known = self._days.setdefault(day, _Day())
            if known.over:
                continue
            before = day not in shown[-2:]
            known.over = before and all(name.endswith(days.COMPACT) for name in of_days[day])
            for name in of_days[day]:
                for text in self._new(known, name):
                    if before and not OF_BEFORE.search(text):
                        continue
                    line = days.parse_line(text)
                    if line is None or line.n <= known.n:  # a day that was being compacted may have lines twice
                        continue
                    known.n = line.n
                    if line.kind not in EVENTS or len(text) <= LONGEST_EVENT:
                        yield line

    def _new(self, known: "_Day", name: str) -> Iterator[bytes]:
        start = known.read if name.endswith(days.COMPACT) else max(0, known.read - known.packed)
        if name.endswith(days.COMPACT):
            state = self._storage.state_of(name)
            if state == known.state:
                return
            known.state = state  # a damaged one is reported once
        text = days.DayText(self._storage, name, self._budget, start)
        try:
            for line in text:
                if line.endswith(b"\n") or len(line) == days.LONGEST_LINE:  # a torn one waits for its end
                    known.read += len(line)
                    yield line
        except RecordingError as error:
            if not isinstance(error.__cause__, FileNotFoundError):  # compacted just now: the next look reads that
                raise
        if name.endswith(days.COMPACT):
            known.packed = text.at

    def _held(self) -> bool:
        try:
            descriptor = self._storage.descriptor(LOCK)
        except FileNotFoundError:
            return False
        try:
            return is_held(descriptor)
        finally:
            os.close(descriptor)


@dataclass(slots=True)
class _Day:
    """What was read of it, in bytes; packed: the length of its compacted part, and state: its file as it was then. n:
    the highest number of a line. over: nothing more comes."""

    read: int = 0
    packed: int = 0
    state: tuple[int, int] = (0, 0)
    n: int = 0
    over: bool = False


def _point(at_s: float, means: Mapping[str, float]) -> Change:
    return {
        "at_s": at_s,
        "load": means.get("load"),
        "throughput": means.get("throughput"),
        "response_ms": 1000 * means["response_s"] if "response_s" in means else None,
        "use": {name[4:]: round(mean, 3) for name, mean in means.items() if name.startswith("use.")},
    }


def _number(value: object) -> float | None:
    return float(value) if is_number(value) and math.isfinite(value) else None


def _iso(at_s: float) -> str:
    try:
        return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return ""


class WatchMetrics(WatchView):
    """Goes on reading at each call. Not thread-safe."""

    def __init__(self, storage: Folder, view_id: str) -> None:
        super().__init__(storage, view_id)
        self._seen = Seen()

    def samples(self) -> Iterator[Sample]:
        """What cannot be read is left out."""
        self.refresh()
        return self._seen.samples(self.id.partition("/")[2])

    def _take(self, line: days.WatchLine) -> set[str]:
        self._seen.take(line)
        return set()


PAGE = SimpleNamespace(is_watch=is_watch, view=WatchView, metrics=WatchMetrics, families=FAMILIES)
"""How `loadframe serve` reads watches: `Watches` of loadframe-live."""
