"""What a watch knows, and when it alarms: rows of a minute for load, leaks and limits, of five minutes for changes of
regime."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from loadframe.model import LoadInterval
from loadframe.progress import counted
from loadframe.reporting.rounding import plain
from loadframe_watch.alarms import alarm_of
from loadframe_watch.approaching import Days, span
from loadframe_watch.days import Gathering
from loadframe_watch.leaks import Leak, Thinned, in_words, leak, unjudged
from loadframe_watch.records import WatchAlarm, as_json, of_json
from loadframe_watch.regime import Change, Series

ROW_S, SLOW_ROW_S = 60.0, 300.0
MONTH_S = 30 * 86400.0
SERIES = ("response", "cpu")
THRESHOLD = MONTH_S / SLOW_ROW_S * len(SERIES)
"""Rows between two false alarms of one series, so that all series together give one a month."""
LEAKING = ("target.memory.rss", "target.open_files", "system.filesystem.space")
COLUMNS = ("load", *LEAKING)
PATIENCE = {"system.filesystem.space": ((7 * 86400.0, 8 * 86400.0), (86400.0, 1.25 * 86400.0))}
"""By metric, pairs of seconds: a leak that would fill it only after the first is reported once it has lasted for the
second. Logs rotate each night, and are removed each week."""
MOST_LOGARITHM = 300.0
"""Of a response: exp of it is still a number."""
LOOK_S, FIRST_LOOK_S = 3600.0, 900.0
LEVEL = LOOK_S / MONTH_S / len(LEAKING) / 2
"""Error of each look for a leak: at most one false alarm a month; half, as looks of the first hours come more often."""
WORTH = 0.1
"""A smaller relative change is learned as the normal state without an alarm."""
FULL, FULL_ROWS = 0.97, 5
REARM_S = 86400.0
REARM: Mapping[str, float] = {"limit-ahead": 7 * 86400.0, "absent": 3600.0, "unit-fails": 3600.0}
"""Seconds for which an alarm's cause must be over before it is given again. A load sleeps at night and on weekends; a
service that crashes again and again is one event, one that dies in the morning and in the evening is two."""
FAILED_IN_A_ROW = 3
UNIT_FAILS = "unit-fails unit"
NAMES = {
    "target.memory.rss": "memory (resident)",
    "target.open_files": "open files",
    "system.filesystem.space": "the fullest file system",
    "response": "the response of the unit of work",
    "cpu": "the CPU time of the service",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """t_s: seconds that only rise, near the wall clock; use: shares of ceilings; harms: rates, where a limit counts
    one; response_s: None where no unit ended; error: of the last unit."""

    t_s: float
    values: Mapping[str, float]
    load: float | None
    use: Mapping[str, float]
    harms: Mapping[str, float] = field(default_factory=dict)
    response_s: float | None = None
    failed: bool | None = None
    error: str = ""


class _Interval(TypedDict):
    load: float
    low: float
    high: float


class _Fit(TypedDict):
    """What a child fits."""

    rows: int
    highest_load: float | None
    limits: dict[str, _Interval]
    bend: _Interval | None


class _Learned(TypedDict):
    """given_s: when each alarm was given last, by its key; fit: empty, or a _Fit."""

    series: dict[str, Series]
    days: Days
    rows: Thinned
    given_s: dict[str, float]
    looked_s: float | None
    fit: dict[str, Any]


class Model:
    """load: its metric. titles: of limits, by id. fit: the child's. ahead_s: by how much the wall clock, which may be
    set, is ahead of t_s."""

    ahead_s = 0.0

    def __init__(self, load: str, titles: Mapping[str, str]) -> None:
        self.load_name, self._titles = load.rpartition(".")[2].replace("_", " ") or "load", titles
        self._minute, self._slow = Gathering(ROW_S), Gathering(SLOW_ROW_S)
        self._rows = Thinned([*COLUMNS])
        self._days = Days()
        self._series = {name: Series(THRESHOLD) for name in SERIES}
        self._given_s: dict[str, float] = {}
        self._full: dict[str, tuple[float, int]] = {}
        self._read: dict[str, list[tuple[float, float | None]]] = {}
        self._failed = 0
        self._looked_s: float | None = None
        self._leaks: dict[str, Leak] = {}
        self._waiting: dict[str, tuple[Leak, float]] = {}
        self.fit: Mapping[str, Any] = {}
        self._values: Mapping[str, float] = {}
        self._use: Mapping[str, float] = {}

    def take(self, sample: Sample) -> list[WatchAlarm]:
        self._values, self._use = sample.values, sample.use
        alarms = self._units(sample)
        known: dict[str, float | None] = {
            "load": sample.load,
            "response": None if not sample.response_s or sample.response_s <= 0 else math.log(sample.response_s),
            "cpu": sample.values.get("target.cpu.cores"),
            **{name: sample.values.get(name) for name in LEAKING},
        }
        if (row := self._minute.take(sample.t_s, known)) and row.means:
            alarms += self._minutely(row.t_s, row.means)
        if (row := self._slow.take(sample.t_s, known)) and row.means:
            alarms += self._slowly(row.t_s, row.means)
        for name, share in sample.use.items():
            self._read.setdefault(name, []).append((share, sample.harms.get(name)))
        return [alarm for alarm in alarms if self.is_new(alarm, sample.t_s)]

    def remember(self, t_s: float, load: float) -> None:
        """Recorded by other monitoring: without alarms."""
        if (row := self._minute.take(t_s, {"load": load})) and row.means:
            self._days.take(row.t_s, row.means["load"])

    def interrupted(self) -> None:
        self._minute.clear()
        self._slow.clear()
        for series in self._series.values():
            series.interrupted()

    def restarted(self) -> None:
        """Memory and files of another process begin again."""
        self._rows.clear()
        self._leaks, self._waiting = {}, {}

    def _minutely(self, t_s: float, row: Mapping[str, float]) -> list[WatchAlarm]:
        load = row.get("load")
        if load is not None:
            self._days.take(t_s, load)
        self._rows.add(t_s, [row.get("load"), *(row.get(name) for name in LEAKING)])
        alarms = self._approaches(t_s) + self._full_limits(t_s)
        wait_s = FIRST_LOOK_S if t_s - self._rows.first_s < 4 * LOOK_S else LOOK_S
        if self._looked_s is None:
            self._looked_s = t_s
        elif t_s - self._looked_s >= wait_s:
            self._looked_s = t_s
            alarms += self._look_for_leaks(t_s)
        return alarms

    def _approaches(self, t_s: float) -> list[WatchAlarm]:
        alarms = []
        for name, at in self.fit.get("limits", {}).items():
            coming = self._days.approach(at["load"], at["low"], at["high"])
            if coming is None:
                continue
            load, low, high = (plain(at[end]) for end in ("load", "low", "high"))
            alarm = alarm_of(
                "limit-ahead",
                name,
                f"{_first(self._title(name))} will be reached at {load} ({low} to {high}) {self.load_name}",
                (f"Use is {self._use.get(name, 0):.0%} of the ceiling now", name, self._use.get(name)),
                (f"{self.load_name}: {coming.words}", self.load_name, None),
                at_load=dict(at),
                ends_s=self._ends(t_s, coming.ends),
            )
            alarms.append(alarm)
        return alarms

    def _full_limits(self, t_s: float) -> list[WatchAlarm]:
        """Only limits read since the last row: some are read more rarely than every row."""
        alarms = []
        read, self._read = self._read, {}
        for name, readings in read.items():
            key = f"limit-reached {name}"
            share = sum(share for share, _ in readings) / len(readings)
            harm = max((harm for _, harm in readings if harm is not None), default=None)
            if share < FULL:
                self._over(key, t_s)
            if share < FULL or harm == 0:
                self._full.pop(name, None)
                continue
            since_s, rows = self._full.get(name, (t_s - ROW_S / 2, 0))
            self._full[name] = since_s, rows + 1
            if rows + 1 == FULL_ROWS:
                lasts = counted(round((t_s + ROW_S / 2 - since_s) / 60), "minute")
                evidence = [(f"{share:.0%} of the ceiling, full at all readings for {lasts}", name, share)]
                if harm is not None:
                    evidence.append((f"Its harm is counted: {harm:.3g}/s", name, harm))
                alarms.append(alarm_of("limit-reached", name, f"Full: {self._title(name)}", *evidence))
            elif rows >= FULL_ROWS and key in self._given_s:
                self._given_s[key] = t_s  # it still is
        return alarms

    def _slowly(self, t_s: float, row: Mapping[str, float]) -> list[WatchAlarm]:
        alarms = []
        for name, series in self._series.items():
            value = row.get(name)
            change = None if value is None else series.take(row.get("load"), value, t_s)
            if change is None:
                continue
            worth = math.log1p(WORTH) if name == "response" else WORTH * abs(change.expected)  # it is in logarithms
            if abs(change.measured - change.expected) >= worth:
                alarms.append(self._changed(name, change, t_s))
        return alarms

    def _changed(self, name: str, change: Change, t_s: float) -> WatchAlarm:
        before, now = change.expected, change.measured
        if name == "response":
            before, now = math.exp(before), math.exp(now)
        unit = " s" if name == "response" else " cores"
        since = f"since about {span(change.rows * SLOW_ROW_S)}"
        title = (
            f"{_first(NAMES[name])} is no longer what it was: {now:.3g}{unit} in place of {before:.3g}{unit}, {since}"
        )
        self._given_s.pop(f"change {name}", None)  # learned as normal: the next change is another
        return alarm_of(
            "change",
            name,
            title,
            (f"Expected at this load: {before:.3g}{unit}", name, before),
            (f"Found: {now:.3g}{unit}", name, now),
            (f"{change.evidence / change.threshold:.3g} times the evidence that an alarm takes", name, None),
        )

    def _look_for_leaks(self, t_s: float) -> list[WatchAlarm]:
        alarms = []
        self._leaks, self._waiting = {}, {}
        for at, name in enumerate(LEAKING, 1):
            rows = self._rows_of(at)
            ceiling = self._ceiling(name)
            if ceiling is None or not rows:
                continue
            times, loads = [row[0] for row in rows], [row[1][0] for row in rows]
            grows = leak(times, [float(row[1][at] or 0.0) for row in rows], loads, ceiling, level=LEVEL)
            if grows is None:
                self._over(f"leak {name}", t_s)
                continue
            patience = [watched_s for ends_s, watched_s in PATIENCE.get(name, ()) if grows.ends.load > ends_s]
            if grows.watched_s < max(patience, default=0.0):
                self._over(f"leak {name}", t_s)
                self._waiting[name] = grows, rows[0][0] + max(patience)
                continue
            self._leaks[name] = grows
            alarms.append(self._leaking(name, grows, ceiling, t_s))
        return alarms

    def _rows_of(self, at: int) -> list[tuple[float, list[float | None]]]:
        return [row for row in self._rows.rows if row[1][at] is not None]

    def _unjudged(self) -> list[dict[str, Any]]:
        entries = []
        for at, name in enumerate(LEAKING, 1):
            rows = self._rows_of(at)
            if name in self._leaks or (not rows and name not in self._values):
                continue
            times_s, use = [row[0] for row in rows], self._values.get(name, 0.0)
            entry = unjudged(name, times_s, use, self._ceiling(name), ROW_S, self._waiting.get(name))
            if entry is not None:
                from_s = entry["from_s"]
                entries.append({**entry, "from_s": None if from_s is None else from_s + self.ahead_s})
        return entries

    def _leaking(self, name: str, grows: Leak, ceiling: float, t_s: float) -> WatchAlarm:
        per_hour, low, high = (_amount(name, slope * 3600) for slope in (grows.slope, grows.low, grows.high))
        title = f"{_first(NAMES[name])} grows by {per_hour} an hour"
        title += ", whatever the load" if grows.load_known else "; what the load did is not known"
        now = self._values.get(name)
        return alarm_of(
            "leak",
            name,
            title,
            (f"{_amount(name, now or 0)} now, ceiling {_amount(name, ceiling)}", name, now),
            (f"{low} to {high} an hour, over {grows.watched_s / 3600:.1f} hours", name, grows.slope * 3600),
            ends_s=self._ends(t_s, grows.ends),
        )

    def _units(self, sample: Sample) -> list[WatchAlarm]:
        if sample.failed is None:
            return []
        self._failed = self._failed + 1 if sample.failed else 0
        if self._failed > FAILED_IN_A_ROW and UNIT_FAILS in self._given_s:
            self._given_s[UNIT_FAILS] = sample.t_s  # still failing
        if self._failed != FAILED_IN_A_ROW:
            return []
        text = f"{FAILED_IN_A_ROW} units of work failed one after the other"
        last = f"The last one: {sample.error or 'no reason was given'}", "unit", self._failed
        return [alarm_of("unit-fails", "unit", text, last)]

    def _ceiling(self, name: str) -> float | None:
        values = self._values
        if name == "target.open_files":
            return values.get("target.open_files.limit")
        if name == "system.filesystem.space":
            return 1.0
        rss, used, limit = (values.get(metric) for metric in (name, "system.memory.used", "system.memory.limit"))
        if rss is None or used is None or limit is None:
            return None
        own = values.get("target.cgroup.memory.limit", math.inf)
        return min(own, rss + limit - used)

    def is_new(self, alarm: WatchAlarm, t_s: float) -> bool:
        """Not given yet, or over for a while since; keeps it marked as given."""
        given_s = self._given_s.get(alarm.key)
        self._given_s[alarm.key] = t_s
        rearm_s = REARM.get(alarm.alarm, REARM_S)
        return given_s is None or not 0 <= t_s - given_s <= rearm_s

    def _over(self, key: str, t_s: float) -> None:
        if t_s - self._given_s.get(key, t_s) > REARM_S:
            self._given_s.pop(key, None)

    def _ends(self, t_s: float, in_s: LoadInterval) -> dict[str, float | None]:
        now_s = t_s + self.ahead_s
        latest_s = now_s + in_s.high if math.isfinite(in_s.high) else None
        return {"value": now_s + in_s.load, "low": now_s + in_s.low, "high": latest_s}

    def _title(self, name: str) -> str:
        return self._titles.get(name, name)

    def described(self, t_s: float) -> dict[str, Any]:
        """A line `model` of a day file."""
        limits = []
        for name, at in self.fit.get("limits", {}).items():
            coming = self._days.approach(at["load"], at["low"], at["high"])
            ends = coming and self._ends(t_s, coming.ends)
            limits.append({"id": name, "title": self._title(name), "at_load": dict(at), "at_s": ends,
                           "use": self._use.get(name)})  # fmt: skip
        leaks = [
            {"metric": name, "per_hour": growth.slope * 3600, "low": growth.low * 3600, "high": growth.high * 3600,
             "ends_s": self._ends(t_s, growth.ends)}
            for name, growth in self._leaks.items()
        ]  # fmt: skip
        known = {name: self.fit.get(name) for name in ("rows", "bend", "highest_load")}
        learning = {name: series.needed for name, series in self._series.items() if series.needed}
        return {**known, "limits": limits, "leaks": leaks, "learning": learning, "unjudged": self._unjudged()}

    @staticmethod
    def unjudged_words(model: Mapping[str, Any]) -> str:
        return in_words(model["unjudged"], NAMES, _amount)

    def as_json(self) -> dict[str, Any]:
        """For `restore`."""
        return {
            "series": {name: as_json(series) for name, series in self._series.items()},
            "days": as_json(self._days),
            "rows": as_json(self._rows),
            "given_s": self._given_s,
            "looked_s": self._looked_s,
            "fit": dict(self.fit),
        }

    def restore(self, data: Any) -> str:
        """On an error nothing is taken, and the error is returned."""
        if isinstance(data, dict) and "told" in data:  # its name in earlier versions
            data = {"given_s" if name == "told" else name: value for name, value in data.items()}
        try:
            known: _Learned = of_json(_Learned, data)
            fit = of_json(_Fit, known["fit"]) if known["fit"] else {}
            if known["series"].keys() != set(SERIES) or known["rows"].columns != [*COLUMNS]:
                raise ValueError("it has other series or columns")
            response = known["series"]["response"]
            logarithms = [*response.values, *(value for _, value in (*response.knots, *response.since))]
            if max(map(abs, logarithms), default=0.0) > MOST_LOGARITHM:
                raise ValueError("it has a response that was never measured")
        except ValueError as error:
            return str(error)
        for series in known["series"].values():
            series.threshold = THRESHOLD
        self._series, self._days, self._rows = known["series"], known["days"], known["rows"]
        self._given_s, self._looked_s, self.fit = known["given_s"], known["looked_s"], fit
        return ""


def _amount(name: str, value: float) -> str:
    if name.endswith("rss"):
        mebibytes = value / 2**20
        return f"{mebibytes / 1024:.3g} GiB" if abs(mebibytes) >= 1000 else f"{mebibytes:.3g} MiB"
    return f"{value:.1%}" if name.endswith("space") else f"{value:.3g}"


def _first(words: str) -> str:
    return words[:1].upper() + words[1:]
