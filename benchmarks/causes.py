"""Rows of benchmarks/sceptic.py on causes: counters that stand still, neighbours, and what is called confirmed."""

from __future__ import annotations

from functools import cache, partial

import numpy as np

import counters
import proofs
from claims import Figure, rate, row

FEWER = 10
"""Of this many series one is drawn: a diagnosis takes ten times as long as a verdict on numbers."""


# --- 1. counters and neighbours ---


@cache
def steps(series: int, *, still: bool) -> tuple[counters.Seen, ...]:
    """Drawn servers, with a counter that stands still or without."""
    random = np.random.default_rng(21 + still)
    return tuple(counters.draw(random, still=still) for _ in range(series // FEWER))


@row("counters: ruled out", "a counter that stands still rules the true cause out", section=1, goal=0)
def ruled_out(series: int) -> Figure:
    """Beside a diagnosis that trusts every counter."""
    seen = steps(series, still=True)
    trusting = 100 * sum(one.trusting for one in seen) / len(seen)
    return rate(sum(one.ruled_out for one in seen), len(seen), 0.0, f"trusting every counter {trusting:.0f}")


@row("counters: named", "a counter that stands still is named as blind", section=1, goal=95, most=False)
def named(series: int) -> Figure:
    """In any of the steps."""
    seen = steps(series, still=True)
    return rate(sum(one.named for one in seen), len(seen), 95.0)


@row("counters: called blind", "counters at work that differ as real ones do: one is called blind", section=1, goal=5)
def called_blind(series: int) -> Figure:
    """In any of the steps."""
    seen = steps(series, still=False)
    return rate(sum(one.blind > 0 for one in seen), len(seen))


@row("counters: right first", "with all counters at work the true cause comes first", section=1, goal=90, most=False)
def right_first(series: int) -> Figure:
    """Of the six that a counter may hide."""
    seen = steps(series, still=False)
    return rate(sum(one.first for one in seen), len(seen), 90.0)


# --- 2. what is called confirmed ---


@cache
def proved(series: int, truth: proofs.Truth) -> tuple[proofs.Drawn, ...]:
    """Drawn proofs in which the throughput is proven to have risen."""
    random = np.random.default_rng(31)
    drawn = (proofs.draw(random, truth) for _ in range(series if truth == "neighbour" else series // 4))
    return tuple(one for one in drawn if one.better)


def confirmed(truth: proofs.Truth, series: int) -> Figure:
    """False confirmations, beside two simple rules: the throughput rose; it rose and the evidence fell, for each
    request or as a share of its ceiling."""
    seen = proved(series, truth)
    fell = 100 * sum(one.fell for one in seen) / len(seen)
    rival = f"the throughput rose: 100; and the evidence per request fell: {fell:.0f}"
    return rate(sum(bool(one.confirmed) for one in seen), len(seen), 0.0, rival)


WRONG: dict[proofs.Truth, tuple[int, str]] = {
    "neighbour": (1, "a gain that is there only while a neighbour takes the CPU: its cause confirmed"),
    "stays": (2, "something else gave the gain, the evidence stays or falls by arithmetic: confirmed"),
    "missing": (2, "the evidence was not measured in some block of a side: confirmed"),
    "uncounted": (2, "a cause of which nothing is counted: confirmed"),
}
for _truth, (_section, _claim) in WRONG.items():
    row(f"confirmed: {_truth}", _claim, section=_section, goal=0)(partial(confirmed, _truth))


@row(
    "confirmed: moved",
    "a true cause, 3 to 6 blocks, noise of 5 % and of 8 % in its counter: confirmed",
    section=2,
    goal=80,
    most=False,
)
def moved(series: int) -> Figure:
    """Beside the rule that the evidence fell."""
    seen = proved(series, "moved")
    fell = 100 * sum(one.fell for one in seen) / len(seen)
    return rate(sum(bool(one.confirmed) for one in seen), len(seen), 80.0, f"evidence per request fell: {fell:.0f}")


@cache
def pairs(series: int) -> tuple[proofs.Drawn, ...]:
    """Drawn proofs of one change that moves two causes' evidence."""
    random = np.random.default_rng(32)
    return tuple(proofs.pair(random) for _ in range(series // 4))


@row("confirmed: two at once", "one change moves the evidence of two causes: both confirmed", section=2, goal=0)
def two_at_once(series: int) -> Figure:
    """Of one change one cause may be confirmed."""
    seen = pairs(series)
    return rate(sum(len(one.confirmed) > 1 for one in seen), len(seen), 0.0)


@row(
    "confirmed: the first of two",
    "the same: the one whose evidence moved first and most confirmed",
    section=2,
    goal=90,
    most=False,
)
def first_of_two(series: int) -> Figure:
    """The other one is listed first."""
    seen = pairs(series)
    return rate(sum(one.confirmed == ("disk.fsync",) for one in seen), len(seen), 90.0)
