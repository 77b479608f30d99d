"""What of a target has the size of the number of requests served at once, and whether a raised setting can be what a
cause counts (docs/mathematics.md, "Numbers that match by chance", "Whether a mechanism moved"). A setting whose value
is the throughput itself is a rate: a token bucket is as flat as a pool."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from loadframe.analysis.in_service import InService
from loadframe.diagnosis.peers import OTHERS, looked_at
from loadframe.metrics.exposed import OF
from loadframe.model import REACHED, Change, Finding, Limit, Remedy, SettingValue, Steps, amount
from loadframe.units import show

PARALLELISM, SERIAL = SERVED_AT_ONCE = ("service.parallelism", "service.serial")
PEER = re.compile(r"target\.peer\.(?P<peer>.+)\.connections")
RUNNING, UNKNOWN_WAIT = "target.waits.running", "target.waits.other"
STILL = 0.995
"""Average threads in a wait at the lowest load from which on one never left it."""
STATES: Mapping[str, str] = {
    "target.waits.sleeping": "sleep",
    "target.waits.network": "wait for the network",
    "target.waits.disk": "wait for the disk",
    "target.waits.futex": "wait for one another (futex)",
    RUNNING: "run",
    UNKNOWN_WAIT: "wait in the kernel",
}
THE_SETTING, SERVED_AT_A_TIME = "the setting", "served at a time"
SETTING = re.compile(rf"{THE_SETTING} (\S+) is ")
COUNTED: Mapping[str, str] = {"target.processes.count": "processes", "target.threads.count": "threads"}
IN_USE = 0.7
"""Least share of a limiting pool's connections that await an answer."""
NEAR = 0.06
"""A mean is a size if within half of one, or for larger sizes within this share."""
ITSELF = 1
"""The first thread, or the workers' parent, serves no request."""


@dataclass(frozen=True, slots=True)
class Size:
    """words: "4 connections to 127.0.0.1:5432". metric: "" for a setting. setting: "" for what is only seen."""

    words: str
    value: float
    metric: str = ""
    setting: str = ""


def sizes(
    served: InService,
    plateau: Mapping[float, Steps],
    low: Steps,
    settings: Mapping[str, SettingValue],
    limits: Sequence[Limit],
) -> tuple[Size, ...]:
    """What is alike at every level of the plateau, then settings. low: steps at the lowest load."""
    if not served.known:
        return ()
    declared = [
        Size(f"{THE_SETTING} {name} is {show(number, 'count')}", number, setting=name)
        for name, value in settings.items()
        if (number := _whole(value)) is not None and served.holds(number)
    ] + [
        Size(f"{limit.title or limit.id} is full at {show(limit.ceiling, 'count')}", limit.ceiling, limit.use_metric)
        for limit in limits
        if limit.layer == "server" and served.holds(limit.ceiling) and limit.use >= REACHED * limit.ceiling
    ]
    return (*_peers(served, plateau), *_states(served, plateau, low), *_counted(served, plateau), *declared)


def _peers(served: InService, plateau: Mapping[float, Steps]) -> list[Size]:
    connections = []
    plateau = {level: looked_at(steps) for level, steps in plateau.items()}
    for metric in sorted({name for steps in plateau.values() for step in steps for name in step.metrics}):
        match = PEER.fullmatch(metric)
        size = _everywhere(served, metric, plateau)
        used = mean_of(metric.replace(".connections", ".busy"), [step for steps in plateau.values() for step in steps])
        idle = size is not None and used is not None and used < IN_USE * size
        if match is not None and size is not None and match["peer"] != OTHERS and not idle:
            connections.append(Size(f"{_many(size, 'connection')} to {match['peer']}", size, metric))
    return connections


def _states(served: InService, plateau: Mapping[float, Steps], low: Steps) -> list[Size]:
    """What threads are in at the plateau, and none or fewer at the lowest load."""
    moving, still = [], []
    for metric, words in STATES.items():
        size, before = _everywhere(served, metric, plateau), mean_of(metric, low)
        if size is None or before is None or (before > 0.75 * size and round(size) != 1):
            continue
        threads = Size(f"{_many(size, 'thread')} {_verb(words, size)}", size, metric)
        if metric == RUNNING or before < STILL:
            moving.append(threads)
        elif metric != UNKNOWN_WAIT:
            still.append(threads)
    return moving or still


def _counted(served: InService, plateau: Mapping[float, Steps]) -> list[Size]:
    """Threads and processes: as many, or one more for the first; single-threaded processes count once."""
    by_count: dict[tuple[int, int], Size] = {}
    for metric, words in COUNTED.items():
        for more in (0, ITSELF):
            size = _everywhere(served, metric, plateau, more)
            if size is not None and round(size) > 1:
                besides = " besides the first one" if more else ""
                said = Size(f"{show(round(size), 'count')} {words}{besides}", size, metric)
                by_count.setdefault((round(size), more), said)
                break
    return list(by_count.values())


def _everywhere(served: InService, metric: str, plateau: Mapping[float, Steps], more: int = 0) -> float | None:
    """The mean, less `more`, if near the same whole number at every level; else None."""
    means = [mean_of(metric, steps) for steps in plateau.values()]
    known = [value - more for value in means if value is not None]
    if not known or len(known) < len(means):
        return None
    size = round(fmean(known))
    if size < 1:
        return None  # zero of something serves no request
    near = max(0.5, NEAR * size) if size > 1 else 0.4
    return fmean(known) if served.holds(size) and all(abs(value - size) < near for value in known) else None


