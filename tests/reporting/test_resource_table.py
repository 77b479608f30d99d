"""The table of resources has use, saturation and errors of both states, and says what nothing counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from loadframe.metrics import is_known
from loadframe.model import Investigation
from loadframe.reporting import document as doc
from loadframe.reporting import time_spent
from loadframe.reporting.reports import render_page


def with_metrics(inv: Investigation, *, before: Mapping[str, float], after: Mapping[str, float]) -> Investigation:
    rounds = tuple(
        replace(one, footprint=tuple({**row, **added} for row in one.footprint))
        for one, added in zip(inv.rounds, (before, after), strict=True)
    )
    return replace(inv, rounds=rounds)


def table_of(inv: Investigation) -> tuple[doc.Words, dict[doc.Words, tuple[doc.Words, ...]]]:
    """How to read the table, and the cells of each resource."""
    (group,) = time_spent.use(inv)
    assert isinstance(group, doc.Group)
    note, table = group.blocks
    assert isinstance(note, doc.Prose) and isinstance(table, doc.Table)
    return note.words, {row.cells[0]: row.cells[1:] for row in table.lines}


def test_every_metric_of_the_table_is_registered() -> None:
    assert all(is_known(name) for name in time_spent.metrics())


def test_both_states_stand_side_by_side(farm: Investigation) -> None:
    busy = with_metrics(
        farm,
        before={"system.disk.busy": 0.97, "system.disk.queue": 4.0, "workload.errors": 3.0},
        after={"system.disk.busy": 0.2, "system.disk.queue": 0.5, "workload.errors": 0.0},
    )
    note, lines = table_of(busy)
    use, saturation, errors = lines["Busiest disk"]
    assert isinstance(use, tuple) and use[0] == doc.Span("97 % \u2192 20 %", "high", "#data-1-320")
    assert isinstance(saturation, tuple) and saturation[0] == doc.Span("4 \u2192 0.5", "", "#data-1-320")
    assert errors == doc.Span("not counted", "note")
    assert doc.plain(note).startswith("At 320 active jobs, before \u2192 after the changes")
    assert "Lock that one request holds" not in lines, "it was not measured"


def test_a_resource_of_which_nothing_was_measured_has_no_row(examples: dict[str, Investigation]) -> None:
    assert [*time_spent.use(examples["bare"])] == []
    assert 'class="stack resources"' not in render_page(examples["bare"])


def test_what_one_state_did_not_measure_is_said(farm: Investigation) -> None:
    half = with_metrics(farm, before={"system.disk.busy": 0.5}, after={})
    _, lines = table_of(half)
    assert doc.plain(lines["Busiest disk"][0]).startswith("50 % \u2192 not measured")
