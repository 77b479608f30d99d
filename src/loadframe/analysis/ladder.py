"""The share of each change in a gain, and which changes depend on one another (docs/mathematics.md, "A ladder of
changes"). A state of a ladder is its set of changes; all are measured in the same blocks, so that the logarithms of the
gains add up to that of the whole. Every question is a contrast of logarithms, the states on one side added, those on
the other subtracted, which is a verdict on products of throughputs."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loadframe.analysis import comparison
from loadframe.model import Interaction, LevelRatio, Verdict

State = tuple[str, ...]
"""Its changes, in the study's order; () is the start."""
Samples = Mapping[State, Mapping[float, Sequence[float]]]
"""Throughputs (1/s) of each state by level, index i of every level is block i."""

ERROR = 0.05
"""Of all interactions that are looked for together (Bonferroni)."""


@dataclass(frozen=True, slots=True)
class Decomposition:
    """A gain by its changes, in order. gains: of each against the state before it; shares: of each in the logarithm of
    the whole, empty where that is not proven; at_top: all changes against all but this one, None if not measured."""

    total: Verdict
    gains: tuple[Verdict, ...]
    shares: tuple[float, ...]
    at_top: tuple[Verdict | None, ...]


def rising(kept: State) -> tuple[State, ...]:
    return tuple(kept[:count] for count in range(len(kept) + 1))


def without(kept: State, *left_out: str) -> State:
    return tuple(change for change in kept if change not in left_out)


def states(kept: State) -> tuple[State, ...]:
    """Every state needed for a decomposition: the rising ones, and the top without each change in turn."""
    return tuple(dict.fromkeys([*rising(kept), *(without(kept, change) for change in kept)]))


def contrast(samples: Samples, more: Sequence[State], less: Sequence[State], *, confidence: float = 0.95) -> Verdict:
    """Product of the throughputs of the states in `more` over that of those in `less`, as many of each: with one on
    either side their ratio, with two how many times more a change is worth together with another one. Zeros count as in
    comparison, over all states of the samples, so that gains still add up. ValueError as comparison.verdict."""
    filled = _without_zeros(samples)
    verdict = comparison.verdict_at_end(_product(filled, less), _product(filled, more), confidence=confidence)
    return comparison.unless_zero(
        verdict, *(samples[state][level] for state in (*less, *more) for level in verdict.levels)
    )


def decompose(samples: Samples, kept: State) -> Decomposition:
    """The decomposition of a ladder. samples: of all its `rising` states, perhaps of all its `states`; intervals at 95
    %. ValueError for a ladder without a change, or without blocks."""
    if not kept:
        raise ValueError("a ladder without a change has no gain")
    climbed = rising(kept)
    gains = tuple(contrast(samples, [after], [before]) for before, after in itertools.pairwise(climbed))
    total = contrast(samples, [kept], [()])
    at_top = tuple(
        contrast(samples, [kept], [without(kept, change)]) if without(kept, change) in samples else None
        for change in kept
    )
    return Decomposition(total, gains, comparison.shares(total, gains), at_top)


def level_ratios(samples: Samples, kept: State) -> tuple[LevelRatio, ...]:
    """All kept changes against the start at each level; zeros count at each level by itself."""
    ratios = []
    for level in sorted(samples[()].keys() & samples[kept].keys()):
        alone = {state: {level: levels[level]} for state, levels in samples.items() if level in levels}
        verdict = contrast(alone, [kept], [()])
        if verdict.has_ratio:
            before = math.exp(float(np.log(_without_zeros(alone)[()][level]).mean()))
            ratios.append(LevelRatio(level, before, before * verdict.ratio, verdict.ratio, verdict.low, verdict.high))
    return tuple(ratios)


def interactions(samples: Samples, kept: State) -> tuple[Interaction, ...]:
    """The changes proven to be worth another factor at the top than at their place in the order. The last change is at
    the top in either case; for the one before it only the last can be the partner, for others the partner is not known
    yet. Together they err with probability ERROR at most."""
    asked = [change for change in kept[:-1] if without(kept, change) in samples]
    interacting = []
    for change in asked:
        place = kept.index(change)
        verdict = contrast(
            samples,
            [kept, kept[:place]],
            [without(kept, change), kept[: place + 1]],
            confidence=1 - ERROR / len(asked),
        )
        if verdict.decided:
            interacting.append(Interaction(change, kept[-1] if change == kept[-2] else None, verdict))
    return tuple(interacting)


def pair_states(kept: State, change: str, partner: str) -> tuple[State, ...]:
    """The four states that show what a change is worth with a partner and without it, all others in place."""
    return (kept, without(kept, change), without(kept, partner), without(kept, change, partner))


def pair(samples: Samples, kept: State, change: str, partner: str, *, confidence: float = 0.95) -> Interaction:
    """How many times more a change is worth with a partner than without it, all others in place, from the four
    `pair_states`; symmetric in the two."""
    top, less_change, less_partner, less_both = pair_states(kept, change, partner)
    return Interaction(
        change,
        partner,
        contrast(samples, [top, less_both], [less_change, less_partner], confidence=confidence),
    )


def _product(samples: Samples, chosen: Sequence[State]) -> dict[float, list[float]]:
    """One side of a contrast: products of its states' throughputs by level, block by block."""
    levels = sorted(set.intersection(*(set(samples[state]) for state in chosen)))
    blocks = {level: min(len(samples[state][level]) for state in chosen) for level in levels}
    return {
        level: [math.prod(samples[state][level][block] for state in chosen) for block in range(blocks[level])]
        for level in levels
    }


def _without_zeros(samples: Samples) -> Samples:
    filled: dict[State, dict[float, list[float]]] = {state: {} for state in samples}
    for level in sorted(set().union(*samples.values())):
        holders = [state for state in samples if level in samples[state]]
        logs, zeros = comparison.logarithms([samples[state][level] for state in holders])
        for state, values in zip(holders, logs, strict=True):
            filled[state][level] = list(np.exp(values)) if zeros else list(samples[state][level])
    return filled
