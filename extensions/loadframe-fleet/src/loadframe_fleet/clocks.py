"""How far another machine's clock is off. An exchange gives when it was sent and answered (our clock), and what the
other clock showed in between: that was ahead by theirs - (sent + received) / 2, within half of the round trip (F.
Cristian, "Probabilistic clock synchronization", 1989). Of several the shortest counts (NTP, RFC 5905)."""

from collections.abc import Sequence
from dataclasses import dataclass

DRIFT = 500e-6
"""The most that NTP corrects (RFC 5905, 11.3): a clock that drifts more is broken, was set, or its machine slept."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """sent_s, received_s: by our clock; theirs_s: by the other one."""

    sent_s: float
    theirs_s: float
    received_s: float

    @property
    def round_trip_s(self) -> float:
        return self.received_s - self.sent_s

    @property
    def offset_s(self) -> float:
        """How far their clock is ahead of ours in the middle of the exchange."""
        return self.theirs_s - (self.sent_s + self.received_s) / 2


@dataclass(frozen=True, slots=True)
class Offset:
    """Their clock is ahead by offset_s +- uncertainty_s, a bound. at_s: by our clock. round_trip_s: the shortest."""

    offset_s: float
    uncertainty_s: float
    at_s: float
    round_trip_s: float


@dataclass(frozen=True, slots=True)
class ClockInStep:
    """A host's monotonic clock against the coordinator's, by the shortest of `exchanges` round trips before and after
    the step: ahead by offset_s within uncertainty_s at at_s, by later_s at later_at_s (coordinator's clock)."""

    offset_s: float
    uncertainty_s: float
    round_trip_s: float
    at_s: float
    later_s: float
    later_uncertainty_s: float
    later_at_s: float
    exchanges: int

    def ours_s(self, theirs_s: float) -> float:
        """theirs_s by our clock: between the two measurements the offset changes linearly."""
        return self.at_s + (theirs_s - self.offset_s - self.at_s) / (1.0 + self._rate)

    def theirs_s(self, ours_s: float) -> float:
        return ours_s + self.offset_s + self._rate * (ours_s - self.at_s)

    def window(self, from_s: float, to_s: float) -> tuple[float, float]:
        return self.theirs_s(from_s), self.theirs_s(to_s)

    @property
    def _rate(self) -> float:
        apart_s = self.later_at_s - self.at_s
        return (self.later_s - self.offset_s) / apart_s if apart_s > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Drift:
    """Seconds per second by which their clock runs faster than ours, with its bounds."""

    rate: float
    low: float
    high: float


def offset(exchanges: Sequence[Exchange]) -> Offset:
    """From exchanges within a moment, of which the shortest counts. ValueError for none, or a negative one."""
    if not exchanges:
        raise ValueError("no exchange")
    best = min(exchanges, key=lambda exchange: exchange.round_trip_s)
    if best.round_trip_s < 0:
        raise ValueError(f"an answer came {-best.round_trip_s:g} s before it was asked for")
    at_s = (best.sent_s + best.received_s) / 2
    return Offset(best.offset_s, best.round_trip_s / 2, at_s, best.round_trip_s)


def drift(first: Offset, last: Offset) -> Drift:
    """ValueError where there is no time between them."""
    apart_s = last.at_s - first.at_s
    if apart_s <= 0:
        raise ValueError("two offsets of one moment have no drift")
    rate = (last.offset_s - first.offset_s) / apart_s
    unsure = (first.uncertainty_s + last.uncertainty_s) / apart_s
    return Drift(rate, rate - unsure, rate + unsure)
