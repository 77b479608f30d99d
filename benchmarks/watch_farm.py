"""A render farm in simulated days, for benchmarks/watch.py and the tests: the real watcher, journal, ledger, model and
fit with a clock of their own; only what is read of the world is made up.

The farm: five tables per job in a MariaDB with a table cache of 2,560, so it bends at 512 active jobs. The load has a
daily cycle, and its deviations last for hours (an autoregression with 0.9 from sample to sample); NOISES has others.
The response of the unit of work is that of the story: 2 s, and from the bend on it grows steeply.
"""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any

from loadframe_watch.child import compact, fit
from loadframe_watch.journal import Journal
from loadframe_watch.ledger import Ledger
from loadframe_watch.records import WatchPlan
from loadframe_watch.unit import Done
from loadframe_watch.watcher import Watcher

DAY_S, BEGUN_S = 86400.0, 1_764_000_000.0
TABLES, CACHE = 5, 2560
BEND = CACHE / TABLES
MIB = 2**20


NOISES = ("hours", "heavy", "bursts", "batches", "wandering")
"""Of the load: deviations that last for hours; the same with Student's t of 3 degrees of freedom, and responses of
which every hundredth takes ten times as long; four bursts a day, of a quarter of the load at most, for up to 40
minutes; batches of a twentieth to a fifth of the load that come and go by themselves, some of them for a day; a slow
walk from day to day."""


class SimulatedClocks:
    """All three advance together, unless a test says otherwise."""

    def __init__(self, wall_s: float = BEGUN_S) -> None:
        self.wall_s, self.boot_s, self.monotonic_s = wall_s, 1000.0, 1000.0

    def wall(self) -> float:
        return self.wall_s

    def boot(self) -> float:
        return self.boot_s

    def monotonic(self) -> float:
        return self.monotonic_s

    def advance(self, seconds: float) -> None:
        self.wall_s += seconds
        self.boot_s += seconds
        self.monotonic_s += seconds


@dataclass
class Farm:
    """peak: active jobs at the top of the first day; growth: of that peak, by day; from added_from_s on added_per_hour
    jobs come on top. weekend: the load of the sixth and seventh day, as a share. leak: bytes a second; memory_limit: of
    the control group. there: whether the service runs; error: what its unit of work says."""

    seed: int
    peak: float
    growth: float = 0.0
    added_from_s: float = math.inf
    added_per_hour: float = 0.0
    weekend: float = 1.0
    leak: float = 0.0
    memory_limit: float = math.inf
    slower_from_s: float = math.inf
    there: bool = True
    error: str = ""
    noise: str = "hours"
    clocks: SimulatedClocks = field(default_factory=SimulatedClocks)
    deviation: float = 0.0
    jobs: float = 0.0
    highest: float = 0.0
    opened: float = 0.0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._began_s = self.clocks.boot()
        self._starts, self._known = 0, False
        self._on_top: list[tuple[float, float]] = []

    @property
    def passed_s(self) -> float:
        return self.clocks.boot() - self._began_s

    def step(self) -> None:
        """The farm as it is now."""
        day = self.passed_s / DAY_S
        self.deviation = 0.9 * self.deviation + self._shock()
        cycle = 0.55 - 0.45 * math.cos(2 * math.pi * (day - 0.2))
        breath = (self.weekend if day % 7 >= 5 else 1.0) * (cycle + self.deviation) * (1 + self._extra())
        added = max(0.0, self.passed_s - self.added_from_s) / 3600 * self.added_per_hour
        self.jobs = max(1.0, self.peak * (1 + self.growth * day) * breath + added)
        self.highest = max(self.highest, self.jobs)
        self.opened = max(0.0, self.jobs - BEND) * 40

    def _shock(self) -> float:
        scale = 0.03 * math.sqrt(1 - 0.81)
        if self.noise != "heavy":
            return self._random.gauss(0, scale)
        power = sum(self._random.gauss(0, 1) ** 2 for _ in range(3))
        return scale * self._random.gauss(0, 1) / math.sqrt(power) if power else 0.0

    def _extra(self) -> float:
        """What is on top of the load, as a share of it. Each piece: (until, share)."""
        draw, now_s = self._random, self.passed_s
        if self.noise == "wandering":
            walked = (self._on_top[0][1] if self._on_top else 0.0) * 0.9995 + draw.gauss(0, 0.0025)
            self._on_top = [(math.inf, min(0.25, max(-0.25, walked)))]
        elif self.noise == "bursts" and not self._on_top and draw.random() < 4 / 288:
            self._on_top = [(now_s + draw.uniform(600, 2400), draw.uniform(0.1, 0.25))]
        elif self.noise == "batches" and draw.random() < 6 / 288 and len(self._on_top) < 4:
            self._on_top.append((now_s + min(DAY_S, 1800 * draw.paretovariate(1.2)), draw.uniform(0.05, 0.2)))
        self._on_top = [one for one in self._on_top if one[0] > now_s]
        return min(0.25, sum(share for _, share in self._on_top))

    def response_s(self) -> float:
        over = max(0.0, self.jobs / BEND - 1)
        slower = 1.6 if self.passed_s >= self.slower_from_s else 1.0
        slower *= 10 if self.noise == "heavy" and self._random.random() < 0.01 else 1
        return slower * (2 + 0.2 * self.jobs / BEND + 400 * over**1.5) * math.exp(self._random.gauss(0, 0.2))

    def metrics(self) -> dict[str, float]:
        noise = self._random.gauss
        wanted = TABLES * self.jobs + 12
        rss = 600 * MIB + 0.4 * MIB * self.jobs + self.leak * self.passed_s + noise(0, 6 * MIB)
        return {
            "service.active_jobs": round(self.jobs),
            "mariadb.open_tables": min(CACHE, wanted * (1 + noise(0, 0.02))),
            "mariadb.table_open_cache": CACHE,
            "mariadb.opened_tables": max(0.0, self.opened + abs(noise(0, 0.02))),
            "mariadb.connections": 20 + 0.2 * self.jobs + noise(0, 3),
            "mariadb.max_connections": 1000,
            "mariadb.questions": 4 * min(self.jobs, BEND) + noise(0, 20),
            "target.cpu.cores": max(0.0, 0.3 + 0.002 * self.jobs + noise(0, 0.05)),
            "target.memory.rss": max(MIB, rss),
            "target.open_files": 60 + 2 * min(CACHE, wanted),
            "target.open_files.limit": 32768,
            "target.threads.count": 30.0,
            "system.cpu.count": 4.0,
            "system.cpu.busy_cores": min(4.0, 0.6 + 0.003 * self.jobs),
            "system.memory.limit": 16 * 1024 * MIB,
            "system.memory.used": 3000 * MIB + max(MIB, rss),
            "system.filesystem.space": 0.41,
        }

    # --- what the watcher reads ---

    def read(self, now_s: float) -> tuple[dict[str, float], bool]:
        self.step()
        return self.metrics(), self.there

    def pids(self) -> tuple[int, ...]:
        return ()

    def who(self) -> str:
        self._starts += self.there and not self._known
        self._known = self.there
        return f"start {self._starts}" if self.there else ""


