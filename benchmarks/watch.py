"""How early `loadframe watch` speaks, and how often for nothing: python benchmarks/watch.py [--seed N] [--farms N]
    [--days N] [--noise SHAPE] [--quiet MONTHS] [--cost] [--live]

Simulated days through the real watcher (benchmarks/watch_farm.py: only what is read of the world is made up):

1. Farms to which jobs are added until the response bends at 512 active jobs: by so many per cent a day, or within
   hours of one day. Named in time: an alarm `limit-ahead` that says 512 jobs within a tenth, while the load has not
   been above 80 % of that. Goal: 9 of 10.
2. Farms that only breathe, by day and by week, below the bend, for 30 days. Goal: no alarm on any.
3. Farms that leak 1 MiB a minute. Named: an alarm `leak`, whose interval has the hour at which memory ends. Goal: 9 of
   10 (the intervals are of 95 %), and no other alarm.

Rivals on the same rows: an alarm where the response is above twice the median of the first day for three readings one
after the other; and a straight line through the daily maxima of the use of each limit that meets its ceiling within
seven days (as predict_linear over a recorded maximum), which has the same knowledge of what the limits are.

--quiet MONTHS: false alarms of the test for a change, on so many months of each kind of quiet series. Goal: their rate
is not proven to be above one a month. --cost: what the watch takes of the machine, beside atop, sadc and
prometheus-node-exporter (benchmarks/watch_cost.py). --live: the same as 1. for real, in an hour (watch_live.py). Ends
with 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from loadframe_watch.days import Observed, observed
from loadframe_watch.regime import Series
from watch_farm import BEND, DAY_S, MIB, NOISES, Farm, Told, watching

INTERVAL_S = 300.0
IN_TIME, RIGHT = 0.8, 0.1
"""Of the load at the bend, that must not have been passed; by how much the load that is named may differ from it."""
BENDS_GOAL, LEAKS_GOAL = 0.9, 0.9
LEAK = MIB / 60
MONTH_ROWS = 8640


@dataclass(frozen=True)
class Watched:
    """One farm: what was told of it, and what the rivals would have told. first: (days, highest load until then)."""

    words: str
    told: tuple[Told, ...]
    days: float
    threshold: tuple[float, float] | None
    line: tuple[float, float] | None


# --- the farms ---


def rising(seed: int) -> tuple[Farm, str]:
    """A farm to which jobs are added: every second one day by day, the others within hours."""
    draw = random.Random(seed)
    peak = draw.uniform(150, 300)
    if seed % 2:
        growth = draw.uniform(0.03, 0.15)
        return Farm(seed, peak, growth=growth), f"{peak:.0f} jobs, {growth:.0%} more a day"
    from_s, hours = draw.uniform(2, 10) * DAY_S, draw.uniform(3, 12)
    rate = BEND / hours
    words = f"{peak:.0f} jobs, {rate:.0f} an hour from day {from_s / DAY_S:.1f} on"
    return Farm(seed, peak, added_from_s=from_s, added_per_hour=rate), words


def breathing(seed: int) -> tuple[Farm, str]:
    """A farm whose load follows the day, and every second one the week too; at its highest it is near the bend."""
    draw = random.Random(seed)
    peak = draw.uniform(150, 400)
    weekend = 0.6 if seed % 2 else 1.0
    return Farm(seed, peak, weekend=weekend), f"{peak:.0f} jobs" + (", fewer at the weekend" if seed % 2 else "")


def leaking(seed: int) -> tuple[Farm, str]:
    """A farm that leaks 1 MiB a minute, within a control group of so much memory."""
    draw = random.Random(seed)
    peak, limit = draw.uniform(100, 350), draw.uniform(2, 6) * 1024
    return Farm(seed, peak, leak=LEAK, memory_limit=limit * MIB), f"{peak:.0f} jobs, a limit of {limit:.0f} MiB"


FARMS: Mapping[str, Callable[[int], tuple[Farm, str]]] = {
    "rising": rising,
    "breathing": breathing,
    "leaking": leaking,
}


def watch_one(kind: str, seed: int, days: float, noise: str = "hours") -> Watched:
    """Watch one farm to its end: the bend, the end of its memory, or so many days."""
    farm, words = FARMS[kind](seed)
    farm.noise = noise
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name, watching(farm, Path(name), INTERVAL_S) as watcher:
        told: list[Told] = []
        highest: list[float] = []
        while farm.passed_s < days * DAY_S and not _over(kind, farm):
            known = len(watcher.alarms)
            watcher.tick()
            highest.append(farm.highest)
            told += [Told(one, farm.passed_s, farm.jobs, farm.highest) for one in watcher.alarms[known:]]
            farm.clocks.advance(INTERVAL_S)
        rows = observed(Path(name), every_s=INTERVAL_S)
        days_passed = farm.passed_s / DAY_S
        return Watched(words, tuple(told), days_passed, _at(threshold(rows), highest), _at(line(rows), highest))


def _over(kind: str, farm: Farm) -> bool:
    if kind == "rising":
        return farm.highest > BEND
    return kind == "leaking" and farm.metrics()["target.memory.rss"] >= farm.memory_limit


def _at(row: int | None, highest: Sequence[float]) -> tuple[float, float] | None:
    return None if row is None else (row * INTERVAL_S / DAY_S, highest[min(row, len(highest) - 1)])


# --- the rivals ---


def threshold(rows: Observed) -> int | None:
    """The row at which the response was above twice the median of the first day for the third time in a row."""
    day = int(DAY_S / INTERVAL_S)
    first = [one for one in rows.response_s[:day] if one is not None]
    bound, above = 2 * statistics.median(first), 0
    for at, response_s in enumerate(rows.response_s[day:], day):
        above = above + 1 if response_s is not None and response_s > bound else 0
        if above == 3:
            return at
    return None


def line(rows: Observed) -> int | None:
    """The row at the end of the day on which the line through the daily maxima of a use, of three to fourteen days,
    meets the ceiling within seven days."""
    day = int(DAY_S / INTERVAL_S)
    for end in range(3 * day, len(rows.time_s) + 1, day):
        for shares in rows.use.values():
            known = np.array([math.nan if one is None else one for one in shares[:end]])
            maxima = np.nanmax(known.reshape(-1, day), axis=1)[-14:]
            slope, _ = np.polyfit(np.arange(len(maxima)), maxima, 1)
            if slope > 0 and maxima[-1] + 7 * slope >= 1:
                return end - 1
    return None


# --- the tables ---


def judge_rising(found: Sequence[Watched]) -> bool:
    """Whether enough bends were named in time."""
    print(f"Jobs are added until the bend at {BEND:.0f}: the highest load when it was named (day; load named)")
    scores = {"watch": 0, "threshold": 0, "line": 0}
    for one in found:
        named = _named(one.told)
        rivals = {"threshold": one.threshold, "line": one.line}
        early = {name: at is not None and at[1] <= IN_TIME * BEND for name, at in rivals.items()}
        ours = named is not None and named.highest <= IN_TIME * BEND
        scores["watch"] += ours
        for name in rivals:
            scores[name] += early[name]
        load = "never" if named is None else f"{named.highest:.0f} (day {named.at_s / DAY_S:.1f}; {_load(named):.0f})"
        others = [told.record["title"] for told in one.told if told is not named]
        print(
            f"  {one.words:38} bend on day {one.days:4.1f}: {load:26} {'' if ours else 'LATE'} | threshold "
            f"{_shown(one.threshold)}, line {_shown(one.line)}" + "".join(f"\n      also: {each}" for each in others)
        )
    words = ", ".join(f"{name} {score} of {len(found)}" for name, score in scores.items())
    return _goal(f"named at least 20 % before: {words}", scores["watch"] >= BENDS_GOAL * len(found))


def _named(told: Sequence[Told]) -> Told | None:
    """The first alarm that says where the bend is."""
    ahead = [one for one in told if one.record["alarm"] == "limit-ahead"]
    return next((one for one in ahead if abs(_load(one) / BEND - 1) <= RIGHT), None)


def _load(told: Told) -> float:
    return float(told.record["at_load"]["load"])


def _shown(at: tuple[float, float] | None) -> str:
    return "never" if at is None else f"{at[1]:.0f} (day {at[0]:.1f})"


def judge_breathing(found: Sequence[Watched]) -> bool:
    """Whether no alarm was given."""
    print("Farms that only breathe: alarms")
    for one in found:
        print(f"  {one.words:38} {one.days:.0f} days: {len(one.told)} | threshold {_shown(one.threshold)}, line "
              f"{_shown(one.line)}")  # fmt: skip
        for told in one.told:
            print(f"      day {told.at_s / DAY_S:.1f}: {told.record['alarm']}: {told.record['title']}")
    alarms = {
        "watch": sum(bool(one.told) for one in found),
        "threshold": sum(one.threshold is not None for one in found),
        "line": sum(one.line is not None for one in found),
    }
    words = ", ".join(f"{name} {count} of {len(found)}" for name, count in alarms.items())
    return _goal(f"farms with an alarm: {words}", alarms["watch"] == 0)


def judge_leaking(found: Sequence[Watched]) -> bool:
    """Whether leaks are told with the hour at which they end."""
    print("Leaks of 1 MiB a minute: when they were named, and how far the hour named is off")
    held = others = 0
    for one in found:
        leaks = [told for told in one.told if told.record["alarm"] == "leak"]
        others += len(one.told) - len(leaks)
        for told in one.told:
            if told not in leaks:
                print(f"      also, day {told.at_s / DAY_S:.1f}: {told.record['title']}")
        if not leaks:
            print(f"  {one.words:38} ends on day {one.days:.1f}: never named")
            continue
        ends = {name: _days(leaks[0], at) for name, at in leaks[0].record["ends_s"].items()}
        right = ends["low"] <= one.days <= ends["high"]
        held += right
        low, value, high = (24 * ends[name] for name in ("low", "value", "high"))
        print(f"  {one.words:38} ends after {24 * one.days:4.0f} h: named after {leaks[0].at_s / 3600:4.1f} h as "
              f"{value:4.0f} ({low:.0f} to {high:.0f}) {'' if right else 'MISSED'}")  # fmt: skip
    met = held >= LEAKS_GOAL * len(found) and not others
    return _goal(f"named with the hour: {held} of {len(found)}; other alarms: {others}", met)


def _days(told: Told, wall_s: float | None) -> float:
    """A moment of the wall clock as days since the watch began."""
    from watch_farm import BEGUN_S

    return math.inf if wall_s is None else (wall_s - BEGUN_S) / DAY_S


def _goal(words: str, met: bool) -> bool:
    print(f"  {words}: {'met' if met else 'MISSED'}\n", flush=True)
    return met


JUDGES: Mapping[str, Callable[[Sequence[Watched]], bool]] = {
    "rising": judge_rising,
    "breathing": judge_breathing,
    "leaking": judge_leaking,
}


# --- quiet series ---


def quiet(shape: str, months: int, seed: int) -> Iterator[tuple[float | None, float]]:
    """Rows of (load, value) of a series that does not change."""
    draw, state = random.Random(f"{shape} {seed}"), 0.0
    for at in range(months * MONTH_ROWS):
        day = math.sin(2 * math.pi * at / 288)
        noise = draw.gauss(0, 1)
        state = 0.9 * state + 0.436 * draw.gauss(0, 1)
        load = 100 * (1 + 0.8 * day) * math.exp(0.1 * state)
        value = {
            "independent": noise,
            "correlated over hours": state,
            "outliers": math.exp(1.2 * noise),
            "a day of its own": 0.5 * day + noise,
            "follows the load": 0.02 * load + 0.5 * noise,
        }[shape]
        yield (load if shape == "follows the load" else None), value


SHAPES = ("independent", "correlated over hours", "outliers", "a day of its own", "follows the load")


def false_alarms(shape: str, months: int, seed: int) -> int:
    """How often the test speaks on such a series."""
    series = Series(float(MONTH_ROWS))
    rows = enumerate(quiet(shape, months, seed))
    return sum(series.take(load, value, INTERVAL_S * at) is not None for at, (load, value) in rows)


def judge_quiet(months: int, seed: int, pool: ProcessPoolExecutor) -> bool:
    """Whether false alarms come at most once a month: by the lower bound of Poisson's interval."""
    from scipy.stats import chi2

    print(f"False alarms of the test for a change, in {months} months of each quiet series (one series, one a month)")
    met = True
    counts = pool.map(false_alarms, SHAPES, [months] * len(SHAPES), [seed] * len(SHAPES))
    for shape, count in zip(SHAPES, counts, strict=True):
        low = float(chi2.ppf(0.05, 2 * count)) / 2 / months if count else 0.0
        high = float(chi2.ppf(0.95, 2 * count + 2)) / 2 / months
        met &= _goal(f"{shape}: {count} ({low:.2f} to {high:.2f} a month)", low <= 1)
    return met


