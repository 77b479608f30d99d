"""The watch itself: tick after tick on an absolute schedule (docs/watching.md)."""

from __future__ import annotations

import math
import re
import resource
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadframe.host import identity
from loadframe.progress import counted
from loadframe.recording.frames import peak_rss_bytes
from loadframe.version import __version__
from loadframe_watch.alarms import Alarms, alarm_of, say
from loadframe_watch.journal import NONE, STATE, Clocks, Gap, Gaps, Journal, Numbers, lost_lines, since_last
from loadframe_watch.ledger import Ledger, Part
from loadframe_watch.model import Model, Sample
from loadframe_watch.records import LOADLESS, WatchAlarm, WatchPlan
from loadframe_watch.unit import Unit

if TYPE_CHECKING:
    from loadframe_watch.daemon import RealChildren, RealReader

LEDGER_S, LEDGER_SHARE = 600.0, 0.00003
"""Seconds between looks at all limits, and their share of a core. A look takes 50 to 100 ms, as much as 50 samples."""
FIRST_FIT_S, LONGEST_FIT_S, FIT_SHARE = 600.0, 6 * 3600.0, 0.0001
"""The first fit of the model, and the longest time between two: each wait is twice the one before."""
GREW, REFIT_S = 1.25, 60.0
"""A load above this many times the highest one of the last fit triggers another, this long after it at the earliest: a
rise within minutes would be over before the next."""
KEEP_S, COST_S, COMPACT_S = 600.0, 3600.0, 3600.0
ABSENT_S = 60.0
LOADLESS_S = 90.0
"""Connections are counted once a minute; a load that was not read by then is never read here."""
NAMED = 8
"""Metrics that are suggested as loads."""
FORGET_S = 14 * 86400.0
"""How far back the fit reads."""


