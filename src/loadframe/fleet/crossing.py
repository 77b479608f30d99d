"""What came through the interfaces of the load in a step, beside the load itself.

An interface is read by the recorder of its host; the drivers say what came to them between just those readings. Where
it cannot be told what of an interface is the load, it is said why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from loadframe.fleet.hosts import Way
from loadframe.fleet.routes import LOOPBACK
from loadframe.model.fleet_step import ClockInStep, LinkUse
from loadframe.recording.frames import Tick
from loadframe.recording.interfaces import Carried, carried

Between = Mapping[str, tuple[float, float]]
Bodies = Callable[[Between], Mapping[str, int]]
"""Bytes of answers that ended at each driver between two instants of its own clock; empty where one does not count."""


@dataclass(frozen=True, slots=True)
class Loading:
    """A step as it was driven. started_s, ended_s: of the load, by the coordinator's clock. answers_per_s, under_way:
    of all drivers together; shares: of the level, by driver. clocks, ticks: of each host."""

    started_s: float
    ended_s: float
    answers_per_s: float
    under_way: float
    shares: Mapping[str, int]
    clocks: Mapping[str, ClockInStep]
    ticks: Mapping[str, Sequence[Tick]]


def link_uses(load: Loading, ways: Mapping[str, Way], target: str | None, bodies: Bodies) -> dict[str, LinkUse]:
    """Of each driver, what came to it from the target's host, and of that host, what left it. Empty where the target is
    on no host. StepVoid where a driver cannot be asked."""
    if target is None:
        return {}
    hosts = [*load.shares, *([target] if target not in load.shares else [])]
    seen: dict[str, Carried] = {}
    found: dict[str, LinkUse] = {}
    for host in hosts:
        one = _carried(load, ways, target, host)
        if isinstance(one, str):
            found[host] = LinkUse(why_not=one)
        else:
            seen[host] = one
    drivers = {host: each for host, each in seen.items() if host != target}
    if drivers:
        moved = bodies({host: (each.from_s, each.to_s) for host, each in drivers.items()})
        whole = sum(load.shares.values())
        for host, each in drivers.items():
            share = load.shares[host] / whole
            found[host] = _use(each, each.received_bytes, each.received_packets, moved.get(host), load, share)
    if target in seen:
        each = seen[target]
        clock = load.clocks[target]
        ours = clock.ours_s(each.from_s), clock.ours_s(each.to_s)
        away = [host for host in load.shares if host != target]
        moved = bodies({host: _theirs(load.clocks[host], ours) for host in away})
        whole_moved = sum(moved.values()) if moved else None
        found[target] = _use(each, each.sent_bytes, each.sent_packets, whole_moved, load, 1.0)
    return found


def _theirs(clock: ClockInStep, ours: tuple[float, float]) -> tuple[float, float]:
    return clock.theirs_s(ours[0]), clock.theirs_s(ours[1])


def _carried(load: Loading, ways: Mapping[str, Way], target: str, host: str) -> Carried | str:
    """What went through its interface; why it cannot be seen, in words."""
    way = ways.get(host)
    if way is None or not way.interface:
        return "the interface by which it exchanges with the target is not known"
    if way.interface == LOOPBACK:
        return "the load does not leave the machine"
    sharing = Counter(each.network for each in ways.values())
    if sharing[way.network] > 1:
        return "other hosts of the fleet have the same interfaces"
    clock = load.clocks[host]
    one = carried(load.ticks[host], way.interface, *_theirs(clock, (load.started_s, load.ended_s)))
    return one or f"its interface {way.interface} was read less than twice while the load went on"


def _use(each: Carried, counted: int, packets: int, bodies: int | None, load: Loading, share: float) -> LinkUse:
    if bodies is None:
        return LinkUse(why_not="a driver does not count the bytes of its answers")
    seconds = each.to_s - each.from_s
    answers = load.answers_per_s * seconds * share
    found = other_traffic(seconds, counted, packets, bodies, answers, load.under_way * share)
    return LinkUse(bodies / seconds, found.bytes_per_s, found.error)


FRAME_HEADERS = (54, 106)
"""Bytes of a frame that are no payload: Ethernet 14, IP 20 (IPv6: 40), TCP 20 to 52 with the options of a stream."""
ANSWER_HEADERS = (17, 1000)
"""Bytes of an answer before its body: a bare status line (RFC 9112) to more than servers usually send."""


@dataclass(frozen=True, slots=True)
class OtherTraffic:
    """Bytes per second that were not of the load, give or take error (a bound)."""

    bytes_per_s: float
    error: float

    @property
    def least(self) -> float:
        """What is there whatever was unknown."""
        return max(0.0, self.bytes_per_s - self.error)


def other_traffic(
    seconds: float, counted: int, packets: int, bodies: int, answers: float, under_way: float
) -> OtherTraffic:
    """counted, packets: of an interface in one direction. bodies: bytes of the answers that ended in that time;
    answers: their number; under_way: as many more may have come in part. ValueError for no time."""
    if seconds <= 0:
        raise ValueError(f"nothing is carried in {seconds} s")
    edge = under_way * bodies / answers if answers > 0 else 0.0
    low, high = (
        counted - packets * frame - bodies - answers * answer + sign * edge
        for frame, answer, sign in zip(reversed(FRAME_HEADERS), reversed(ANSWER_HEADERS), (-1, 1), strict=True)
    )
    low, high = max(0.0, low) / seconds, max(0.0, high) / seconds
    return OtherTraffic((low + high) / 2, (high - low) / 2)
