"""Peers of a target that requests wait for: the time at a peer is the busy connections to it over the throughput
(Little's law)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from loadframe.metrics.families import peer_of
from loadframe.model import Curve, Evidence, Finding, LoadInterval, Step
from loadframe.units import show

SLOW = "peer.slow"
AT_PEER = "workload.at_peer_ms"
SHARE = 1 / 3
"""Of the response time that is spent at the peer, at least: of connections on which the next request follows the answer
at once the kernel does not always tell that they are busy, so that there may be more."""
GROWS = 1.5
"""Of a pool of connections that limits, each is as long at the peer as before, however many requests wait for one."""
OTHERS = "others"
"""Peers of which each has few connections, together: no one's time."""
SCORE = 0.55
"""It says what the plateau is of, so it comes before the number in service; and after a signature that explains it."""


@dataclass(frozen=True, slots=True)
class AtPeer:
    """name: of the peer. low_ms, high_ms: the time a request spends there, at the lowest and the highest level; share:
    of the response time at the highest. busy: connections on which an answer is awaited there."""

    name: str
    low_ms: float
    high_ms: float
    share: float
    busy: float

    @property
    def grows(self) -> float:
        return self.high_ms / self.low_ms


def slow_peer(steps: Sequence[Step]) -> AtPeer | None:
    """The peer at which requests spend most of their time at the highest level, and longer than at the lowest one in
    every step of both; None where there is none."""
    levels = sorted({step.level for step in steps})
    if len(levels) < 2:
        return None
    low, high = ([step for step in steps if step.level == level] for level in (levels[0], levels[-1]))
    found = [peer for name in _peers(high) if (peer := _at(name, low, high)) is not None]
    return max(found, key=lambda peer: peer.share, default=None)


def finding(peer: AtPeer, curve: Curve, many: str) -> Finding:
    """peer.slow. many: how many requests are in service at once, in words, "" where that is not known."""
    levels = [point.load for point in curve.points]
    where = f"at {levels[-1]:g}"
    return Finding(
        id=SLOW,
        status="suspected",
        title=f"requests wait for {peer.name}, which takes {peer.grows:.2g} times as long under load",
        reached_at=curve.knee or LoadInterval(levels[-1], levels[0], levels[-1]),
        evidence=(
            Evidence(AT_PEER, peer.high_ms, ">=", GROWS * peer.low_ms, where, "busy connections to it / throughput"),
            Evidence(f"target.peer.{peer.name}.busy", peer.busy, ">", 0.0, where, "an answer is awaited on them"),
        ),
        ruled_out=(),
        score=SCORE,
        explanation=_explanation(peer, levels, f" It serves {many} at a time." if many else ""),
    )


def _explanation(peer: AtPeer, levels: Sequence[float], at_once: str) -> str:
    low, high = show(peer.low_ms, "ms"), show(peer.high_ms, "ms")
    return (
        f"A request spends {low} there at {levels[0]:g}, and {high} at {levels[-1]:g}, at least "
        f"{100 * peer.share:.0f} % of its response time.{at_once} More connections to it only make requests wait "
        "there: the limit is the peer's. Measure it as a target of its own, or ask it less."
    )


def _peers(steps: Sequence[Step]) -> list[str]:
    names = {name for step in steps for name in step.metrics if name.startswith("target.peer.")}
    found = {peer_of(name) for name in names if name.endswith(".busy")}
    return sorted(peer for peer in found if peer is not None and peer != OTHERS)


def _at(name: str, low: Sequence[Step], high: Sequence[Step]) -> AtPeer | None:
    metric = f"target.peer.{name}.busy"
    times = [_times_ms(metric, steps) for steps in (low, high)]
    if (
        not all(times)
        or min(times[1]) <= max(times[0])
        or fmean(times[1]) < GROWS * fmean(times[0])
        or not any(times[0])
    ):
        return None
    response_ms = fmean(step.latency.mean_ms for step in high)
    share = min(1.0, fmean(times[1]) / response_ms) if response_ms > 0 else 0.0
    if share < SHARE:
        return None
    busy = fmean(step.metrics[metric] for step in high)
    return AtPeer(name, fmean(times[0]), fmean(times[1]), share, busy)


def _times_ms(metric: str, steps: Sequence[Step]) -> list[float]:
    """Of each step; [] where one of them lacks it."""
    found = [1000 * step.metrics[metric] / step.throughput for step in steps if _told(metric, step.metrics, step)]
    return found if len(found) == len(steps) else []


def _told(metric: str, metrics: Mapping[str, float], step: Step) -> bool:
    return metric in metrics and step.throughput > 0
