"""Peers that requests wait for: the time there is the busy connections over the throughput (Little's law); for Unix
sockets, the threads that wait."""

from dataclasses import dataclass
from statistics import fmean

from loadframe.metrics import parts_of
from loadframe.model import Curve, Evidence, Finding, LoadInterval, Step, Steps, at_highest, by_level
from loadframe.units import show

SLOW = "peer.slow"
AT_PEER = "workload.at_peer_ms"
SHARE = 1 / 3
"""Least share of the response time at the peer; connections used again at once may not be seen as busy."""
LOOKED = "target.peer"
GROWS = 1.5
"""Least growth of the time at the peer; where a pool of connections limits, it does not grow."""
BUSY, WAITING, CONNECTIONS = ".busy", ".waiting", ".connections"
UNIX = "unix:"
SOME_WAIT = 0.1
OTHERS = "others"
SCORE = 0.55


@dataclass(frozen=True, slots=True)
class AtPeer:
    """low_ms, high_ms: time per request there, at the end levels; share: of the response time. busy: connections that
    await an answer, or waiting threads."""

    name: str
    metric: str
    low_ms: float
    high_ms: float
    share: float
    busy: float

    @property
    def grows(self) -> float:
        return self.high_ms / self.low_ms


def looked_at(steps: Steps) -> list[Step]:
    """Steps with the connections read; [] if fewer than half. A peer that a step does not name had no connection
    then."""
    looked = [step for step in steps if any(name.startswith(LOOKED) for name in step.metrics)]
    return looked if 2 * len(looked) >= len(steps) else []


def slow_peer(steps: Steps) -> AtPeer | None:
    """The peer with most of the time at the highest level, longer than at the lowest in each step."""
    levels = [looked_at(level) for level in by_level(steps).values()]
    if len(levels) < 2:
        return None
    candidates = [peer for name in _peers(levels[-1]) if (peer := _at(name, levels[0], levels[-1])) is not None]
    return max(candidates, key=lambda peer: peer.share, default=None)


def finding(peer: AtPeer, curve: Curve, many: str) -> Finding:
    levels = [point.load for point in curve.points]
    where = f"at {levels[-1]:g}"
    low, high = show(peer.low_ms, "ms"), show(peer.high_ms, "ms")
    at_once = f" It serves {many} at a time." if many else ""
    counted = "busy connections to it" if peer.metric.endswith(BUSY) else "threads that wait for it"
    return Finding(
        id=SLOW,
        title=f"requests wait for {peer.name}, which takes {peer.grows:.2g} times as long under load",
        reached_at=curve.knee or LoadInterval(levels[-1], levels[0], levels[-1]),
        evidence=(
            Evidence(AT_PEER, peer.high_ms, ">=", GROWS * peer.low_ms, where, f"{counted} / throughput"),
            Evidence(peer.metric, peer.busy, ">", 0.0, where, "an answer is awaited on them"),
        ),
        score=SCORE,
        explanation=f"A request spends {low} there at {levels[0]:g}, and {high} {where}, at least "
        f"{100 * peer.share:.0f} % of its response time.{at_once} More connections to it only make requests wait "
        "there: the limit is the peer's.",
        advice=f"Measure {peer.name} as a target of its own, or ask it less.",
    )


def unseen_sockets(steps: Steps) -> tuple[str, ...]:
    """Unix sockets whose connections may await an answer unseen: no thread waits, as with an event loop."""
    high = looked_at(at_highest(steps))
    names = {
        peer
        for step in high
        for name in step.metrics
        if name.endswith(CONNECTIONS) and (peer := parts_of(name).get("peer", "")).startswith(UNIX)
    }
    return tuple(
        name
        for name in sorted(names)
        if fmean(step.metrics.get(f"target.peer.{name}{CONNECTIONS}", 0.0) for step in high) >= 1
        and not any(f"target.peer.{name}{BUSY}" in step.metrics for step in high)
        and not _is_inside(name, high)
        and fmean(step.metrics.get(f"target.peer.{name}{WAITING}", 0.0) for step in high) < SOME_WAIT
    )


def _peers(steps: Steps) -> list[str]:
    names = {name for step in steps for name in step.metrics if name.startswith("target.peer.")}
    peers = {
        parts_of(name).get("peer") for name in names if name.endswith(BUSY) or (name.endswith(WAITING) and UNIX in name)
    }
    return sorted(peer for peer in peers if peer is not None and peer != OTHERS and not _is_inside(peer, steps))


def _is_inside(peer: str, steps: Steps) -> bool:
    """The target itself listens there: a pool of its own workers."""
    return any(step.metrics.get(f"target.peer.{peer}.inside", 0.0) > 0 for step in steps)


def _at(name: str, low: Steps, high: Steps) -> AtPeer | None:
    busy = f"target.peer.{name}{BUSY}"
    metric = busy if any(busy in step.metrics for step in high) or not name.startswith(UNIX) else ""
    metric = metric or f"target.peer.{name}{WAITING}"
    if not low or not all(metric in step.metrics and step.throughput > 0 for step in (*low, *high)):
        return None
    first, last = ([1000 * step.metrics[metric] / step.throughput for step in steps] for steps in (low, high))
    if min(last) <= max(first) or fmean(last) < GROWS * fmean(first) or not any(first):
        return None
    responses_ms = [step.latency.mean_ms for step in high if step.latency_known]
    share = min(1.0, fmean(last) / fmean(responses_ms)) if any(responses_ms) else 0.0
    if share < SHARE:
        return None
    return AtPeer(name, metric, fmean(first), fmean(last), share, fmean(step.metrics[metric] for step in high))
