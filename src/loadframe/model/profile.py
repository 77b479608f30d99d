"""Where the time went: stacks, their classes, functions and flames."""

from dataclasses import dataclass
from typing import Literal

from loadframe.model.target import Requirement

ProfileKind = Literal["cpu", "threads"]
"""cpu: which functions ran, sampled by time on the CPU. threads: what all threads were doing, at each sample."""

ProfilePlace = Literal["below", "past", "lowest", "highest"]
"""Below or past the bend; where there is none, the lowest and the highest level."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A thread's frames, from the outermost to the innermost, and the samples with them. Frames of the kernel end with
    `_[k]`; a function without a name is its file in brackets, `[mariadbd]`."""

    frames: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class ProfileSource:
    """One file of collapsed stacks. component: target, driver, or rest (everything else on the machine). rate: cpu:
    samples per second of CPU time; threads: samples in the window. seconds: of the window that was sampled (perf takes
    a moment to begin). lost: samples that did not arrive or could not be read."""

    kind: ProfileKind
    component: str
    file: str
    samples: int
    rate: float
    seconds: float
    lost: int = 0


@dataclass(frozen=True, slots=True)
class ProfiledStep:
    """An extra step for its profile alone, in no curve and no verdict. seconds: of its window; requests: done in it;
    missing: what could not be sampled, and how to get it."""

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
    """One class of functions (analysis/stacks.py). share: of all samples, with its 95 % interval. amount: CPU-seconds
    per second, or threads on average. demand_ms: CPU time per request; None for threads. change: of that against the
    baseline; None without one or without a proven difference."""

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
    """What one function took by itself, without those that it called."""

    name: str
    class_id: str
    share: float


@dataclass(frozen=True, slots=True)
class FlameFrame:
    """A box of a flame graph. depth: 0 is the outermost frame. start, width: shares of all samples. class_id: that of
    most of its samples. change: its CPU time per request over the baseline's (2.0: twice as much), if proven."""

    name: str
    depth: int
    start: float
    width: float
    class_id: str
    change: float | None = None


@dataclass(frozen=True, slots=True)
class ProfileBaseline:
    """The profiled step with which a flame graph is compared."""

    place: ProfilePlace
    treatment: str
    level: float


@dataclass(frozen=True, slots=True)
class Profile:
    """Where the time of one component went in one step. kernel_share: samples in the kernel; unresolved_share: without
    a name for the innermost function; truncated_share: without the outermost frames."""

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
