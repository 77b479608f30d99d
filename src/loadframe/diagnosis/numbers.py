"""Whether a setting that was raised can be what a cause counts, as the number of requests that are served at a time.

Of what each request holds while it is served no more than X R can be taken (Little's law: n = X W, and W <= R). A
setting with a larger value counts something else; and one whose value is the throughput itself is a rate: a token
bucket is as flat as a pool, X R is some number there, too, and a higher rate raises it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from loadframe.metrics.exposed import OF
from loadframe.model import Finding, Remedy, SettingValue, Step, amount
from loadframe.units import show

IN_SERVICE, THROUGHPUT = "workload.in_service", "throughput"
NEAR = 0.1
"""X R and a throughput are measured, and the one may be told as a number that is not whole."""
WELL_BELOW = 0.75
"""Of X R: less than what X R is known to, and what of a request's time may lie outside of what limits."""
TIMES_ANOTHER = "times another setting is"
"""In why a setting is tried of which a product is the number in service."""
PERIODS_S = {"second": 1.0, "minute": 60.0, "hour": 3600.0}


def is_another(finding: Finding, remedy: Remedy, before: Sequence[Step]) -> str:
    """In words, why a gain by this remedy does not show that what the finding counts was raised, from the steps of the
    state before; "" where it may. What the study says that a setting raises, it raises, and nothing else. Else it is a
    matter of numbers, where the finding tells of requests in service."""
    for change in remedy.changes:
        if change.needed and _is_for_another(change.raises, finding):
            return f"the study says that {change.setting} raises {change.raises}, which is another cause"
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


def _is_for_another(raises: str, finding: Finding) -> bool:
    """Whether a setting is for a cause that is seen by itself. A limit of the service's own is one of requests in
    service, too."""
    return bool(raises) and raises not in (finding.id, finding.behind) and not raises.startswith(OF)


def other_reading(finding: Finding, remedy: Remedy, before: Sequence[Step]) -> str:
    """In words, what else a number below the requests in service may be that a gain shows to limit them: each request
    holds one for a part of its time (n = X W), or it is a rate per short time. "" where it is that number, or a product
    of it and another setting is, or the study says what it raises."""
    most = next((each.threshold for each in finding.evidence if each.metric == IN_SERVICE), None)
    throughput = fmean(step.throughput for step in before) if before else 0.0
    if most is None or not remedy.guessed or throughput <= 0:
        return ""
    for change in remedy.changes:
        value = None if change.before is None or not change.needed else amount(change.before)
        if value is not None and 0 < value < WELL_BELOW * most and TIMES_ANOTHER not in change.why:
            return (
                f"{change.setting} = {change.before} is less than {show(most, 'count')}: either each request holds one "
                f"for {show(value / most, 'share')} of its time, or it is a rate, of {show(value, 'count')} in "
                f"{show(1000 * value / throughput, 'ms')}; that it limits is shown, and not which of the two it is"
            )
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
