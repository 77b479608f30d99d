"""Every step of a case study as tables of its page, and their addresses there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from loadframe.metrics import is_known
from loadframe.metrics import metric as metric_of
from loadframe.model import Investigation, Round
from loadframe.reporting import document as doc
from loadframe.reporting import facts, rounding, words
from loadframe.units import show_metric

STEP_COLUMNS = {
    "step": "step",
    "level": "{unit}",
    "block": "block",
    "throughput": "{work}/s",
    "latency_p95_ms": "p95 in ms",
    "latency_p999_ms": "p99.9 in ms",
    "errors": "errors",
}
P999 = "latency_p999_ms"
COUNTED = frozenset({"step", "level", "block", "errors"})
"""Columns that were set or counted, not measured: shown as they are."""
FILE = doc.Span("steps.jsonl", to="steps.jsonl")


def address(round_: Round, level: float | None = None) -> str:
    """The address of the steps of a round, or of those at a level; "" where they are not shown."""
    if not round_.footprint:
        return ""
    return f"#data-{round_.number}{'' if level is None else f'-{_anchor(level)}'}"


def _anchor(level: float) -> str:
    return f"{level:g}".replace(".", "_").replace("+", "")


def blocks(inv: Investigation) -> Iterator[doc.Block]:
    """Every step of each round, with every metric that is not zero throughout."""
    shown = [(one, str(one.number), _state_title(inv, one)) for one in inv.rounds]
    shown += [
        (one.round, f"side-by-side-{number}", f"{one.name}: {one.round.treatment}")
        for number, one in enumerate(inv.alternatives, start=1)
    ]
    tables = [(_steps_table(inv, round_, anchor), title) for round_, anchor, title in shown if round_.footprint]
    for table, title in tables:
        yield doc.Group((table,), summary=f"{title}, {len(table.rows)} steps")
    if tables:
        raw = (FILE, ", ", doc.Span("metrics.parquet", to="metrics.parquet"), ".")
        yield doc.Prose(
            ("Metrics that are zero in every step are omitted here; the run folder has them all: ", *raw), "note"
        )


def _state_title(inv: Investigation, one: Round) -> str:
    """ "Before (state A)": what the steps of a round are of, and the letter that they have in the files."""
    return f"{words.capital(facts.label_of(inv, one) or f'round {one.number}')} (state {one.treatment})"


def _steps_table(inv: Investigation, round_: Round, anchor: str) -> doc.Table:
    metrics = facts.footprint_metrics(round_.footprint)
    rows = sorted(round_.footprint, key=lambda row: (row.get("level", 0.0), row.get("block", 0.0)))
    own = [name for name in STEP_COLUMNS if name != P999 or any(P999 in row for row in rows)]
    units = {"work": words.work_unit(inv), "unit": words.axis_unit(inv)}
    heads = [doc.Column(STEP_COLUMNS[name].format(**units), side=">") for name in own]
    heads += [doc.Column(name, side=">", title=metric_of(name).what if is_known(name) else "") for name in metrics]
    anchored: set[float] = set()
    lines = []
    for row in rows:
        level = row.get("level", 0.0)
        cells = [_step_cell(name, row) for name in own]
        cells += [show_metric(name, row[name]) if name in row else "" for name in metrics]
        lines.append(doc.Row(tuple(cells), anchor="" if level in anchored else f"data-{anchor}-{_anchor(level)}"))
        anchored.add(level)
    return doc.Table(tuple(heads), tuple(lines), "figures raw", anchor=f"data-{anchor}")


def _step_cell(name: str, row: Mapping[str, float]) -> str:
    if not math.isfinite(row.get(name, math.nan)):
        return ""
    return rounding.exact(row[name]) if name in COUNTED else rounding.plain(row[name])
