"""The parts of the loop against a simulated target: blocks, bisection, proof, budget, remedies that do not help."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.experiments.examination import Examined, examine
from loadframe.experiments.proof import judged_levels, look_around, prove
from loadframe.experiments.sweep import measure_block, sweep
from loadframe.experiments.trials import try_remedies
from loadframe.model import Curve, Round, StepRequest, TargetState

Simulated = Callable[..., Bookkeeping]


def table_cache(state: TargetState, level: float) -> tuple[float, dict[str, float]]:
    """Five tables per job; requests are three times as slow once they do not fit into the cache."""
    size = float(state.settings["table_open_cache"])
    full = 5 * level > size
    throughput = 3000.0 if full else 9000.0
    return throughput, {
        "system.cpu.utilization": 0.5,
        "system.cpu.count": 2.0,
        "mariadb.open_tables": min(5 * level + 3, size),
        "mariadb.table_open_cache": size,
        "mariadb.opened_tables": 2 * throughput if full else 1.0,
        "target.memory.rss": 1e8 + 1e4 * size,
    }


def test_a_target_that_takes_a_minute_after_each_step_is_measured_for_twice_the_budget(simulated: Simulated) -> None:
    book = simulated(table_cache, "measure.budget=75s", step_s=61.0)
    curve = sweep(book, "A", round_number=1)
    assert len(book.steps) == 3 and len(curve.points) == 3, "not twelve"


def test_a_curve_has_two_levels_whatever_the_budget(simulated: Simulated) -> None:
    book = simulated(table_cache, "measure.budget=10s", step_s=61.0)
    assert len(sweep(book, "A", round_number=1).points) == 2


@pytest.mark.parametrize(("next_s", "steps"), [(0.0, 6), (60.0, 4)])
def test_a_third_block_beside_a_kept_change_is_not_worth_the_next_proof(
    simulated: Simulated, next_s: float, steps: int
) -> None:
    book = simulated(table_cache, "measure.budget=66s")
    book.take(StepRequest("A", 4, 1, 1))
    after = book.next_treatment("more", TargetState({"table_open_cache": 640}))
    taken = look_around(book, "A", after, [4], round_number=1, next_s=next_s)
    assert len(taken) == steps


def examined(book: Bookkeeping, curve: Curve) -> Examined:
    return examine(
        book.of("A"),
        number=1,
        treatment="A",
        state=book.bench.start_state,
        effective=book.bench.use("A"),
        curve=curve,
        target_kind="mariadb",
        highest_level=book.bench.study.levels[-1],
    )


def test_every_block_holds_every_level_once_in_its_own_order(simulated: Simulated) -> None:
    book = simulated(table_cache)
    sweep(book, "A", round_number=1)
    orders = []
    for block in (1, 2, 3):
        levels = [step.level for step in book.steps if step.block == block and step.level in (4, 8, 16, 32)]
        assert sorted(levels) == [4, 8, 16, 32]
        orders.append(levels)
    assert len({tuple(order) for order in orders}) > 1


def test_levels_that_were_measured_to_forecast_from_are_not_measured_again(simulated: Simulated) -> None:
    book = simulated(table_cache)
    for block in (1, 2, 3):
        measure_block(book, "A", [4, 8], block, round_number=1)
    assert {step.level for step in book.steps} == {4, 8}
    sweep(book, "A", round_number=1)
    for level in (4, 8, 16, 32):
        blocks = [step.block for step in book.steps if step.level == level]
        assert len(set(blocks)) == len(blocks) >= 3


def test_the_cliff_is_bracketed_between_the_levels_of_the_study(simulated: Simulated) -> None:
    book = simulated(table_cache)
    curve = sweep(book, "A", round_number=1)
    assert curve.cliff is not None
    assert 8 <= curve.cliff.from_load <= 12.8 <= curve.cliff.to_load <= 16
    assert curve.cliff.to_load / curve.cliff.from_load <= 1.2


def test_noise_is_answered_with_more_blocks_and_the_budget_ends_them(simulated: Simulated) -> None:
    def flat(state: TargetState, level: float) -> tuple[float, dict[str, float]]:
        return 5000.0, {}

    noisy = simulated(flat, noise=0.3)
    sweep(noisy, "A", round_number=1)
    assert max(step.block for step in noisy.steps) == 5
    calm = simulated(flat, noise=0.001)
    sweep(calm, "A", round_number=1)
    assert max(step.block for step in calm.steps) == 3
    poor = simulated(flat, "measure.budget=10s", noise=0.3)
    sweep(poor, "A", round_number=1)
    assert max(step.block for step in poor.steps) == 2


def test_the_loop_finds_the_cache_proves_the_gain_and_confirms(simulated: Simulated) -> None:
    book = simulated(table_cache)
    found = examined(book, sweep(book, "A", round_number=1))
    assert found.round.findings[0].id == "mariadb.table_open_cache"
    reached = found.round.findings[0].reached_at
    assert reached is not None
    assert reached.load == pytest.approx(12.2, rel=0.1)
    tried = try_remedies(book, found, set())
    assert tried.kept is not None
    name, state = tried.kept
    assert name == "B"
    assert float(state.settings["table_open_cache"]) >= 1.2 * 5 * 32
    assert tried.round.findings[0].status == "confirmed"
    trial = tried.round.tried[0]
    assert trial.verdict.low > 2.5
    assert trial.remedy.price.memory_after_bytes is not None


def test_a_remedy_without_effect_is_taken_back_and_its_finding_refuted(simulated: Simulated) -> None:
    def stubborn(state: TargetState, level: float) -> tuple[float, dict[str, float]]:
        full = level > 12
        return (3000.0 if full else 9000.0), {
            "mariadb.open_tables": min(5 * level + 3, float(state.settings["table_open_cache"])),
            "mariadb.table_open_cache": float(state.settings["table_open_cache"]),
            "mariadb.opened_tables": 6000.0 if full else 1.0,
        }

    book = simulated(stubborn)
    found = examined(book, sweep(book, "A", round_number=1))
    tried = try_remedies(book, found, set())
    assert tried.kept is None
    assert tried.round.findings[0].status == "refuted"
    assert book.bench.use("A")["table_open_cache"] == 64
    assert book.bench.used[-1] == "A"  # type: ignore[attr-defined]


def test_a_remedy_that_falls_short_is_made_larger_before_it_is_judged(simulated: Simulated) -> None:
    """The cache is full at the lowest level, so how many tables are wanted cannot be estimated: 64 x 4 is too few."""
    book = simulated(table_cache, "load.levels=[100, 200, 400]")
    found = examined(book, sweep(book, "A", round_number=1))
    tried = try_remedies(book, found, set())
    assert tried.kept is not None
    assert float(tried.kept[1].settings["table_open_cache"]) >= 5 * 400 + 3
    assert tried.round.tried[0].verdict.ratio == pytest.approx(3, rel=0.1)
    assert {step.purpose for step in book.steps} == {"curve", "sizing", "proof"}
    assert {(step.round, step.block) for step in book.steps if step.purpose == "sizing"} == {(1, None)}
    judged = {step.treatment for step in book.steps if step.purpose != "sizing"}
    assert not {"B", "C"} & judged, "sizes that fell short are not judged"
    assert tried.kept[0] == "D"


def test_a_server_that_will_not_start_with_a_remedy_keeps_its_state_and_says_why(simulated: Simulated) -> None:
    book = simulated(table_cache, refuses=lambda state: float(state.settings["table_open_cache"]) > 64)
    found = examined(book, sweep(book, "A", round_number=1))
    tried = try_remedies(book, found, set())
    assert tried.kept is None
    assert "will not start" in tried.round.untried[0].because
    assert tried.round.findings[0].status == "suspected"


def test_layers_that_the_study_does_not_allow_are_shown_not_tried(simulated: Simulated) -> None:
    book = simulated(table_cache, 'remedies.allow=["process"]')
    found = examined(book, sweep(book, "A", round_number=1))
    tried = try_remedies(book, found, set())
    assert tried.round.tried == ()
    assert "remedies.allow" in tried.round.untried[0].because


def test_a_proof_alternates_and_pairs_its_blocks(simulated: Simulated) -> None:
    book = simulated(table_cache)
    book.next_treatment("bigger", TargetState({"table_open_cache": 400}, {}))
    ((proved, steps),) = prove(book, [("A", "B")], [16, 32], round_number=1)
    verdict, ratios = proved.verdict, proved.levels
    assert verdict.decision == "better"
    assert verdict.ratio == pytest.approx(3, rel=0.1)
    assert {ratio.load for ratio in ratios} == {16, 32}
    for block in range(1, verdict.blocks + 1):
        mine = [(step.treatment, step.level) for step in steps if step.block == block]
        assert sorted(mine) == [("A", 16), ("A", 32), ("B", 16), ("B", 32)]


def test_the_knee_after_is_measured_beside_the_knee_before(simulated: Simulated) -> None:
    book = simulated(table_cache)
    found = examined(book, sweep(book, "A", round_number=1))
    before = len(book.steps)
    tried = try_remedies(book, found, set())
    trial = tried.round.tried[0]
    taken = book.steps[before:]
    both = {step.level for step in taken if step.treatment == "A"}
    assert both == {step.level for step in taken if step.treatment == "B"} >= {4, 8, 16, 32}
    assert {row.load for row in trial.levels} == both
    ratios = {row.load: row.ratio for row in trial.levels}
    assert ratios[8] == pytest.approx(1, rel=0.1), "below the bend nothing changes"
    assert ratios[32] == pytest.approx(3, rel=0.1)
    after = sweep(book, "B", round_number=2)
    assert after.knee is None
    assert len(book.steps) == before + len(taken), "the second sweep has all its levels already"


def test_a_short_budget_leaves_the_state_before_unlooked_at(simulated: Simulated) -> None:
    """Just enough for the curve, the proof, and a look at the state after it."""
    book = simulated(table_cache, "measure.budget=50s")
    found = examined(book, sweep(book, "A", round_number=1))
    tried = try_remedies(book, found, set())
    assert tried.kept is not None
    sweep(book, "B", round_number=2)
    assert {step.level for step in book.of("B")} >= {4, 8, 16, 32}
    assert book.budget.left_s() > -5


def test_two_equal_treatments_are_rarely_told_apart(simulated: Simulated) -> None:
    """At 95 % confidence, looks included: at most 4 of 60 (the chance of more is below 20 % even at the full 5 %)."""
    wrong = 0
    for seed in range(60):
        book = simulated(table_cache, noise=0.05, random=random.Random(seed))
        book.next_treatment("the same", TargetState({"table_open_cache": 64}, {}))
        ((proved, _),) = prove(book, [("A", "B")], [16, 32], round_number=1)
        wrong += proved.verdict.decided
    assert wrong <= 4


def test_a_remedy_is_judged_where_the_load_is_past_the_bend(simulated: Simulated) -> None:
    book = simulated(table_cache)
    curve = sweep(book, "A", round_number=1)
    assert curve.cliff is not None
    levels = judged_levels(curve, curve.cliff.from_load)
    assert all(level > curve.cliff.from_load for level in levels)
    assert levels[-1] == 32
    assert len(judged_levels(curve, None)) == 2
    assert judged_levels(curve, 1000) == (32,)


def test_levels_that_crowd_around_a_cliff_do_not_pull_the_middle_to_it(simulated: Simulated) -> None:
    curve = sweep(simulated(table_cache), "A", round_number=1)
    point = curve.points[0]
    crowded = replace(curve, points=tuple(replace(point, load=load) for load in (4, 11, 12, 15, 16, 19, 32, 64, 256)))
    assert judged_levels(crowded, 10.5) == (64, 256)


def test_looks_that_the_budget_will_not_come_to_do_not_make_the_others_dearer(simulated: Simulated) -> None:
    book = simulated(table_cache, "measure.budget=30s", "measure.blocks={min=3,max=8}", noise=0.05)
    book.next_treatment("larger", TargetState({"table_open_cache": 400}, {}))
    cost_s = book.budget.cost_s([16, 32, 16, 32])
    ((proved, _),) = prove(book, [("A", "B")], [16, 32], round_number=1)
    assert f"blocks 3 to {min(8, int(30 / cost_s))}" in proved.verdict.method
    assert int(30 / cost_s) < 8, "else the budget is no matter here"


FULL_FROM_THE_START = "load.levels=[100, 200, 400]"
"""The cache is full at the lowest level: how many tables are wanted cannot be estimated."""


def cache_size(state: TargetState) -> float:
    return float(state.settings["table_open_cache"])


def test_what_was_proved_is_told_at_once(simulated: Simulated) -> None:
    """An interrupt after a proof must find its verdict noted."""
    book = simulated(table_cache)
    found = examined(book, sweep(book, "A", round_number=1))
    noted: list[Round] = []

    def interrupt(one: Round) -> None:
        noted.append(one)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        try_remedies(book, found, set(), interrupt)
    (one,) = noted
    assert one.tried[0].kept
    assert one.findings[0].status == "confirmed"


def test_a_remedy_under_which_the_server_dies_is_shown_and_the_state_before_is_back(simulated: Simulated) -> None:
    book = simulated(table_cache, kills=lambda state: cache_size(state) > 64)
    found = examined(book, sweep(book, "A", round_number=1))
    tried = try_remedies(book, found, set())
    assert tried.kept is None
    assert "lost its connection" in tried.round.untried[0].because
    assert tried.round.findings[0].status == "suspected"
    assert book.bench.use("A")["table_open_cache"] == 64


def test_a_size_that_the_server_refuses_leaves_the_one_before_to_be_judged(simulated: Simulated) -> None:
    book = simulated(table_cache, FULL_FROM_THE_START, refuses=lambda state: cache_size(state) > 1000)
    found = examined(book, sweep(book, "A", round_number=1))
    tried = try_remedies(book, found, set())
    (trial,) = tried.round.tried
    assert cache_size(book.bench.states[trial.treatment_after]) == 260  # type: ignore[attr-defined]
    assert "260" in trial.remedy.title
    assert "full again at 260" in trial.note
    assert tried.round.findings[0].status == "suspected", "a remedy that fell short refutes nothing"


def test_the_remedy_that_is_reported_is_the_one_that_was_applied(simulated: Simulated) -> None:
    book = simulated(table_cache, "load.levels=[20000, 40000, 80000]")
    found = examined(book, sweep(book, "A", round_number=1))
    tried = try_remedies(book, found, set())
    (trial,) = tried.round.tried
    asked = next(change.after for change in trial.remedy.changes if change.setting == "table_open_cache")
    assert asked == book.bench.states[trial.treatment_after].settings["table_open_cache"]  # type: ignore[attr-defined]


def test_an_open_question_is_asked_on_while_there_is_time(simulated: Simulated) -> None:
    """The time kept for a look around after a kept remedy is no reason to leave its proof undecided."""
    book = simulated(table_cache, "measure.budget=60s", noise=0.25)
    book.next_treatment("the same", TargetState({"table_open_cache": 64}, {}))
    ((proved, steps),) = prove(book, [("A", "B")], [16, 32], round_number=1)
    assert proved.verdict.decision == "no-proven-difference"
    assert max(step.block for step in steps) == 5


def test_repetitions_end_with_the_budget(simulated: Simulated) -> None:
    def disturbed(state: TargetState, level: float) -> tuple[float, dict[str, float]]:
        return 5000.0, {}

    book = simulated(disturbed, "measure.budget=2s", flags=("stranger",))
    sweep(book, "A", round_number=1)
    assert len(book.steps) == 8, "two blocks of four levels, and none of them again"
