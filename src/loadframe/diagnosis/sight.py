"""What steps show together: a counter that was blind in many of them is trusted in none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from loadframe.metrics.agreements import names_of
from loadframe.model import BlindCounter, Step

TRUSTED = 0.5
"""A counter that contradicts others in this share of the steps says nothing in the rest either: it agreed there by
chance, or there was nothing to count."""


def sighted(steps: Sequence[Step]) -> list[Step]:
    """The same steps without the metrics of counters that were blind in half of them or more."""
    often = Counter(name for step in steps for name in names_of(step.blind))
    gone = {name for name, count in often.items() if count >= TRUSTED * len(steps)}
    if not gone:
        return list(steps)
    return [
        replace(step, metrics={name: value for name, value in step.metrics.items() if name not in gone})
        for step in steps
    ]


def blind_counters(steps: Sequence[Step]) -> tuple[BlindCounter, ...]:
    """Every counter that was blind in any of these steps, the one that was most often first."""
    often = Counter(one.counter for step in steps for one in step.blind)
    words = {one.counter: one.because for step in reversed(steps) for one in step.blind}
    return tuple(BlindCounter(name, count, words[name]) for name, count in often.most_common())
