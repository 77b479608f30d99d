"""What a treatment leaves behind for the next one: a step after each change of treatment is left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from loadframe.analysis.carryover import carried_over
from loadframe.bench.bench import RealBench
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.experiments.proof import prove
from loadframe.experiments.sweep import sweep
from loadframe.model import StepRequest, TargetState

Simulated = Callable[..., Bookkeeping]
OTHER = TargetState({"table_open_cache": 128})


def owing(simulated: Simulated, *overrides: str, noise: float = 0.02) -> Bookkeeping:
    """Two states that serve as much, 15,358/s; the one given pays for what the other one has left: its first step after
    that serves 3,268/s."""
    served: list[TargetState] = []

    def model(state: TargetState, level: float) -> tuple[float, dict[str, float]]:
        pays = served[-1:] == [OTHER] and state != OTHER
        served.append(state)
        return (3268.0 if pays else 15_358.0), {}

    book = simulated(model, "load.levels=[8]", *overrides, noise=noise)
    book.next_treatment("the other", OTHER)
    return book


def test_what_one_treatment_leaves_behind_is_no_gain_of_it(simulated: Simulated) -> None:
    """Without a step left out the other one seems to be worth four times as much."""
    book = owing(simulated, "measure.blocks={min=3,max=10}")
    ((alone, _),) = prove(book, [("A", "B")], [8], round_number=1)
    assert alone.verdict.ratio > 2
    book.washes = True
    ((again, taken),) = prove(book, [("A", "B")], [8], round_number=2)
    assert again.verdict.ratio == pytest.approx(1, abs=0.05)
    assert all(step.counts for step in taken)


def test_a_step_is_left_out_after_each_change_of_treatment_alone(simulated: Simulated) -> None:
    book = owing(simulated, "load.levels=[4, 8]")
    book.washes = True
    windows = list[Any]()
    take_step = book.bench.take_step

    def noted(request: StepRequest) -> Any:
        windows.append((request.purpose, request.window_s))
        return take_step(request)

    book.bench.take_step = noted  # type: ignore[method-assign]
    sweep(book, "A", round_number=1)
    assert "warming" not in {purpose for purpose, _ in windows}
    prove(book, [("A", "B")], [4, 8], round_number=1)
    for before, step in zip(book.steps, book.steps[1:], strict=False):
        assert (step.purpose == "warming") == (step.treatment != before.treatment)
    assert {window for purpose, window in windows if purpose == "warming"} == {0.5}
    assert {(step.round, step.block) for step in book.steps if not step.counts} == {(None, None)}
    assert {step.round for step in book.steps if step.counts} == {1}


def test_where_the_budget_has_no_room_for_it_blocks_come_first(simulated: Simulated) -> None:
    book = owing(simulated, "measure.budget=20s")
    book.washes = True
    prove(book, [("A", "B")], [8], round_number=1)
    assert book.steps and all(step.counts for step in book.steps)
    book = owing(simulated, "measure.budget=20s")
    book.washes = book.warms = True
    prove(book, [("A", "B")], [8], round_number=1)
    assert not all(step.counts for step in book.steps), "where starts are warmed a change is washed out, too"


def test_what_was_left_out_is_told(simulated: Simulated) -> None:
    book = owing(simulated, "measure.blocks={min=10,max=10}")
    book.washes = True
    prove(book, [("A", "B")], [8], round_number=1)
    (found,) = carried_over([replace(step, number=number) for number, step in enumerate(book.steps)])
    assert (found.treatment, found.left_out) == ("A", True)


def test_where_each_step_is_prepared_or_lasts_until_its_work_is_done_none_is_left_out() -> None:
    def carries_over(*, cache: bool = False, cold_of: str = "", to_completion: bool = False) -> bool:
        bench = SimpleNamespace(
            is_cache=lambda name: cache,
            _treatments={"A": SimpleNamespace(cold_of=cold_of)},
            workload=SimpleNamespace(runs_to_completion=to_completion),
        )
        bench.is_prepared = lambda name: RealBench.is_prepared(cast(RealBench, bench), name)
        return RealBench.carries_over(cast(RealBench, bench), "A")

    assert carries_over()
    assert not carries_over(cache=True)
    assert not carries_over(cold_of="B")
    assert not carries_over(to_completion=True)
