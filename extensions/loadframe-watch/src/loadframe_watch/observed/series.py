"""Series of any file that has some in time order, and which of them is load, throughput, response time and use.

    load         requests_in_flight
    throughput   http_requests_total{job="api"}              a counter: becomes a rate, and starts again after a reset
    response     http_seconds_sum / http_seconds_count       the mean over each interval
    use cpu      process_cpu_seconds_total / 4               a share of four CPUs

Series that match one name are added up. Times are those of the load; other series are interpolated linearly at these
times, and are missing if their neighbours lie further apart than MOST_APART usual steps."""

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median
from typing import Any

from loadframe.errors import SampleError
from loadframe.formats.json_text import JsonError, parse_json
from loadframe.formats.plain_numbers import finite, plausible
from loadframe.formats.said import words
from loadframe.progress import counted
from loadframe_watch.observed.records import Observed, ObservedMapping

MOST_ROWS = 200_000
MOST_SERIES = 2_000
MOST_CELLS = 4_000_000
COUNTS = ("_total", "_count", "_sum", "_bucket")
"""Endings of the names of counters (OpenMetrics 1.0, 5.1)."""
MOST_APART = 2.5
EXAMPLES = 6
_MILLISECONDS = re.compile(r"(?<![a-z])(ms|msecs?|millis|milliseconds?)(?![a-z])", re.IGNORECASE)
_DIVIDED = re.compile(r"/\s*1(000(\.0*)?|e\+?0*3)\s*$")
_TERM = re.compile(r'\s*(?P<name>[^\s{}/"]*)\s*(?:\{(?P<labels>[^{}]*)\})?\s*')
_LABEL = re.compile(r'\s*([A-Za-z_][A-Za-z0-9_.-]*)\s*=\s*"([^"]*)"\s*(?:,|$)')


@dataclass(frozen=True, slots=True)
class Series:
    """times_s: ascending; values: NaN: missing. counted: whether they are rates of a counter, each of the interval
    before its time."""

    name: str
    labels: Mapping[str, str]
    times_s: Sequence[float]
    values: Sequence[float]
    counted: bool = False

    @classmethod
    def of(cls, name: str, labels: Mapping[str, str], values: Mapping[float, float]) -> "Series":
        times = sorted(values)
        return cls(name, labels, tuple(times), tuple(values[time_s] for time_s in times))

    def __str__(self) -> str:
        inside = ", ".join(f'{key}="{value}"' for key, value in self.labels.items())
        return words(f"{self.name}{{{inside}}}" if inside else self.name or "{}", 100)


def read_json(text: str, name: str, remedy: str) -> Any:
    """SampleError for invalid JSON."""
    try:
        return parse_json(text.removeprefix("\ufeff"))
    except JsonError as error:
        raise SampleError(f"{name} is not JSON that can be read: {error}", remedy=remedy) from None


def check_size(name: str, series: int, cells: int, remedy: str) -> None:
    """SampleError for more than is read."""
    if series > MOST_SERIES or cells > MOST_CELLS:
        raise SampleError(f"{name} has more than {MOST_SERIES:,} series or {MOST_CELLS:,} values", remedy=remedy)


@dataclass(frozen=True, slots=True)
class Table:
    """usual: which series is what by the usual names. servers: of resources."""

    name: str
    series: tuple[Series, ...]
    usual: ObservedMapping = field(default_factory=ObservedMapping)
    servers: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def assemble(table: Table, mapping: ObservedMapping) -> Observed:
    """The rows by the mapping, or the usual names. SampleError, naming what is missing."""
    terms = mapping.completed(table.usual)
    if terms.load is None:
        raise SampleError(
            f"which series of {table.name} is the load is not known; it has {_examples(table)}",
            remedy="Say it: --load NAME, and --throughput NAME, --response NAME, --use cpu=NAME for the others.",
        )
    notes = list(table.notes)
    load = _column(table, terms.load, "--load", mapping, notes)
    columns: dict[str, Series] = {}
    for role, term in (("throughput", terms.throughput), ("response", terms.response)):
        if term is not None:
            columns[role] = _column(table, term, f"--{role}", mapping, notes)
    if mapping.response and _MILLISECONDS.search(mapping.response) and not _DIVIDED.search(mapping.response):
        notes.append(
            f"The response is taken in seconds, and the name {words(mapping.response, 100)} says milliseconds: "
            f"give '{words(mapping.response, 100)} / 1000' if it is so."
        )
    for resource, term in terms.use.items():
        columns[f"use {resource}"] = _column(table, term, f"--use {resource}=", mapping, notes)
    if not columns:
        raise SampleError(f"{table.name} has a load, and nothing else", remedy="Add --throughput, --response or --use.")
    times = list(load.times_s)
    if len(times) > MOST_ROWS:
        raise SampleError(
            f"{table.name} has {len(times):,} rows; at most {MOST_ROWS:,} are read",
            remedy="Choose a longer step, or a shorter range.",
        )
    averaged = any(column.counted for column in columns.values()) and not load.counted
    at = {role: _at(times, column) for role, column in columns.items()}
    loads = list(load.values)
    if averaged:  # next to rates: the mean of both ends of a rate's interval
        loads[1:] = [(before + after) / 2 for before, after in pairwise(load.values)]
    return Observed(
        name=table.name,
        time_s=tuple(times),
        load=_plausible(loads, "the load", notes),
        throughput=_plausible(at["throughput"], "the throughput", notes) if "throughput" in at else None,
        response_s=_plausible(at["response"], "the response time", notes) if "response" in at else None,
        use={resource: _shares(at[f"use {resource}"], resource, table.name) for resource in terms.use},
        servers=dict(table.servers),
        response_is=terms.response_is,
        notes=tuple(notes),
    )


