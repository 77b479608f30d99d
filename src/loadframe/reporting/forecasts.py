"""Forecasts of load as text."""

import math
from collections.abc import Iterator

from loadframe.model import WORK, Calibration, Estimate, Forecast, Limit, LoadInterval, NextLimit, Reached
from loadframe.prediction.resources import of_limit
from loadframe.progress import counted
from loadframe.reporting import document as doc
from loadframe.reporting import rounding, terminal, words


def render_forecast(
    forecast: Forecast, *, unit: str = "", calibration: Calibration | None = None, work: str = WORK
) -> str:
    unit = unit or forecast.axis.replace("_", " ")
    earlier = []
    if calibration is not None:
        held = f"{calibration.inside} of {counted(calibration.count, 'forecast')} scored (90 % expected)"
        off = f"the median error was {rounding.percent(calibration.median_error)}"
        earlier.append(f"On this machine the interval held in {held}; {off}.")
    sections = (
        doc.section("Forecast", "forecast", tables(forecast, unit, work)),
        doc.listed("Mind", forecast.notes),
        doc.listed("Earlier forecasts", earlier),
    )
    return terminal.render(doc.Document("Forecast", tuple(outcome(forecast, unit, work)), sections))


def outcome(forecast: Forecast, unit: str, work: str = WORK) -> list[str]:
    if forecast.refused is not None:
        return [f"No forecast. {forecast.refused}"]
    sentences = [_answer(forecast, unit, work)]
    if forecast.reached is not None:
        sentences.append(_reached(forecast.reached, unit, work))
    if forecast.scored:
        inside, loads = sum(score.inside for score in forecast.scored), counted(len(forecast.scored), "load")
        sentences.append(f"The throughput was inside its interval at {inside} of the {loads} forecast.")
    return sentences


def _reached(reached: Reached, unit: str, work: str) -> str:
    at = f"at most {words.throughput(reached.throughput, work)}, at {words.load(reached.at_load, unit)}"
    used = f" ({reached.limited_by} {rounding.percent(reached.utilization)} used)" if reached.limited_by else ""
    end = "it does not saturate within these loads"
    if reached.saturated_at is not None:
        inside = "inside" if reached.load_inside else "outside"
        end = f"saturated at {rounding.plain(reached.saturated_at)} {unit}, {inside} the interval"
    return f"Measured: {at}{used}; {end}."


def tables(forecast: Forecast, unit: str, work: str) -> Iterator[doc.Table]:
    slow, came = any(point.latency_p95_ms for point in forecast.at), {score.load: score for score in forecast.scored}
    load, value, measured = doc.numbers(words.capital(unit), f"Forecast, {work}/s", "Measured")
    outcomes: doc.Heads = (measured, doc.Column("", "Outcome"), "Off by") if came else ()
    heads: doc.Heads = (load, value, "90 % interval", *["p95"] * slow, *outcomes)
    rows = []
    for point in forecast.at:
        latency, outcome = "", ("", "", "")
        if point.latency_p95_ms is not None:
            p95, between = _interval(point.latency_p95_ms)
            latency = f"{p95} ms" if between == NO_INTERVAL else f"{p95} ms ({between})"
        if (score := came.get(point.load)) is not None:
            off = f"{100 * (score.predicted / score.actual - 1):+.1f} %" if score.actual > 0 else "nothing was done"
            outcome = rounding.plain(score.actual), "inside" if score.inside else "outside", off
        rows.append(
            (rounding.exact(point.load), *_interval(point.throughput), *[latency] * slow, *outcome * bool(came))
        )
    yield doc.Table(heads, rows)
    full = sorted(_full(forecast, unit), key=lambda row: row[0])
    yield doc.Table(("Resource or limit", "In use", "Per request", "Saturates at"), [row for _, row in full])


