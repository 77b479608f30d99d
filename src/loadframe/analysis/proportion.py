"""The interval of a proportion."""

from __future__ import annotations

import math

Z_INTERVAL = 1.96
"""95 %."""


def wilson(count: int, total: int) -> tuple[float, float]:
    """Wilson's score interval, 95 %: E. B. Wilson, JASA 22 (1927)."""
    share, z2 = count / total, Z_INTERVAL**2
    middle = share + z2 / (2 * total)
    half = Z_INTERVAL * math.sqrt(share * (1 - share) / total + z2 / (4 * total**2))
    scale = 1 + z2 / total
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)
