"""Whether two hosts are alike: an A/A comparison, which must prove that there is no difference that matters.

That no difference is proved is not enough, as few blocks prove nothing. So the whole interval must lie within a margin
(an equivalence test by its interval: Schuirmann 1987, Journal of Pharmacokinetics and Biopharmaceutics 15). Several
hosts are alike if each of these comparisons says so, so none of them needs a stricter level than one alone
(intersection-union: Berger 1982, Technometrics 24(4)).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loadframe.analysis.comparison import Grains, verdict
from loadframe.analysis.sequential import Plan
from loadframe.model.fleet_hosts import HostRatio, Likeness

MARGIN = 1.2
"""A trial is held against the start of its own host. So what is left of a difference between hosts is only that a
setting is worth more on the one than on the other; a search gives up what is below 0.7 of the best."""
ERROR = 0.05
PLAN = Plan(3, 8)
"""From which block to which one it is looked whether the answer is known."""


def beside(
    host: str,
    other: str,
    mine: Mapping[float, Sequence[float]],
    theirs: Mapping[float, Sequence[float]],
    grain: Grains | None = None,
) -> HostRatio:
    """Throughput of a host against another one, by level and block as in comparison.verdict. grain: of theirs and mine,
    as there: hosts of which each counts the same in every block differ by as much as they count, or are alike."""
    found = verdict(theirs, mine, confidence=1 - ERROR, plan=PLAN, grain=grain)
    return HostRatio(host, other, found.ratio, found.low, found.high, found.blocks, judge(found.low, found.high))


def judge(low: float, high: float) -> Likeness:
    """From the interval of a ratio."""
    if low >= 1 / MARGIN and high <= MARGIN:
        return "alike"
    middle = (low * high) ** 0.5
    beyond = not 1 / MARGIN <= middle <= MARGIN
    return "differ" if beyond and not low <= 1 <= high else "unknown"
