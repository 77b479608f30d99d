"""Whether a use of rows in time order flattens, so that no line through it says where it is full.

The rows are averaged in ranges of the load, as those of a watch (watched.py), and asked for a proven curve
(use_in_a_curve.py). A use flattens over the load for one of two reasons. Each request needs less the more there are: it
flattens over the throughput, too (a cache that fills). Or fewer requests are served than the load asks for: it is
straight over the throughput, and where that levels off below the ceiling, something else has ended it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loadframe.analysis import watched
from loadframe.analysis.observed_blocks import Floats
from loadframe.analysis.use_in_a_curve import flattens
from loadframe.analysis.watched import Ranges
from loadframe.model import LoadInterval

LEAST_RANGES = 8
"""As use_in_a_curve.FEWEST: fewer prove no curve."""

IN_PROPORTION = 0.9
"""A throughput per load at the highest loads that is less than this share of that at the lowest ones levels off."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """full_at: where it is full, by the curve where that is proven; None where that is not in sight. flattens: whether
    a curve is the reason. cheaper: whether each request needs less and less, with no end in sight."""

    full_at: LoadInterval | None
    flattens: bool = False
    cheaper: bool = False


def ahead(straight: LoadInterval | None, load: Floats, use: Floats, throughput: Floats | None, *, near: bool) -> Ahead:
    """load, use, throughput: (n,) in time order, NaN where missing; those of a use that is near its end left out.
    straight: where straight lines are full. near: the use is so high that the throughput levels off because of it."""
    known = np.isfinite(load) & np.isfinite(use) & (load > 0)
    averaged = _ranges(load[known], use[known])
    if averaged is None:
        return Ahead(straight)
    errors = watched.errors_of(averaged, load[known], use[known])
    furthest = watched.FORESIGHT
    bends = flattens(averaged.loads, averaged.means, errors, furthest=furthest * float(averaged.loads[-1]))
    cheaper = throughput is not None and (
        _cheaper(load, use, throughput) or (bends and not _levels_off(load, throughput))
    )
    if bends and (cheaper or throughput is None or not near):
        return Ahead(None, flattens=True, cheaper=cheaper)
    if straight is None or bends:
        return Ahead(straight, cheaper=cheaper)
    return Ahead(watched.unless_curved(straight, averaged, errors), cheaper=cheaper)


def _levels_off(load: Floats, throughput: Floats) -> bool:
    """Whether the throughput is clearly less than in proportion at the highest loads: then a use that flattens may
    follow it."""
    known = np.isfinite(load) & np.isfinite(throughput) & (load > 0)
    served = _ranges(load[known], throughput[known])
    if served is None:
        return True
    per_load = served.means / served.loads
    quarter = len(per_load) // 4
    return float(per_load[-quarter:].mean()) < IN_PROPORTION * float(per_load[:quarter].mean())


def _cheaper(load: Floats, use: Floats, throughput: Floats) -> bool:
    """Whether the use flattens over the throughput. Both are means by range of the load, which has no error: ranges of
    the throughput itself would collect its errors at both ends, and any use would seem to flatten."""
    known = np.isfinite(load) & np.isfinite(use) & np.isfinite(throughput) & (load > 0)
    load, use, throughput = load[known], use[known], throughput[known]
    of_use, served = _ranges(load, use), _ranges(load, throughput)
    if of_use is None or served is None:
        return False
    order = np.argsort(served.means, kind="stable")
    x, means = served.means[order], of_use.means[order]
    if not x[0] > 0 or not x[-1] > watched.SPREAD * x[0]:
        return False
    slope = float(np.ptp(means) / np.ptp(x))
    errors = np.hypot(
        watched.errors_of(of_use, load, use)[order], slope * watched.errors_of(served, load, throughput)[order]
    )
    return flattens(x, means, errors, furthest=watched.FORESIGHT * float(x[-1]))


def _ranges(load: Floats, values: Floats) -> Ranges | None:
    found = watched.ranges(load.tolist(), values.tolist())
    return found if found is not None and len(found.loads) >= LEAST_RANGES else None