def _column(table: Table, term: str, flag: str, mapping: ObservedMapping, notes: list[str]) -> Series:
    whole = _matching(table, term)
    if whole:
        return _summed(whole, mapping, notes)
    above, slash, below = _divided(term)
    series = _matching(table, above)
    if not series:
        raise SampleError(
            f"{flag} {words(above, 100)!r} matches no series of {table.name}; it has {_examples(table)}",
            remedy='Give a name, with labels perhaps: NAME{label="value"}, and / NUMBER to change its unit.',
        )
    top = _summed(series, mapping, notes)
    if not slash:
        return top
    number = finite(below.strip())
    if number is not None:
        if not number > 0:
            raise SampleError(f"{flag} is divided by {words(below, 40)}", remedy="Divide by a number above zero.")
        return replace(top, values=[value / number for value in top.values])
    others = _matching(table, below)
    if not others:
        raise SampleError(
            f"{flag} is divided by {words(below, 100)!r}, which is neither a number nor a series of {table.name}",
            remedy=f"It has {_examples(table)}.",
        )
    under = _at(top.times_s, _summed(others, mapping, notes))
    ratio = [first / second if second > 0 else math.nan for first, second in zip(top.values, under, strict=True)]
    return replace(top, values=ratio)


def _divided(term: str) -> tuple[str, str, str]:
    """At the last slash outside quotes and braces."""
    depth, quoted = 0, False
    for at in range(len(term) - 1, -1, -1):
        character = term[at]
        quoted ^= character == '"'
        depth += 0 if quoted else (character == "}") - (character == "{")
        if character == "/" and not quoted and depth == 0:
            return term[:at], "/", term[at + 1 :]
    return term, "", ""


def _matching(table: Table, term: str) -> list[Series]:
    """A name with labels; none for a malformed one."""
    plain = [metric for metric in table.series if metric.name == term.strip() and term.strip()]
    if plain:
        return plain
    match = _TERM.fullmatch(term)
    if match is None or not (match["name"] or match["labels"]):
        return []
    if _LABEL.sub("", match["labels"] or "").strip():
        return []
    wanted = dict(_LABEL.findall(match["labels"] or "")).items()
    named = [metric for metric in table.series if metric.name == (match["name"] or metric.name)]
    return [metric for metric in named if metric.labels.items() >= wanted]


def _summed(series: Sequence[Series], mapping: ObservedMapping, notes: list[str]) -> Series:
    """Before its first value and after its last one a series adds nothing: instances come and go, and each has a series
    of its own. What one lacks in between is missing."""
    resets: list[int] = []
    whole = [_rated(metric, mapping, resets) for metric in series]
    notes += _were_reset(series, [count for count in resets if count])
    first, columns = whole[0], []
    for column in whole:
        if known := [at for at, value in enumerate(column.values) if math.isfinite(value)]:
            lifetime = slice(known[0], known[-1] + 1)
            columns.append(replace(column, times_s=column.times_s[lifetime], values=column.values[lifetime]))
    if len(series) == 1 or not columns:
        return first
    times = _all_times(columns)
    totals, there = [0.0] * len(times), [False] * len(times)
    for column in columns:
        begin, end = bisect_left(times, column.times_s[0]), bisect_right(times, column.times_s[-1])
        for at, value in enumerate(_at(times[begin:end], column), begin):
            totals[at] += value
            there[at] = True
    some = sum(column.times_s[0] > times[0] or column.times_s[-1] < times[-1] for column in columns)
    if some:
        notes.append(
            f"{some:,} of the {len(columns):,} series of {words(series[0].name, 60)} {'is' if some == 1 else 'are'} "
            "not there all the time: meanwhile nothing is added to the sum."
        )
    values = [total if known else math.nan for total, known in zip(totals, there, strict=True)]
    return replace(first, times_s=times, values=values)


