"""Whether a use follows the load or the hour of the day, and when a use is near its end for other reasons than the load
(docs/observed.md). Against errors in the load the mean of every other row has that of the rows between as its
instrument (Reiersol 1945, Arkiv for Matematik 32A). Where most rows at a load are near their end, scatter does not
count."""

import math

import numpy as np

from loadframe.analysis import student
from loadframe.analysis.arrays import Flags, Floats, Whole
from loadframe_watch.observed.blocks import FAR, MAD, jackknife_error, means, pauses, reference
from loadframe_watch.observed.records import Apart, Driver
from loadframe_watch.saturation_of_rows import FULL, NEAR, Cells

DAY_S, STRETCH_S = 86400.0, 5400.0
FEWEST_DAYS, FEWEST_ROWS = 4, 4
"""Days with each stretch; rows of a stretch, half of them for each mean."""
CONFIDENCE = 0.99
LEAST, MOST = 0.3, 0.6
"""A share below MOST is at least partly the hour's; one above LEAST partly the load's."""
EITHER = "Whether the load or the hour of the day drives the use is not known, as the days are alike or few"
Interval = tuple[float, float]
ANY = (-math.inf, math.inf)


def driver(time_s: Cells, load: Cells, use: Cells) -> Driver:
    """What drives a use. (n,) each, in time order, None or NaN where missing. "load" for rows of less than a day;
    "hour" where the hour is proven to drive the use, at least in part; "either" where the two cannot be
    distinguished."""
    times, loads, uses = (np.array(cells, dtype=np.float64) for cells in (time_s, load, use))
    if len(times) < 2 or times[-1] - times[0] < DAY_S:
        return "load"
    low, high = _share(times, loads, uses)
    if high < MOST:
        return "hour"
    return "load" if low > LEAST else "either"


def _share(time_s: Floats, load: Floats, use: Floats) -> Interval:
    """How much of the use that the load seems to explain it explains at equal hours. ANY where no hour is known on
    FEWEST_DAYS days: within one day load and hour cannot be distinguished."""
    known = np.isfinite(load) & np.isfinite(use) & (load > 0)
    time_s, load, use = time_s[known], load[known], use[known]
    if len(load) < FEWEST_DAYS * FEWEST_ROWS:
        return ANY
    typical = reference(load, use)
    stretch = np.floor(time_s / STRETCH_S).astype(np.int64)
    stretches, place = np.unique(stretch, return_inverse=True)
    odd = (np.arange(len(load)) % 2).astype(np.bool_)
    count = len(stretches)
    first, second = (means(typical[side], place[side], count)[0] for side in (odd, ~odd))
    mine, rows = means(use, place, count)
    whole = (rows >= FEWEST_ROWS) & np.isfinite(first) & np.isfinite(second)
    per_day = round(DAY_S / STRETCH_S)
    hour, day = stretches[whole] % per_day, stretches[whole] // per_day
    often = np.bincount(hour, minlength=per_day)[hour] >= FEWEST_DAYS
    first, second, mine = (column[whole][often] for column in (first, second, mine))
    hour = hour[often]
    day, days = day[often], np.unique(day[often])
    if len(days) < FEWEST_DAYS:
        return ANY
    value = _slope(first, second, mine, hour)
    others = [day != gone for gone in days]
    left_out = np.array([_slope(first[rest], second[rest], mine[rest], hour[rest]) for rest in others])
    if not np.isfinite(value) or not np.isfinite(left_out).all():
        return ANY
    reach = float(student.quantile((1 + CONFIDENCE) / 2, len(days) - 1)) * jackknife_error(left_out)
    return value - reach, value + reach


def _slope(first: Floats, second: Floats, use: Floats, hour: Whole) -> float:
    """Each less its mean at the hour; NaN where the load varies no more than its readings do."""
    first, second, use = (values - means(values, hour, int(hour.max()) + 1)[0][hour] for values in (first, second, use))
    common = float(first @ second)
    return float((first + second) @ use) / 2 / common if common > 0 else math.nan


FEWEST_PEAK_ROWS = 3
"""Fewer are single spikes, which count as outliers."""
APART = 3.0
"""Rows further apart than this many times the usual pace belong to different spells."""
FEWEST_PEAK_DAYS = 3
"""Two days with the same hour may be chance."""
MOST_OF, WINDOW_S = 0.9, 4 * 3600.0
"""Where nine in ten rows lie within the same four hours of the day, those hours are reported."""
FEWEST_RESPONSES = 10
SINCE_1970 = 1e8


