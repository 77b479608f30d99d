"""Findings with their evidence; what may be changed, what was, and the results."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from loadframe.model.curve import LoadInterval, Saturation
from loadframe.model.target import Layer, SettingValue
from loadframe.model.verdict import Compared, LevelRatio, OperationTimes, Verdict


@dataclass(frozen=True, slots=True)
class Evidence:
    metric: str
    value: float
    comparison: str
    threshold: float
    window: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class RuledOut:
    """because: the counter that shows it. judged: False if unknown."""

    id: str
    because: str
    judged: bool = True


OTHERS = "cpu.others"
"""Finding: others take the CPU. While it holds, the target waits for them."""
DRIVER_BESIDE = "driver.beside"
"""Finding: the driver takes CPUs that the target is short of. The measurement is of both."""
FindingStatus = Literal["suspected", "helped", "confirmed", "refuted"]
"""helped: a proven gain, but the cause's own evidence was not seen to recede."""


@dataclass(frozen=True, slots=True)
class Mechanism:
    """From the blocks of a change's proof. metric: "" where nothing is counted. before, after: means, with per_request
    of one. wanted: the model's bound for `after`, a lower one with `rises`."""

    metric: str
    before: float | None
    after: float | None
    wanted: float | None
    per_request: bool
    receded: bool
    because: str
    rises: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause, suspected until an intervention moved the curve: confirmed where its own evidence receded, helped where
    that was not seen, refuted where the curve did not move. reached_at: the load at which it begins to act. score:
    0..1, how well it explains the bend. behind: finding of a pipeline stage that waits for this. host: of a fleet.
    advice: what to do, if the explanation lacks it."""

    id: str
    status: FindingStatus = field(default="suspected", kw_only=True)
    title: str
    reached_at: LoadInterval | Saturation | None
    evidence: tuple[Evidence, ...]
    ruled_out: tuple[RuledOut, ...] = field(default=(), kw_only=True)
    score: float
    explanation: str = ""
    mechanism: Mechanism | None = None
    behind: str = ""
    host: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """before: in effect; after: asked for; needed: False where the first suffices. raises: the cause that a larger
    value lifts, by the study."""

    layer: Layer
    setting: str
    before: SettingValue | None
    after: SettingValue
    needed: bool = True
    why: str = ""
    raises: str = ""


@dataclass(frozen=True, slots=True)
class Price:
    """durability: what may be lost. memory: resident, of the target under load. slower_tail: a sentence."""

    durability: str | None = None
    memory_before_bytes: float | None = None
    memory_after_bytes: float | None = None
    note: str = ""
    slower_tail: str = ""


@dataclass(frozen=True, slots=True)
class Remedy:
    """Changes, in order, that should lift the limits behind `addresses` (finding ids). guessed: a trial without effect
    refutes the remedy alone."""

    id: str
    title: str
    addresses: tuple[str, ...]
    changes: tuple[Change, ...]
    price: Price
    source: str = ""
    guessed: bool = False


ControlKind = Literal["sham", "dose", "without", "less"]


@dataclass(frozen=True, slots=True)
class Control:
    """ "sham": the restart without the change; "dose": half the way; "less": as much less than before; "without":
    several changes against the same without the one in `title`. verdict: against the state before it, or what that
    change is worth; None where left out. holds: whether it supports the remedy."""

    kind: ControlKind
    title: str
    verdict: Verdict | None
    holds: bool | None
    because: str


@dataclass(frozen=True, slots=True)
class Trial(Compared):
    """effective: settings as used afterwards. operations: by kind of request and level, in the fresh blocks if there
    are any. deciding: step numbers of `verdict`."""

    remedy: Remedy
    kept: bool
    effective: Mapping[str, SettingValue]
    treatment_before: str = ""
    treatment_after: str = ""
    note: str = ""
    operations: tuple[OperationTimes, ...] = ()
    controls: tuple[Control, ...] = ()
    deciding: tuple[int, ...] = ()


KEPT_FIRST = "another remedy was kept first"


@dataclass(frozen=True, slots=True)
class UntriedRemedy:
    remedy: Remedy
    because: str


ChangeStatus = Literal["intent", "applied", "failed", "reverted", "left", "ended"]


@dataclass(frozen=True, slots=True)
class ChangeRecord:
    """In the journal of a run, in the state directory while it outlives its command, and as the outcome of reverting
    it. before: the first value. after: as asked for, "" for the target's default. read_back: in effect when last read.
    status: intent (nothing changed yet), applied, failed (not applied, or not reverted), reverted, left (another
    program has changed it since), ended (with its private target); because: why. id: in its run's journal, else 0.
    place: how another command finds it again, words: its name in messages; empty for a private target, whose kind is
    `target`. finding, remedy: ids of the causes and the title of what was tried."""

    setting: str
    before: SettingValue | None
    after: SettingValue | None
    read_back: SettingValue | None = None
    status: ChangeStatus = "intent"
    because: str = ""
    id: int = 0
    place: Mapping[str, str] = field(default_factory=dict)
    words: str = ""
    target: str = ""
    layer: Layer = "server"
    treatment: str = ""
    finding: str = ""
    remedy: str = ""
    why: str = ""
    private: bool = False
    at: str = ""

    def __str__(self) -> str:
        return f"{self.setting} of {self.words}: {self.because}"


SIZES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?) ?([kmgt]?)(?:i?b)?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Knob:
    """values: empty: any number from low to high. raises: the limit or cause that a larger value lifts. gives_up: what
    may be lost with values other than the first; price: besides. layer: "application" for an option of the workload."""

    name: str
    values: tuple[SettingValue, ...] = ()
    low: float | None = None
    high: float | None = None
    raises: str = ""
    gives_up: str | None = None
    layer: Layer = "server"
    price: str = ""

    def above(self, now: SettingValue) -> tuple[SettingValue, ...]:
        """Values above this one, rising; for words those after it. () for a range."""
        have, sized = amount(now), [(amount(value), value) for value in self.values]
        if have is not None and all(size is not None for size, _ in sized):
            return tuple(value for size, value in sorted(sized, key=lambda row: row[0] or 0.0) if (size or 0.0) > have)
        return self.values[self.values.index(now) + 1 :] if now in self.values else ()


def amount(value: SettingValue) -> float | None:
    """A number, in bytes for sizes ("512m"); None for a word and a switch."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    match = SIZE.fullmatch(value.strip())
    return None if match is None else float(match[1]) * SIZES[match[2].lower()]


@dataclass(frozen=True, slots=True)
class Variant(Compared):
    """The kept changes up to one that gives more up (durability), net per setting, against the first state at every
    common load. at: the load of the answer. to_copy: the changes as commands or lines."""

    changes: tuple[ChangeRecord, ...]
    at: float
    treatment_before: str
    treatment_after: str
    gives_up: str = ""
    to_copy: tuple[str, ...] = ()

    @property
    def gain(self) -> LevelRatio:
        return next(level for level in self.levels if level.load == self.at)
