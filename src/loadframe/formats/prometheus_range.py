"""What Prometheus answers to a range query, as JSON: a matrix of series with labels (its HTTP API, `query_range`).

Also a list of such answers, of several queries. A series of an expression, such as rate(...), has no name: it is called
by the name of its file without the ending.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from loadframe.errors import SampleError
from loadframe.formats.observed_series import Series, Table, check_size, read_json
from loadframe.formats.plain_numbers import finite
from loadframe.formats.said import words

WHOLE_ANSWER = "Give the whole answer of /api/v1/query_range, or a list of such answers."
LONGER_STEP = "Ask for a longer step, a shorter range, or fewer series."
MOST_WARNINGS = 5
_NOT_NUMBERS = ("NaN", "+Inf", "-Inf", "Inf")


def parse_prometheus(text: str, name: str) -> Table:
    """The series of one answer, or of a list of answers. SampleError for what is none, for an answer that is an error,
    and for more than MOST_SERIES series or MOST_CELLS values."""
    found = read_json(text, name, WHOLE_ANSWER)
    answers = found if isinstance(found, list) else [found]
    series: list[Series] = []
    cells = left_out = 0
    for answer in answers:
        for one in _results(answer, name):
            metric, values = one.get("metric", {}), one.get("values", [])
            if not isinstance(metric, dict) or not isinstance(values, list):
                raise SampleError(f"{name} has a series without `metric` and `values`", remedy=WHOLE_ANSWER)
            if not values:
                left_out += 1
                continue
            cells += len(values)
            check_size(name, len(series) + 1, cells, LONGER_STEP)
            series.append(_series(metric, values, name))
    if not series:
        raise SampleError(
            f"{name} has no series with values", remedy="The query found nothing: check it and its range."
        )
    notes = [said for answer in answers if isinstance(answer, dict) for said in _warnings(answer)]
    if left_out:
        notes.append(f"{left_out:,} series without plain values (histograms, or empty) left out.")
    return Table(name, tuple(series), notes=tuple(notes))


def _warnings(answer: Mapping[str, Any]) -> Iterator[str]:
    """What Prometheus, or a store before it, has said against its own answer."""
    said = answer.get("warnings")
    for one in said[:MOST_WARNINGS] if isinstance(said, list) else ():
        yield f"Prometheus warned: {words(one, 200)}"
    if answer.get("isPartial") is True:
        yield "The answer is partial, as its store says: rows and series may be missing."


def _results(answer: Any, name: str) -> Iterator[Mapping[str, Any]]:
    """The series of one answer."""
    if not isinstance(answer, dict):
        shape = {str: "text", list: "a list", type(None): "null"}.get(type(answer), "a number")
        raise SampleError(f"{name} has {shape} where an answer of Prometheus is expected", remedy=WHOLE_ANSWER)
    if answer.get("status") == "error":
        raise SampleError(
            f"{name} is an error of Prometheus: {words(answer.get('error', ''))}", remedy="Ask again, then export."
        )
    data = answer.get("data", answer)
    kind = data.get("resultType") if isinstance(data, dict) else None
    if kind != "matrix":
        raise SampleError(
            f"{name} has a result of the type {words(kind, 40)!r}, not a matrix",
            remedy="Ask /api/v1/query_range with start, end and step; /api/v1/query gives one moment.",
        )
    results = data.get("result")
    if not isinstance(results, list) or not all(isinstance(one, dict) for one in results):
        raise SampleError(f"{name} has a matrix whose `result` is no list of series", remedy=WHOLE_ANSWER)
    yield from results


def _series(metric: Mapping[str, Any], values: list[Any], name: str) -> Series:
    labels = {str(key): str(value)[:1000] for key, value in metric.items() if key != "__name__"}
    own = str(metric.get("__name__", "")) or PurePath(name).stem
    found: dict[float, float] = {}
    for pair in values:
        if not isinstance(pair, list) or len(pair) != 2:
            raise SampleError(f"{name}: a value of {words(own, 60)} is no pair of time and number", remedy=WHOLE_ANSWER)
        time_s = float(pair[0]) if isinstance(pair[0], int | float) and not isinstance(pair[0], bool) else math.nan
        value = math.nan if pair[1] in _NOT_NUMBERS else finite(str(pair[1]))
        if value is None or not math.isfinite(time_s):
            raise SampleError(
                f'{name}: {words(own, 60)} has {words(pair, 60)} where [seconds, "number"] is expected',
                remedy=WHOLE_ANSWER,
            )
        found[time_s] = value
    return Series.of(own, labels, found)
