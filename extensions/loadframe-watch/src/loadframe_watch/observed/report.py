"""Results from production data as text; and the first answer of a watch, from imported data."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from loadframe.formats import said
from loadframe.model import LoadInterval
from loadframe.progress import counted
from loadframe.reporting import document as doc
from loadframe.reporting import rounding, terminal, words
from loadframe.reporting.curve_report import levels, sentences
from loadframe_watch.observed.records import Apart, GrowsByItself, Learned, MissingRows, ObservedDemand, RegimeChange
from loadframe_watch.records import ImportedWatch
from loadframe_watch.saturation_of_rows import BENT

FAR_S = 4e9
"""A predicted time later than this is as good as never."""
SINCE_1970 = 1e8
"""From here on times are seconds since 1970; smaller ones count from the start."""
LEAST_IDLE = 0.01
"""Smallest use without load that is mentioned."""
SEEN_FULL = 0.97
"""From here on a resource counts as full."""
AS_USUAL = 1.1
"""Times the usual response time: less than this is as usual."""
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
LONGER = f"{BENT:g} times as long as at the lowest third of the loads"
FULL = "Outlook"
FLATTENS = "flattens as the load rises; where it would be full is not in sight"


def render_learned(learned: Learned, *, unit: str = "load", width: int = terminal.WIDTH) -> str:
    curve, response = learned.curve, learned.basis == "response"
    warnings = () if curve is None else curve.warnings
    shown: tuple[doc.Section, ...] = () if curve is None else (levels(curve, unit, response=response),)
    if curve is not None and not response:
        shown += (doc.listed("The curve", sentences(curve, unit)),)
    sections = (
        *shown,
        _resources(learned, unit),
        doc.listed("Apart from the load", map(apart, learned.apart)),
        doc.listed("With time", map(growing, learned.growing)),
        doc.listed("Changes", map(change, learned.regimes)),
        doc.listed("Data", data(learned)),
        doc.listed("Mind", map(words.sentence, (*warnings, *learned.notes))),
    )
    return terminal.render(doc.Document("Production data", tuple(answer(learned, unit)), sections), width)


def answer(learned: Learned, unit: str) -> list[str]:
    known = [demand for demand in learned.demands if demand.full_at is not None]
    first = min(known, key=lambda demand: demand.full_at.load if demand.full_at else math.inf, default=None)
    curve, top = learned.curve, words.load(learned.highest_load, unit)
    said = []
    if curve is not None and curve.gradual is not None and learned.basis == "throughput":
        said.append(f"The throughput {words.curve_phrase(curve, unit)}.")
    elif curve is not None and curve.knee is not None and learned.basis == "throughput":
        said.append(f"The throughput {words.curve_phrase(curve, unit)}: knee at {_interval(curve.knee, unit)}.")
    elif learned.response_bend is not None and learned.basis == "response":
        said.append(f"From {_interval(learned.response_bend, unit)} on the response takes {LONGER}.")
    elif curve is None:
        said.append(f"Whether it bends up to {top} is not known: there is neither a throughput nor a response time.")
    elif learned.came_near:
        said.append(f"No bend was seen up to {top}.")
    elif learned.demands:
        said.append(f"The load never came near a limit that is seen: no bend up to {top}.")
    else:
        said.append(f"No bend was seen up to {top}. How near a limit is, no use of a resource shows.")
    said += [f"{_near_end(apart)}, apart from the load." for apart in learned.apart]
    said += [
        f"{trend.resource} grows with time, and is {rounding.percent(trend.use)} used." for trend in learned.growing
    ]
    if first is not None and first.full_at is not None:
        at, used = _interval(first.full_at, unit), f"{rounding.percent(first.highest_use)} used"
        would = f"would be full first: {used} at {words.load(first.highest_load, unit)}, 100 % at {at}"
        said.append(f"{first.resource} {f'is full from {at} on' if first.highest_use >= SEEN_FULL else would}.")
        # A resource that is used more than the named one may be full before it.
        higher = [
            demand.resource for demand in learned.demands if demand.flattens and demand.highest_use > first.highest_use
        ]
        said += [f"{words.and_list(higher)}, used more, {FLATTENS}."] if higher else []
    elif learned.demands:
        most = max(learned.demands, key=lambda demand: demand.highest_use)
        use = f"the most used is {most.resource}, {rounding.percent(most.highest_use)}"
        how = f"; its use {FLATTENS}" if most.flattens else ""
        said.append(f"No resource is seen to run out; {use} at {words.load(most.highest_load, unit)}{how}.")
    return said


def _resources(learned: Learned, unit: str) -> doc.Section:
    rows = tuple(
        (
            demand.resource,
            f"{rounding.percent(demand.highest_use)} at {words.load(demand.highest_load, unit)}",
            "; ".join(_needs(demand)),
            _where(demand, unit),
        )
        for demand in learned.demands
    )
    table = doc.Table(("Resource", "Highest use", "Takes per request", FULL), rows)
    return doc.section("Resources", "resources", [table])


def _needs(demand: ObservedDemand) -> Iterator[str]:
    if demand.demand_s is not None and demand.low_s is not None and demand.high_s is not None:
        value, low, high = rounding.with_interval(
            *(1000 * demand.servers * seconds for seconds in (demand.demand_s, demand.low_s, demand.high_s))
        )
        yield f"{value} ms ({low} to {high})" if demand.low_s > 0 else f"at most {high} ms or none"
        if (at_rest := demand.background or 0.0) >= LEAST_IDLE:
            yield f"{rounding.percent(at_rest)} is used without load"
    if demand.growing is not None and demand.growing_low is not None and demand.growing_high is not None:
        yield f"at the higher loads {_times(demand.growing, demand.growing_low, demand.growing_high)}"


def _times(ratio: float, low: float, high: float) -> str:
    if ratio > 1 and (high == math.inf or rounding.is_vague(low, high)):
        return f"at least {rounding.plain(low)} times as much as at the lower ones" if low > 1 else "more of it"
    if low <= 0 or rounding.is_vague(low, high):
        return f"at most {rounding.plain(high)} times as much as at the lower ones"
    value, least, most = rounding.with_interval(ratio, low, high)
    return f"{value} times as much as at the lower ones ({least} to {most})"


def _where(demand: ObservedDemand, unit: str) -> str:
    if demand.full_at is not None:
        return f"full at {_interval(demand.full_at, unit)}"
    if demand.driver == "hour":
        return "follows the hour of the day rather than the load"
    if demand.highest_use == 0:
        return "0 at every load: it is not used, or not counted"
    return FLATTENS if demand.flattens else "not seen to rise with the load"


def apart(spells: Apart) -> str:
    low, high = rounding.plain(spells.low_load), rounding.plain(spells.high_load)
    loads = low if low == high else f"{low} to {high}"
    most = f", {rounding.percent(spells.highest_use)} at the most; {counted(spells.rows, 'row')}"
    longest = f", the longest {rounding.seconds(spells.longest_s)}" if spells.spells > 1 else ""
    usual = (
        f"The load was {loads} then, and such loads or higher ones usually take {rounding.percent(spells.usual)} of it"
    )
    if spells.response is None:
        responded = ""
    elif spells.response < AS_USUAL:
        responded = "; the response time was no longer than is usual at this load"
    else:
        responded = f"; the response time was {spells.response:.2g} times what is usual at this load"
    return f"{_near_end(spells)}{most}{longest}. {usual}{responded}. What takes it there is not seen."


def growing(trend: GrowsByItself) -> str:
    pace = [100 * share for share in (trend.per_day, trend.low_per_day, trend.high_per_day)]
    value, low, high = rounding.with_interval(*pace)
    at, earliest, latest = (_ends(seconds) for seconds in (trend.ends_s, trend.ends_low_s, trend.ends_high_s))
    ends, between = f"full at about {at} at that pace", f"{earliest} to {latest}"
    return (
        f"{trend.resource} grows by {value} % of all there is a day ({low} to {high}) at equal load: "
        f"{rounding.percent(trend.use)} used at the end, {ends} ({between})."
    )


def _ends(at_s: float | None) -> str:
    if at_s is None or at_s > FAR_S:
        return "much later"
    return (
        f"{rounding.plain(at_s / 3600)} h after the start" if at_s < SINCE_1970 else moment(at_s, "%Y-%m-%d %H:00 UTC")
    )


def _near_end(spells: Apart) -> str:
    return f"{spells.resource} was {rounding.percent(spells.use)} used {_when(spells)}"


def _when(spells: Apart) -> str:
    if spells.spells == 1:
        return f"once, for {rounding.seconds(spells.longest_s)} {_since(spells.first_s)}"
    if spells.days is None or spells.days_seen is None:
        return f"in {spells.spells:,} spells"
    weekday = f", all of them {WEEKDAYS[spells.weekday]}s" if spells.weekday is not None else ""
    days = f"on {spells.days:,} of {counted(spells.days_seen, 'day')}{weekday}"
    if spells.days == 1:
        return f"{days} ({moment(spells.first_s)} to {moment(spells.last_s)})"
    if spells.hours_from_s is None or spells.hours_to_s is None:
        return days
    hours = f"between {_hour(spells.hours_from_s)} and {_hour(spells.hours_to_s)} UTC"
    return f"{days}, {'' if spells.always else 'mostly '}{hours}"


def _hour(of_day_s: float) -> str:
    return f"{int(of_day_s // 3600):02d}:{int(of_day_s % 3600 // 60):02d}"


def change(change: RegimeChange) -> str:
    way = "higher" if change.ratio > 1 else "lower"
    return (
        f"{moment(change.at_s)}: at equal load {change.what} is {rounding.percent(abs(change.ratio - 1))} {way} "
        "from then on"
    )


def data(learned: Learned) -> list[str]:
    counts = learned.data
    said = [
        f"{counts.used:,} of {counts.rows:,} rows were used, over {rounding.seconds(counts.span_s)}; intervals of 95 % "
        f"from {counts.blocks:,} blocks of {rounding.seconds(counts.block_s)}."
    ]
    kinds = ((counts.gaps, "gap"), (counts.incomplete, "incomplete row"), (counts.outliers, "outlier"))
    others = [counted(count, name) for count, name in kinds if count]
    said += absent(counts.missing)
    if counts.response_s is not None and counts.slow_response_s is not None:  # reveals a wrong unit
        middle, slow = words.milliseconds(1000 * counts.response_s), words.milliseconds(1000 * counts.slow_response_s)
        said.append(f"The response time was {middle} in the middle, and above {slow} in one of a hundred rows.")
    return [*said, *([f"{words.and_list(others)}."] if others else [])]


def absent(missing: MissingRows) -> list[str]:
    if not missing.rows or missing.longest_at_s is None:
        return []
    since = _since(missing.longest_at_s)
    together = rounding.seconds(missing.seconds)
    if missing.pauses > 1:
        longest = f"the longest is {rounding.seconds(missing.longest_s)}, {since}"
        together = f"{missing.pauses:,} pauses, {together} together; {longest}"
    else:
        together = f"one pause of {together}, {since}"
    pace = rounding.seconds(missing.usual_s)
    rows = "One row is" if missing.rows == 1 else f"{missing.rows:,} rows are"
    return [f"{rows} missing, as they come every {pace}: {together}."]


def moment(at_s: float, form: str = "%Y-%m-%d %H:%M:%S UTC") -> str:
    if at_s < SINCE_1970:
        return f"After {rounding.seconds(at_s)}"
    return datetime.fromtimestamp(min(at_s, 2e11), UTC).strftime(form)


def _since(at_s: float) -> str:
    return f"from {moment(at_s)} on" if at_s >= SINCE_1970 else f"a{moment(at_s)[1:]}"


def _interval(loads: LoadInterval, unit: str) -> str:
    if math.isfinite(loads.high):
        return words.load_interval(loads, unit)
    return f"{rounding.plain(loads.load)} {unit} ({rounding.plain(loads.low)} or more)"


SCHEMA = "loadframe.watch-import/1"


def import_json(watch: ImportedWatch) -> dict[str, Any]:
    """`model` as a `model` line of a day file; times are wall clock."""
    fields = asdict(watch)
    del fields["has_response"], fields["titles"]
    return {"schema": SCHEMA, **fields}


def render_import(watch: ImportedWatch, *, width: int = terminal.WIDTH) -> str:
    unit = said.words(watch.load, 100)
    highest = "no load" if watch.highest_load is None else f"{unit} up to {rounding.plain(watch.highest_load)}"
    span = f"{moment(watch.from_s)} to {moment(watch.to_s)}"
    answer = [f"{said.words(watch.name, 100)}: {counted(watch.rows, 'row')} from {span}, {highest}"]
    if watch.bend is not None:
        answer.append(f"From {words.load_interval(watch.bend, unit)} on the response takes {LONGER}")
    elif watch.has_response:
        answer.append(f"No load is seen from which on the response takes {LONGER}")
    full = {limit["id"]: _reached(watch, limit, unit) for limit in watch.model["limits"]}
    nothing = dict.fromkeys(
        sorted(watch.highest_use.keys() - full.keys()), "nothing shows at which load it would be full"
    )
    rows = tuple(
        (said.words(watch.titles.get(name, name), 100), rounding.percent(watch.highest_use.get(name, 0.0)), when)
        for name, when in (full | nothing).items()
    )
    table = doc.Table(("Limit", doc.Column("Highest use", side=">"), FULL), rows)
    on = f"{said.words(watch.folder, 400)}. `loadframe watch ... --folder` with this folder goes on from here."
    sections = (
        doc.section("Limits", "limits", [table]),
        doc.listed("Mind", (said.words(note, 400) for note in watch.notes)),
        doc.listed("Day files", (on,) if watch.folder else ()),
    )
    return terminal.render(doc.Document("Watch", tuple(answer), sections), width)


def _reached(watch: ImportedWatch, limit: Mapping[str, Any], unit: str) -> str:
    at, at_s = limit["at_load"], limit["at_s"]
    full = f"full at {words.load_interval(LoadInterval(at['load'], at['low'], at['high']), unit)}"
    if at["low"] == at["high"]:  # it was full already at the lowest load
        full = f"full at {words.load(at['load'], unit)} or less"
    if at_s is not None:
        value, low, high = (_ends(at_s.get(name)) for name in ("value", "low", "high"))
        return f"{full}; the load gets there at about {value} ({low} to {high})"
    if watch.highest_load is not None and watch.highest_load >= at["load"]:
        return f"{full}; the load was there already"
    return f"{full}; no proof that the load is on its way there"
