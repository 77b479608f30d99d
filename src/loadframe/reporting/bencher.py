"""A run in the Bencher Metric Format, which tracks benchmarks over commits:
https://bencher.dev/docs/reference/bencher-metric-format/."""

from __future__ import annotations

import math
from typing import Any

from loadframe.formats.said import words
from loadframe.model import CaseStudy, CurvePoint

LONGEST_NAME = 1024
"""Characters of a benchmark's name."""
THROUGHPUT, LATENCY = "throughput", "latency-p95-ms"
"""The measures. The first is one that Bencher has (operations per second); its own `latency` counts nanoseconds."""


def bencher_json(run: CaseStudy) -> dict[str, Any]:
    """One benchmark per state and load: its throughput with the 95 % interval, and the p95 latency in ms."""
    axis = run.study.axis
    found: dict[str, Any] = {}
    for treatment, state in run.states.items():
        for point in state.curve.points:
            name = words(f"{run.study.name}/{treatment}/{axis}={point.load:.15g}", LONGEST_NAME)
            found[name] = _measures(point)
    return found


def _measures(point: CurvePoint) -> dict[str, dict[str, float]]:
    ends = {"lower_value": point.throughput_low, "upper_value": point.throughput_high}
    known = {name: value for name, value in ends.items() if math.isfinite(value)}
    measures = {THROUGHPUT: {"value": point.throughput, **known}}
    if point.latency_p95_ms is not None and math.isfinite(point.latency_p95_ms):
        measures[LATENCY] = {"value": point.latency_p95_ms}
    return measures
