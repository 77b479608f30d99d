"""How a load goes on, and whether a change log is followed, as text and JSON."""

import math
from collections.abc import Sequence
from dataclasses import asdict

from loadframe.model import Estimate
from loadframe.reporting import document as doc
from loadframe.reporting import rounding, terminal
from loadframe.reporting.json_shapes import Json, json_object
from loadframe_watch.growth.lag import Followed, Following
from loadframe_watch.growth.size_forecast import GrowthForecast, GrowthPoint, GrowthScored, MemoryEnd


def growth_json(forecast: GrowthForecast) -> Json:
    """loadframe.growth/1; sizes in entries, rates in entries/s, intervals of 90 %."""
    return json_object({"schema": "loadframe.growth/1", **asdict(forecast)})


def following_json(steps: Sequence[Following], followed: Followed) -> Json:
    """loadframe.following/1; rates in changes/s, intervals of 95 %."""
    shapes = [{**asdict(step), "applied": step.applied} for step in steps]
    return json_object({"schema": "loadframe.following/1", **asdict(followed), "steps": shapes})


def render_growth(forecast: GrowthForecast) -> str:
    if forecast.refused is not None:
        return terminal.render(doc.Document("", (f"No forecast. {forecast.refused}",), ()))
    entries, rate, time = doc.numbers("entries", "entries/s", "time from empty")
    heads: doc.Heads = (entries, rate, "(90 %)", time, "(90 %)", *(("measured",) if forecast.scored else ()))
    table = doc.Table(heads, tuple(_row(point, forecast.scored) for point in forecast.at))
    sections = (
        doc.section("Forecast", "forecast", [table]),
        doc.listed("Not forecast", (f"{refusal.entries:,.0f}: {refusal.because}" for refusal in forecast.not_at)),
        doc.listed("Mind", forecast.notes),
    )
    return terminal.render(doc.Document("Growth", tuple(sentences(forecast)), sections))


def render_following(steps: Sequence[Following], followed: Followed) -> str:
    rows = []
    for step in steps:
        low, high = rounding.plain(step.low), rounding.plain(step.high)
        grows = (
            (rounding.plain(step.slope), f"{low} to {high}") if math.isfinite(step.low) else ("?", "too few readings")
        )
        rows.append((rounding.exact(step.offered), *grows, rounding.plain(step.applied), step.verdict))
    rate, lag, applied = doc.numbers("changes/s", "lag grows by, 1/s", "applied")
    heads: doc.Heads = (rate, lag, "(95 %)", applied, "")
    section = doc.section("Each rate", "rates", [doc.Table(heads, tuple(rows))])
    return terminal.render(doc.Document("Following", tuple(following_sentences(followed)), (section,)))


def following_sentences(followed: Followed) -> list[str]:
    if followed.up_to:
        said = [f"Followed without end up to {rounding.exact(followed.up_to)} changes/s: the lag does not grow."]
    else:
        said = ["No rate of changes is proved to be followed without end."]
    if followed.behind_from is not None:
        said.append(f"At {rounding.exact(followed.behind_from)} changes/s the reader falls behind.")
    if followed.rate is not None:
        rate = rounding.with_interval(followed.rate.load, followed.rate.low, followed.rate.high)
        said.append(f"What it applies then is the highest rate: {rate[0]}/s ({rate[1]} to {rate[2]}).")
    return said


def sentences(forecast: GrowthForecast) -> list[str]:
    said = []
    if forecast.now is not None:
        said.append(f"At {forecast.entries:,.0f} entries: {interval(forecast.now)} entries/s.")
    if forecast.end is not None:
        said.append(_end(forecast.end))
    said += [f"The memory ({name}) is full at about {size:,.0f} entries." for name, size in forecast.walls.items()]
    return said


def _end(end: MemoryEnd) -> str:
    entries, reads = end.entries, end.by_reads
    low, high = f"{entries.low:,.0f}", f"{entries.high:,.0f}"
    name = f" ({end.memory})" if end.memory else ""
    times = f"an entry costs {rounding.plain(end.times)} times as much at the end"
    if end.confirmed and reads is not None:
        by = f"its reads begin to rise at {reads.load:,.0f} ({reads.low:,.0f} to {reads.high:,.0f})"
        return f"The database leaves its memory{name} at {entries.load:,.0f} entries ({low} to {high}); {by}; {times}."
    where = f", where memory{name} ends" if name else ""
    return f"The cost climbs from {entries.load:,.0f} entries on ({low} to {high}){where}; {times}."


def interval(estimate: Estimate) -> str:
    value, low, high = rounding.with_interval(estimate.value, estimate.low, estimate.high)
    return f"{value} ({low} to {high})"


def _row(point: GrowthPoint, scored: Sequence[GrowthScored]) -> tuple[str, ...]:
    rate = rounding.with_interval(point.rate.value, point.rate.low, point.rate.high)
    time = [rounding.seconds(seconds) for seconds in (point.seconds.value, point.seconds.low, point.seconds.high)]
    cells = (f"{point.entries:,.0f}", rate[0], f"{rate[1]} to {rate[2]}", time[0], f"{time[1]} to {time[2]}")
    if not scored:
        return cells
    for score in scored:
        if score.entries == point.entries:
            held = ["inside" if inside else "outside" for inside in (score.rate_inside, score.seconds_inside)]
            came = f"{rounding.plain(score.rate)}/s {held[0]}, {rounding.seconds(score.seconds)} {held[1]}"
            return (*cells, came)
    return (*cells, "")
