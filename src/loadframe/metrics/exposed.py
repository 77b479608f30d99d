"""Metrics that a service exposes itself. All that is known of one is in its name, so a run folder can be read without
its service: `service.` and the name as exposed, with its labels in one order (`service.pool_in_use{pool="a"}`).
Cumulative ones end as in OpenMetrics (`_total`, `_count`, `_sum`, `_bucket`) and are rates in steps; a level whose own
name ends so gets the suffix `_level`."""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from loadframe.knowledge.rows import toml_rows

Values = Mapping[str, float]
OF = "service."
RESERVED = ("parallelism", "serial")
"""Findings of a service are called `service.NAME`, too: no limit can have these names."""
COUNTED = ("_total", "_count", "_sum", "_bucket")
"""Endings of counters (OpenMetrics 1.0, "Suffixes")."""
LEVEL, TOTAL, BUCKET, BOUND = "_level", "_total", "_bucket", "le"
QUANTILES = {"_p50": 0.50, "_p95": 0.95, "_p99": 0.99}
LONGEST_NAME = 300
"""Characters, with labels; what is longer is left out."""
_UNITS = {"seconds": "s", "milliseconds": "ms", "bytes": "bytes", "ratio": "share"}
_ASIDE = ("max", "min", "mean", "avg", "current", "used", "limit", "committed", "free")
"""Behind the unit: `jvm_memory_bytes_used`."""
_LABEL = re.compile(r'(?<![^{=,"])([^{=,"]++)="((?:[^"\\]|\\.)*+)"')
"""A name begins only where one can, and nothing is tried twice: the time is linear in the text."""


@dataclass(frozen=True, slots=True)
class Name:
    """base: without labels; labels: in the order of their names, values unescaped."""

    base: str
    labels: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """As Prometheus writes it."""
        words = ",".join(f'{name}="{_escaped(value)}"' for name, value in self.labels)
        return f"{self.base}{{{words}}}" if words else self.base


def named(base: str, labels: Mapping[str, str], *, counted: bool) -> Name:
    """The recorded name. counted: it only grows."""
    ends = base.endswith(COUNTED)
    base = f"{base}{TOTAL}" if counted and not ends else f"{base}{LEVEL}" if ends and not counted else base
    return Name(base, tuple(sorted(labels.items())))


def split(name: str) -> Name:
    """A name's parts, whatever the order of its labels. Any other text has no labels."""
    base, brace, rest = name.partition("{")
    if not brace:
        return Name(name)
    labels = [(match[1].strip(), _unescaped(match[2])) for match in _LABEL.finditer(rest)]
    return Name(base, tuple(sorted(labels)))


def resolve(name: str, there: Collection[str]) -> str | None:
    """The metric that a study means by a name, of those in `there` (each with `service.`): itself, with the ending of
    its form, or the only one that has these labels among others. None for none, or several."""
    asked = split(name)
    names = [str(Name(f"{asked.base}{ending}", asked.labels)) for ending in ("", LEVEL, TOTAL)]
    exact = next((f"{OF}{spelling}" for spelling in names if f"{OF}{spelling}" in there), None)
    if exact is not None:
        return exact
    alike = all_of(name, there)
    return alike[0] if len(alike) == 1 else None


def all_of(name: str, there: Iterable[str]) -> list[str]:
    asked = split(name)
    bases = {f"{OF}{asked.base}{ending}" for ending in ("", LEVEL, TOTAL)}
    return [
        metric
        for metric in there
        if metric.partition("{")[0] in bases and set(asked.labels) <= set(split(metric).labels)
    ]


def unit_of(name: str) -> str:
    """For units.show, from the end of the name (Prometheus, "Metric and label naming"); else "count"."""
    base = name.removeprefix(OF).partition("{")[0]
    if base.endswith("_count"):
        return "1/s"
    rate = base.endswith(COUNTED)
    words = base.removesuffix(LEVEL)
    for ending in (*COUNTED, *QUANTILES):
        words = words.removesuffix(ending)
    parts = words.split("_")
    while len(parts) > 1 and parts[-1] in _ASIDE:
        parts.pop()
    unit = "" if parts[-2:-1] == ["per"] else _UNITS.get(parts[-1], "")
    if rate:
        return {"s": "s/s", "bytes": "bytes/s"}.get(unit, "1/s")
    return unit or "count"


def what_of(name: str) -> str:
    base, brace, labels = name.removeprefix(OF).partition("{")
    for ending, share in QUANTILES.items():
        if base.endswith(ending):
            words = f"{100 * share:.0f}th percentile, at most (the upper bound of its bucket)"
            return f"{base.removesuffix(ending)}{brace}{labels}, {words}"
    return f"{base}{brace}{labels}, as the service exposes it"


ROUNDING = 1e-9
"""Rounding error of a share of counts that were divided by a time."""


