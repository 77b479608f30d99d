"""The drawings of the case study; None where there are no data for one."""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

import numpy as np

from loadframe.diagnosis.plateau import is_flat
from loadframe.diagnosis.windows import explained
from loadframe.knowledge.families import modules
from loadframe.metrics import metric as metric_of
from loadframe.model import Alternative, Finding, Investigation
from loadframe.reporting import alternatives, facts, rounding, vega, words
from loadframe.reporting.vega import AFTER, BEFORE, BETWEEN, INK, LoadAxis, Plot, Size, ValueAxis

Row = dict[str, Any]
COLOURS: Mapping[facts.Role, str] = {"before": BEFORE, "between": BETWEEN, "after": AFTER}
PAINTED: Mapping[facts.Role, int] = {"between": 0, "before": 1, "after": 2}
TERSE_BELOW = 320
LOG_THROUGHPUT_FROM_RATIO = 8.0
"""From this ratio of the states on, a linear scale would flatten the lower curve."""
SCALES: Mapping[str, tuple[float, str]] = {
    "share": (100.0, "%"),
    "bytes": (1 / 2**20, "MiB"),
    "bytes/s": (1 / 2**20, "MiB/s"),
    "1/s": (1.0, "per second"),
    "count": (1.0, ""),
}
PALETTE = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#9d755d", "#72b7b2")
OTHERS = (AFTER, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Colours of alternatives (Okabe and Ito); further ones repeat them in dashes."""
BOX_WIDTH = 12


class Picture(Protocol):
    """A picture of some states. rounds: these, each with the name of its chart."""

    def rounds(self, inv: Investigation) -> list[tuple[str, facts.Series]]: ...

    def title(self, series: facts.Series, unit: str) -> str: ...

    def note(self, series: facts.Series) -> str: ...

    def chart(self, inv: Investigation, series: facts.Series, size: Size) -> Plot | None: ...


class Part(Picture, Protocol):
    """What a family of metrics shows (knowledge.families.Family.report): pictures, lines of the text, a sentence of the
    page, and rows of the JSON."""

    def sentences(self, inv: Investigation) -> list[str]: ...

    def summary(self, inv: Investigation) -> str: ...

    def table(self, inv: Investigation) -> list[dict[str, object]]: ...


def parts() -> list[Part]:
    return modules("report")


def proof_title(inv: Investigation) -> str:
    ends, unit = ends_of(inv), inv.study.load_unit
    first, after = explained(inv.rounds[0]), ends[-1].curve
    before = words.curve_phrase(first, unit)
    if len(ends) == 1 or after is None:
        return f"Throughput {before}{'; higher after the change' if len(ends) > 1 else ''}"
    peaks = [f"{rounding.plain(curve.peak.throughput)}/s" for curve in (first, after)]
    if all(curve.knee is None and curve.shape == "plateau" for curve in (first, after)):
        flat = ["flat at" if is_flat(curve) else "at most" for curve in (first, after)]
        return f"{flat[0].capitalize()} {peaks[0]}; after the change {flat[1]} {peaks[1]}"
    if (then := words.curve_phrase(after, unit)) != before:
        return f"Throughput {before}; after the change it {then}"
    return f"Throughput {before}: at most {peaks[0]} before, {peaks[1]} after the change"


def throughput(inv: Investigation, size: Size) -> Plot | None:
    drawn = sorted(filter(throughput_rows, facts.series(inv)), key=lambda state: PAINTED[state.role])
    if not drawn:
        return None
    plot = Plot(size, load_axis(inv).channel(), _throughput_axis(drawn, per_second(inv)))
    for rank, state in enumerate(drawn):
        _draw_bend(plot, state, rank)
    for state in drawn:
        _draw_curve(plot, state)
    return plot


def throughput_rows(state: facts.Series) -> list[Row]:
    """In the order of loads; where no interval is known, low and high are the value."""
    rows = []
    for point in sorted(state.points, key=lambda point: point.load):
        if math.isfinite(value := point.throughput):
            ends = point.throughput_low, point.throughput_high
            low, high = ends if rounding.has_width(*ends) else (value, value)
            rows.append({"load": point.load, "value": value, "low": low, "high": high})
    return rows


def _throughput_axis(drawn: Sequence[facts.Series], what: str) -> ValueAxis:
    rows = [row for state in drawn for row in throughput_rows(state)]
    top, lowest = max(row["high"] for row in rows) or 1.0, min(row["low"] for row in rows)
    logarithmic = wants_log(drawn) and lowest > 0
    low, high = (lowest / 2, top * 2.2) if logarithmic else (0.0, top * 1.22)
    return ValueAxis(what, low, high, logarithmic)


def per_second(inv: Investigation) -> str:
    return f"{inv.study.work_unit} per second"


def wants_log(drawn: Sequence[facts.Series]) -> bool:
    peaks = [max(point.throughput for point in state.points) for state in drawn if state.points]
    return len(peaks) > 1 and min(peaks) > 0 and max(peaks) / min(peaks) >= LOG_THROUGHPUT_FROM_RATIO


def _draw_curve(plot: Plot, state: facts.Series, colour: str = "", **look: Any) -> None:
    colour, rows = colour or COLOURS[state.role], throughput_rows(state)
    plot.draw("area", rows, colour, "low", "high", opacity=0.18)
    plot.draw("line", rows, colour, strokeWidth=1.5 if state.role == "between" else 2.5, **look)
    plot.draw("point", rows, colour, filled=True, size=38, opacity=1)
    plot.end(state.label, colour, rows[-1])


def side_by_side(inv: Investigation, others: Sequence[Alternative], size: Size) -> Plot:
    first = inv.rounds[0]
    target = facts.Series("before", inv.study.target_kind, first.curve.points, None, first)
    drawn = [facts.Series("after", other.name, other.round.curve.points, None, other.round) for other in others]
    plot = Plot(size, load_axis(inv).channel(), _throughput_axis([target, *drawn], per_second(inv)))
    if len(others) == 1 and (divergence := others[0].divergence) is not None:
        plot.shade(divergence.low, divergence.high, INK, 0.1)
        plot.rule(divergence.load, INK)
    _draw_curve(plot, target)
    for number, other in enumerate(drawn):
        again, place = divmod(number, len(OTHERS))
        dashes: dict[str, Any] = {"strokeDash": [6, 2 + 2 * again]} if again else {}
        _draw_curve(plot, other, OTHERS[place], **dashes)
    return plot


def side_by_side_title(inv: Investigation, alternative: Alternative) -> str:
    if alternative.divergence is None:
        return f"{inv.study.target_kind} and {alternative.name} by load"
    where = alternatives.place_of(alternative.divergence, alternative, inv.study.load_unit)
    if not alternatives.differ(alternative):
        return f"The ratio of {inv.study.target_kind} and {alternative.name} changes {where}"
    return f"{inv.study.target_kind} and {alternative.name} diverge {where}"


def _draw_bend(plot: Plot, state: facts.Series, rank: int) -> None:
    curve = state.curve
    if curve is None or state.role == "between" or (curve.knee is None and curve.cliff is None):
        return
    loads, colour = [point.load for point in curve.points], COLOURS[state.role]
    if curve.cliff:
        plot.shade(curve.cliff.from_load, curve.cliff.to_load, colour, 0.09)
    if curve.knee:
        low, high = max(curve.knee.low, min(loads)), min(curve.knee.high, max(loads))
        if low < high:
            plot.shade(low, high, colour, 0.14)
        plot.rule(curve.knee.load, colour)
    at = curve.knee.load if curve.knee else curve.cliff.from_load if curve.cliff else 0.0
    middle = math.sqrt(min(loads) * max(loads)) if vega.is_geometric(loads) else (min(loads) + max(loads)) / 2
    side: Row = {"align": "right", "dx": -5} if at > middle else {"align": "left", "dx": 5}
    terse, parts = plot.size.width < TERSE_BELOW, []
    if curve.knee:
        interval = words.load_interval(curve.knee, "").split()
        parts.append(f"bends at {' '.join(interval[: 1 if terse else None])}")
    if curve.cliff:
        parts.append(f"{'cliff' if terse else 'cliff: keeps'} {rounding.percent(curve.cliff.throughput_kept)}")
    look: Row = {"dy": 8 + 13 * (rank % 2), "fontSize": 11.5, **side}
    plot.write(at, plot.y.high, ", ".join(parts), colour, **look)


def latency(inv: Investigation, size: Size) -> Plot | None:
    drawn = [
        (state.label, COLOURS[state.role], [{"load": load, "value": p95} for load, p95 in p95_by_load.items()])
        for state, p95_by_load in _latencies(inv)
    ]
    return _lines(drawn, load_axis(inv), size, "p95 latency in ms", logarithmic=True)


def latency_title(inv: Investigation) -> str:
    tables = [p95_by_load for _, p95_by_load in _latencies(inv)]
    common = set.intersection(*map(set, tables)) if tables else set()
    if not common:
        return "p95 latency by load"
    level = max(common)
    p95 = [words.milliseconds(table[level]) for table in tables]
    values = f"{p95[0]} before, {p95[1]} after" if len(p95) > 1 else p95[0]
    return f"p95 latency at {words.load(level, inv.study.load_unit)}: {values}"


def _latencies(inv: Investigation) -> list[tuple[facts.Series, dict[float, float]]]:
    return [
        (state, {point.load: p95 for point in state.points if 0 < (p95 := point.latency_p95_ms or 0.0) < math.inf})
        for state in ends_of(inv)
    ]


def boxes(inv: Investigation, size: Size) -> Plot | None:
    """Of every step at every level (Tukey 1977: whiskers end at the furthest value within 1.5 boxes)."""
    loads = load_axis(inv)
    drawn = [(state, rows) for state in measured_ends(inv) if (rows := _footprint_rows(state, "throughput", 1.0))]
    values = [row["value"] for _, rows in drawn for row in rows]
    if not values or not loads.levels:
        return None
    logarithmic = wants_log([state for state, _ in drawn]) and min(values) > 0
    plot = Plot(size, loads.channel(), vega.axis_over(per_second(inv), values, logarithmic))
    for state, rows in drawn:
        colour, box_rows = COLOURS[state.role], [box_of(load, values) for load, values in _by_load(rows)]
        outside = {(box["load"], value) for box in box_rows for value in box["outliers"]}
        dots = [row for row in rows if (row["load"], row["value"]) not in outside]
        rings = [row for row in rows if (row["load"], row["value"]) in outside]
        plot.draw("rule", box_rows, colour, "low", "high")
        plot.draw("bar", box_rows, colour, "quarter", "three_quarters", opacity=0.25, size=BOX_WIDTH)
        plot.draw("line", box_rows, colour, "median", strokeWidth=1.6)
        plot.draw("tick", box_rows, colour, "median", thickness=2, size=BOX_WIDTH, orient="horizontal")
        plot.draw("point", dots, colour, filled=True, size=14, opacity=0.6)
        plot.draw("point", rings, colour, filled=False, size=40)
        plot.end(state.label, colour, box_rows[-1], "median")
    return plot


def box_of(load: float, values: Sequence[float]) -> Row:
    quarter, median, three_quarters = (float(value) for value in np.quantile(values, [0.25, 0.5, 0.75]))
    reach = 1.5 * (three_quarters - quarter)
    inside = [value for value in values if quarter - reach <= value <= three_quarters + reach]
    return {
        "load": load,
        "median": median,
        "quarter": quarter,
        "three_quarters": three_quarters,
        "low": min(inside),
        "high": max(inside),
        "outliers": [value for value in values if value not in inside],
    }


def _by_load(rows: Iterable[Row]) -> list[tuple[float, list[float]]]:
    by_load: dict[float, list[float]] = {}
    for row in rows:
        by_load.setdefault(row["load"], []).append(row["value"])
    return sorted(by_load.items())


def forecast(inv: Investigation, size: Size) -> Plot | None:
    predicted, before = inv.forecast, next(iter(facts.series(inv)), None)
    if predicted is None or not predicted.at or before is None:
        return None
    measured = throughput_rows(before)
    expected = [{"load": point.load, **asdict(point.throughput)} for point in predicted.at]
    highs = [row["high"] for row in (*measured, *expected)]
    if not math.isfinite(max(highs)):
        return None
    plot = Plot(size, load_axis(inv).channel(), vega.axis_over(per_second(inv), highs))
    highest = max(row["load"] for row in (*measured, *expected))
    if predicted.capacity is not None and (at := predicted.capacity.load).low < highest:
        plot.shade(at.low, min(at.high, highest), AFTER, 0.12)
    plot.draw("rule", expected, AFTER, "low", "high", strokeWidth=7, opacity=0.35)
    plot.draw("tick", expected, AFTER, thickness=2.5, size=22, orient="horizontal")
    plot.draw("line", measured, BEFORE)
    plot.draw("point", measured, BEFORE, filled=True, size=38, opacity=1)
    plot.end("measured", BEFORE, measured[-1])
    plot.end("forecast", AFTER, expected[-1])
    return plot


def forecast_title(inv: Investigation) -> str:
    predicted = inv.forecast
    if predicted is None or not predicted.scored:
        return "The forecast" if predicted else ""
    inside = sum(score.inside for score in predicted.scored)
    loads = words.and_list([rounding.exact(load) for load in predicted.measured])
    return f"Forecast from {loads}: inside its interval at {inside} of {len(predicted.scored)} loads"


def components(inv: Investigation, what: str, size: Size) -> Plot | None:
    """Use over the load, in the first state. what: the metric without the component."""
    rows = next((round_.footprint for round_ in inv.rounds if round_.footprint), ())
    names = sorted({name for row in rows for name in row if name.endswith(f".{what}")} - {f"target.{what}"})
    if len(names) < 2:
        return None
    factor, title = _scale(names[0])
    drawn = []
    for name, colour in zip(names, itertools.cycle(PALETTE), strict=False):
        used = [{"load": row["level"], "value": row[name] * factor} for row in rows if name in row]
        drawn.append((name.partition(".")[0], colour, used))
    return _lines(drawn, load_axis(inv), size, title)


def metric(inv: Investigation, name: str, limit_id: str, size: Size) -> Plot | None:
    factor, title = _scale(name)
    drawn = [(state, rows) for state in measured_ends(inv) if (rows := _footprint_rows(state, name, factor))]
    ceilings = [
        (COLOURS[state.role], limit.ceiling * factor)
        for state, _ in drawn
        for limit in state.round.limits
        if limit.id == limit_id and math.isfinite(limit.ceiling) and limit.ceiling > 0
    ]
    lines = [(state.label, COLOURS[state.role], rows) for state, rows in drawn]
    return _lines(lines, load_axis(inv), size, title, ceilings=ceilings)


def _scale(name: str) -> tuple[float, str]:
    unit = metric_of(name).unit
    return SCALES.get(unit, (1.0, unit))


def _footprint_rows(state: facts.Series, name: str, factor: float) -> list[Row]:
    by_level = facts.values_by_level(state.round, name)
    return [{"load": level, "value": value * factor} for level, values in by_level.items() for value in values]


def ends_of(inv: Investigation) -> list[facts.Series]:
    return [state for state in facts.series(inv) if state.role != "between"]


def measured_ends(inv: Investigation) -> list[facts.Series]:
    """Those measured over all levels in a round of their own."""
    return [state for state in ends_of(inv) if state.curve is not None]


def highest(series: facts.Series, levels: Iterable[float], unit: str) -> tuple[float, str]:
    load = max(levels)
    return load, f"{'After the change, at' if series.role == 'after' else 'At'} {words.load(load, unit)}"


def seen(inv: Investigation, chart: str, levels: Callable[[facts.Series], object]) -> list[tuple[str, facts.Series]]:
    states = [state for state in measured_ends(inv) if levels(state)]
    return list(zip((chart, f"{chart}-after"), states, strict=False))


def _lines(
    drawn: Iterable[tuple[str, str, list[Row]]],
    loads: LoadAxis,
    size: Size,
    title: str,
    *,
    logarithmic: bool = False,
    ceilings: Sequence[tuple[str, float]] = (),
) -> Plot | None:
    """Dots, and lines through their averages. ceilings: (colour, value)."""
    drawn = [(label, colour, rows) for label, colour, rows in drawn if rows]
    values = [row["value"] for _, _, rows in drawn for row in rows]
    if not values or not loads.levels:
        return None
    axis = vega.axis_over(title, [*values, *(value for _, value in ceilings)], logarithmic and min(values) > 0)
    plot = Plot(size, loads.channel(), axis)
    for label, colour, rows in drawn:
        means = [{"load": load, "value": sum(measured) / len(measured)} for load, measured in _by_load(rows)]
        plot.draw("point", rows, colour, filled=True, size=26, opacity=0.55)
        plot.draw("line", means, colour, strokeWidth=2.2)
        plot.end(label, colour, means[-1])
    for colour, value in ceilings:
        plot.ceiling(value, f"ceiling {rounding.plain(value)}", colour, min(loads.levels))
    return plot


def evidence_metrics(inv: Investigation, finding: Finding) -> list[tuple[str, str]]:
    """At most two recorded metrics: what rose, and the use of the limit (with its id)."""
    round_ = facts.round_of(inv, finding)
    recorded = set(facts.footprint_metrics(round_.footprint))
    uses = [limit.use_metric for limit in round_.limits if limit.id == finding.id][:1]
    used = [(use, finding.id) for use in uses if use in recorded]
    rose = dict.fromkeys(piece.metric for piece in finding.evidence if piece.metric in recorded - set(uses))
    return [*[(name, "") for name in rose][: 2 - len(used)], *used]


def load_axis(inv: Investigation) -> LoadAxis:
    loads = {point.load for state in facts.series(inv) for point in state.points}
    return LoadAxis(inv.study.load_unit, tuple(sorted(loads)))
