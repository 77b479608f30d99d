"""The ledger: every limit, its ceiling, its use, and the load at which it runs out."""

from dataclasses import dataclass, field
from typing import Literal

from loadframe.model.curve import Saturation

LimitStatus = Literal["reached", "near", "free", "unlimited", ""]
"""Where a use stands against its ceiling; "" where it was not judged."""

REACHED = 0.97
"""From this share of its ceiling on, a use counts as at it: caches stop just short of what they may hold."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Something finite. ceiling, use, headroom in the limit's own unit; headroom = ceiling - use.

    configured is what was asked for (None: nothing was), effective what the running system really uses.
    exhausted_at: the load at which use crosses the ceiling, None where use does not grow with load.
    loud: reaching it gives errors; silent (False): reaching it only makes things slow.
    chain: the ids of limits below that cap this one. thrash_metric: the metric that must rise once it is reached.
    title: what it is, in words, as the subject of a sentence. waits: nothing is counted when it is reached; whoever
    needs more of it waits.
    setting: the name of what gives it its size; "" where nothing that can be set does.
    near: the share of the ceiling from which on its source calls it near. harm: thrash_metric as it is now; None where
    it was not read. An infinite ceiling: the machine sets none.
    """

    id: str
    layer: str
    ceiling: float
    configured: float | None
    effective: float
    use: float
    headroom: float
    loud: bool
    source: str
    exhausted_at: Saturation | None
    unit: str = ""
    chain: tuple[str, ...] = ()
    use_metric: str = ""
    thrash_metric: str = ""
    title: str = ""
    waits: bool = False
    near: float | None = None
    harm: float | None = None
    status: LimitStatus = ""
    setting: str = ""

    @property
    def costs_nothing(self) -> bool:
        """Whether it is a silent limit that is reached while its counter of harm stands still: a warm cache is full."""
        return self.status == "reached" and not self.loud and self.harm == 0


@dataclass(frozen=True, slots=True)
class NextLimit:
    """What gives next: the finding or limit, and the load at which it runs out (None: not within what was tested)."""

    id: str
    load: float | None
    title: str
    because: str


@dataclass(frozen=True, slots=True)
class UnreadLimit:
    """A limit that exists here and could not be read, and why."""

    id: str
    layer: str
    title: str
    reason: str
    source: str


@dataclass(frozen=True, slots=True)
class LedgerNow:
    """The ledger at this moment, the most urgent limit first.

    subject: whose limits, in words. watched_s: the time between the first and the last reading, readings of them;
    `exhausted_at` of a limit is in seconds from the last reading. unread: what could not be read. clamped: settings
    whose effective value is less than the configured one, in words.
    """

    subject: str
    watched_s: float
    readings: int
    limits: tuple[Limit, ...]
    unread: tuple[UnreadLimit, ...]
    clamped: tuple[str, ...] = field(default=(), metadata={"alias": "silent_cuts"})
    warnings: tuple[str, ...] = ()
