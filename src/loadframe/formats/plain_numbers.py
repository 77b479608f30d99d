"""Numbers that others wrote: other text gives None, and nothing raises."""

import math
import re
from typing import TypeGuard

MOST_DIGITS = 20
"""An unsigned 64-bit integer has 20; int() of thousands raises, or is slow."""
_WHOLE = re.compile(rf"-?[0-9]{{1,{MOST_DIGITS}}}", re.ASCII)
SMALLEST, LARGEST = 1e-9, 1e15
"""A load, a throughput or a latency beyond these was given by mistake, or has another unit; and squares would leave the
range of a double."""
_LONGEST = 400
"""Characters: the smallest double, written out in full, has fewer significant ones."""


def plausible(value: float) -> bool:
    """Whether a value is 0, or from SMALLEST to LARGEST."""
    return value == 0 or SMALLEST <= value <= LARGEST


def is_number(value: object) -> TypeGuard[int | float]:
    """In JSON or TOML: true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def whole(text: str) -> int | None:
    """A decimal whole number with an optional "-" and at most MOST_DIGITS."""
    return int(text) if _WHOLE.fullmatch(text) else None


def finite(text: str) -> float | None:
    """As float() reads it."""
    try:
        value = float(text[: _LONGEST + 1])
    except ValueError:
        return None
    return value if len(text) <= _LONGEST and math.isfinite(value) else None
