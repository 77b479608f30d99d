"""Whether a change is kept for its throughput.

The blocks that decide stop where they look good, and of several changes the luckiest one is found; so a gain that they
prove is kept only where it is also more than noise. Noise is what each state shows against itself, block against block,
in the same blocks (`Verdict.floor`). In fresh blocks, which chose nothing, the gain must be proved again and exceed it.
Without fresh blocks the whole interval of those that decided must lie beyond it: then two estimates of the noise, of
the pairs of both states and of each state by itself, would have to be too small by chance.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadframe.analysis.disturbance import is_disturbed
from loadframe.model import Step, Verdict

NOT_AGAIN = "fresh blocks did not prove the gain again"
IN_FRESH_NOISE = "the gain in fresh blocks is no larger than what equal states showed there"
IN_NOISE = "its interval reaches into what equal states showed in the same blocks, and no time was left for fresh ones"
OFTEN = 0.25
"""Of the fresh steps: where so large a share was disturbed, that is told beside what they did not show."""


def why_not_again(fresh: Verdict, steps: Sequence[Step]) -> str:
    """Why fresh blocks, of these steps, do not keep a gain that others had proved, in words; "" where they do."""
    if fresh.decision == "better":
        return "" if fresh.exceeds_noise else IN_FRESH_NOISE
    disturbed = sum(is_disturbed(step, steps) for step in steps)
    if fresh.decision != "worse" and disturbed >= OFTEN * len(steps):
        return f"{NOT_AGAIN}: {disturbed} of their {len(steps)} steps were disturbed, which says nothing of it"
    return NOT_AGAIN
