"""A window in which too little happens decides nothing: it is made longer as far as the budget goes, else flagged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.errors import TooFewRequests
from loadframe.experiments.proof import verdict_on
from loadframe.experiments.stopping import concluding
from loadframe.experiments.sweep import curve_of, sweep
from loadframe.model import OUT_OF_BALANCE, TOO_FEW, CapacityObjective, Step, StepRequest, TargetState
from loadframe_tune.trials import measure_start, side

Simulated = Callable[..., Bookkeeping]
StepMaker = Callable[..., Step]


def flat(state: TargetState, level: float) -> tuple[float, dict[str, float]]:
    return 10.0, {}


def windows(book: Bookkeeping) -> list[tuple[float, float]]:
    bench: Any = book.bench
    found: list[tuple[float, float]] = bench.windows_s
    return found


def test_a_window_is_made_longer_and_stays_so_for_all_that_is_compared_there(simulated: Simulated) -> None:
    book = simulated(flat, needs_window_s=lambda treatment, level: 40.0 if level == 4 else 0.0)
    step = book.take(StepRequest("A", 4, 1, 1))
    assert step.counts and step.throughput > 0
    assert windows(book) == [(4, 1.0), (4, 50.0)]
    assert [TOO_FEW in one.flags for one in book.steps] == [True, False], "the first one stays in the run"
    assert book.of("A") == [step], "and counts for nothing"
    assert book.budget.cost_s([4]) == pytest.approx(50.5), "the next one is known to cost as much as this"
    book.take(StepRequest("A", 8, 1, 2))
    book.take(StepRequest(book.next_treatment("faster", TargetState({})), 4, 1, 2))
    assert windows(book)[2:] == [(8, 1.0), (4, 50.0)]


def test_a_curve_of_a_service_that_is_slow_for_one_client_has_no_cliff(simulated: Simulated) -> None:
    """Requests of 1.8 s, windows of 1 s: 20 requests one after the other take 36 s, of many clients 9 s."""
    book = simulated(flat, needs_window_s=lambda treatment, level: max(36 * 4 / level, 9.0))
    curve = sweep(book, "A", round_number=1)
    assert [point.load for point in curve.points] == [4, 8, 16, 32]
    assert all(point.throughput == pytest.approx(10, rel=0.1) for point in curve.points)
    assert curve.shape != "cliff"
    assert not [words for words in curve.warnings if words.startswith("too-few")]


def test_a_level_beyond_the_budget_is_told_and_is_no_part_of_the_curve(simulated: Simulated) -> None:
    book = simulated(flat, "measure.budget=100s", needs_window_s=lambda treatment, level: 900.0 if level == 32 else 0.0)
    curve = sweep(book, "A", round_number=1)
    assert [point.load for point in curve.points] == [4, 8, 16]
    (said,) = (words for words in curve.warnings if words.startswith("too-few"))
    assert "at 32 " in said and "900 s" in said
    assert curve_of(book.steps, book.bench.study, "A").warnings == curve.warnings


@pytest.mark.parametrize("measure", [partial(sweep, treatment="A", round_number=1), measure_start])
def test_where_no_window_decides_anything_the_command_says_what_would(
    simulated: Simulated, measure: Callable[[Bookkeeping], object]
) -> None:
    book = simulated(flat, "measure.budget=100s", needs_window_s=lambda treatment, level: 36_000 / level)
    with pytest.raises(TooFewRequests, match="9,000 s at 4") as raised:
        measure(book)
    assert "measure.budget" in raised.value.remedy
    assert raised.value.needed_s == {4: 9000, 8: 4500, 16: 2250, 32: 1125}


def test_a_window_is_made_longer_three_times_at_most(simulated: Simulated) -> None:
    """A target that gets slower and slower is never waited for without an end."""
    needs = iter([2.0, 4.0, 8.0, 16.0, 32.0])
    book = simulated(flat, needs_window_s=lambda treatment, level: next(needs))
    assert not book.take(StepRequest("A", 8, 1, 1)).counts
    assert [window_s for _, window_s in windows(book)] == [1.0, 2.5, 5.0, 10.0]


def test_no_ratio_comes_from_a_level_with_too_little_in_it(make_step: StepMaker) -> None:
    """The state before answers no request within its windows at 8, and looks 100 times slower there."""
    steps = [
        make_step(level, throughput, treatment=treatment, block=block, flags=flags)
        for block in range(1, 5)
        for treatment, level, throughput, flags in (
            ("A", 4, 100.0 + block, ()),
            ("B", 4, 105.0 - block, ()),
            ("A", 8, 0.0, (TOO_FEW,)),
            ("B", 8, 100.0 + block, ()),
        )
    ]
    verdict = verdict_on(steps, "A", "B")
    assert (verdict.decision, verdict.levels) == ("no-proven-difference", (4.0,))
    assert "left out: too few requests or response times in a window at 8" in verdict.method
    alone = verdict_on([step for step in steps if step.level == 8], "A", "B")
    assert (alone.decision, alone.ratio) == ("cannot-tell", 1), "nothing is said of a hundred times"


def test_no_response_time_is_shown_where_it_is_not_known_and_the_curve_says_so(
    simulated: Simulated, make_step: StepMaker
) -> None:
    study = simulated(flat).bench.study
    steps = [
        make_step(level, 10.0 * level, treatment="A", block=block, flags=(OUT_OF_BALANCE,) if level == 32 else ())
        for level in (4, 8, 16, 32)
        for block in (1, 2)
    ]
    curve = curve_of(steps, study, "A")
    assert [point.latency_p95_ms is None for point in curve.points] == [False, False, False, True]
    (said,) = (words for words in curve.warnings if words.startswith("out-of-balance"))
    assert "at 32 " in said and "no response time is shown" in said


def test_a_level_at_which_requests_piled_up_misses_the_objective_of_a_curve(
    simulated: Simulated, make_step: StepMaker
) -> None:
    """Its response time is not known for it grew without end; without the level the capacity would be "16 or more"."""
    study = simulated(flat, "objective.within.latency_p95_ms=1000").bench.study
    steps = [
        make_step(level, 10.0 * level, treatment="A", block=block, flags=(OUT_OF_BALANCE,) if level == 32 else ())
        for level in (4, 8, 16, 32)
        for block in (1, 2)
    ]
    curve = curve_of(steps, study, "A")
    assert curve.capacity is not None and curve.capacity.load == 16
    assert not any("still meets" in words for words in curve.warnings), curve.warnings
    assert curve.points[-1].latency_p95_ms is None
    asked = CapacityObjective(latency_p95_ms=1000.0)
    one_known = [replace(steps[-1], flags=()), steps[-1], steps[-1]]
    assert side(asked, one_known, 32).latency_p95_ms == steps[-1].latency.p95_ms
    assert not side(asked, one_known, 32).met and side(asked, steps, 32).latency_p95_ms == 0


def test_a_later_state_that_no_window_judges_ends_no_investigation() -> None:
    """A gain may have been proved before."""
    said: list[str] = []
    found: list[str] = ["a step of the first state"]
    book: Any = SimpleNamespace(of=lambda _: found, progress=SimpleNamespace(say=said.append), steps=[])
    error = TooFewRequests("too-few: no window", remedy="Give measure.budget 9 min.", needed_s={1.0: 20.0})
    with concluding(book):
        raise error
    assert said == ["too-few: no window. Give measure.budget 9 min. This is concluded from the steps before."]
    found.clear()
    with pytest.raises(TooFewRequests), concluding(book):
        raise error