class Watcher:
    """wait: sleeps for the given seconds; True where the watch is to end."""

    def __init__(
        self,
        plan: WatchPlan,
        journal: Journal,
        reader: RealReader,
        children: RealChildren,
        ledger: Ledger,
        clocks: Clocks,
        unit: Unit | None,
        *,
        wait: Callable[[float], bool],
    ) -> None:
        self.plan, self.journal, self._reader, self._children = plan, journal, reader, children
        self._ledger, self._clocks, self._unit, self._wait = ledger, clocks, unit, wait
        self._started_s = clocks.monotonic()
        self._gaps = Gaps(clocks, plan.interval_s)
        self.alarms: list[dict[str, Any]] = []
        self.gaps = self.samples = 0
        self.model = Model(plan.load, ledger.titles)
        self._alarms = Alarms(plan, lambda why: say(f"An alarm was not delivered: {why}"))
        self._gone: tuple[float, float] | None = None
        self._who = self._learned_of = ""
        self._first_pid = self._pid = next(iter(reader.pids()), plan.find.get("pid"))
        self._loadless, self._names = True, list[str]()
        self._kept = True
        self._next_unit_s = self._started_s
        self._parts = {"ledger": Part(LEDGER_S, LEDGER_SHARE), "keep": Part(KEEP_S, 1.0), "cost": Part(COST_S, 1.0),
                       "compact": Part(COMPACT_S, 1.0)}  # fmt: skip
        self._fit_wait_s, self._next_fit_s, self._fit_load = FIRST_FIT_S, self._started_s + FIRST_FIT_S, 0.0
        self._parts["cost"].cost(self._started_s, 0.0)
        self._t0_s = self._begin()

    def run(self) -> str:
        number, ended = 0, ""
        while not ended:
            alarms = self.tick()
            number += 1
            if alarms and self.plan.exit_on_alarm:
                ended = "alarm"
            elif self._clocks.monotonic() >= self._ends_s():
                ended = "time"
            else:
                due_s = self._started_s + number * self.plan.interval_s
                late_s = self._clocks.monotonic() - due_s
                if late_s > 0:  # missed ticks are not made up for
                    number += int(late_s / self.plan.interval_s) + 1
                    due_s = self._started_s + number * self.plan.interval_s
                if self._wait(max(0.0, min(due_s, self._ends_s()) - self._clocks.monotonic())):
                    ended = "stopped"
        self._alarms.wait()
        self._back()
        self._say_loadless()
        self._write("cost", self.cost())
        self._write("end", {"reason": ended}, durable=True)
        self._keep()
        self.gaps += self.journal.lost_lines > 0  # one that no line could be written for
        return ended

    def tick(self) -> list[WatchAlarm]:
        now_s = self._clocks.monotonic()
        for gap in self._gaps.look():
            self._gap(gap)
            if gap.reason in ("suspended", "late"):
                self.model.interrupted()
        if self.journal.new_day():
            self._head()
        values, there = self._reader.read(now_s)
        alarms = self._presence(there)
        sample = self._sample(values, there)
        line = self._parts["ledger"].run(now_s, lambda: self._ledger.look(self._reader.pids(), values))
        if line is not None:  # the second look has the rates, and gives the first line
            self._write("ledger", line)
        alarms += self.model.take(sample)
        for alarm in alarms:
            record = {"id": f"{self.journal.n + 1}", **alarm.as_record()}
            self._write("alarm", record, durable=True)
            self.alarms.append(record)
            document = {
                "schema": "loadframe.watch.alarm/1",
                "subject": self.plan.subject,
                "at_s": round(self._clocks.wall(), 3),
                **record,
            }
            self._alarms.give(alarm, document)
            self._keep()
        if now_s - self._started_s >= LOADLESS_S:
            self._say_loadless()
        self._housekeeping(now_s, sample.load)
        return alarms

    def known(self) -> dict[str, Any]:
        return self.model.described(self._now_s())

    def subject(self) -> str:
        if self._pid == self._first_pid:
            return self.plan.subject
        now = rf"\1 {self._pid}, before a restart {self._first_pid}"
        return re.sub(rf"\b(pid|process) {self._first_pid}\b", now, self.plan.subject)

    def cost(self) -> dict[str, Any]:
        children, status = resource.getrusage(resource.RUSAGE_CHILDREN), b""
        with suppress(OSError):  # no descriptor is left
            status = Path("/proc/self/status").read_bytes()
        return {
            "cpu_s": round(time.process_time(), 4),
            "children_cpu_s": round(children.ru_utime + children.ru_stime, 4),
            "elapsed_s": round(self._clocks.monotonic() - self._started_s, 3),
            "rss_bytes": peak_rss_bytes(status),
            "samples": self.samples,
            "written_bytes": self.journal.written_bytes,
        }

    def _begin(self) -> float:
        """Returns the zero of the model's time."""
        last, (kept, wrong) = self.journal.last, self.journal.kept()
        boot = identity.boot_id()
        same = kept is not None and kept.get("boot") == boot
        wrong = wrong or ("" if kept is None else self.model.restore(kept.get("model")))
        if kept is not None and same:
            self._learned_of = str(kept.get("service", ""))
        if wrong:
            say(f"What was learned before cannot be used ({STATE}: {wrong}); it is learned again.")
        self._head()
        gap = since_last(last, same, self._clocks)
        if gap is not None:
            self._gap(gap)
            self.model.interrupted()
        wall = self._clocks.wall()
        return (wall if last is None else max(wall, last[1])) - self._clocks.boot()

    def _head(self) -> None:
        self._write("head", {
            "schema": "loadframe.watch/1", "subject": self.plan.subject, "interval_s": self.plan.interval_s,
            "every_s": self.plan.every_s if self._unit is not None else None, "load": self.plan.load,
            "host": identity.host_name(), "boot": identity.boot_id(), "version": __version__,
            "pids": list(self._reader.pids()),
        })  # fmt: skip

    def _presence(self, there: bool) -> list[WatchAlarm]:
        clocks = self._clocks
        if there:
            self._back()
        who = self._reader.who()
        if who != self._who:
            self._who, pids = who, list(self._reader.pids())
            self._pid = pids[0] if pids else self._pid
            self._write(
                "target", {"pids": pids, "words": counted(len(pids), "process") if who else "the service has gone"}
            )
            if who and who != self._learned_of:
                self._learned_of = who
                self.model.restarted()
        if there:
            return []
        if self._gone is None:
            self._gone = clocks.wall(), clocks.boot()
            self.model.interrupted()
        away_s = clocks.boot() - self._gone[1]
        if away_s < ABSENT_S:
            return []
        text = f"{self.subject()} has not been there for {away_s:.0f} s"
        alarm = alarm_of("absent", "target", text, (text, "target", away_s))
        return [alarm] if self.model.is_new(alarm, self._now_s()) else []

    def _back(self) -> None:
        if self._gone is not None:
            (wall_s, boot_s), self._gone = self._gone, None
            away_s = self._clocks.boot() - boot_s
            words = f"the service was not there for {away_s:.0f} s"
            self._gap(Gap(wall_s, self._clocks.wall(), away_s, "target absent", words))

    def _gap(self, gap: Gap) -> None:
        self.gaps += 1
        self._write("gap", gap.as_record())

    def _sample(self, values: dict[str, float], there: bool) -> Sample:
        load = values.get(self.plan.load, values.get(f"service.{self.plan.load}"))
        self._loadless &= load is None
        if there and self._loadless:
            self._names = sorted(
                (name for name in values if not name.endswith(".limit")),
                key=lambda name: (name.startswith("system."), name),
            )
        use, harms = self._ledger.quick(values) if there else ({}, {})
        line: dict[str, Any] = {}
        if load is not None:
            line["load"] = _round(load)
        if requests := [values[name] for name in self.plan.requests if name in values]:
            line["throughput"] = _round(sum(requests))
        self._write("sample", line, {"values": values, "use": use})
        self.samples += 1
        done = self._units(load)
        response_s = done[-1].response_s if done and not done[-1].error else None
        error = done[-1].error if done else ""
        failed = bool(error) if done else None
        known = {**self._ledger.slow, **values}
        return Sample(self._now_s(), known, load, use, harms, response_s, failed, error)

    def _units(self, load: float | None) -> list[Any]:
        if self._unit is None:
            return []
        now_s = self._clocks.monotonic()
        if now_s >= self._next_unit_s:
            self._unit.begin(now_s)
            self._next_unit_s += self.plan.every_s * max(1, int((now_s - self._next_unit_s) // self.plan.every_s) + 1)
        done = self._unit.finished()
        for unit in done:
            line = {"response_s": _round(unit.response_s), "late": _round(unit.late_s), "error": unit.error}
            self._write("unit", {**line, **({} if load is None else {"load": _round(load)})})
        return done

    def _say_loadless(self) -> None:
        """Once: all that depends on the load waits."""
        if self._loadless and self.plan.load and self._names:
            self._loadless = False
            say(
                f"The load, {self.plan.load}, was not read: {LOADLESS}. Name one that is read: "
                f"--load {', '.join(self._names[:NAMED])}."
            )

    def _housekeeping(self, now_s: float, load: float | None) -> None:
        fit = self._children.fitted()
        if fit is not None:
            self.model.fit = fit
            self._fit_load = float(fit.get("highest_load") or 0.0)
            self._write("model", self.known())
        grew = load is not None and self._fit_load > 0 and load > GREW * self._fit_load
        if now_s >= self._next_fit_s or (grew and now_s >= self._next_fit_s - self._fit_wait_s + REFIT_S):
            self._fit_wait_s = max(min(2 * self._fit_wait_s, LONGEST_FIT_S), self._children.spent_s() / FIT_SHARE)
            self._next_fit_s = now_s + self._fit_wait_s
            self._children.fit(self.journal.folder, self._clocks.wall() - FORGET_S)
        self._parts["compact"].run(now_s, self._compact)
        self._parts["cost"].run(now_s, lambda: self._write("cost", self.cost()))
        self._parts["keep"].run(now_s, self._keep)

    def _compact(self) -> None:
        removed, freed = self.journal.forget(self.plan.keep_days, self.plan.keep_bytes)
        if removed:
            self._write("removed", {"days": removed, "bytes": freed})
        for file in self.journal.ended_days()[:1]:
            self._children.compact(file)

    def _now_s(self) -> float:
        """Only rises; also updates the model's offset to the wall clock."""
        t_s = self._t0_s + self._clocks.boot()
        self.model.ahead_s = self._clocks.wall() - t_s
        return t_s

    def _ends_s(self) -> float:
        return math.inf if self.plan.for_s is None else self._started_s + self.plan.for_s

    def _keep(self) -> None:
        state = {"boot": identity.boot_id(), "service": self._learned_of, "model": self.model.as_json()}
        kept = self.journal.keep(state)
        if not kept and self._kept:
            say(f"What was learned cannot be kept in {self.journal.folder / STATE}: a restart begins without it.")
        self._kept = kept

    def _write(self, kind: str, fields: Mapping[str, Any], numbers: Numbers = NONE, *, durable: bool = False) -> None:
        journal = self.journal
        if journal.lost_lines:
            gap = lost_lines(journal.lost_lines, journal.lost_since_s, self._clocks.wall())
            if not journal.write("gap", gap.as_record()):
                return
            self.gaps += 1
            journal.lost_lines = 0
            say(f"The disk takes lines again: {gap.words}.")
        if not journal.write(kind, fields, numbers, durable=durable):
            say(f"{journal.folder} does not take lines (no space left?): they are lost until it does.")


def _round(value: float) -> float:
    """Six digits: measurements are no more precise."""
    return float(f"{value:.6g}")
