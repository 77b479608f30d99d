"""What gave, with its evidence; what could be changed, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from loadframe.model.curve import LoadInterval
from loadframe.model.target import Layer, SettingValue
from loadframe.model.verdict import LevelRatio, OperationTimes, Verdict


@dataclass(frozen=True, slots=True)
class Evidence:
    """One fact for a finding: a metric's value in a window, compared with a threshold."""

    metric: str
    value: float
    comparison: str
    threshold: float
    window: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class RuledOut:
    """A cause that was looked for and is not it, and the counter that says so."""

    id: str
    because: str


FindingStatus = Literal["suspected", "confirmed", "refuted"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause with evidence. Only an intervention that moved the curve makes it confirmed (or refuted).

    reached_at: the load at which it begins to act. score: 0..1, how well the evidence explains the bend.
    """

    id: str
    status: FindingStatus
    title: str
    reached_at: LoadInterval | None
    evidence: tuple[Evidence, ...]
    ruled_out: tuple[RuledOut, ...]
    score: float
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """One setting in one layer. before is what was in effect, after what is asked for; needed says whether the change
    is needed or the link of the chain already suffices (then before == after)."""

    layer: Layer
    setting: str
    before: SettingValue | None
    after: SettingValue
    needed: bool = True
    why: str = ""


@dataclass(frozen=True, slots=True)
class Price:
    """What a remedy costs. durability: what may be lost, in words, None where nothing is given up.

    memory_before_bytes / memory_after_bytes: resident memory of the target, measured under load.
    """

    durability: str | None = None
    memory_before_bytes: float | None = None
    memory_after_bytes: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Remedy:
    """An ordered chain of changes that should lift the limits behind `addresses` (finding ids)."""

    id: str
    title: str
    addresses: tuple[str, ...]
    changes: tuple[Change, ...]
    price: Price
    source: str = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """A remedy that was tried, its verdict against the state before, and what became of it.

    effective: what the target really used after the change, for every setting that the remedy named. operations: what
    each kind of request took, by level.
    """

    remedy: Remedy
    verdict: Verdict
    kept: bool
    levels: tuple[LevelRatio, ...]
    effective: Mapping[str, SettingValue]
    treatment_before: str = ""
    treatment_after: str = ""
    note: str = ""
    operations: tuple[OperationTimes, ...] = ()


@dataclass(frozen=True, slots=True)
class UntriedRemedy:
    """A remedy that was shown, not tried, and why."""

    remedy: Remedy
    because: str