def _full(forecast: Forecast, unit: str) -> Iterator[tuple[float, doc.Cells]]:
    top = rounding.exact(_top(forecast)) if forecast.measured else ""
    known = {saturation.resource for saturation in forecast.saturation} | {limit.id for limit in forecast.exhaustion}
    by_resource = {of_limit(limit) or limit.id: limit for limit in reversed(forecast.exhaustion)}
    for saturation in forecast.saturation:
        of = "" if saturation.servers == 1 else f" of {saturation.servers:g}"
        used = f"{rounding.percent(saturation.utilization)}{of} at {top}"
        demand, limit = f"{rounding.plain(1000 * saturation.demand_s)} ms", by_resource.pop(saturation.resource, None)
        name = doc.Span(saturation.resource, "code") if limit is None else _named(limit)
        place, where = math.inf, "not visible"
        if saturation.at_load is not None:
            place, where = saturation.at_load.value, _load(saturation.at_load, unit, _top(forecast))
        yield place, (name, used, demand, where)
    for limit in by_resource.values():
        if (at := limit.exhausted_at) is not None:
            used = " of ".join(words.limit_number(value, limit) for value in (limit.use, limit.ceiling))
            yield at.load, (_named(limit), used, "", _load(at, unit))
    if forecast.first is not None and forecast.first_from is not None and forecast.first.id not in known:
        yield forecast.first_from.load, (_named(forecast.first), "", "", _load(forecast.first_from, unit))


def _named(limit: Limit | NextLimit) -> tuple[str | doc.Span, ...]:
    code = doc.Span(limit.id, "code")
    return (f"{limit.title} (", code, ")") if limit.title else (code,)


def _answer(forecast: Forecast, unit: str, work: str) -> str:
    capacity, first, top = forecast.capacity, forecast.first, _top(forecast)
    cause = ""
    if first is not None and forecast.first_from is not None and forecast.limited:
        cause = f"{doc.plain(_named(first))}, from {_load(forecast.first_from, unit)} on"
    if capacity is None:
        seen = f"{rounding.plain(forecast.at_least)} {work}/s were measured"
        most = f"At most {seen}." if cause else f"The maximum is unknown; {seen}."
        return " ".join(filter(None, (most, forecast.unexplained, cause and f"Likely cause: {cause}.")))
    named = {limit.id: doc.plain(_named(limit)) for limit in (*forecast.exhaustion, *([first] if first else ()))}
    before = any(limit.exhausted_at and limit.exhausted_at.load < capacity.load.value for limit in forecast.exhaustion)
    limit, rank = capacity.limited_by, "" if before else " first"
    if cause:
        answer = f"What limits: {cause}"
    else:
        what = f"What limits{rank}: {named[limit]}" if limit in named else f"{limit} saturates{rank}"
        answer = f"{what}, at {_load(capacity.load, unit, top)}"
    throughput, ends = _interval(capacity.throughput, forecast.at_least, brief=True)
    between = f" ({ends})" if ends else ""
    loads = [*map(rounding.exact, forecast.measured[:-1]), words.load(top, unit)]
    measured = words.and_list(loads) if len(loads) <= 4 else f"{loads[0]} to {loads[-1]}, {len(loads)} levels"
    return f"{answer}; that allows {throughput} {work}/s{between}. Measured at {measured}; intervals of 90 %."


def _load(at: Estimate | LoadInterval, unit: str, seen: float = 0.0) -> str:
    load, between = at.value if isinstance(at, Estimate) else at.load, ""
    if at.low != at.high:
        value, between = _interval(Estimate(load, at.low, at.high), seen, brief=True)
        load = float(value.replace(",", ""))
    return f"{words.load(load, unit)}{f' ({between})' if between else ''}"


def _top(forecast: Forecast) -> float:
    return forecast.measured[-1] if forecast.measured else 0.0


NO_INTERVAL = "not known more precisely"


def _interval(estimate: Estimate, seen: float = 0.0, *, brief: bool = False) -> tuple[str, str]:
    """ "135 to 157", "135 or more". seen: a value not below this is not rounded below it. brief: two digits for a
    sentence, and no interval whose ends look alike."""
    if estimate.low <= 0 or not math.isfinite(estimate.high):
        value = _no_less(rounding.plain(estimate.value), estimate.value, seen)
        low = f"{_no_less(rounding.plain(estimate.low), estimate.low, seen)} or more" if estimate.low > 0 else ""
        high = f"at most {rounding.plain(estimate.high)}" if math.isfinite(estimate.high) else ""
        return value, low or high or NO_INTERVAL
    ends = (estimate.value, estimate.low, estimate.high)
    value, low, high = (
        _no_less(text, end, seen)
        for text, end in zip(map(rounding.brief, ends) if brief else rounding.with_interval(*ends), ends, strict=True)
    )
    return value, "" if brief and low == high else f"{low} to {high}"


def _no_less(text: str, value: float, seen: float) -> str:
    """With more digits where rounding would put it below what was seen."""
    if value < seen or float(text.replace(",", "")) >= seen:
        return text
    plain = rounding.plain(value)
    return rounding.exact(value) if value.is_integer() and float(plain.replace(",", "")) < seen else plain
