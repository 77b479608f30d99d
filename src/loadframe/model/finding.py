"""What gave, with its evidence; what may be changed, what was changed, and what came of it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from loadframe.model.curve import LoadInterval, Saturation
from loadframe.model.target import Layer, SettingValue
from loadframe.model.verdict import Compared, LevelRatio, OperationTimes, Verdict


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
    """A cause that was looked for and is not it, and the counter that says so. judged: whether that is known; else
    `because` says why it cannot be told whether it is the cause."""

    id: str
    because: str
    judged: bool = True


OTHERS = "cpu.others"
"""The finding that others take the CPU: while it holds, what the target waits for is them."""

DRIVER_BESIDE = "driver.beside"
"""The finding that the load driver takes CPUs that the target is short of: what is measured is both together."""

FindingStatus = Literal["suspected", "helped", "confirmed", "refuted"]
"""helped: a change for this cause has a proven gain, but the cause's own evidence was not seen to recede, or the same
change confirmed another cause."""


@dataclass(frozen=True, slots=True)
class Mechanism:
    """Whether a cause's own evidence receded with a change, from the blocks of its proof.

    metric: what was looked at; "" where nothing of this cause is counted. before, after: its means, per request where
    per_request; None where it was not measured. wanted: what `after` must reach by the model of the cause: no more than
    this, or more than this where `rises` (what a lifted limit lets pass). because: the same in words.
    """

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
    """A cause with evidence. Only an intervention that moved the curve makes it more than suspected: confirmed where
    the cause's own evidence receded too, helped where that was not seen, refuted where the curve did not move.

    reached_at: the load at which it begins to act. score: 0..1, how well the evidence explains the bend. mechanism: of
    the trial that settled it. behind: the finding of a stage of a pipeline that waits for this in its server; "" of
    others. host: of a fleet on which it was seen, "" for this machine. advice: what to do about it, or to confirm it, a
    sentence or two; "" where the explanation has it.
    """

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
    """One setting in one layer. before is what was in effect, after what is asked for; needed says whether the change
    is needed or the link of the chain already suffices (then before == after). raises: the cause that the study says a
    larger value lifts, "" where it says none."""

    layer: Layer
    setting: str
    before: SettingValue | None
    after: SettingValue
    needed: bool = True
    why: str = ""
    raises: str = ""


@dataclass(frozen=True, slots=True)
class Price:
    """What a remedy costs. durability: what may be lost, in words, None where nothing is given up.

    memory_before_bytes / memory_after_bytes: resident memory of the target, measured under load. slower_tail: in words,
    that its slowest requests take longer, "" where they were not seen to.
    """

    durability: str | None = None
    memory_before_bytes: float | None = None
    memory_after_bytes: float | None = None
    note: str = ""
    slower_tail: str = ""


@dataclass(frozen=True, slots=True)
class Remedy:
    """An ordered chain of changes that should lift the limits behind `addresses` (finding ids).

    guessed: what it changes is not known to have to do with them, so that a trial without effect speaks against the
    remedy alone."""

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
    """What a kept remedy was held against besides the state before it.

    kind: "sham", its restart without its change; "dose", half the way; "less", as much less than before;
    "without", the whole of several changes against the same without one of them, which `title` names. verdict: of
    "without" the whole against the rest: what that change is worth; of others against the state before. None where it
    was left out. holds: whether it bears the remedy out; None where that cannot be told. because: in words.
    """

    kind: ControlKind
    title: str
    verdict: Verdict | None
    holds: bool | None
    because: str


@dataclass(frozen=True, slots=True)
class Trial(Compared):
    """A remedy that was tried, its verdict against the state before, and what became of it.

    effective: what the target really used after the change, for every setting that the remedy named. operations: what
    each kind of request took, by level, in the fresh blocks where there are any, which tell whether it is kept.
    controls: what a kept remedy was held against besides. deciding: the numbers of the steps of `verdict`.
    """

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
"""Why a remedy was not tried in its round; the rounds after it tell what became of it."""


@dataclass(frozen=True, slots=True)
class UntriedRemedy:
    """A remedy that was shown, not tried, and why."""

    remedy: Remedy
    because: str


ChangeStatus = Literal["intent", "applied", "failed", "reverted", "left", "ended"]


@dataclass(frozen=True, slots=True)
class ChangeRecord:
    """One setting that is changed: in the journal of a run, in the state directory while it outlives its command, and
    as the answer to what became of it.

    before: what was there, None where unknown. after: what was asked for, "" for the target's own default.
    read_back: what was in effect when it was last read, None while that is not known. status: intent (on the disk,
    nothing is touched yet), applied, failed (it was not applied, or not put back), reverted (put back, or was back
    already), left (another program has changed it since), ended (with its private target). because: of the status, in
    words. id: its number in the journal of its run, 0 outside of it. place: how another command finds it again, words:
    the same for people; both empty for a private target, whose kind is `target`. finding, remedy: the ids of the causes
    and the title of what was tried against them, both empty where the study itself asks for the change; why: in words.
    """

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
    """values: all that it may have, as declared; none where it may have any number from low to high. raises: the limit
    or the cause that a larger value lifts, "" where the study says none. gives_up: what may be lost with values other
    than the first, in words. price: what such a value costs besides. layer: "server" for a setting of a service,
    "application" for an option of the workload.
    """

    name: str
    values: tuple[SettingValue, ...] = ()
    low: float | None = None
    high: float | None = None
    raises: str = ""
    gives_up: str | None = None
    layer: Layer = "server"
    price: str = ""

    def above(self, now: SettingValue) -> tuple[SettingValue, ...]:
        """The values above this one that are declared, in rising order; of words those that stand behind it. None for a
        range."""
        have, sized = amount(now), [(amount(value), value) for value in self.values]
        if have is not None and all(size is not None for size, _ in sized):
            return tuple(value for size, value in sorted(sized, key=lambda row: row[0] or 0.0) if (size or 0.0) > have)
        return self.values[self.values.index(now) + 1 :] if now in self.values else ()


def amount(value: SettingValue) -> float | None:
    """How much a value is, of sizes ("512m") in bytes; None for a word and a switch."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    found = SIZE.fullmatch(value.strip())
    return None if found is None else float(found[1]) * SIZES[found[2].lower()]


@dataclass(frozen=True, slots=True)
class Variant(Compared):
    """The kept changes up to one that gives more up, from what was found first: `changes` are one for each setting.
    Its state against the first one, at every load that both were measured at.

    at: the load that the answer is about, one of these: the objective's, else the highest. gives_up: the durability
    that is lost with it, in words; "" for none. to_copy: the changes as they are typed in, a line each.
    """

    changes: tuple[ChangeRecord, ...]
    at: float
    treatment_before: str
    treatment_after: str
    gives_up: str = ""
    to_copy: tuple[str, ...] = ()

    @property
    def gain(self) -> LevelRatio:
        """At the load that the answer is about."""
        return next(one for one in self.levels if one.load == self.at)
