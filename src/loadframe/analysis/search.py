"""Which level to measure next: bisection of the place where throughput falls."""

import math

from loadframe.model import Curve


def next_probe(curve: Curve, *, integer: bool, resolution: float = 0.1, largest_drop: float = 0.25) -> float | None:
    """The next level that narrows the curve's cliff, or a decline's steepest fall; None where nothing is left.

    Bisection in logarithms, as levels are usually geometric. Stops when high / low <= 1 + resolution, or no integer
    lies between (`integer`: the axis has whole levels only). A decline without a cliff is bisected between the two
    neighbouring levels with the largest fall, if that fall is at least `largest_drop` (a share of the throughput):
    it may hide a cliff's edge, and below a quarter the knee's interval is narrowed better by more blocks.
    """
    bracket = _bracket(curve, largest_drop)
    if bracket is None:
        return None
    low, high = bracket
    if low <= 0 or high <= low * (1 + resolution):
        return None
    middle = math.sqrt(low) * math.sqrt(high)
    if not integer:
        return middle
    inside = [level for level in (math.floor(middle), math.ceil(middle)) if low < level < high]
    return float(min(inside, key=lambda level: abs(math.log(level / middle)))) if inside else None


def _bracket(curve: Curve, largest_drop: float) -> tuple[float, float] | None:
    if curve.cliff is not None:
        return curve.cliff.from_load, curve.cliff.to_load
    if curve.shape != "decline":
        return None
    steps = [
        (after.throughput / before.throughput, before.load, after.load)
        for before, after in zip(curve.points, curve.points[1:], strict=False)
        if before.throughput > 0
    ]
    if not steps:
        return None
    kept, low, high = min(steps)
    return (low, high) if kept <= 1 - largest_drop else None
