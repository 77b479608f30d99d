"""How a load goes on as the database grows: what was seen, where its memory ended, what is forecast."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from loadframe.model.curve import LoadInterval
from loadframe.model.forecast import Estimate


@dataclass(frozen=True, slots=True)
class LoadWindow:
    """A part of a load. before, after: entries in the database at its ends; seconds: it took; reads: of pages or blocks
    from beyond the database's memory within it, None where they are not counted."""

    before: float
    after: float
    seconds: float
    reads: float | None = None


@dataclass(frozen=True, slots=True)
class Memories:
    """What the database may hold in memory, in bytes by name (a buffer pool, the cage); the smallest is the one beyond
    which reads are counted. entry_bytes: what an entry takes with its indexes. Where either is not known no end of
    memory is foretold."""

    bytes: Mapping[str, float] = field(default_factory=dict)
    entry_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class MemoryEnd:
    """Where the database leaves its memory. entries: by the cost, with its 90 % interval; by_reads: by its own counter
    of reads, None where that did not begin to rise, or is not known. times: the cost of an entry at the end of what was
    seen over that before. confirmed: both rise, and their intervals meet, or lie less than a factor of 2 apart. memory:
    the name of the one whose size lies that near; empty where none does."""

    entries: LoadInterval
    by_reads: LoadInterval | None
    times: float
    confirmed: bool
    memory: str = ""


@dataclass(frozen=True, slots=True)
class GrowthPoint:
    """rate: entries/s at this size. seconds: to fill an empty database up to it."""

    entries: float
    rate: Estimate
    seconds: Estimate


@dataclass(frozen=True, slots=True)
class GrowthRefusal:
    """A size that is not forecast, and why, in a sentence."""

    entries: float
    because: str


@dataclass(frozen=True, slots=True)
class GrowthScored:
    """A forecast beside what was measured later; inside: the rate, the seconds."""

    entries: float
    rate: float
    rate_inside: bool
    seconds: float
    seconds_inside: bool


@dataclass(frozen=True, slots=True)
class GrowthForecast:
    """How a load goes on. entries: the largest size seen. windows: seen. now: the rate there. end: of memory, None
    where none was seen. walls: sizes at which a memory ends that was not left yet, by its name. refused: why
    nothing at all is forecast."""

    entries: float
    windows: int
    now: Estimate | None = None
    end: MemoryEnd | None = None
    walls: Mapping[str, float] = field(default_factory=dict)
    at: tuple[GrowthPoint, ...] = ()
    not_at: tuple[GrowthRefusal, ...] = ()
    scored: tuple[GrowthScored, ...] = ()
    notes: tuple[str, ...] = ()
    refused: str | None = None
