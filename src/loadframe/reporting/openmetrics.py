"""OpenMetrics text (https://prometheus.io/docs/specs/om/). Every family is a gauge, so that readers of Prometheus'
older text format (node_exporter's textfile collector, the Pushgateway) accept it."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from loadframe.formats.said import words

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PREFIX = "loadframe_"
RATE = "requests_per_second"
UNITS = (RATE, "seconds", "ratio", "cores", "bytes")
"""Suffixes of names; counts have none, and loads, whose unit the study chooses."""


@dataclass(frozen=True, slots=True)
class Sample:
    """family: its name without the prefix. labels: our names, unescaped values."""

    family: str
    value: float
    labels: Mapping[str, str]


def text(samples: Iterable[Sample], families: Mapping[str, str]) -> str:
    """A text ended by "# EOF". NaN is left out; of two samples with one name and labels the first is kept, as a reader
    refuses the second. KeyError for an undeclared family."""
    lines: dict[str, dict[str, str]] = {}
    for sample in samples:
        if sample.family not in families:
            raise KeyError(sample.family)
        if not math.isnan(sample.value):
            labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels.items() if value != "")
            lines.setdefault(sample.family, {}).setdefault(f"{{{labels}}}" if labels else "", number(sample.value))
    exposition = [line for name in families if name in lines for line in _family(name, families[name], lines[name])]
    return "\n".join([*exposition, "# EOF", ""])


def _family(name: str, meaning: str, values: Mapping[str, str]) -> Iterator[str]:
    whole = f"{PREFIX}{name}"
    yield f"# TYPE {whole} gauge"
    yield from (f"# UNIT {whole} {unit}" for unit in UNITS if name.endswith(f"_{unit}"))
    yield f"# HELP {whole} {_escaped(meaning)}"
    for labels, value in values.items():
        yield f"{whole}{labels} {value}"


def _escaped(value: str) -> str:
    return words(value).replace("\\", "\\\\").replace('"', '\\"')


def number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
