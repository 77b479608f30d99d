"""Whether a change is kept for its throughput.

The blocks that decide stop where they look good, and of several changes the luckiest one is found; so a gain that they
prove is kept only where it is also more than noise. Noise is what each state shows against itself, block against block,
in the same blocks (`Verdict.floor`). In fresh blocks, which chose nothing, the gain must be proved again and exceed it.
Without fresh blocks the whole interval of those that decided must lie beyond it: then two estimates of the noise, of
the pairs of both states and of each state by itself, would have to be too small by chance.
"""

from __future__ import annotations

from loadframe.model import Verdict

NOT_AGAIN = "fresh blocks did not prove the gain again"
IN_FRESH_NOISE = "the gain in fresh blocks is no larger than what equal states showed there"
IN_NOISE = "its interval reaches into what equal states showed in the same blocks, and no time was left for fresh ones"


def why_not_again(fresh: Verdict) -> str:
    """Why fresh blocks do not keep a gain that others had proved, in words; "" where they do."""
    if fresh.decision != "better":
        return NOT_AGAIN
    return "" if fresh.exceeds_noise else IN_FRESH_NOISE
