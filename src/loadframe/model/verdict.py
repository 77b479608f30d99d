"""One side against the other: the ratio, and whether it is proved."""

from dataclasses import dataclass, field
from typing import Literal

WORK = "requests"
Decision = Literal["better", "worse", "no-proven-difference", "cannot-tell"]
NOT_KNOWN = (1e-50, 1e50)
"""Ends of an open interval: files hold no numbers beyond 1e100."""
MOST_BLOCKS = 100
ROUNDING = 1e-9
"""An end within rounding of 1 is not a difference."""


def decide(low: float, high: float) -> Decision:
    if low > 1 + ROUNDING:
        return "better"
    if high < 1 - ROUNDING:
        return "worse"
    return "cannot-tell" if low <= NOT_KNOWN[0] and high >= NOT_KNOWN[1] else "no-proven-difference"


@dataclass(frozen=True, slots=True)
class Sessions:
    """What two sessions differ by without a change. share: at most (95 %). learnt_from: number of equal sessions, 0: a
    stated prior. low, high: the interval by the values alone."""

    share: float
    learnt_from: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """Ratio after / before of two treatments. Where one side served nothing there is none (1, and NOT_KNOWN), and
    `method` says why. confidence: over all looks; `method` gives that of the last. floor: 95 % interval of both sides
    against themselves, block against next block; below six blocks the extremes. may_overstate: these blocks also
    decided that the change is kept, or measuring stops. unsettled_at: levels without an ended warm-up: the interval
    covers what can still change. sessions: what widens the interval of sides measured at different times; `blocks` is
    then the values of the shorter one."""

    ratio: float
    low: float
    high: float
    decision: Decision
    blocks: int
    method: str
    block_ratios: tuple[float, ...] = ()
    levels: tuple[float, ...] = ()
    confidence: float = 0.95
    floor: tuple[float, float] | None = None
    may_overstate: bool = False
    unsettled_at: tuple[float, ...] = ()
    sessions: Sessions | None = None

    @property
    def has_ratio(self) -> bool:
        return (self.low, self.high) != NOT_KNOWN

    @property
    def decided(self) -> bool:
        return self.decision in ("better", "worse")

    @property
    def exceeds_noise(self) -> bool:
        return self.decision == "better" and (self.floor is None or self.ratio > self.floor[1])

    @property
    def clears_noise(self) -> bool:
        return self.decision == "better" and (self.floor is None or self.low > self.floor[1])


@dataclass(frozen=True, slots=True)
class LevelRatio:
    """After / before, in 1/s, with the ratio's interval from its blocks, both curves (from_curves), or the overall
    verdict; low = high = ratio where unknown."""

    load: float
    before: float
    after: float
    ratio: float
    low: float
    high: float
    from_curves: bool = False

    @property
    def decided(self) -> bool:
        return self.decision in ("better", "worse")

    @property
    def decision(self) -> Decision:
        return decide(self.low, self.high) if self.low < self.high else "cannot-tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """verdict: of the blocks that decided. fresh: of those measured after `verdict` had promised a gain. levels: of
    these if there are any, rising; `reported` names those that it is over."""

    verdict: Verdict
    levels: tuple[LevelRatio, ...] = ()
    fresh: Verdict | None = None

    @property
    def reported(self) -> Verdict:
        return self.fresh or self.verdict


@dataclass(frozen=True, slots=True)
class OperationTimes:
    load: float
    name: str
    before_ms: float
    after_ms: float


Answer = Literal["proven-worse", "proven-not-worse", "cannot-tell"]


@dataclass(frozen=True, slots=True)
class Margin:
    """Whether the second side is worse by more than this share."""

    allowed: float
    answer: Answer


@dataclass(frozen=True, slots=True)
class Needed:
    """How many of `what`, on each side. count: None where no number would do."""

    count: int | None
    what: str


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity of the values of both sides ("mean", "p99", ...); verdict: None for too few values."""

    name: str
    before: float | None
    after: float | None
    verdict: Verdict | None
    because: str = ""


@dataclass(frozen=True, slots=True)
class Comparison(Compared):
    """Outside an investigation. lower_is_better: then "better" is a ratio below 1. by: the quantity that decides; ""
    for throughputs of steps. quantities: further ones. needed: where the data cannot tell."""

    before: str
    after: str
    what: str = "throughput"
    lower_is_better: bool = False
    margin: Margin | None = None
    notes: tuple[str, ...] = ()
    run: str = ""
    axis_unit: str = ""
    by: str = ""
    quantities: tuple[Quantity, ...] = ()
    work_unit: str = WORK
    needed: Needed | None = None


Likeness = Literal["alike", "differ", "unknown"]
"""alike: the whole interval lies within the margin. differ: the ratio is beyond it, and its interval excludes 1.
unknown: neither is proved."""


@dataclass(frozen=True, slots=True)
class HostRatio:
    """Throughput as given of one host over another host's, or over its own."""

    host: str
    other_host: str = field(metadata={"alias": "beside"})
    ratio: float
    low: float
    high: float
    blocks: int
    likeness: Likeness


@dataclass(frozen=True, slots=True)
class FleetHosts:
    """How equal the hosts of a search are (A/A): ratios from 1 / margin to margin are alike. hosts: each compared with
    the middle one, one after another. together: each while all are loaded compared with itself alone."""

    levels: tuple[float, ...]
    margin: float
    hosts: tuple[HostRatio, ...]
    together: tuple[HostRatio, ...]


DriversLimit = Literal["drivers", "link", "target", "not proven"]
"""drivers: fewer give less. target: fewer give as much, and no link is full. link: fewer give as much, and the target's
link is full."""


@dataclass(frozen=True, slots=True)
class FleetDrivers(Compared):
    """All drivers against fewer, at the same level, in alternating blocks. moved_bytes_per_s: from the target, to all;
    link_bytes_per_s: the most that one link from the target carried by itself; None where not known."""

    level: float
    drivers: tuple[str, ...]
    fewer: tuple[str, ...]
    limit: DriversLimit
    moved_bytes_per_s: float | None = None
    link_bytes_per_s: float | None = None

    @property
    def limit_the_curve(self) -> bool:
        """The curve shows the drivers, or their link, and nothing about the target."""
        return self.limit in ("drivers", "link")
