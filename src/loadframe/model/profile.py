"""Where the time went: stacks, their classes, functions and flames."""

from dataclasses import dataclass
from typing import Literal

from loadframe.model.target import Requirement

ProfileKind = Literal["cpu", "threads"]
"""cpu: which functions ran, sampled by time on the CPU. threads: what all threads were doing, at each look."""

ProfilePlace = Literal["below", "past", "lowest", "highest"]
"""Below or past the bend; where nothing bends, the lowest and the highest level."""


@dataclass(frozen=True, slots=True)
class Stack:
    """What a thread was in, from the outermost frame to the innermost, and how many samples found it there. Frames of
    the kernel end with `_[k]`; a function without a name is its file in brackets, `[mariadbd]`."""

    frames: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class ProfileSource:
    """One file of collapsed stacks. component: target, driver, or rest (everything else on the machine).

    rate: cpu: samples per second of CPU time; threads: looks in the window. seconds: of the window in which was sampled
    (perf takes a moment to begin). lost: samples that did not arrive or could not be read.
    """

    kind: ProfileKind
    component: str
    file: str
    samples: int
    rate: float
    seconds: float
    lost: int = 0


@dataclass(frozen=True, slots=True)
class ProfiledStep:
    """An extra step, taken for its profile alone: it is in no curve and no verdict. seconds: of its window; requests:
    done in it; missing: what could not be sampled, and how to get it."""

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
    """What one class of functions (analysis/stacks.py) took. share: of all samples, with its 95 % interval. amount:
    CPU-seconds per second, or threads on average. demand_ms: CPU time per request; None for threads. change: that,
    against the baseline's; None where there is no baseline or no proven difference."""

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
    """A box of a flame graph. depth: 0 is the outermost frame. start, width: as shares of all samples. class_id: of
    what runs in it, where most of it is of one class. change: its CPU time per request against the baseline's (2.0:
    twice as much); None where there is no baseline or no proven difference."""

    name: str
    depth: int
    start: float
    width: float
    class_id: str
    change: float | None = None


@dataclass(frozen=True, slots=True)
class ProfileBaseline:
    """What a flame graph's changes are against: another profiled step."""

    place: ProfilePlace
    treatment: str
    level: float


@dataclass(frozen=True, slots=True)
class Profile:
    """Where the time of one component went in one step. kernel_share: samples in the kernel; unresolved_share: whose
    innermost function has no name; truncated_share: whose outermost frames are missing."""

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