def with_quantiles(metrics: Values) -> dict[str, float]:
    """Metrics with the quantiles of a window in place of the rates of buckets, which are cumulative (`le`). A quantile
    is the upper bound of the bucket that holds it; it is absent where that bucket has no bound, or the rates contradict
    one another."""
    rest, histograms = dict(metrics), _histograms(metrics)
    for histogram, buckets in histograms.items():
        for name in buckets.values():
            del rest[name]
        for quantile, value in _quantiles({bound: metrics[name] for bound, name in buckets.items()}):
            base = histogram.base.removesuffix(BUCKET)
            rest.setdefault(str(Name(f"{base}{quantile}", histogram.labels)), value)
    return rest


def _histograms(metrics: Values) -> dict[Name, dict[float, str]]:
    histograms: dict[Name, dict[float, str]] = {}
    for name in metrics:
        if not name.startswith(OF) or f"{BUCKET}{{" not in name:
            continue
        whole = split(name)
        bounds = [_number(value) for label, value in whole.labels if label == BOUND]
        if not whole.base.endswith(BUCKET) or len(bounds) != 1 or math.isnan(bounds[0]):
            continue
        others = tuple(label for label in whole.labels if label[0] != BOUND)
        histograms.setdefault(Name(whole.base, others), {})[bounds[0]] = name
    return histograms


def _quantiles(buckets: Mapping[float, float]) -> Iterator[tuple[str, float]]:
    """buckets: by their upper bounds, the rate of what fell into them and all below."""
    bounds = sorted(buckets)
    counts = [buckets[bound] for bound in bounds]
    if not math.isinf(bounds[-1]) or counts[-1] <= 0 or any(more < less for less, more in pairwise(counts)):
        return
    for ending, share in QUANTILES.items():
        bound = next(bound for bound in bounds if buckets[bound] >= (1 - ROUNDING) * share * counts[-1])
        if math.isfinite(bound):
            yield ending, bound


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _unescaped(value: str) -> str:
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], value)


@dataclass(frozen=True, slots=True)
class WellKnown:
    """`metric` is the sum of all exposed metrics of this base, or of those with this label. Of several rows of one
    metric the first that is exposed counts. per: divided by that of this base. also: added, where exposed."""

    metric: str
    base: str
    source: str
    label: tuple[str, str] | None = None
    per: str = ""
    also: str = ""


REQUESTS = "target.requests"
HEAP_LIVE = "target.runtime.heap_live"
GC_SHARE, HEAP_USE, HEAP_CEILING = "target.runtime.gc_share", "target.runtime.heap_use", "target.runtime.heap_ceiling"
_ROWS = toml_rows(Path(__file__).with_name("exposed.toml"))
_KNOWN = {metric: [WellKnown(metric, **row) for row in rows] for metric, rows in _ROWS["known"].items()}
_HEAPS = tuple(
    (WellKnown(HEAP_USE, **row["use"]), WellKnown(HEAP_CEILING, **row["ceiling"]) if "ceiling" in row else None)
    for row in _ROWS["heaps"]
)
"""Use and ceiling; the first row whose use is exposed counts."""
NO_CEILING = 2.0**62
"""Bytes. Go reports math.MaxInt64 where GOMEMLIMIT is not set."""


def derived_metrics(metrics: Values, requests: Sequence[str] = ()) -> dict[str, float]:
    """From a window's exposed metrics: the garbage collector's share, the heap, and the requests served. requests: the
    names that a study gives for the last."""
    own = {name: value for name, value in metrics.items() if name.startswith(OF)}
    if not own:
        return {}
    derived = _first(GC_SHARE, own) | _first(HEAP_LIVE, own) | _heap(own)
    if not requests:
        return derived | _first(REQUESTS, own)
    declared = {name for request in requests for name in all_of(request, own)}
    return derived | ({REQUESTS: sum(own[name] for name in declared)} if declared else {})


def _first(metric: str, own: Values) -> dict[str, float]:
    values = (_value(row, own) for row in _KNOWN[metric])
    return next(({metric: value} for value in values if value is not None), {})


def _heap(own: Values) -> dict[str, float]:
    for use, ceiling in _HEAPS:
        used, most = _value(use, own), None if ceiling is None else _value(ceiling, own)
        if used:
            return {use.metric: used} | ({HEAP_CEILING: most} if most and most < NO_CEILING else {})
    return {}


def _value(row: WellKnown, own: Values) -> float | None:
    """Only positive levels count: -1 stands for "no bound"."""
    matching = [name for name in own if name.removeprefix(OF).partition("{")[0] == row.base]
    if row.label is not None:
        matching = [name for name in matching if row.label in split(name).labels]
    if not matching:
        return None
    if row.also:
        matching += [name for name in own if name.removeprefix(OF).partition("{")[0] == row.also]
    value = sum(max(0.0, own[name]) for name in matching)
    if not row.per:
        return value
    whole = own.get(f"{OF}{row.per}", 0.0)
    return value / whole if whole > 0 else None
