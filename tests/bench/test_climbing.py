"""A ladder on a simulated target: what is kept, what is reverted, what the whole is, and who needs whom."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import islice

import pytest

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.experiments.climbing import Climbed, LadderStates, climb
from loadframe.experiments.proof import orders
from loadframe.experiments.side_by_side import changed
from loadframe.model import Rung, TargetState
from loadframe.study.declaration import ChangeTable
from one_truth import check_is_one_gain

Simulated = Callable[..., Bookkeeping]

RUNGS = {
    "pool": "innodb_buffer_pool_size=268435456",
    "harm": "thread_cache_size=0",
    "flush": "innodb_io_capacity=2000",
    "nothing": "join_buffer_size=1048576",
}
CHANGES = (
    "change=[" + ",".join(f'{{name="{name}",target={{settings={{{value}}}}}}}' for name, value in RUNGS.items()) + "]"
)
ONE_LEVEL = "load.levels=[8]"


def gains(state: TargetState, level: float) -> tuple[float, dict[str, float]]:
    """The pool gives 3 times, the flush 1.5 times, harm takes a fifth."""
    settings, factor = state.settings, 1.0
    factor *= 3.0 if "innodb_buffer_pool_size" in settings else 1.0
    factor *= 0.8 if "thread_cache_size" in settings else 1.0
    factor *= 1.5 if "innodb_io_capacity" in settings else 1.0
    return 1000.0 * factor, {}


def needs_the_other(state: TargetState, level: float) -> tuple[float, dict[str, float]]:
    """The pool and the flush are worth twice their product, together."""
    throughput, _ = gains(state, level)
    return throughput * (2.0 if {"innodb_buffer_pool_size", "innodb_io_capacity"} <= set(state.settings) else 1.0), {}


def climbed(book: Bookkeeping, *, keep_all: bool = False) -> Climbed:
    return climb(book, LadderStates(book), keep_all=keep_all)


def named(found: Climbed) -> dict[str, Rung]:
    return {rung.change: rung for rung in found.rungs}


def test_what_helps_is_kept_and_everything_else_taken_back(simulated: Simulated) -> None:
    found = climbed(simulated(gains, CHANGES, ONE_LEVEL))
    rungs = named(found)
    assert found.kept == ("pool", "flush")
    assert [rung.comparison.verdict.decision for rung in found.rungs if rung.comparison] == [
        "better",
        "worse",
        "better",
        "no-proven-difference",
    ]
    assert rungs["harm"].share is None and rungs["harm"].comparison.fresh is None
    assert found.total is not None
    assert found.total.reported.low < 4.5 < found.total.reported.high
    shares = [rungs[name].share or math.nan for name in found.kept]
    assert sum(shares) == pytest.approx(1)
    assert shares[0] == pytest.approx(math.log(3) / math.log(4.5), abs=0.05)
    assert rungs["pool"].comparison is not None and rungs["pool"].comparison.fresh is not None
    assert rungs["pool"].comparison.levels == (), "those of the trial are of other blocks than what is told"
    product = math.prod(rung.reported.ratio for rung in found.rungs if rung.kept and rung.reported)
    assert product == pytest.approx(found.total.reported.ratio)
    check_is_one_gain(found.total)
    top = rungs["pool"].at_top
    assert top is not None and top.low < 3 < top.high
    assert found.interactions == ()
    assert found.missing == ()


def test_a_change_leaves_the_rest_of_the_state_as_it_is() -> None:
    start = TargetState({"a": 1}, {"RLIMIT_NOFILE": 100}, host={"vm.swappiness": 10}, cpus={"cage.cpus": "0"})
    change = ChangeTable.model_validate({"name": "b", "target": {"settings": {"b": 2}}, "cage": {"cpus": "1"}})
    after = TargetState({"a": 1, "b": 2}, {"RLIMIT_NOFILE": 100}, host={"vm.swappiness": 10}, cpus={"cage.cpus": "1"})
    assert changed(start, change, {}) == after
    both = {"vm.swappiness": 10, "vm.dirty_ratio": 5}
    assert changed(start, change, {"vm.dirty_ratio": 5}).host == both


def test_a_rung_is_tried_on_top_of_what_was_kept_only(simulated: Simulated) -> None:
    book = simulated(gains, CHANGES, ONE_LEVEL)
    climbed(book)
    states = book.bench.states.values()  # type: ignore[attr-defined]
    assert not any({"thread_cache_size", "innodb_io_capacity"} <= set(state.settings) for state in states)


def test_all_are_kept_when_asked_and_told_apart_all_the_same(simulated: Simulated) -> None:
    found = climbed(simulated(gains, CHANGES, ONE_LEVEL), keep_all=True)
    rungs = named(found)
    assert found.kept == tuple(RUNGS)
    assert all(rung.comparison and rung.comparison.fresh is None for rung in found.rungs)
    assert rungs["harm"].reported is not None and rungs["harm"].reported.decision == "worse"
    assert sum(rung.share or math.nan for rung in found.rungs) == pytest.approx(1)
    assert (rungs["harm"].share or 0) < 0


def test_changes_that_need_each_other_are_named(simulated: Simulated) -> None:
    found = climbed(simulated(needs_the_other, CHANGES, ONE_LEVEL))
    (one,) = found.interactions
    assert (one.change, one.partner) == ("pool", "flush")
    assert one.verdict.low < 2 < one.verdict.high


def test_the_partner_is_looked_for_among_several(simulated: Simulated) -> None:
    found = climbed(simulated(needs_the_other, CHANGES, ONE_LEVEL), keep_all=True)
    assert ("pool", "flush") in [(one.change, one.partner) for one in found.interactions]
    assert ("pool", "nothing") not in [(one.change, one.partner) for one in found.interactions]


def test_a_change_that_the_target_refuses_is_told_and_left_out(simulated: Simulated) -> None:
    found = climbed(simulated(gains, CHANGES, ONE_LEVEL, refuses=lambda state: "innodb_io_capacity" in state.settings))
    assert found.kept == ("pool",)
    assert named(found)["flush"].refused == "the server will not start with this"
    assert named(found)["flush"].comparison is None


def test_nothing_is_kept_where_nothing_helps(simulated: Simulated) -> None:
    found = climbed(simulated(lambda state, level: (1000.0, {}), CHANGES, ONE_LEVEL, noise=0.0))
    assert (found.kept, found.total) == ((), None)


def test_without_time_for_the_whole_it_is_the_product_of_the_trials_and_said_so(simulated: Simulated) -> None:
    """Four changes in two blocks each are 16 steps of 1.5 s."""
    found = climbed(
        simulated(gains, CHANGES, ONE_LEVEL, "measure.budget=25s", "measure.blocks={min=2,max=2}", noise=0.001)
    )
    assert found.kept == ("pool", "flush")
    assert found.total is not None and "product" in found.total.reported.method
    assert sum(rung.share or 0 for rung in found.rungs) == pytest.approx(1)
    assert "was not measured in blocks of its own" in found.missing[0]
    assert "may be overstated" in found.missing[0] and found.total.reported.may_overstate


def test_every_rung_is_noted_when_it_is_known(simulated: Simulated) -> None:
    noted: list[Climbed] = []
    book = simulated(gains, CHANGES, ONE_LEVEL)
    climb(book, LadderStates(book), keep_all=False, note=noted.append)
    assert [len(one.rungs) for one in noted[:4]] == [1, 2, 3, 4]
    assert noted[-1].total is not None


def test_after_a_start_the_caches_are_warmed_by_a_step_that_counts_for_nothing(simulated: Simulated) -> None:
    """Here the target starts for every other state, and its first step is a tenth as fast."""
    fresh: list[TargetState] = []

    def cold(state: TargetState, level: float) -> tuple[float, dict[str, float]]:
        first = fresh[-1:] != [state]
        fresh.append(state)
        throughput, metrics = gains(state, level)
        return throughput * (0.1 if first else 1.0), metrics

    book = simulated(cold, CHANGES, ONE_LEVEL)
    book.warms = True
    found = climbed(book)
    assert found.kept == ("pool", "flush")
    assert found.total is not None and found.total.reported.low < 4.5 < found.total.reported.high
    assert "warming" in {step.purpose for step in book.steps}
    fresh.clear()
    assert climbed(simulated(cold, CHANGES, ONE_LEVEL)).kept != found.kept, "without it they are no steps to judge by"


def test_states_between_which_nothing_restarts_stand_together(simulated: Simulated) -> None:
    """The pool and thread_cache_size are sized at the start, the other two are not."""
    book = simulated(gains, CHANGES, ONE_LEVEL)
    states = LadderStates(book)
    groups = states.groups([(), ("pool",), ("pool", "flush"), ("flush",), ("flush", "nothing"), ("harm",)])
    assert sorted(len(group) for group in groups) == [1, 2, 3]
    for order in islice(orders(random.Random(1), groups, [8.0]), 10):
        names = [name for name, _ in order]
        for group in groups:
            places = sorted(names.index(name) for name in group)
            assert places == list(range(places[0], places[0] + len(group)))


def test_of_two_states_each_comes_first_as_often() -> None:
    groups = [["A", "B"], ["C"], ["D", "E"]]
    drawn = [[name for name, _ in order] for order in islice(orders(random.Random(2), groups, [1.0]), 400)]
    for one, other in (("A", "B"), ("A", "C"), ("B", "E")):
        assert sum(names.index(one) < names.index(other) for names in drawn) == pytest.approx(200, abs=20)


def test_a_budget_that_two_blocks_of_each_change_exceed_is_said(simulated: Simulated) -> None:
    said = climbed(simulated(gains, CHANGES, ONE_LEVEL, "measure.budget=10s", "measure.blocks={min=2,max=2}")).missing[
        -1
    ]
    assert said.startswith("It took 24 s, and the budget is 10 s: each change has 2 blocks at least")


def test_a_start_that_serves_nothing_is_left_by_what_ends_that_and_no_ratio_is_told(simulated: Simulated) -> None:
    def model(state: TargetState, level: float) -> tuple[float, dict[str, float]]:
        throughput, _ = gains(state, level)
        fails = "innodb_buffer_pool_size" not in state.settings
        return (0.0, {"workload.errors": 500.0}) if fails else (throughput, {})

    found = climbed(simulated(model, CHANGES, ONE_LEVEL))
    rungs = named(found)
    assert found.kept == ("pool", "flush")
    for told in (rungs["pool"].reported, found.total and found.total.reported):
        assert told is not None and (told.decision, told.has_ratio) == ("better", False)
        assert "nothing was served in" in told.method
    assert rungs["flush"].reported is not None and rungs["flush"].reported.low < 1.5 < rungs["flush"].reported.high
    assert [rung.share for rung in found.rungs] == [None] * 4, "shares of what has no ratio say nothing"
