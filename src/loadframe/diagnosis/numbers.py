"""Whether a setting that was raised can be the number of requests that are served at a time.

Of what each request holds while it is served no more than X R can be taken (Little's law: n = X W, and W <= R). A
setting with a larger value counts something else; and one whose value is the throughput itself is a rate: a token
bucket is as flat as a pool, X R is some number there, too, and a higher rate raises it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from loadframe.model import Finding, Remedy, SettingValue, Step, amount
from loadframe.units import show

IN_SERVICE, THROUGHPUT = "workload.in_service", "throughput"
NEAR = 0.1
"""X R and a throughput are measured, and the one may be told as a number that is not whole."""
PERIODS_S = {"second": 1.0, "minute": 60.0, "hour": 3600.0}


def is_another(finding: Finding, remedy: Remedy, before: Sequence[Step]) -> str:
    """In words, why a gain by this remedy does not show that a number of requests in service was raised, from the steps
    of the state before; "" where it may, or where the finding tells of none. What the study says that a setting raises,
    it raises."""
    most = next((each.threshold for each in finding.evidence if each.metric == IN_SERVICE), None)
    if most is None or not remedy.guessed:
        return ""
    throughput = fmean(step.throughput for step in before) if before else 0.0
    for change in remedy.changes:
        value = None if change.before is None or not change.needed else amount(change.before)
        if value is None or is_near(value, most):
            continue
        if period := _period(value, throughput):
            itself = f"{change.setting} = {change.before} is the throughput itself, in requests per {period}"
            return f"{itself}: a rate, and no number at a time"
        if value > most:
            law = f"by Little's law {show(most, 'count')} at most are served at a time"
            return f"{change.setting} = {change.before} counts something else: {law}"
    return ""


@dataclass(frozen=True, slots=True)
class Rate:
    """A setting whose value is the throughput itself, in requests per `period`; per_s: that value in requests/s."""

    name: str
    value: SettingValue
    period: str
    per_s: float

    def __str__(self) -> str:
        return f"{self.name} = {self.value}, in requests per {self.period}"


def rates(settings: Mapping[str, SettingValue], throughput: float) -> tuple[Rate, ...]:
    """Those among these settings. throughput: in requests/s."""
    found = []
    for name, value in settings.items():
        size = amount(value)
        if size is not None and (period := _period(size, throughput)):
            found.append(Rate(name, value, period, size / PERIODS_S[period]))
    return tuple(found)


def _period(value: float, throughput: float) -> str:
    """By which it is the throughput (1/s); "" by none."""
    return next((name for name, seconds in PERIODS_S.items() if is_near(value, seconds * throughput)), "")


def is_near(value: float, size: float) -> bool:
    """Whether a value is a number that was measured, within NEAR of that."""
    return abs(value - size) <= NEAR * size
