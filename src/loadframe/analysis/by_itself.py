"""A use that grows with time at equal load: a memory that leaks, a disk that fills. Over the load it is scatter.

The test is that of a watch (leaks.py), on rows averaged to at most MOST_ROWS.
"""

from __future__ import annotations

import numpy as np

from loadframe.analysis.leaks import leak
from loadframe.analysis.observed_blocks import Floats
from loadframe.model import GrowsByItself

MOST_ROWS = (300, 768, 1024)
"""By each in turn: whether neighbours are still correlated is told by few batches, and by chance."""

LEVEL = 0.001
"""Of a one-sided test: one use of a thousand that do not grow is told to."""

AROUND = 2.0
"""Deviations of the rows from the line: a deviation that lasts is no error of the slope, but moves the end."""

DAY_S = 86400.0


def grows(resource: str, time_s: Floats, load: Floats, use: Floats) -> GrowsByItself | None:
    """None where it does not, is full already, or would end beyond a month. time_s: ascending; load, use: (n,), NaN
    where missing; shares of all there is."""
    known = np.isfinite(use) & np.isfinite(load)
    if not known.any():
        return None
    found = None
    for most in MOST_ROWS:
        columns = (time_s[known], use[known], load[known])
        pieces = [np.array_split(each, min(len(each), most)) for each in columns]
        times, uses, loads = ([float(part.mean()) for part in each] for each in pieces)
        found = found or leak(times, uses, loads, 1.0, level=LEVEL / len(MOST_ROWS))
    if found is None:
        return None
    at_end, scatter = _line(np.array(times), np.array(uses), np.array(loads))
    if not 0 < at_end < 1:
        return None
    last_s, room = times[-1], 1 - at_end
    return GrowsByItself(
        resource,
        use=at_end,
        per_day=found.slope * DAY_S,
        low_per_day=found.low * DAY_S,
        high_per_day=found.high * DAY_S,
        ends_s=last_s + room / found.slope,
        ends_low_s=last_s + max(room - AROUND * scatter, 0.0) / found.high,
        ends_high_s=last_s + (room + AROUND * scatter) / found.low if found.low > 0 else np.inf,
    )


def _line(time_s: Floats, use: Floats, load: Floats) -> tuple[float, float]:
    """By least squares in time and load: the use at the end, at the usual load, and the deviation from the line."""
    time_s = time_s - time_s[-1]
    design = np.column_stack([np.ones_like(use), time_s / DAY_S, load - np.median(load)])
    fitted = np.linalg.lstsq(design, use, rcond=None)[0]
    return float(fitted[0]), float((use - design @ fitted).std())
