"""All latencies at one level, before and after."""

import math

from loadframe.model import Investigation, LatencyDistribution
from loadframe.reporting import rounding, words
from loadframe.reporting.vega import AFTER, BEFORE, Plot, Size, axis_over, quantity

STATES = (("before", BEFORE), ("after", AFTER))
COLUMNS = ("Requests", "Mean", "p50", "p99", "p99.9", "Max")
BEYOND = {"p99": 100, "p99.9": 1000}  # requests for each one that is slower
UNBROKEN = "\u00a0"
SLOWER = 2.0  # a smaller factor may be noise of a percentile
FEW_BEYOND = 10
"""A percentile with fewer requests beyond it is uncertain (analysis/quantity.py)."""


def percentiles(inv: Investigation, size: Size) -> Plot | None:
    """Latency over percentile, both logarithmic, as HdrHistogram plots them: 90, 99 and 99.9 are equally spaced."""
    drawn = _states(inv)
    if not drawn:
        return None
    values = [point.latency_ms for _, _, distribution in drawn for point in distribution.points]
    most = max(2.0, *(point.one_in for _, _, distribution in drawn for point in distribution.points))
    percentile = quantity(
        "one_in",
        "percentile of the requests (log scale)",
        {"type": "log", "domain": [1, most], "nice": False},
        values=[2, *(10**power for power in range(1, max(math.ceil(math.log10(most)), 1) + 1))],
        labelExpr="format(100 - 100 / datum.value, '.12~g')",
        labelOverlap="greedy",
        labelSeparation=4,
        grid=True,
    )
    axis = axis_over("latency in ms", values, logarithmic=True)
    plot = Plot(size, percentile, axis, lambda one_in: f"p{100 - 100 / one_in:.6g}")
    for label, colour, distribution in drawn:
        rows = [{"one_in": point.one_in, "value": point.latency_ms} for point in distribution.points]
        plot.draw("line", rows, colour, strokeWidth=2.2)
        plot.draw("point", rows[-1:], colour, filled=True, size=38, opacity=1)
        plot.end(label, colour, rows[-1])
    return plot


def title(inv: Investigation) -> str:
    drawn = _states(inv)
    if not drawn:
        return ""
    names = [name for name in BEYOND if all(_beyond(distribution, name) >= FEW_BEYOND for _, _, distribution in drawn)]
    name = names[-1] if names else "p50"
    times = [words.milliseconds(_quantities(distribution)[name]) for _, _, distribution in drawn]
    values = f"{times[0]} before, {times[1]} after" if len(times) > 1 else times[0]
    but = "; the slowest requests take longer" if slower(inv) else ""
    return f"Latencies at {words.load(drawn[0][2].level, inv.study.load_unit)}: {name} {values}{but}"


def slower(inv: Investigation) -> str:
    """What the slowest requests take, where most are faster after the changes and the slowest are not; else "". The
    last percentile with requests beyond it in both states decides: the longest request grows with their number."""
    drawn = [distribution for _, _, distribution in _states(inv)]
    if len(drawn) < 2:
        return ""
    before, after = map(_quantities, drawn)
    fewest = min(distribution.requests for distribution in drawn)
    name = next((name for name, one_in in reversed(BEYOND.items()) if fewest >= one_in), "")
    if not name or after["p50"] >= before["p50"] or after[name] <= SLOWER * before[name]:
        return ""
    loads = words.load(drawn[0].level, inv.study.load_unit)
    few = ", from few requests" if fewest // BEYOND[name] < FEW_BEYOND else ""
    slow, longest = (
        f"{words.milliseconds(after[of])}, before {words.milliseconds(before[of])}" for of in (name, "Max")
    )
    return f"At {loads}, 1 request in {BEYOND[name]:,} took longer than {slow}{few}; the longest {longest}."


def note(inv: Investigation) -> str:
    drawn = [distribution for _, _, distribution in _states(inv)]
    parts = ["All requests of the windows at this level, merged by their counts; the dot is the longest one."]
    if left_out := sum(distribution.left_out for distribution in drawn):
        parts.append(f"{rounding.exact(left_out)} more failed, and are not among them: an error is no response time.")
    if failed := sum(distribution.failed for distribution in drawn):
        parts.append(f"{rounding.exact(failed)} of them failed, and count like the others.")
    if few := [name for name in BEYOND if any(_beyond(distribution, name) < FEW_BEYOND for distribution in drawn)]:
        parts.append(f"Fewer than {FEW_BEYOND} requests of a state lie beyond {words.and_list(few)}: uncertain.")
    if inv.rounds and (loop := inv.rounds[0].curve.closed_loop) is not None:
        parts.append(words.CLOSED_LOOP if loop else words.OPEN_LOOP)
    return " ".join(parts)


def rows(inv: Investigation) -> list[tuple[str, list[str]]]:
    """A row per state, a cell for each of COLUMNS; empty where the requests are too few."""
    drawn = _states(inv)
    table = []
    for label, _, distribution in drawn:
        times = [
            words.milliseconds(value).replace(" ", UNBROKEN) if distribution.requests >= BEYOND.get(of, 0) else ""
            for of, value in _quantities(distribution).items()
        ]
        name = label.capitalize() if len(drawn) > 1 else ""
        table.append((name, [rounding.exact(distribution.requests), *times]))
    return table


def _beyond(distribution: LatencyDistribution, name: str) -> int:
    return distribution.requests // BEYOND[name]


def _quantities(distribution: LatencyDistribution) -> dict[str, float]:
    latency = distribution.latency
    values = (latency.mean_ms, latency.p50_ms, latency.p99_ms, latency.p999_ms, latency.max_ms)
    return dict(zip(COLUMNS[1:], values, strict=True))


def _states(inv: Investigation) -> list[tuple[str, str, LatencyDistribution]]:
    return [
        (label, colour, distribution)
        for (label, colour), distribution in zip(STATES, inv.latencies, strict=False)
        if distribution.points
        and all(point.latency_ms > 0 and math.isfinite(point.latency_ms) for point in distribution.points)
    ]
