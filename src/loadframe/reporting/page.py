"""The case study as one HTML file that needs nothing else: no network, no second file, and no script but flame.js, by
which boxes of a flame graph are enlarged, and without which everything can be read.

The template decides what is shown where; the sentences are those of *words.py and answers.py, the pictures charts.py's.
User text (the question, names, paths) is escaped by the template engine, in SVG by markup.py and Vega's engine, in JSON
by _embedded_json. The page's Content-Security-Policy allows its own script and style, by their hashes, nothing else.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from loadframe.diagnosis.bend import bend_of
from loadframe.errors import RunError
from loadframe.formats.named_files import write_whole
from loadframe.metrics import is_known
from loadframe.metrics import metric as metric_of
from loadframe.model import Investigation, ProfileKind, Round
from loadframe.reporting import (
    alternatives,
    answers,
    change_words,
    charts,
    compared_answers,
    facts,
    finding_words,
    flame,
    flame_difference,
    forecasts,
    latencies,
    names,
    profiles,
    quality_words,
    reaching,
    resource_table,
    rounding,
    sources,
    stages,
    verdict_words,
    words,
)
from loadframe.reporting.fleet_report import drivers_sentence, fleet_limits_sentences
from loadframe.reporting.html import own_scripts
from loadframe.reporting.html import read as _read
from loadframe.reporting.markup import policy
from loadframe.reporting.next_step import next_step
from loadframe.units import show, show_metric
from loadframe.version import __version__

STEP_COLUMNS = {
    "step": "step",
    "level": "level",
    "block": "block",
    "throughput": "{work}/s",
    "latency_p95_ms": "p95 in ms",
    "latency_p999_ms": "p99.9 in ms",
    "errors": "errors",
}
P999 = "latency_p999_ms"
PROFILE_TABLES: Mapping[ProfileKind, str] = {
    "cpu": "CPU time of the target, by what it was spent on",
    "threads": "Threads of the target on average, by what they were doing",
}
COUNTED = frozenset({"step", "level", "block", "errors"})
"""Columns that were set or counted, not measured: shown as they are."""


def write_page(inv: Investigation, path: Path) -> None:
    """Write the case study to `path`, whole or not at all: a page that is there already stays until the new one is
    complete. RunError where it cannot be written (full disk, no permission, no such folder)."""
    try:
        write_whole(path, render_page(inv).encode())
    except OSError as error:
        raise RunError(
            f"The report cannot be written to {path}: {error.strerror or error}.",
            remedy=f"Free some disk space or choose another place, then run `loadframe report {shlex.quote(inv.run)}`.",
        ) from error


def render_page(inv: Investigation) -> str:
    """The page as one string of HTML."""
    drawn, work, difference = charts.page_charts(inv), words.work_unit(inv), flame_difference.of(inv)
    return _rendered(
        "page.html",
        inv,
        inv=inv,
        unit=words.axis_unit(inv),
        work=work,
        charts=drawn,
        evidence_charts=[chart for name, chart in drawn.items() if name.startswith("evidence")],
        footprint_charts=[chart for name, chart in drawn.items() if name.startswith("footprint")],
        findings=[(finding, facts.round_of(inv, finding), out) for finding, out in facts.findings_and_ruled_out(inv)],
        refuted=facts.refuted_findings(inv),
        ruled_out_alone=facts.ruled_out_alone(inv),
        trials=[(round_, trial) for round_ in inv.rounds for trial in round_.tried],
        net=facts.net_changes(inv),
        given_up=facts.gives_up(inv),
        untried=change_words.untried(inv),
        clamped=list(dict.fromkeys(one for round_ in inv.rounds for one in round_.clamped)),
        profile_tables=[
            (kind, shown, what) for kind, what in PROFILE_TABLES.items() if (shown := profiles.of_kind(inv, kind))
        ],
        profile_rest=profiles.of_kind(inv, "cpu", "rest"),
        flames=[(one, number) for number, one in enumerate(profiles.with_flame(inv), start=1)],
        difference=difference,
        difference_svg=flame_difference.svg(inv, difference) if difference else "",
        difference_sentence=flame_difference.sentence(inv, difference) if difference else "",
        flame_script=Markup(_read("flame.js")),
        resource_lines=resource_table.table(inv),
        resource_anchor=_resource_anchor(inv),
        steps_anchor=f"data-{inv.rounds[-1].number}" if inv.rounds and inv.rounds[-1].footprint else "",
        limits=facts.ranked_limits(inv.rounds[-1].limits) if inv.rounds else (),
        places=[(anchor, name) for anchor, name, there in _places(inv) if there],
        tables=[
            *(_steps_table(one, str(one.number), _state_title(inv, one), work) for one in inv.rounds if one.footprint),
            *(
                _steps_table(one.round, f"side-by-side-{number}", f"{one.name}: {one.round.treatment}", work)
                for number, one in enumerate(inv.alternatives, start=1)
                if one.round.footprint
            ),
        ],
    )


def _state_title(inv: Investigation, one: Round) -> str:
    """ "Before (state A)": what the steps of a round are of, and the letter that they have in the files."""
    label = facts.label_of(inv, one) or f"round {one.number}"
    return f"{label[:1].upper()}{label[1:]} (state {one.treatment})"


def _places(inv: Investigation) -> list[tuple[str, str, bool]]:
    """What is where on the page: anchor, name, whether it is there."""
    last = inv.rounds[-1] if inv.rounds else None
    return [
        ("curves", "Curves", bool(inv.rounds)),
        ("side-by-side-1", "Side by side", bool(inv.alternatives)),
        ("finding", "Cause and evidence", bool(facts.findings_and_ruled_out(inv))),
        ("changes", "Changes and proof", any(one.tried for one in inv.rounds)),
        ("next", "Limits", bool(last and last.limits)),
        ("time", "Where the time goes", bool(inv.profiles)),
        ("quality", "Run quality", True),
        ("settings", "Settings to copy", bool(facts.net_changes(inv))),
        ("reproduce", "Reproduce", True),
        ("data", "Every step", any(one.footprint for one in inv.rounds)),
    ]


def _rendered(name: str, record: Investigation, **shown: Any) -> str:
    """A template with what all of them need, and what it shows besides."""
    return (
        _environment()
        .get_template(name)
        .render(
            record=record,
            css=Markup(_read("page.css")),
            **{"tables": (), **shown},
            figure_script=Markup(_read("figures.js")),
            policy=policy(own_scripts(), [_read("page.css")]),
            study_path=shlex.quote(f"{record.run}/study.toml"),
            run_path=shlex.quote(record.run),
            version=__version__,
        )
    )


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_read),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_present,
    )
    environment.globals.update(
        alternatives=alternatives,
        answers=answers,
        next_step=next_step,
        words=words,
        compared_answers=compared_answers,
        drivers_sentence=drivers_sentence,
        fleet_limits_sentences=fleet_limits_sentences,
        change_words=change_words,
        quality_words=quality_words,
        finding_words=finding_words,
        verdict_words=verdict_words,
        reaching=reaching,
        facts=facts,
        bend_of=bend_of,
        rounding=rounding,
        stages=stages,
        profiles=profiles,
        flame=flame,
        forecasts=forecasts,
        latencies=latencies,
        names=names,
        resource_table=resource_table,
        sources=sources,
    )
    environment.globals.update(show=show, show_metric=show_metric)
    environment.filters.update(json=_embedded_json, anchor=_anchor)
    return environment


def _present(value: Any) -> Any:
    """Nothing prints as nothing, not as the word None."""
    return "" if value is None else value


def _embedded_json(text: str) -> Markup:
    """JSON inside a data block: "<" must not be able to end it."""
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def _anchor(level: float) -> str:
    """A level as part of an anchor's name."""
    return f"{level:g}".replace(".", "_").replace("+", "")


