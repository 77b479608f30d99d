"""Alternatives against a simulated target, the order of blocks, and runs that were measured apart."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from loadframe.analysis import comparison
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.errors import RunError, UsageError
from loadframe.experiments.comparing import alternatives, runs
from loadframe.experiments.proof import orders
from loadframe.model import Host, Step, TargetState, Verdict, by_block
from loadframe.reporting.verdict_words import comparison_sentence
from loadframe.runs.folder import RunFolder, Treatment
from loadframe.study import Study, parse

from .conftest import STUDY

Simulated = Callable[..., Bookkeeping]
ALTERNATIVES = 'alternative=[{name="large",target={settings={table_open_cache=400}}},{name="same"}]'


def by_cache(state: TargetState, level: float) -> tuple[float, dict[str, float]]:
    return (1500.0 if float(state.settings["table_open_cache"]) >= 400 else 1000.0), {}


def test_orders_are_drawn_and_the_third_is_the_first_one_reversed() -> None:
    drawn = list(islice(orders(random.Random(1), [("A", "B")], [1.0, 2.0]), 40))
    for order in drawn:
        assert sorted(order) == [("A", 1.0), ("A", 2.0), ("B", 1.0), ("B", 2.0)]
        assert [name for name, _ in order] in (["A", "A", "B", "B"], ["B", "B", "A", "A"])
    assert drawn[2] == drawn[0][::-1]
    first = [order[0][0] for order in drawn]
    assert {one == two for one, two in zip(first[3::2], first[4::2], strict=False)} == {True, False}


def test_each_alternative_gets_its_verdict_against_the_study(simulated: Simulated) -> None:
    large, same = alternatives(simulated(by_cache, ALTERNATIVES))
    assert (large.after, large.verdict.decision) == ("large", "better")
    assert large.verdict.low < 1.5 < large.verdict.high
    assert (same.after, same.verdict.decision) == ("same", "no-proven-difference")
    assert [row.load for row in large.levels] == [4, 8, 16, 32]


@pytest.mark.parametrize(("worth", "near"), [(1.05, True), (2.0, False)])
def test_a_ratio_that_was_only_just_decided_may_be_overstated(simulated: Simulated, worth: float, near: bool) -> None:
    def model(state: TargetState, level: float) -> tuple[float, dict[str, float]]:
        return (1000.0 * worth if float(state.settings["table_open_cache"]) >= 400 else 1000.0), {}

    book = simulated(model, ALTERNATIVES, "load.levels=[4]", "measure.blocks={min=3,max=20}")
    large, same = alternatives(book)
    assert (large.verdict.decision, large.verdict.may_overstate) == ("better", near)
    assert not same.verdict.may_overstate
    assert ("may be overstated" in comparison_sentence(large)) == near


def test_cold_ones_are_held_against_the_cold_one_of_the_study(simulated: Simulated) -> None:
    book = simulated(by_cache, ALTERNATIVES, "measure.cold=true")
    found = alternatives(book)
    assert [(one.before, one.after) for one in found] == [
        ("as given", "large"),
        ("as given", "same"),
        ("as given, cold", "large, cold"),
        ("as given, cold", "same, cold"),
    ]
    assert [one.verdict.decision == "better" for one in found] == [True, False, True, False]
    for steps in list(by_block(book.steps).values())[:3]:
        assert sorted(step.treatment for step in steps if step.level == 4) == list("ABCDEF"), "all in every block"


def test_a_side_that_was_started_is_warmed_before_its_step_counts(simulated: Simulated) -> None:
    book = simulated(by_cache, ALTERNATIVES, "load.levels=[4]")
    book.warms = True
    (large, _) = alternatives(book)
    assert [step.purpose == "warming" for step in book.steps[:2]] == [True, False]
    assert large.verdict.blocks == len([step for step in book.steps if step.treatment == "B" and step.counts])


def test_what_is_decided_takes_no_further_steps(simulated: Simulated) -> None:
    book = simulated(by_cache, ALTERNATIVES, "measure.blocks={min=3,max=6}", "load.levels=[4]")
    large, same = alternatives(book)
    assert (large.verdict.decision, large.verdict.blocks) == ("better", 3)
    assert same.verdict.blocks == 6
    assert [len(steps) for steps in by_block(book.steps).values()] == [3, 3, 3, 2, 2, 2]
    assert large.levels[0].before == pytest.approx(1000, rel=0.05)


def test_the_budget_is_for_all_of_them(simulated: Simulated) -> None:
    """50 s are 33 steps of 1.5 s, 11 blocks of three treatments."""
    book = simulated(by_cache, ALTERNATIVES, "measure.budget=50s", "measure.blocks={min=3,max=50}", "load.levels=[4]")
    first, second = alternatives(book, enough=lambda _: False)
    assert 9 <= first.verdict.blocks == second.verdict.blocks <= 11


def test_blocks_end_when_the_caller_has_enough(simulated: Simulated) -> None:
    seen: list[Verdict] = []

    def enough(verdict: Verdict) -> bool:
        seen.append(verdict)
        return comparison.margin(verdict, 0.1) != "cannot-tell"

    book = simulated(by_cache, 'alternative=[{name="same"}]', "measure.blocks={min=3,max=30}")
    (found,) = alternatives(book, enough=enough)
    assert comparison.margin(found.verdict, 0.1) == "proven-not-worse"
    assert found.verdict.blocks == seen[-1].blocks < 30


# --- runs ---


@pytest.fixture
def a_run(opened: Callable[[Study], RunFolder], make_step: Callable[..., Step]) -> Callable[..., RunFolder]:
    """A finished run with six blocks of 2 % noise."""

    def make(
        name: str, factor: float, *, levels: tuple[float, ...] = (1, 2, 4), axis: str = "concurrency"
    ) -> RunFolder:
        chance = np.random.default_rng(sum(map(ord, name)))
        run = opened(parse(STUDY, [f"study.name={name}", f"load.axis={axis}"]))
        run.write_record("host.json", "host", Host("one", "6.1", "cpu", 2, 2**30, ""))
        run.append_line("treatments.jsonl", "treatment", Treatment("A", "as given", TargetState()))
        for block in range(1, 7):
            for level in levels:
                throughput = 1000 * level**0.5 * factor * float(np.exp(chance.normal(0, 0.02)))
                run.append_line("steps.jsonl", "step", make_step(level, throughput, block=block))
        return run

    return make


@pytest.mark.parametrize(("factor", "decision"), [(1.15, "better"), (0.6, "worse"), (1.03, "no-proven-difference")])
def test_runs_are_compared_at_common_levels_near_capacity(
    a_run: Callable[..., RunFolder], factor: float, decision: str
) -> None:
    found = runs(a_run("one", 1.0), a_run("two", factor, levels=(2, 4, 8)))
    assert found.verdict.levels == (4,)
    assert [row.load for row in found.levels] == [2, 4]
    assert "near capacity" in found.notes[0]
    assert found.verdict.decision == decision
    assert found.verdict.low < factor < found.verdict.high


@pytest.mark.long
def test_what_runs_differ_by_is_learnt_from_equal_runs_next_to_them(a_run: Callable[..., RunFolder]) -> None:
    """The factor of each run is its session's; a run of another study tells nothing of them."""
    one, two = a_run("one", 1.0), a_run("two", 1.08)
    calm = [a_run(f"calm-{number}", 1.0) for number in range(10)]
    found = runs(one, two)
    assert (found.verdict.decision, found.verdict.sessions and found.verdict.sessions.learnt_from) == ("better", 11)
    for number, run in enumerate(calm):
        factor = 1.2 if number % 2 else 1 / 1.2
        lines = [replace(step, throughput=factor * step.throughput) for step in run.steps()]
        (run.path / "steps.jsonl").unlink()
        for step in lines:
            run.append_line("steps.jsonl", "step", step)
    assert runs(one, two).verdict.decision == "no-proven-difference"