def apart(resource: str, time_s: Floats, load: Floats, use: Floats, response: Floats | None) -> Apart | None:
    """time_s: ascending, UTC where it is seconds since 1970; load, use, response: (n,), NaN where missing. None where
    the use was not near its end apart from the load, or in fewer than FEWEST_PEAK_ROWS rows."""
    known = np.isfinite(load) & np.isfinite(use)
    time_s, load, use = time_s[known], load[known], use[known]
    rows, usual = _rows(load, use)
    if len(rows) < FEWEST_PEAK_ROWS:
        return None
    at_s, pace_s = time_s[rows], pauses(time_s)[0]
    begins = np.flatnonzero(np.diff(at_s, prepend=-np.inf) > APART * pace_s)
    ends = np.append(begins[1:], len(rows)) - 1
    lasts = at_s[ends] - at_s[begins] + pace_s
    window = _window(at_s)
    first_s, last_s, always = window or (0.0, DAY_S, False)
    days = np.unique((at_s - first_s) // DAY_S)
    there = (time_s - first_s) % DAY_S <= (last_s - first_s) % DAY_S if window else slice(None)
    weekdays = np.unique((days + 3) % 7)  # 0 for Monday; 1970 began on a Thursday
    by_clock = bool(time_s[0] >= SINCE_1970)
    hours = window is not None and by_clock
    return Apart(
        resource,
        rows=len(rows),
        spells=len(begins),
        use=float(np.median(use[rows])),
        highest_use=float(use[rows].max()),
        usual=float(np.median(usual[rows])),
        low_load=float(load[rows].min()),
        high_load=float(load[rows].max()),
        first_s=float(at_s[0]),
        last_s=float(at_s[-1]),
        longest_s=float(lasts.max()),
        days=len(days) if by_clock else None,
        days_seen=len(np.unique((time_s[there] - first_s) // DAY_S)) if by_clock else None,
        hours_from_s=first_s if hours else None,
        hours_to_s=last_s if hours else None,
        always=always,
        weekday=int(weekdays[0]) if by_clock and len(days) >= FEWEST_PEAK_DAYS and len(weekdays) == 1 else None,
        response=None if response is None else _slower(rows, load, response[known]),
    )


def by_the_clock(time_s: Floats, load: Floats, use: Floats) -> Flags:
    """Mask (n,) of rows that are near their end apart from the load, where that happens at the same hours of most days.
    Times are seconds since 1970."""
    marked = np.zeros(len(use), dtype=np.bool_)
    known = np.flatnonzero(np.isfinite(load) & np.isfinite(use))
    rows, _ = _rows(load[known], use[known])
    window = _window(time_s[known][rows]) if len(rows) >= FEWEST_PEAK_ROWS else None
    if window is not None:
        marked[known[rows]] = True
    return marked


def _rows(load: Floats, use: Floats) -> tuple[Whole, Floats]:
    """Their indices; and for all rows the usual use at such loads or higher ones."""
    if not (use >= FULL).any():
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    typical = reference(load, use)
    order = np.argsort(-load, kind="stable")
    usual = np.empty_like(typical)
    usual[order] = np.minimum.accumulate(typical[order])  # the least typical use at this load or a higher one
    spread = MAD * reference(load, np.abs(use - typical))
    far = (use - typical > FAR * spread) | (typical >= NEAR)
    return np.flatnonzero((use >= FULL) & (usual < NEAR) & far), usual


def _window(at_s: Floats) -> tuple[float, float, bool] | None:
    """The hours of the day (seconds since midnight) that nearly all rows share, and whether all do; None where there
    are none, or on fewer than FEWEST_PEAK_DAYS days."""
    of_day = np.sort(at_s % DAY_S)
    for count in (len(of_day), int(np.ceil(MOST_OF * len(of_day)))):
        last = np.concatenate([of_day, of_day + DAY_S])[np.arange(len(of_day)) + count - 1]
        first = int((last - of_day).argmin())
        if last[first] - of_day[first] > WINDOW_S:
            continue
        days = np.unique((at_s - of_day[first]) // DAY_S)
        if len(days) < FEWEST_PEAK_DAYS:
            return None
        return float(of_day[first]), float(last[first] % DAY_S), count == len(of_day)
    return None


def _slower(rows: Whole, load: Floats, response: Floats) -> float | None:
    times = (response / reference(load, response))[rows]
    times = times[np.isfinite(times)]
    return float(np.median(times)) if len(times) >= FEWEST_RESPONSES else None
