"""Alternatives beside the target: which steps are held against which, and what that proves."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.experiments.side_by_side import _paired, declare, measure_side_by_side
from loadframe.model import Step, TargetState

Simulated = Callable[..., Bookkeeping]
LARGE = 'alternative=[{name="large",target={settings={table_open_cache=400}}}]'


def by_cache(state: TargetState, level: float) -> tuple[float, Mapping[str, float]]:
    return (2000.0 if state.settings["table_open_cache"] == 400 else 1000.0), {}


class Run:
    """Keeps nothing."""

    def append_line(self, *_: object) -> None: ...


def ratio(steps: list[Step]) -> float:
    paired = _paired(steps, "A", "B")
    before, after = ([step.throughput for step in paired if step.treatment == name] for name in "AB")
    return sum(after) / sum(before)


def test_what_is_measured_side_by_side_is_held_against_each_other_and_nothing_else(simulated: Simulated) -> None:
    """The target goes on to be measured, in rounds of its own, with blocks of the same numbers."""
    book = simulated(by_cache, LARGE, noise=0.0)
    names = declare(book)
    measure_side_by_side(book, Run(), names)  # type: ignore[arg-type]
    assert {(step.round, step.purpose) for step in book.steps} == {(None, "side by side")}
    assert ratio(book.steps) == pytest.approx(2)
    later = [
        Step(**{**_fields(step), "round": 1, "purpose": "proof", "throughput": 10.0})
        for step in book.steps
        if step.treatment == "A"
    ]
    assert ratio([*book.steps, *later]) == pytest.approx(2)


def test_how_often_it_is_measured_does_not_depend_on_what_it_shows(simulated: Simulated) -> None:
    """Looking after every block would call one in eight pairs different that are the same."""
    clear, none = (simulated(model, LARGE, noise=0.02) for model in (by_cache, lambda state, level: (1000.0, {})))
    for book in (clear, none):
        measure_side_by_side(book, Run(), declare(book))  # type: ignore[arg-type]
    assert len(clear.steps) == len(none.steps)


def test_without_alternatives_nothing_is_measured(simulated: Simulated) -> None:
    book = simulated(by_cache)
    measure_side_by_side(book, Run(), declare(book))  # type: ignore[arg-type]
    assert not book.steps


def _fields(step: Step) -> dict[str, object]:
    return {name: getattr(step, name) for name in step.__slots__}