def mean_of(metric: str, steps: Steps) -> float | None:
    values = [step.metrics[metric] for step in steps if metric in step.metrics]
    return fmean(values) if values and len(values) == len(steps) else None


def _whole(value: SettingValue) -> float | None:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except ValueError:
        return None
    return number if number.is_integer() else None


def _many(size: float, what: str) -> str:
    return f"{show(round(size), 'count')} {what}{'' if round(size) == 1 else 's'}"


def _verb(words: str, size: float) -> str:
    if round(size) != 1:
        return words
    first, _, rest = words.partition(" ")
    return f"{first}s {rest}".strip()


IN_SERVICE, THROUGHPUT = "workload.in_service", "throughput"
NEAR_A_NUMBER = 0.1
WELL_BELOW = 0.75
"""Share of X R: below its error, and what of a request's time may lie outside of the limit."""
TIMES_ANOTHER = "times another setting is"
"""Part of a reason: its product with another setting is the number in service."""
LARGEST_VALUE = 1e6
PERIODS_S = {"second": 1.0, "minute": 60.0, "hour": 3600.0}


def is_another(finding: Finding, remedy: Remedy, before: Steps) -> str:
    """Why a gain by this remedy does not show that what the finding counts was raised; else ""."""
    for change in remedy.changes:
        own = (finding.id, finding.behind, "")  # a limit of the service is one of requests in service, too
        if change.needed and change.raises not in own and not change.raises.startswith(OF):
            return f"the study says that {change.setting} raises {change.raises}, which is another cause"
    most = in_service_by(finding)
    if most is None or not remedy.guessed:
        return ""
    throughput = fmean(step.throughput for step in before) if before else 0.0
    for change, value in _changed(remedy):
        if is_near(value, most):
            continue
        if period := _period(value, throughput):
            itself = f"{change.setting} = {change.before} is the throughput itself, in requests per {period}"
            return f"{itself}: a rate, and no number at a time"
        if value > most:
            law = f"by Little's law {show(most, 'count')} at most are served at a time"
            return f"{change.setting} = {change.before} counts something else: {law}"
    return ""


def other_reading(finding: Finding, remedy: Remedy, before: Steps) -> str:
    """Of a number below the requests in service: each request holds one for a part of its time (n = X W), or it is a
    rate per short time; else ""."""
    most = in_service_by(finding)
    throughput = fmean(step.throughput for step in before) if before else 0.0
    if most is None or not remedy.guessed or throughput <= 0:
        return ""
    for change, value in _changed(remedy):
        if 0 < value < WELL_BELOW * most and TIMES_ANOTHER not in change.why:
            return (
                f"{change.setting} = {change.before} is less than {show(most, 'count')}: either each request holds one "
                f"for {show(value / most, 'share')} of its time, or it is a rate, of {show(value, 'count')} in "
                f"{show(1000 * value / throughput, 'ms')}; that it limits is shown, and not which of the two it is"
            )
    return ""


def in_service_by(finding: Finding) -> float | None:
    return next((evidence.threshold for evidence in finding.evidence if evidence.metric == IN_SERVICE), None)


def _changed(remedy: Remedy) -> list[tuple[Change, float]]:
    needed = [(change, change.before) for change in remedy.changes if change.needed and change.before is not None]
    return [(change, value) for change, before in needed if (value := amount(before)) is not None]


@dataclass(frozen=True, slots=True)
class Rate:
    """Its value is the throughput itself, in requests per `period`."""

    name: str
    value: SettingValue
    period: str
    per_s: float

    def __str__(self) -> str:
        return f"{self.name} = {self.value}, in requests per {self.period}"


def rates(settings: Mapping[str, SettingValue], throughput: float) -> tuple[Rate, ...]:
    matching = []
    for name, value in settings.items():
        size = amount(value)
        if size is not None and (period := _period(size, throughput)):
            matching.append(Rate(name, value, period, size / PERIODS_S[period]))
    return tuple(matching)


def by_chance(settings: Mapping[str, SettingValue], served: InService) -> str:
    """How often a setting unrelated to the load matches by chance: log-uniform from 1 to LARGEST_VALUE, within
    low..high, or near the throughput."""
    count = sum(amount(value) is not None for value in settings.values())
    windows = math.log(served.high / max(served.low, 1.0)) if served.known and served.high > 1 else 0.0
    windows += len(PERIODS_S) * math.log((1 + NEAR_A_NUMBER) / (1 - NEAR_A_NUMBER))
    chance = 1 - (1 - min(1.0, windows / math.log(LARGEST_VALUE))) ** count
    of = "the setting" if count == 1 else f"one of the {count} settings"
    return f"By chance alone {of} would have such a value in {show(round(chance, 2), 'share')} of services."


def _period(value: float, throughput: float) -> str:
    return next((name for name, seconds in PERIODS_S.items() if is_near(value, seconds * throughput)), "")


def is_near(value: float, size: float) -> bool:
    return abs(value - size) <= NEAR_A_NUMBER * size