def _all_times(columns: Sequence[Series]) -> list[float]:
    """Of those closer together than half a usual step the first."""
    longest = max(columns, key=lambda column: len(column.times_s))
    least_s = median([b - a for a, b in pairwise(longest.times_s)] or [0.0]) / 2
    times: list[float] = []
    for time_s in sorted({time_s for column in columns for time_s in column.times_s}):
        if not times or time_s - times[-1] >= least_s:
            times.append(time_s)
    return times


def _were_reset(series: Sequence[Series], resets: Sequence[int]) -> list[str]:
    """One line for all series of a term: a release resets each instance."""
    if not resets:
        return []
    most = f"{max(resets):,} time{'s' if max(resets) > 1 else ''}"
    if len(series) == 1:
        return [f"The counter {series[0]} was reset {most}."]
    were = "was" if len(resets) == 1 else "were"
    suffix = " at the most" if len(set(resets)) > 1 else " each" if len(resets) > 1 else ""
    return [
        f"{len(resets):,} of the {len(series):,} counters {words(series[0].name, 60)} {were} reset, {most}{suffix}."
    ]


def _rated(series: Series, mapping: ObservedMapping, resets: list[int]) -> Series:
    """A gauge as it is; a counter as its rate per second over the interval before each value. If it falls it was reset,
    and has counted its value since (as in Prometheus' rate()). resets: its number of resets is appended."""
    if not (series.name.endswith(COUNTS) or series.name in mapping.counters):
        return series
    rates, falls, last = [math.nan], 0, (math.nan, math.nan)
    last = next(((t, v) for t, v in zip(series.times_s, series.values, strict=True) if math.isfinite(v)), last)
    for time_s, value in zip(series.times_s[1:], series.values[1:], strict=True):
        if not math.isfinite(value) or not time_s > last[0]:
            rates.append(math.nan)
            continue
        falls += value < last[1]
        grown = value - last[1] if value >= last[1] else value
        rates.append(grown / (time_s - last[0]))
        last = (time_s, value)
    resets.append(falls)
    return replace(series, values=rates, counted=True)


def _at(times: Sequence[float], column: Series) -> list[float]:
    if list(column.times_s) == list(times):
        return list(column.values)
    known = [(t, v) for t, v in zip(column.times_s, column.values, strict=True) if math.isfinite(v)]
    if not known:
        return [math.nan] * len(times)
    at_s = [pair[0] for pair in known]
    steps = [after - before for before, after in pairwise(at_s)]
    farthest = MOST_APART * median(steps) if steps else 0.0
    values = []
    for time_s in times:
        right = bisect_left(at_s, time_s)
        if right < len(at_s) and at_s[right] == time_s:
            values.append(known[right][1])
        elif 0 < right < len(at_s) and at_s[right] - at_s[right - 1] <= farthest:
            share = (time_s - at_s[right - 1]) / (at_s[right] - at_s[right - 1])
            values.append(known[right - 1][1] * (1 - share) + known[right][1] * share)
        else:
            values.append(math.nan)
    return values


def _plausible(values: Sequence[float], what: str, notes: list[str]) -> tuple[float, ...]:
    """NaN, with a note, for what is below zero or beyond what can be measured."""
    right = [value if plausible(value) else math.nan for value in values]
    left_out = sum(math.isnan(new) and not math.isnan(old) for new, old in zip(right, values, strict=True))
    if left_out:
        notes.append(f"{counted(left_out, 'value')} of {what} below zero or beyond all measure left out.")
    return tuple(right)


MOST_ABOVE = 0.02
"""A smaller share of rows with a use above ABOVE is noise of the windows' edges; with more the unit is another."""
ABOVE = 1.1


def _shares(values: Sequence[float], resource: str, name: str) -> tuple[float, ...]:
    """Clipped to 1. SampleError if too many are above, so that the unit must be another."""
    known = [value for value in values if math.isfinite(value)]
    above = [value for value in known if value > ABOVE]
    if len(above) > MOST_ABOVE * len(known):
        raise SampleError(
            f"the use of {words(resource, 60)} in {name} goes up to {max(known):g}: it is not a share from 0 to 1",
            remedy=f"Divide it by all there is: --use {words(resource, 60)}='NAME / 100' for per cent, by 64 for "
            "places of a pool of 64, by the number of CPUs for CPUs in use.",
        )
    return tuple(min(value, 1.0) if 0 <= value < math.inf else math.nan for value in values)


def _examples(table: Table) -> str:
    names = list(dict.fromkeys(str(metric) for metric in table.series))
    more = f" and {len(names) - EXAMPLES:,} more" if len(names) > EXAMPLES else ""
    return (", ".join(names[:EXAMPLES]) or "no series") + more
