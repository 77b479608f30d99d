"""Where throughput bends: at the load of the limit that explains it, where one does."""

from __future__ import annotations

from loadframe.model import Bend, Finding, Round


def explains_bend(finding: Finding) -> bool:
    """Whether the evidence of a finding begins where the curve bends: it explains more than the curve's height."""
    return finding.score > 0.5


def bend_of(one: Round) -> Bend | None:
    """The bend of a round's curve, told at the load at which a limit begins to act, where that is what explains it: the
    best finding that is not refuted is a limit of the ledger, and its interval and the knee's overlap. None where the
    curve does not bend, and where the knee is all that is known.

    The ledger's load is that of a counter that is read in every step; a knee lies somewhere between levels."""
    knee, limits = one.curve.knee, {limit.id for limit in one.limits}
    first = next((finding for finding in one.findings if finding.status != "refuted"), None)
    if knee is None or first is None or first.reached_at is None or first.id not in limits or not explains_bend(first):
        return None
    at = first.reached_at
    if at.low > knee.high or knee.low > at.high:
        return None
    return Bend(at, knee, first.id)
