"""Numbers that others wrote, from text: what is none is None, and nothing that is written raises."""

import math
import re

MOST_DIGITS = 20
"""Of a whole number: that of 64 bits without a sign. int() of thousands raises, or takes its time."""
_WHOLE = re.compile(rf"-?[0-9]{{1,{MOST_DIGITS}}}", re.ASCII)
SMALLEST, LARGEST = 1e-9, 1e15
"""A load, a throughput or a latency beyond these was given by mistake, or has another unit; and the squares of what is
computed from them would leave what a double can hold."""
_LONGEST = 400
"""Characters of a number with a point: the smallest double, written out in full, takes fewer than that many that
count."""


def plausible(value: float) -> bool:
    """Whether something that was measured can be that: 0, or from SMALLEST to LARGEST."""
    return value == 0 or SMALLEST <= value <= LARGEST


def whole(text: str) -> int | None:
    """A whole number in decimal digits, with "-" perhaps; None for anything else and for more than MOST_DIGITS."""
    return int(text) if _WHOLE.fullmatch(text) else None


def finite(text: str) -> float | None:
    """A number as float() reads it; None for text that is none, and for what is not finite."""
    try:
        value = float(text[: _LONGEST + 1])
    except ValueError:
        return None
    return value if len(text) <= _LONGEST and math.isfinite(value) else None
