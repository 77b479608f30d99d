"""A forecast of growth as text: where memory ends, what each size will give, and what is not told."""

from __future__ import annotations

import math
from collections.abc import Sequence

from loadframe.analysis.following import Followed, Following
from loadframe.model import Estimate, GrowthForecast, GrowthPoint, GrowthScored, MemoryEnd
from loadframe.reporting import document as doc
from loadframe.reporting import rounding, terminal


def render_growth(found: GrowthForecast, *, width: int = 100) -> str:
    """The rate now, the end of memory, rate and time at each size, and the sizes that are refused."""
    if found.refused is not None:
        return terminal.render(doc.Document("", (f"No forecast. {found.refused}",), ()), width)
    entries, rate, time = doc.numbers("entries", "entries/s", "time from empty")
    heads: doc.Heads = (entries, rate, "(90 %)", time, "(90 %)", *(("measured",) if found.scored else ()))
    table = doc.Table(heads, tuple(_row(point, found.scored) for point in found.at))
    sections = (
        doc.Section("Forecast", "forecast", (table,) if found.at else ()),
        doc.listed("Not forecast", (f"{one.entries:,.0f}: {one.because}" for one in found.not_at)),
        doc.listed("Mind", found.notes),
    )
    return terminal.render(doc.Document("Growth", tuple(sentences(found)), sections), width)


def render_following(steps: Sequence[Following], found: Followed) -> str:
    """A row for each step, and the highest rate of changes that is followed without end."""
    rows = []
    for one in steps:
        low, high = rounding.plain(one.low), rounding.plain(one.high)
        grows = (rounding.plain(one.slope), f"{low} to {high}") if math.isfinite(one.low) else ("?", "too few readings")
        rows.append((rounding.exact(one.offered), *grows, rounding.plain(one.applied), one.verdict))
    rate, lag, applied = doc.numbers("changes/s", "lag grows by, 1/s", "applied")
    heads: doc.Heads = (rate, lag, "(95 %)", applied, "")
    section = doc.Section("Each rate", "rates", (doc.Table(heads, tuple(rows)),))
    return terminal.render(doc.Document("Following", tuple(following_sentences(found)), (section,)))


def following_sentences(found: Followed) -> list[str]:
    """The bracket and the rate, in sentences."""
    if found.up_to:
        said = [f"Followed without end up to {rounding.exact(found.up_to)} changes/s: the lag does not grow."]
    else:
        said = ["No rate of changes is proved to be followed without end."]
    if found.behind_from is not None:
        said.append(f"At {rounding.exact(found.behind_from)} changes/s the reader falls behind.")
    if found.rate is not None:
        rate = rounding.with_interval(found.rate.load, found.rate.low, found.rate.high)
        said.append(f"What it applies then is the highest rate: {rate[0]}/s ({rate[1]} to {rate[2]}).")
    return said


def sentences(found: GrowthForecast) -> list[str]:
    """What was seen, in sentences."""
    said = []
    if found.now is not None:
        said.append(f"At {found.entries:,.0f} entries: {interval(found.now)} entries/s.")
    if found.end is not None:
        said.append(_end(found.end))
    said += [f"The memory ({name}) is full at about {size:,.0f} entries." for name, size in found.walls.items()]
    return said


def _end(end: MemoryEnd) -> str:
    one, reads = end.entries, end.by_reads
    low, high = f"{one.low:,.0f}", f"{one.high:,.0f}"
    name = f" ({end.memory})" if end.memory else ""
    times = f"an entry costs {rounding.plain(end.times)} times as much at the end"
    if end.confirmed and reads is not None:
        by = f"its reads begin to rise at {reads.load:,.0f} ({reads.low:,.0f} to {reads.high:,.0f})"
        return f"The database leaves its memory{name} at {one.load:,.0f} entries ({low} to {high}); {by}; {times}."
    where = f", where memory{name} ends" if name else ""
    return f"The cost climbs from {one.load:,.0f} entries on ({low} to {high}){where}; {times}."


def interval(one: Estimate) -> str:
    """12,300 (11,000 to 13,600)."""
    value, low, high = rounding.with_interval(one.value, one.low, one.high)
    return f"{value} ({low} to {high})"


def _row(point: GrowthPoint, scored: Sequence[GrowthScored]) -> tuple[str, ...]:
    rate = rounding.with_interval(point.rate.value, point.rate.low, point.rate.high)
    time = [rounding.seconds(each) for each in (point.seconds.value, point.seconds.low, point.seconds.high)]
    cells = (f"{point.entries:,.0f}", rate[0], f"{rate[1]} to {rate[2]}", time[0], f"{time[1]} to {time[2]}")
    if not scored:
        return cells
    came = next((one for one in scored if one.entries == point.entries), None)
    return (*cells, "" if came is None else _came(came))


def _came(one: GrowthScored) -> str:
    return (
        f"{rounding.plain(one.rate)}/s {_held(one.rate_inside)}, "
        f"{rounding.seconds(one.seconds)} {_held(one.seconds_inside)}"
    )


def _held(inside: bool) -> str:
    return "inside" if inside else "outside"