def _silent() -> None:
    """Alarms are told on stderr, too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def main() -> int:
    """Simulate, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1000, help="of the first farm; the others follow")
    parser.add_argument("--farms", type=int, default=10)
    parser.add_argument("--days", type=float, default=30.0, help="how long a farm that breathes is watched")
    parser.add_argument(
        "--noise", choices=NOISES, default="hours", help="of the load; watch_farm.py tells what each is"
    )
    parser.add_argument("--only", choices=tuple(FARMS), action="append")
    parser.add_argument("--quiet", type=int, default=0, metavar="MONTHS")
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--live", action="store_true")
    parser.add_argument("--minutes", type=float, help="of --cost (5), and of --live (60): in which jobs are added")
    parser.add_argument("--interval", type=float, default=10.0, help="of --cost: seconds")
    parser.add_argument("--flat", type=float, default=5.0, help="of --live: minutes before that")
    arguments: Any = parser.parse_args()
    if arguments.live:
        from watch_live import judge_live

        return 0 if judge_live(arguments.minutes or 60.0, arguments.flat) else 1
    if arguments.cost:
        from watch_cost import judge_cost

        return 0 if judge_cost(arguments.minutes or 5.0, arguments.interval) else 1
    met = True
    with ProcessPoolExecutor(os.cpu_count(), initializer=_silent) as pool:
        if arguments.quiet:
            return 0 if judge_quiet(arguments.quiet, arguments.seed, pool) else 1
        for kind in arguments.only or FARMS:
            seeds = range(arguments.seed, arguments.seed + arguments.farms)
            days = arguments.days if kind == "breathing" else 60.0
            found = pool.map(watch_one, [kind] * len(seeds), seeds, [days] * len(seeds), [arguments.noise] * len(seeds))
            met &= JUDGES[kind](list(found))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
