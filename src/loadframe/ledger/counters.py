"""A server's counters at two moments, as metrics: levels as they are, cumulative ones as rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loadframe.metrics.exposed import with_quantiles
from loadframe.model import CounterSpec


def counter_metrics(
    first: Mapping[str, float], last: Mapping[str, float], elapsed_s: float, specs: Sequence[CounterSpec]
) -> tuple[dict[str, float], dict[str, str]]:
    """(metrics, why others are missing). first, last: by CounterSpec.name."""
    values: dict[str, float] = {}
    missing: dict[str, str] = {}
    for spec in specs:
        if spec.name not in first or spec.name not in last:
            missing[spec.metric] = f"the server does not tell {spec.name}"
        elif not spec.cumulative:
            values[spec.metric] = last[spec.name]
        elif elapsed_s <= 0:
            missing[spec.metric] = "a rate needs two readings"
        elif last[spec.name] < first[spec.name]:
            missing[spec.metric] = f"{spec.name} was reset between two readings"
        else:
            values[spec.metric] = (last[spec.name] - first[spec.name]) / elapsed_s
    return with_quantiles(values), missing