def _resource_anchor(inv: Investigation) -> str:
    """Of the steps that the table of resources shows."""
    level = resource_table.level(inv)
    return f"data-{inv.rounds[0].number}-{_anchor(level)}" if level is not None else ""


def _steps_table(round_: Round, anchor: str, title: str, work: str) -> dict[str, Any]:
    """Every step of a round: its number, level, block, throughput, p95 and p99.9 latency, errors, and every metric that
    is not zero throughout. Without p99.9 where no step tells it."""
    names = facts.footprint_metrics(round_.footprint)
    rows = sorted(round_.footprint, key=lambda row: (row.get("level", 0.0), row.get("block", 0.0)))
    columns = {
        name: head.format(work=work)
        for name, head in STEP_COLUMNS.items()
        if name != P999 or any(P999 in row for row in rows)
    }
    anchored: set[float] = set()
    lines: list[dict[str, Any]] = []
    for row in rows:
        level = row.get("level", 0.0)
        own = "" if level in anchored else f"data-{anchor}-{_anchor(level)}"
        metrics = [show_metric(name, row[name]) if name in row else "" for name in names]
        lines.append({"id": own, "cells": _cells(row, columns) + metrics})
        anchored.add(level)
    heads = [(name, metric_of(name).what if is_known(name) else "") for name in names]
    return {"anchor": anchor, "title": title, "heads": heads, "lines": lines, "columns": list(columns.values())}


def _cells(row: Mapping[str, float], columns: Iterable[str]) -> list[str]:
    """A step's own numbers; those that the row does not have stay empty."""
    return [
        (rounding.exact if name in COUNTED else rounding.plain)(row[name])
        if math.isfinite(row.get(name, math.nan))
        else ""
        for name in columns
    ]
