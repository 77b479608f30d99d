"""Where the time went."""

from dataclasses import dataclass
from typing import Literal

from loadframe.model.target import Requirement

ProfileKind = Literal["cpu", "threads"]
"""cpu: functions, by time on the CPU. threads: what all threads were doing, at each sample."""
ProfilePlace = Literal["below", "past", "lowest", "highest"]
"""Relative to the bend; without a bend the lowest and the highest level."""


@dataclass(frozen=True, slots=True)
class Stack:
    """The outermost frame first. Frames of the kernel end with `_[k]`; a function without a name is its file,
    `[mariadbd]`."""

    frames: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class ProfileSource:
    """Collapsed stacks. component: target, driver, or rest (of the machine). rate: cpu: samples per second of CPU time;
    threads: samples in the window. seconds: sampled. lost: samples that did not arrive or could not be read."""

    kind: ProfileKind
    component: str
    file: str
    samples: int
    rate: float
    seconds: float
    lost: int = 0


@dataclass(frozen=True, slots=True)
class ProfiledStep:
    """In no curve and no verdict. seconds: of its window; missing: what could not be sampled."""

    place: ProfilePlace
    treatment: str
    level: float
    seconds: float
    requests: int
    throughput: float
    sources: tuple[ProfileSource, ...]
    missing: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class ClassShare:
    """share: of all samples, with its 95 % interval. amount: CPU-seconds per second, or threads. demand_ms: CPU time
    per request; None for threads. change: against the baseline, if proven."""

    id: str
    title: str
    share: float
    low: float
    high: float
    amount: float
    demand_ms: float | None
    change: float | None = None


@dataclass(frozen=True, slots=True)
class FunctionShare:
    """The time of a function itself, without those that it called."""

    name: str
    class_id: str
    share: float


@dataclass(frozen=True, slots=True)
class FlameFrame:
    """start, width: shares of all samples. class_id: of most of its samples. change: CPU time per request over the
    baseline's, if proven."""

    name: str
    depth: int
    start: float
    width: float
    class_id: str
    change: float | None = None


@dataclass(frozen=True, slots=True)
class ProfileBaseline:
    place: ProfilePlace
    treatment: str
    level: float


@dataclass(frozen=True, slots=True)
class Profile:
    """unresolved_share: the innermost function has no name; truncated_share: without the outermost frames."""

    kind: ProfileKind
    component: str
    place: ProfilePlace
    treatment: str
    level: float
    throughput: float
    samples: int
    lost: int
    seconds: float
    kernel_share: float
    unresolved_share: float
    truncated_share: float
    classes: tuple[ClassShare, ...]
    hottest: tuple[FunctionShare, ...]
    flame: tuple[FlameFrame, ...]
    against: ProfileBaseline | None = None
