"""The limits of a watched service: a few with every sample, all of them now and then."""

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, TypeVar

from loadframe.knowledge.rows import LimitRule
from loadframe.ledger.reading import derive, read_now
from loadframe.ledger.rules import RULES, declared_rule
from loadframe.recording.snapshot import Place, Snapshot, read, take
from loadframe.recording.snapshot_process import EVERYTHING

CEILINGS = ("target.cgroup.memory.limit", "target.cpus.allowed", "target.memory.allowed", "system.files.limit")
"""Metrics that a look at all limits reads and the samples go on using."""
MOST_SETS = 32
"""Sets of metric names whose rules are cached."""
A = TypeVar("A")


class Part:
    """Periodic work: at least base_s apart, at most `share` of a core, and at most thrifty_share of one as long as that
    keeps it within thrifty_s."""

    def __init__(self, base_s: float, share: float, *, thrifty_share: float = math.inf, thrifty_s: float = 0.0) -> None:
        self._base_s, self._share = base_s, share
        self._thrifty_share, self._thrifty_s = thrifty_share, thrifty_s
        self._due_s = -math.inf

    def due(self, now_s: float) -> bool:
        return now_s >= self._due_s

    def run(self, now_s: float, work: Callable[[], A | None]) -> A | None:
        """Do the work if it is due, and measure its CPU time; what fails or gives None counts as free."""
        if not self.due(now_s):
            return None
        before_s = time.process_time()
        done = work()
        self.cost(now_s, 0.0 if done is None else time.process_time() - before_s)
        return done

    def cost(self, now_s: float, cpu_s: float) -> None:
        thrifty_s = min(cpu_s / self._thrifty_share, self._thrifty_s)
        self._due_s = now_s + max(self._base_s, thrifty_s, cpu_s / self._share)


class Ledger:
    """declared: limits of a study (name, use, ceiling, title, loud). kinds: as read_now takes them."""

    def __init__(self, declared: Sequence[Mapping[str, Any]], kinds: Sequence[str]) -> None:
        self._declared = [SimpleNamespace(raises="", **limit) for limit in declared]
        self._kinds = frozenset(kinds)
        rules = [rule for rule in RULES if not rule.pressure and not rule.id.startswith("cage.")]
        self._by_use: dict[str, list[LimitRule]] = {}
        for rule in rules:
            self._by_use.setdefault(rule.use_at_this_moment, []).append(rule)
        self._judged: dict[frozenset[str], list[LimitRule]] = {}
        self._last: Snapshot | None = None
        self._place = Place()
        self.slow: dict[str, float] = {}
        self.titles = {rule.id: rule.title for rule in RULES}
        self.titles |= {rule.id: rule.title for rule in self._stated(())}

    def quick(self, values: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float]]:
        """(use, harms): shares of the ceilings, and the rates of harm that are counted."""
        use: dict[str, float] = {}
        harms: dict[str, float] = {}
        for rule in self._judged_by(values):
            ceiling = 1.0 if rule.ceiling == "one" else rule.most
            if ceiling is None:
                ceiling = values.get(rule.ceiling, self.slow.get(rule.ceiling, math.inf))
            if 0 < ceiling < math.inf:
                use[rule.id] = values[rule.use_at_this_moment] / ceiling
                harm = rule.thrash or rule.errors or ""
                if harm in values:
                    harms[rule.id] = values[harm]
        return use, harms

    def look(self, pids: Sequence[int], values: Mapping[str, float]) -> dict[str, Any] | None:
        """A line `ledger` of a day file; None at the first look at a process, as rates need two."""
        place = Place(pid=pids[0] if pids else None, no_process="the service is not there", others=tuple(pids[1:]))
        first, last = self._last, take(place, EVERYTHING)
        if self._place.pid != place.pid:
            first = None
        self._place, self._last = replace(place, others=()), last
        readings = read(first or last, last, EVERYTHING)
        known, missing = derive({**readings.values, **values}, readings.missing)
        self.slow = {name: known[name] for name in CEILINGS if name in known and math.isfinite(known[name])}
        if first is None:
            return None
        limits, unread = read_now(known, missing, kinds=self._kinds, rules=(*self._stated(values), *RULES))
        return {
            "limits": [
                {"id": limit.id, "title": limit.title, "layer": limit.layer, "unit": limit.unit, "use": limit.use,
                 "ceiling": limit.ceiling if math.isfinite(limit.ceiling) else None, "status": limit.status}
                for limit in limits
            ],
            "unread": len(unread),
        }  # fmt: skip

    def _judged_by(self, there: Mapping[str, float]) -> list[LimitRule]:
        """Cached by set of names, of which a watch sees a few."""
        names = frozenset(there)
        judged = self._judged.get(names)
        if judged is None:
            if len(self._judged) >= MOST_SETS:
                self._judged.clear()
            ours = (rule for name in there for rule in self._by_use.get(name, ()))
            judged = [rule for rule in (*self._stated(there), *ours) if rule.use_at_this_moment in there]
            self._judged[names] = judged
        return judged

    def _stated(self, there: Collection[str]) -> list[LimitRule]:
        return [declared_rule(limit, there) for limit in self._declared]
