"""From which load on the response of production data takes longer."""

from __future__ import annotations

import numpy as np

from loadframe.analysis.saturation_of_rows import Cells, ranges
from loadframe.model import LoadInterval

BENT = 1.5
"""The response at a load, as a multiple of that at the lowest loads, from which on it has bent; at all higher loads
too."""
ERRORS = 3.0


def bend(loads: Cells, responses: Cells) -> LoadInterval | None:
    """The load from which on the response is above that of the lowest third of loads: between the last range that is
    not and the first one that is. None where no range is, or all of it is flat."""
    averaged = ranges(loads, responses)
    if averaged is None:
        return None
    third = max(1, len(averaged.means) // 3)
    flat = float(np.median(averaged.means[:third]))
    error = float(np.median(averaged.scatter[:third]))
    above = (averaged.means > BENT * flat) & (averaged.means - flat > ERRORS * np.hypot(averaged.scatter, error))
    if not above[-1]:
        return None
    first = int(len(above) - np.argmin(above[::-1])) if not above.all() else 0
    if first < third:
        return None
    low, high = float(averaged.loads[first - 1]), float(averaged.loads[first])
    return LoadInterval((low + high) / 2, low, high)
