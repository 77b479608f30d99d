"""How often `loadframe watch` speaks for nothing on what production does every day, and whether it tells events apart:
python benchmarks/watch_scenes.py [--seed N] [--months N] [--only SCENE ...]

Simulated months of the farm of watch_farm.py, through the real watcher, in scenes that the figures of
docs/watching.md were not built with. In the quiet ones every alarm is a false one. In the others something happens: its
alarm is to come, within a day, and no other. Ends with 1 where a scene misses that: of the quiet ones more than one
alarm a month, all together.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from watch_farm import DAY_S, MIB, Farm, Told, watching

INTERVAL_S, DAYS = 300.0, 30.0
EVENT_DAY = 10.4
"""When something happens, in the scenes in which something does: in the middle of a day."""
Shape = Callable[["Scene", float], float]


def _none(_: Scene, day: float) -> float:
    return 0.0


def _one(_: Scene, day: float) -> float:
    return 1.0


@dataclass
class Scene(Farm):
    """A farm. load, slow, cpu: factors of its load, its response and its CPU time by the day; memory, disk: bytes, and
    a share of the file system, on top; jitter: of one response, a factor."""

    load: Shape = _one
    slow: Shape = _one
    cpu: Shape = _one
    memory: Shape = _none
    disk: Shape = _none
    jitter: Callable[[Scene], float] = lambda scene: 1.0
    walked: float = 0.0
    draws: dict[str, float] = field(default_factory=dict)

    @property
    def day(self) -> float:
        return self.passed_s / DAY_S

    def step(self) -> None:
        super().step()
        self.walked += self._random.gauss(0, 1)
        self.jobs = max(1.0, self.jobs * self.load(self, self.day))

    def response_s(self) -> float:
        return super().response_s() * self.slow(self, self.day) * self.jitter(self)

    def metrics(self) -> dict[str, float]:
        found = super().metrics()
        more = self.memory(self, self.day)
        found["target.memory.rss"] = max(MIB, found["target.memory.rss"] + more)
        found["system.memory.used"] += more
        found["target.cpu.cores"] *= self.cpu(self, self.day)
        found["system.filesystem.space"] = min(1.0, found["system.filesystem.space"] + self.disk(self, self.day))
        return found

    def gauss(self) -> float:
        return self._random.gauss(0, 1)

    def pareto(self, shape: float) -> float:
        return self._random.paretovariate(shape)


def at_night(day: float, hours: float = 1.0) -> bool:
    return day % 1 < hours / 24


def _nightly(_: Scene, day: float) -> float:
    return 2.5 if at_night(day) else 1.0


def _sunday(_: Scene, day: float) -> float:
    return 2.0 if day % 7 >= 6 and at_night(day, 3.0) else 1.0


def _weekend(_: Scene, day: float) -> float:
    return 0.25 if day % 7 >= 5 else 1.0


def _holiday(scene: Scene, day: float) -> float:
    return _weekend(scene, day) if not 14 <= day < 19 else 0.3


def _step_up(_: Scene, day: float) -> float:
    return 1.5 if day >= EVENT_DAY else 1.0


def _sawtooth(_: Scene, day: float) -> float:
    return 400 * MIB * ((day * 4) % 1)


def _warming(_: Scene, day: float) -> float:
    return 1500 * MIB * (1 - math.exp(-day / 2))


def _walk(scene: Scene, day: float) -> float:
    return 4 * MIB * scene.walked


def _rotated(_: Scene, day: float) -> float:
    return 0.06 * (day % 1)


def _rotated_weekly(_: Scene, day: float) -> float:
    return 0.02 * (day % 7)


def _restarts(_: Scene, day: float) -> float:
    return -300 * MIB * (day % 7 < 0.5)


def _slower(_: Scene, day: float) -> float:
    return 1.4 if day >= EVENT_DAY else 1.0


def _busier(_: Scene, day: float) -> float:
    return 1.3 if day >= EVENT_DAY else 1.0


def _leak_begins(_: Scene, day: float) -> float:
    return max(0.0, day - EVENT_DAY) * 1440 * MIB


@dataclass(frozen=True)
class Case:
    """wished: of a Scene. event: the alarm that must come after EVENT_DAY; about: the series or metric that it names.
    days: how long it is watched, by default a month."""

    words: str
    wished: Mapping[str, Any]
    event: str = ""
    about: str = ""
    days: float = DAYS


# fmt: off
CASES: Mapping[str, Case] = {
    "weekend": Case("a day's rhythm, a quarter of it at weekends", {"load": _weekend}),
    "holiday": Case("the same, with five quiet working days", {"load": _holiday}),
    "deploy": Case("half as much load more from one moment on", {"load": _step_up, "peak": 180.0}),
    "nightly": Case("for an hour each night responses take 2.5 times as long", {"slow": _nightly, "cpu": _nightly}),
    "sunday": Case("for three hours each Sunday twice as long", {"slow": _sunday}),
    "lognormal": Case("responses with a log-normal tail", {"jitter": lambda one: math.exp(1.2 * one.gauss())}),
    "pareto": Case("responses with Pareto's tail of 1.5", {"jitter": lambda one: one.pareto(1.5)}),
    "stalls": Case("one response in 50 takes 30 times as long",
                   {"jitter": lambda one: 30.0 if one.pareto(1.0) > 50 else 1.0}),
    "collector": Case("memory rises and falls four times a day", {"memory": _sawtooth}),
    "warming": Case("a cache that fills within days", {"memory": _warming}),
    "walking": Case("memory walks at random", {"memory": _walk}),
    "rotated": Case("a file system that fills by 6 % a day, emptied at night", {"disk": _rotated}),
    "weekly": Case("by 2 % a day, emptied once a week", {"disk": _rotated_weekly}),
    "restarts": Case("memory begins again once a week", {"memory": _restarts}),
    "slower": Case("responses take 1.4 times as long from one moment on", {"slow": _slower}, "change", "response", 14),
    "busier": Case("1.3 times the CPU time from one moment on", {"cpu": _busier}, "change", "cpu", 14),
    "leaks later": Case("1 MiB a minute from one moment on", {"memory": _leak_begins}, "leak", "target.memory.rss", 14),
}
# fmt: on


def watch_one(name: str, seed: int) -> tuple[Told, ...]:
    """The alarms of a month."""
    case = CASES[name]
    own = 1000 * seed + list(CASES).index(name)
    farm = Scene(**{"seed": own, "peak": 200.0 + 10 * (seed % 10), **case.wished})
    told: list[Told] = []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, watching(farm, Path(folder), INTERVAL_S) as watcher:
        while farm.passed_s < case.days * DAY_S:
            known = len(watcher.alarms)
            watcher.tick()
            told += [Told(one, farm.passed_s, farm.jobs, farm.highest) for one in watcher.alarms[known:]]
            farm.clocks.advance(INTERVAL_S)
    return tuple(told)


def judge(name: str, months: Sequence[tuple[Told, ...]]) -> tuple[int, bool]:
    """(false alarms, whether what happened was told in every month). Prints both."""
    case = CASES[name]
    false, late = 0, list[float]()
    print(f"{name}: {case.words}")
    for told in months:
        right = [one for one in told if _is_it(case, one)]
        late += [right[0].at_s / DAY_S - EVENT_DAY] if right else []
        for one in told:
            if one in right[:1]:
                continue
            false += 1
            print(f"    day {one.at_s / DAY_S:5.2f}: {one.record['alarm']}: {one.record['title']}")
    words = f"{false} false alarms in {len(months) * case.days / DAYS:.1f} months"
    if case.event:
        hours = ", ".join(f"{24 * one:.1f}" for one in sorted(late))
        words += f"; {case.event} told in {len(late)} of {len(months)}, after hours: {hours}"
    print(f"  {words}", flush=True)
    return false, not case.event or (len(late) == len(months) and max(late) <= 1)


def _is_it(case: Case, told: Told) -> bool:
    about = (told.record["alarm"], told.record["about"])
    return bool(case.event) and about == (case.event, case.about) and told.at_s >= EVENT_DAY * DAY_S


def _silent() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def main() -> int:
    """Simulate, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="of the first month; the others follow")
    parser.add_argument("--months", type=int, default=4, help="of each scene")
    parser.add_argument("--only", choices=tuple(CASES), action="append")
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.months)
    false, met, quiet = 0, True, 0.0
    with ProcessPoolExecutor(os.cpu_count(), initializer=_silent) as pool:
        for name in arguments.only or CASES:
            count, told = judge(name, list(pool.map(watch_one, [name] * len(seeds), seeds)))
            false, met, quiet = false + count, met and told, quiet + len(seeds) * CASES[name].days / DAYS
    print(f"{false} false alarms in {quiet:.1f} months: {'met' if met and false <= quiet else 'MISSED'}")
    return 0 if met and false <= quiet else 1


if __name__ == "__main__":
    sys.exit(main())
