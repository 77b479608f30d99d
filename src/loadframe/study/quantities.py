"""Durations, integers sets and other quantities as a study file writes them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

DURATION = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h)\s*$")
SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def duration_s(value: object) -> float:
    """Seconds from "500ms", "3s", "10m" or "1h". ValueError for everything else, a bare number included."""
    if isinstance(value, str) and (match := DURATION.match(value)):
        return float(match[1]) * SECONDS[match[2]]
    raise ValueError(f'{value!r} is not a duration; write it with its unit, for instance "500ms", "3s" or "10m"')


def show_duration(seconds: float) -> str:
    """The way back: "3s", "0.6s", "10m"."""
    if seconds >= 120 and seconds % 60 == 0:
        return f"{seconds / 60:g}m"
    return f"{seconds:g}s"


def spread(low: float, high: float, count: int, growth: str, *, whole: bool) -> tuple[float, ...]:
    """`count` levels from low to high, "geometric" or "linear", rounded to whole numbers where asked; duplicates that
    rounding makes are dropped."""
    if count == 1:
        levels: Sequence[float] = [low]
    elif growth == "geometric":
        ratio = math.log(high / low) / (count - 1)
        levels = [low * math.exp(ratio * i) for i in range(count)]
    else:
        levels = [low + (high - low) * i / (count - 1) for i in range(count)]
    rounded = [float(round(level)) if whole else float(f"{level:.6g}") for level in levels]
    return tuple(sorted(set(rounded)))
