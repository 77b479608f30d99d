"""The share of each change in a gain, and which depend on others (docs/mathematics.md, "A ladder of changes")."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loadframe.analysis import comparison
from loadframe.model import Interaction, LevelRatio, Verdict

State = tuple[str, ...]
"""Its changes, in the study's order; () is the start."""
Samples = Mapping[State, comparison.Blocks]
ERROR = 0.05
"""Error probability of all interactions together (Bonferroni)."""


@dataclass(frozen=True, slots=True)
class Decomposition:
    """gains: against the state before; shares: in the logarithm of the whole, if that is proven; at_top: all changes
    against all but this."""

    total: Verdict
    gains: tuple[Verdict, ...]
    shares: tuple[float, ...]
    at_top: tuple[Verdict | None, ...]


def rising(kept: State) -> tuple[State, ...]:
    return tuple(kept[:count] for count in range(len(kept) + 1))


def without(kept: State, *left_out: str) -> State:
    return tuple(change for change in kept if change not in left_out)


def states(kept: State) -> tuple[State, ...]:
    """The rising states, and the top without each change in turn."""
    return tuple(dict.fromkeys([*rising(kept), *(without(kept, change) for change in kept)]))


def contrast(samples: Samples, more: Sequence[State], less: Sequence[State], *, confidence: float = 0.95) -> Verdict:
    """Product of the throughputs of the states in `more` over that of as many in `less`: of pairs how many times more a
    change is worth together with another. ValueError as comparison.verdict."""
    return comparison.verdict_at_end(_product(samples, less), _product(samples, more), confidence=confidence)


def decompose(samples: Samples, kept: State) -> Decomposition:
    """samples: throughputs of all `rising` states, perhaps of all `states`; 95 % intervals. ValueError for no change,
    or no blocks."""
    if not kept:
        raise ValueError("a ladder without a change has no gain")
    gains = tuple(contrast(samples, [after], [before]) for before, after in itertools.pairwise(rising(kept)))
    total = contrast(samples, [kept], [()])
    others = [without(kept, change) for change in kept]
    at_top = tuple(contrast(samples, [kept], [other]) if other in samples else None for other in others)
    return Decomposition(total, gains, comparison.shares(total, gains), at_top)


def level_ratios(samples: Samples, kept: State) -> tuple[LevelRatio, ...]:
    ratios = []
    for level in sorted(samples[()].keys() & samples[kept].keys()):
        alone = {state: {level: levels[level]} for state, levels in samples.items() if level in levels}
        verdict = contrast(alone, [kept], [()])
        if verdict.has_ratio:
            before = math.exp(np.log(samples[()][level]).mean())
            ratios.append(LevelRatio(level, before, before * verdict.ratio, verdict.ratio, verdict.low, verdict.high))
    return tuple(ratios)


def interactions(samples: Samples, kept: State) -> tuple[Interaction, ...]:
    """Changes proven to be worth another factor at the top than in their place, all with ERROR together."""
    asked = [change for change in kept[:-1] if without(kept, change) in samples]
    interacting = []
    for change in asked:
        place = kept.index(change)
        verdict = contrast(
            samples, [kept, kept[:place]], [without(kept, change), kept[: place + 1]], confidence=1 - ERROR / len(asked)
        )
        if verdict.decided:
            interacting.append(Interaction(change, kept[-1] if change == kept[-2] else None, verdict))
    return tuple(interacting)


def pair_states(kept: State, change: str, partner: str) -> tuple[State, ...]:
    return (kept, without(kept, change), without(kept, partner), without(kept, change, partner))


def pair(samples: Samples, kept: State, change: str, partner: str, *, confidence: float = 0.95) -> Interaction:
    top, less_change, less_partner, less_both = pair_states(kept, change, partner)
    verdict = contrast(samples, [top, less_both], [less_change, less_partner], confidence=confidence)
    return Interaction(change, partner, verdict)


def _product(samples: Samples, chosen: Sequence[State]) -> dict[float, list[float]]:
    levels = sorted(set.intersection(*(set(samples[state]) for state in chosen)))
    return {
        level: list(map(math.prod, zip(*(samples[state][level] for state in chosen), strict=False))) for level in levels
    }
