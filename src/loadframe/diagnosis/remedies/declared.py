"""Remedies from settings that a study declares, the most likely first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadframe.diagnosis.signatures import DRIVER_LIMITED
from loadframe.diagnosis.sizes import THROUGHPUT, TIMES_ANOTHER, in_service_by, is_near, rates
from loadframe.knowledge.remedy import Situation, round_up
from loadframe.knowledge.rows import toml_rows
from loadframe.model import DRIVER_BESIDE, OTHERS, Change, Finding, Knob, Layer, Price, Remedy, SettingValue, amount

FURTHER = 4.0
"""Factor to the first declared value that is tried: large enough to be felt, small against a machine."""
MOST = 6
"""Most settings tried for a cause: each trial takes a share of the budget and of the error."""
WHOSE: Mapping[Layer, str] = {"server": "service", "application": "workload"}
NAMED: Mapping[str, tuple[str, ...]] = toml_rows(Path(__file__).with_suffix(".toml"))["parts"]
NOT_THE_TARGETS = frozenset({DRIVER_LIMITED, DRIVER_BESIDE, OTHERS})
"""Where one of these holds, the curve is not the target's, and judges no setting."""
SAFER = frozenset({"disk.fsync"})
"""Causes whose cost is that of safety: a setting that gives some up is a likely remedy."""
ITSELF = "is the limit itself"
UNKNOWN = "the study declares it; what it does is not known"
BECAUSE_DECLARED = "the study declares it; nothing that was seen speaks for it or against it"


@dataclass(frozen=True, slots=True)
class _Ranked:
    rank: int
    knob: Knob
    after: SettingValue
    why: str


def remedies(finding: Finding, situation: Situation) -> tuple[Remedy, ...]:
    """Changes of settings; none for a cause that no setting declares and that is not inside a service."""
    choices = [ranked for knob in situation.knobs if (ranked := _ranked(finding, situation, knob)) is not None]
    return tuple(
        _remedy((finding.id,), situation, choice) for choice in sorted(choices, key=lambda choice: choice.rank)[:MOST]
    )


def because_declared(findings: Sequence[Finding], situation: Situation) -> tuple[Remedy, ...]:
    """Changes of settings for a curve that stops growing without another remedy; a gain names no cause."""
    if any(finding.id in NOT_THE_TARGETS for finding in findings):
        return ()
    choices = []
    for knob in situation.knobs:
        now = situation.effective.get(knob.name)
        if now is None or knob.layer == "application":
            continue
        larger = _larger(knob, now)
        after = larger if larger is not None else _other(knob, now)
        if after is not None:
            rank = 0 if knob.raises else 1 if larger is not None or amount(now) is None else 2
            choices.append(_Ranked(rank, knob, after, BECAUSE_DECLARED))
    return tuple(_remedy((), situation, choice) for choice in sorted(choices, key=lambda choice: choice.rank)[:MOST])


def _ranked(finding: Finding, situation: Situation, knob: Knob) -> _Ranked | None:
    now = situation.effective.get(knob.name)
    if now is None or (finding.id not in NAMED and knob.raises != finding.id):
        return None
    if knob.layer == "application" and now == 0:
        return None  # it follows another option
    larger = _larger(knob, now)
    after = larger if larger is not None else _otherwise(finding, knob, now)
    if after is None:
        return None
    if knob.raises == finding.id:
        who = "it belongs to" if knob.layer == "application" else "the study says that it raises"
        return _Ranked(0, knob, after, f"{who} {finding.id}")
    if knob.layer == "application":
        return None  # each option's purpose is known
    # before sizes X R: a number in hundreds seldom matches by chance, a 3 often does
    if any(evidence.metric == THROUGHPUT and rates({knob.name: now}, evidence.value) for evidence in finding.evidence):
        return _Ranked(1, knob, after, f"{now} is the throughput itself")
    ceiling = situation.ceilings.get(finding.id)
    if ceiling is not None and larger is not None and amount(now) == ceiling:
        return _Ranked(1, knob, larger, f"{now} {ITSELF}")
    size = in_service_by(finding)
    if size is not None and larger is not None:
        if _is(amount(now), size):
            many = "one request is" if size == 1 else f"{size:g} requests are"
            return _Ranked(2, knob, larger, f"it is {now}, and {many} in service at once")
        sizes = (amount(situation.effective.get(other.name, "")) for other in situation.knobs if other is not knob)
        if any(other is not None and other >= 2 and _is((amount(now) or 0.0) * other, size) for other in sizes):
            return _Ranked(3, knob, larger, f"{now} {TIMES_ANOTHER} {size:g}, the requests in service at once")
    named = any(part in knob.name for part in NAMED.get(finding.id, ()))
    lowers = finding.id in SAFER and knob.gives_up is not None
    why = "its name suggests it" if named else "it gives up what the disk is waited for" if lowers else UNKNOWN
    return _Ranked((4 if named or lowers else 5) + 2 * (larger is None and amount(now) is not None), knob, after, why)


def _otherwise(finding: Finding, knob: Knob, now: SettingValue) -> SettingValue | None:
    if knob.layer == "application":
        return next(iter(knob.above(now)), None)
    have, size = amount(now), in_service_by(finding)
    if have is not None and (knob.raises == finding.id or (size is not None and _is(have, size))):
        return None  # fewer of what limits; a timeout that holds it too long is another setting
    return _other(knob, now)


def ways_back(remedy: Remedy) -> frozenset[str]:
    return frozenset(
        f"{WHOSE[change.layer]}.{change.setting}.{change.before}" for change in remedy.changes if change.layer in WHOSE
    )


def _is(have: float | None, size: float) -> bool:
    return have is not None and is_near(have, size)


def _larger(knob: Knob, now: SettingValue) -> SettingValue | None:
    have = amount(now)
    if have is None:
        return None
    if knob.values:
        above = knob.above(now)
        return next(
            (value for value in above if (amount(value) or 0.0) >= FURTHER * have), above[-1] if above else None
        )
    most = knob.high if knob.high is not None else FURTHER * have
    after = min(most, float(round_up(FURTHER * have)) if have > 0 else most)
    if after <= have:
        return None
    return int(after) if isinstance(now, int) and float(after).is_integer() else after


def _other(knob: Knob, now: SettingValue) -> SettingValue | None:
    others = [value for value in knob.values if value != now]
    if not others:
        return knob.low if not knob.values and knob.low is not None and knob.low != now else None
    if amount(now) is not None:
        return min(others, key=lambda value: amount(value) or 0.0)
    behind = knob.above(now)
    return behind[0] if behind else others[0]


def _remedy(addresses: tuple[str, ...], situation: Situation, choice: _Ranked) -> Remedy:
    knob, before = choice.knob, situation.effective.get(choice.knob.name)
    other = bool(knob.values) and choice.after != knob.values[0]
    return Remedy(
        id=f"{WHOSE[knob.layer]}.{knob.name}.{choice.after}",
        title=f"{knob.name} = {choice.after}",
        addresses=addresses,
        changes=(Change(knob.layer, knob.name, before, choice.after, needed=True, why=choice.why, raises=knob.raises),),
        price=Price(durability=knob.gives_up if other else None, note=knob.price if other else ""),
        source=f"workload.options.{knob.name}" if knob.layer == "application" else f"target.setting.{knob.name}",
        guessed=choice.rank > 0 or not addresses,
    )