def test_steps_that_only_warm_a_server_are_no_measurements_of_a_run(a_run: Callable[..., RunFolder]) -> None:
    one, two = a_run("one", 1.0), a_run("two", 1.0)
    before = runs(one, two).verdict
    for number, step in enumerate(one.steps()[:6], start=99):
        one.append_line("steps.jsonl", "step", replace(step, number=number, purpose="warming", throughput=1.0))
    assert runs(one, two).verdict == before


def test_runs_without_anything_in_common_are_refused(a_run: Callable[..., RunFolder]) -> None:
    one = a_run("one", 1.0)
    with pytest.raises(RunError, match="no level in common"):
        runs(one, a_run("two", 1.0, levels=(3,)))
    with pytest.raises(RunError, match="grows active_jobs"):
        runs(one, a_run("three", 1.0, axis="active_jobs"))
    with pytest.raises(UsageError, match="no finished step of treatment 'B'"):
        runs(one, one, treatments=("A", "B"))


@pytest.mark.long
def test_states_that_were_held_against_each_other_are_not_compared_the_other_way_round() -> None:
    """It would be a second comparison of the two, as if they had been measured one after the other."""
    run = RunFolder.open(Path(__file__).parents[1] / "data" / "runs" / "job-queue")
    assert runs(run, run, treatments=("A", "B")).verdict.block_ratios
    with pytest.raises(RunError, match="A and B against each other in this order"):
        runs(run, run, treatments=("B", "A"))