class SimulatedUnit:
    """The unit of work of a farm, which is through at once for the simulated clock."""

    def __init__(self, farm: Farm) -> None:
        self._farm, self._done = farm, list[Done]()
        self.responses: list[tuple[float, float]] = []

    def begin(self, due_s: float) -> None:
        response_s = self._farm.response_s()
        self.responses.append((self._farm.jobs, response_s))
        self._done.append(Done(response_s, 0.0, self._farm.error))

    def finished(self) -> list[Done]:
        done, self._done = self._done, []
        return done


class ChildrenAtOnce:
    """The tasks of the children, done in this process."""

    def __init__(self, row_s: float = 300.0) -> None:
        self._row_s, self.fits = row_s, 0
        self._fit: Mapping[str, Any] | None = None

    def fit(self, folder: Path, since_s: float) -> None:
        self.fits += 1
        self._fit = fit(folder, every_s=self._row_s, since_s=since_s)

    def compact(self, file: Path) -> None:
        compact(file)

    def fitted(self) -> Mapping[str, Any] | None:
        fit, self._fit = self._fit, None
        return fit

    def spent_s(self) -> float:
        return 0.0


class StillLedger(Ledger):
    """Without the looks at all limits of the machine that runs the simulation: of them one is made up, too."""

    def __init__(self, farm: Farm, kinds: Sequence[str]) -> None:
        super().__init__((), kinds)
        self._farm = farm

    def look(self, pids: Sequence[int], values: Mapping[str, float]) -> dict[str, Any] | None:
        limit = self._farm.memory_limit
        self.slow = {} if math.isinf(limit) else {"target.cgroup.memory.limit": limit}
        return None


@dataclass(frozen=True)
class Told:
    """An alarm. at_s: since the beginning; jobs, highest: of the farm at that moment and until then."""

    record: Mapping[str, Any]
    at_s: float
    jobs: float
    highest: float


def watch(farm: Farm, days: float, *, interval_s: float = 300.0, until_bend: bool = False) -> list[Told]:
    """Watch a farm for so many days; its alarms. until_bend: end once the load has passed the bend."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, watching(farm, Path(folder), interval_s) as watcher:
        told: list[Told] = []
        while farm.passed_s < days * DAY_S and not (until_bend and farm.highest > BEND):
            known = len(watcher.alarms)
            watcher.tick()
            told += [Told(one, farm.passed_s, farm.jobs, farm.highest) for one in watcher.alarms[known:]]
            farm.clocks.advance(interval_s)
        return told


@contextmanager
def watching(
    farm: Farm,
    folder: Path,
    interval_s: float,
    *,
    children: ChildrenAtOnce | None = None,
    late_s: Mapping[int, float] = MappingProxyType({}),
    **wished: Any,
) -> Iterator[Watcher]:
    """The real watcher on a farm. wished: of its plan. It sleeps by setting the farm's clocks. late_s: how much later
    than asked for a sleep ends, by its number, the first being 1."""
    plan = WatchPlan(
        "a render farm", str(folder), interval_s=interval_s, every_s=300.0, load="active_jobs",
        kinds=("process", "mariadb"), requests=("mariadb.questions",),
    )  # fmt: skip
    journal = Journal(folder, farm.clocks)
    ledger = StillLedger(farm, plan.kinds)
    unit: Any = SimulatedUnit(farm)

    sleeps = count(1)

    def wait(seconds: float) -> bool:
        farm.clocks.advance(seconds + late_s.get(next(sleeps), 0.0))
        return False

    try:
        plan, children = replace(plan, **wished), children or ChildrenAtOnce()
        yield Watcher(plan, journal, farm, children, ledger, farm.clocks, unit, wait=wait)
    finally:
        journal.close()
