"""Whether latencies have a mode at one place: as many requests as there would not be if they were spread around it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

DELAYED_ACK_MS = (38.0, 48.0)
"""TCP_DELACK_MIN is 40 ms (include/net/tcp.h); a timer of 100 to 1000 Hz may end a tick earlier or later, and a request
takes its own time besides."""
HIGHEST_CONTRAST = 1000.0
"""Where there is no request beside the band."""


@dataclass(frozen=True, slots=True)
class Band:
    """share: of the requests within the band. contrast: their number over that of the fuller one of two bands as wide,
    the one below it and the second above it; of a broad distribution it is about 1. What is late is late by less than
    a band: the first one above belongs to the same mode."""

    share: float
    contrast: float


def band(latency_ms: NDArray[np.float32], low_ms: float, high_ms: float) -> Band | None:
    """The requests within low_ms..high_ms; None where there are none at all."""
    if not len(latency_ms):
        return None
    width_ms = high_ms - low_ms
    edges = (low_ms - width_ms, low_ms, high_ms, high_ms + width_ms, high_ms + 2 * width_ms)
    below, inside, _, above = (
        int(((latency_ms >= first) & (latency_ms < last)).sum()) for first, last in pairwise(edges)
    )
    contrast = inside / max(below, above) if below or above else HIGHEST_CONTRAST
    return Band(inside / len(latency_ms), min(contrast, HIGHEST_CONTRAST))
