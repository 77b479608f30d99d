"""The ledger: every limit, its ceiling, its use, and the load at which it saturates."""

from dataclasses import dataclass, field
from typing import Literal

from loadframe.model.curve import Saturation

LimitStatus = Literal["reached", "near", "free", "unlimited", ""]
""" "" where it was not judged."""
REACHED = 0.97
"""Share of its ceiling from which a use counts as at it: caches stop just short of what they may hold."""


@dataclass(frozen=True, slots=True)
class Limit:
    """headroom = ceiling - use; infinite: the machine sets none. configured: as asked for; effective: as used.
    exhausted_at: the load where it is full. loud: reaching it gives errors; else it only slows. chain: ids of lower
    limits that cap it. thrash_metric: rises once it is reached; harm: its value. title: subject of a sentence. waits:
    requests wait when it is reached, uncounted. setting: gives it its size. near: share of the ceiling from which its
    source calls it near."""

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
        """A silent limit is reached without harm: a warm cache is full."""
        return self.status == "reached" and not self.loud and self.harm == 0


@dataclass(frozen=True, slots=True)
class NextLimit:
    """load: where it saturates; None beyond what was tested."""

    id: str
    load: float | None
    title: str
    because: str


@dataclass(frozen=True, slots=True)
class UnreadLimit:
    id: str
    layer: str
    title: str
    reason: str
    source: str


@dataclass(frozen=True, slots=True)
class LedgerNow:
    """The most urgent first. watched_s: over all `readings`; `exhausted_at`: seconds from the last reading."""

    subject: str
    watched_s: float
    readings: int
    limits: tuple[Limit, ...]
    unread: tuple[UnreadLimit, ...]
    clamped: tuple[str, ...] = field(default=(), metadata={"alias": "silent_cuts"})
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FleetLimit:
    """driver: of the link from the target's host to this one; "" for the host itself, and for all that leaves it.
    error: of its use (a bound), if known. unseen: why its use is unknown."""

    host: str
    driver: str
    limit: Limit
    error: float | None = None
    unseen: str = ""
