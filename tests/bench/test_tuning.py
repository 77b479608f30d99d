"""The search for settings over a simulated bench: what is proposed is measured, what is recommended is proved."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from loadframe.errors import StudyError
from loadframe.experiments.settings_search import TRIALS_ROUND
from loadframe.experiments.sweep import curve_of
from loadframe.model import CapacityObjective, SettingValue, StepRequest, TargetState
from loadframe.runs.folder import RunFolder
from loadframe.study import parse
from loadframe_tune import space as tuning_space
from loadframe_tune.proof import PROOF_ROUND
from loadframe_tune.search import Proposal, Search, Space
from loadframe_tune.trials import START_ROUND, Start, Trials, loads_within, measure_start, trials_in

from .conftest import STUDY
from .simulated_search import GB, SETTINGS, WITHIN, Answer, Simulated, after, busy, examined, idle, tune, with_index


def test_a_server_that_is_not_ours_is_restarted_for_a_trial_only_where_the_study_says_how(
    simulated: Simulated,
) -> None:
    effective: dict[str, SettingValue] = {"innodb_io_capacity": 200, "innodb_log_buffer_size": 16 << 20}
    theirs = 'target.attach="127.0.0.1"'
    varied, left_out = tuning_space.vary(simulated(idle, theirs).bench.study, effective, 16 * GB, [])
    assert [each.name for each in varied.dimensions] == ["innodb_io_capacity"]
    assert "target.restart" in left_out["innodb_log_buffer_size"]
    said = simulated(idle, theirs, 'target.config="/etc/x.cnf"', 'target.restart=["true"]').bench.study
    varied, _ = tuning_space.vary(said, effective, 16 * GB, [])
    assert {each.name for each in varied.dimensions} == effective.keys()


def test_better_settings_are_found_proved_and_written(simulated: Simulated, tmp_path: Path) -> None:
    found = tune(simulated(busy, *SETTINGS), tmp_path)
    assert found.end == "gained"
    assert found.proof is not None and found.proof.verdict.low > 1
    assert float(after(found)["innodb_io_capacity"]) >= 1600
    assert found.proof.verdict.ratio == pytest.approx(found.expected, rel=0.2)
    assert found.file_text.startswith("[mariadbd]\ninnodb_io_capacity = ")
    assert all(step > 0 for trial in found.trials for step in trial.steps)


def test_the_proof_and_what_is_told_of_it_are_made_of_blocks_after_the_search(
    simulated: Simulated, tmp_path: Path
) -> None:
    book = simulated(busy, *SETTINGS)
    found = tune(book, tmp_path)
    used = {number for trial in found.trials for number in trial.steps}
    later = [step for step in book.steps if step.round == PROOF_ROUND]
    assert not used.intersection(step.number for step in later)
    assert found.proof is not None and found.proof.fresh is not None
    assert len(later) == 2 * len(found.proof.verdict.levels) * (found.proof.verdict.blocks + found.proof.fresh.blocks)


def test_where_nothing_helps_nothing_is_recommended(simulated: Simulated, tmp_path: Path) -> None:
    found = tune(simulated(idle, *SETTINGS), tmp_path)
    assert found.end in ("nothing-better", "no-proven-gain")
    assert found.file_text == "" == found.file_name


def test_the_budget_holds_with_the_proof_in_it(simulated: Simulated, tmp_path: Path) -> None:
    book = simulated(busy, *SETTINGS, "measure.budget=60s")
    found = tune(book, tmp_path, trials=1000)
    assert book.budget.left_s() >= 0
    assert 3 < len(found.trials) < 40
    assert found.proof is not None and found.proof.verdict.blocks >= 3


def test_settings_that_the_target_does_not_survive_are_told(simulated: Simulated, tmp_path: Path) -> None:
    def kills(state: TargetState) -> bool:
        return bool(state.settings["innodb_adaptive_hash_index"])

    found = tune(simulated(busy, *SETTINGS, kills=kills), tmp_path)
    failed = [trial for trial in found.trials if trial.failed]
    assert failed and all(trial.ratio is None and "connection" in trial.failed for trial in failed)
    assert found.end == "gained" and "innodb_adaptive_hash_index" not in after(found)


def test_a_hopeless_trial_ends_after_its_first_level(simulated: Simulated, tmp_path: Path) -> None:
    def trap(state: TargetState, level: float) -> Answer:
        return 1000.0 * (0.3 if state.settings["innodb_adaptive_hash_index"] else 1), {}

    book = simulated(trap, *SETTINGS)
    found = tune(book, tmp_path)
    assert any(trial.ended_early for trial in found.trials)
    for trial in found.trials:
        assert trial.ended_early == bool(trial.changes.get("innodb_adaptive_hash_index"))
        assert len(trial.throughput) == (1 if trial.ended_early else 2)


def test_a_run_goes_on_from_the_trials_of_another(simulated: Simulated, tmp_path: Path) -> None:
    first = tune(simulated(busy, *SETTINGS), tmp_path, trials=8)
    book = simulated(busy, *SETTINGS)
    second = tune(book, tmp_path, trials=14, earlier=first.trials)
    assert {step.block for step in book.steps if step.round == TRIALS_ROUND} == set(range(9, 15))
    assert {step.block for step in book.steps if step.purpose == "trial"} == set(range(9, 15))
    assert second.trials[:8] == first.trials and len(second.trials) == 14
    assert [trial.number for trial in second.trials] == list(range(1, 15))


def test_trials_of_settings_that_are_not_varied_any_more_are_left_out(simulated: Simulated, tmp_path: Path) -> None:
    first = tune(simulated(busy, *SETTINGS), tmp_path, trials=6)
    strange = [replace(trial, changes={"sync_binlog": 1}) for trial in first.trials]
    assert len(tune(simulated(busy, *SETTINGS), tmp_path, trials=3, earlier=strange).trials) == 3


def cold_at_first(answer: Callable[[TargetState, float], Answer]) -> Callable[[TargetState, float], Answer]:
    """A server that serves a tenth in the first step after a restart, and is restarted for every other state."""
    states: list[TargetState] = []

    def cold(state: TargetState, level: float) -> Answer:
        first = states[-1:] != [state]
        states.append(state)
        throughput, metrics = answer(state, level)
        return throughput * (0.1 if first else 1.0), metrics

    return cold


def test_a_server_that_was_restarted_is_warmed_before_it_is_judged(simulated: Simulated, tmp_path: Path) -> None:
    book = simulated(cold_at_first(busy), *SETTINGS)
    book.warms = True
    found = tune(book, tmp_path)
    assert found.end == "gained" and all((trial.ratio or 0) > 0.8 for trial in found.trials)
    assert found.proof is not None and found.proof.verdict.ratio == pytest.approx(found.expected, rel=0.2)
    warming = {step.number for step in book.steps if step.purpose == "warming"}
    assert warming and not warming.intersection(number for trial in found.trials for number in trial.steps)
    counting = [step for step in book.steps if step.treatment == "A" and step.number not in warming]
    assert book.of("A") == counting
    assert sum(point.steps for point in curve_of(book.steps, book.bench.study, "A").points) == len(counting)
    cold = tune(simulated(cold_at_first(busy), *SETTINGS), tmp_path)
    assert any((trial.ratio or 0) < 0.2 for trial in cold.trials), "without it these are no steps to judge by"


def test_warming_is_within_the_budget(simulated: Simulated, tmp_path: Path) -> None:
    book = simulated(busy, *SETTINGS, "measure.budget=90s")
    book.warms = True
    book.take(StepRequest("A", 32, 1, 1))
    assert book.budget.cost_s([32]) == 3.0, "two steps of 1.5 s"
    found = tune(book, tmp_path, trials=1000)
    assert book.budget.left_s() >= 0
    assert 3 < len(found.trials) < 40
    assert found.proof is not None and found.proof.verdict.blocks >= 3


def stalled(answer: Callable[[TargetState, float], Answer], steps: int) -> Callable[[TargetState, float], Answer]:
    """A machine that stalls in so many steps at the beginning: a fortieth is served in them."""
    taken: list[float] = []

    def model(state: TargetState, level: float) -> Answer:
        taken.append(level)
        throughput, metrics = answer(state, level)
        return throughput / (40 if len(taken) <= steps else 1), metrics

    return model


@pytest.mark.parametrize("steps", [2, 4, 6, 8])
def test_a_stall_at_the_beginning_is_not_what_trials_are_held_against(
    simulated: Simulated, tmp_path: Path, steps: int
) -> None:
    """The start's first two blocks are eight steps: a part of one, one, one and a part, both."""
    found = tune(simulated(stalled(busy, steps), *SETTINGS), tmp_path)
    for trial in found.trials:
        asked = {"innodb_io_capacity": 200, "innodb_adaptive_hash_index": False, **trial.changes}
        truth, _ = busy(TargetState(asked, {}), 0)
        assert trial.ratio == pytest.approx(truth / 1000, rel=0.15)
    assert found.end == "gained" and found.proof is not None
    assert found.expected == pytest.approx(found.proof.verdict.ratio, rel=0.15)


def test_the_start_is_measured_again_only_where_something_is_odd(simulated: Simulated, tmp_path: Path) -> None:
    def slowly(state: TargetState, level: float) -> Answer:
        return busy(state, level)[0] ** 0.5, {}

    for model, blocks in ((slowly, {1, 2}), (busy, {1, 2, 3}), (stalled(busy, 8), {1, 2, 3, 4, 5})):
        book = simulated(model, *SETTINGS)
        tune(book, tmp_path)
        assert {step.block for step in book.steps if step.round == START_ROUND} == blocks


def test_a_machine_that_never_says_the_same_twice_is_searched_all_the_same(
    simulated: Simulated, tmp_path: Path
) -> None:
    chance = random.Random(3)
    found = tune(simulated(lambda state, level: (1000.0 * 4 ** chance.uniform(-3, 3), {}), *SETTINGS), tmp_path)
    assert len(found.trials) == 20 and found.file_text == ""


@pytest.mark.parametrize("dies", [False, True])
def test_where_the_start_cannot_be_measured_again_nothing_of_the_search_is_lost(
    simulated: Simulated, tmp_path: Path, dies: bool
) -> None:
    """From the first trial that looks too good on, until the first one after it, it serves nothing, or dies."""
    served: list[bool] = []

    def is_start(state: TargetState) -> bool:
        return state.settings["innodb_io_capacity"] == 200

    def stalls(state: TargetState) -> bool:
        served.append(is_start(state))
        return is_start(state) and sum(not each for each in served) == 2  # levels of the first trial

    def model(state: TargetState, level: float) -> Answer:
        return 1000.0 * (0.0 if not dies and stalls(state) else 1.0 if is_start(state) else 3.0), {}

    book = simulated(
        model,
        *SETTINGS,
        "tune.settings={innodb_io_capacity={from=200, to=6400}}",
        kills=stalls if dies else lambda state: False,
    )
    found = tune(book, tmp_path, trials=6)
    assert found.end == "gained" and len(found.trials) >= 6
    (warning,) = found.warnings
    why = "the driver lost its connection" if dies else "no request is served"
    assert "start could not be measured again" in warning and why in warning


def test_trials_before_the_start_is_measured_anew_are_told_again(simulated: Simulated, tmp_path: Path) -> None:
    """The machine is 1.9 times as slow at first: only the second trial looks too good."""
    first: list[str] = []

    def model(state: TargetState, level: float) -> Answer:
        first.append("")
        throughput = 1000.0 * (1.5 if state.settings["innodb_adaptive_hash_index"] else 1)
        return throughput / (1.9 if len(first) <= 8 else 1), {}

    run = RunFolder.create(tmp_path, "tuned")
    book = simulated(model, *SETTINGS, "tune.settings={innodb_adaptive_hash_index=[false, true]}")
    measure_start(book)
    start = Start.of(book.of("A"), (32.0,))
    space, _ = tuning_space.vary(book.bench.study, book.bench.use("A"), 16 * GB, ())
    trials = Trials(book, run, space, Search(space), (32.0,), book.bench.start_state, start, names={(0,): "A"})
    trials.begin([])
    trials.take(Proposal((0,), "start"))
    assert trials.done[0].ratio == pytest.approx(1.9, rel=0.1)
    trials.take(Proposal((1,), "search"))
    assert [trial.ratio for trial in trials.done] == pytest.approx([1, 1.5], rel=0.1)
    assert trials_in(run) == trials.done, "the later line of a trial counts"
    assert math.log(trials.search.expected_gain((1,))) == pytest.approx(math.log(1.5), rel=0.3)


def test_what_is_faster_and_breaks_the_objective_does_not_win(simulated: Simulated, tmp_path: Path) -> None:
    def tempting(state: TargetState, level: float) -> Answer:
        throughput, _ = busy(state, level)
        return throughput * (2 if state.settings["innodb_adaptive_hash_index"] else 1), {}

    free = tune(simulated(tempting, *SETTINGS, p95_ms=with_index(300)), tmp_path)
    assert after(free)["innodb_adaptive_hash_index"] is True and free.objective is None
    found = tune(simulated(tempting, *SETTINGS, WITHIN, p95_ms=with_index(300)), tmp_path)
    assert found.end == "gained" and "innodb_adaptive_hash_index" not in after(found)
    assert float(after(found)["innodb_io_capacity"]) >= 1600
    missing = [trial for trial in found.trials if trial.missed]
    assert missing and all(trial.changes["innodb_adaptive_hash_index"] for trial in missing)
    assert len(missing) <= len(found.trials) / 3, "the search turns back"
    assert all(trial.ended_early and trial.objective_use == 3 for trial in missing)
    assert "at 32: p95 latency 300 ms, more than 100 ms" in missing[0].missed
    assert found.objective is not None and found.objective.met


def test_the_proof_decides_what_no_trial_shows_clearly(simulated: Simulated, tmp_path: Path) -> None:
    def steady(state: TargetState, level: float) -> Answer:
        return 1000.0 * (1.5 if state.settings["innodb_adaptive_hash_index"] else 1), {}

    near = tune(simulated(steady, *SETTINGS, WITHIN, p95_ms=with_index(110)), tmp_path)
    assert not any(trial.missed for trial in near.trials)
    assert near.proof is not None and near.proof.verdict.decision == "better"
    assert near.end == "no-proven-gain" and near.file_text == ""
    assert near.objective is not None and not near.objective.met
    assert [(each.before.met, each.after and each.after.met) for each in near.objective.levels] == [(True, False)] * 2
    kept = tune(simulated(steady, *SETTINGS, WITHIN, p95_ms=with_index(95)), tmp_path)
    assert kept.end == "gained" and kept.objective is not None and kept.objective.met


def test_settings_are_judged_where_the_start_meets_the_objective(simulated: Simulated, tmp_path: Path) -> None:
    """Else nothing could win: past its capacity a closed loop has any latency."""
    found = tune(simulated(busy, *SETTINGS, WITHIN, p95_ms=lambda state, level: 10 * level), tmp_path)
    assert found.end == "gained" and found.proof is not None
    assert max(found.proof.verdict.levels) == 8
    assert found.objective is not None and max(each.load for each in found.objective.levels) == 8


def test_in_an_open_loop_also_at_the_first_level_that_the_start_misses(simulated: Simulated) -> None:
    book = simulated(idle, WITHIN, p95_ms=lambda state, level: 10 * level)
    curve, objective = examined(book).round.curve, CapacityObjective(latency_p95_ms=100)
    closed = loads_within(curve, book.steps, objective)
    assert [point.load for point in closed.points] == [4, 8]
    opened = loads_within(replace(curve, axis="rate"), book.steps, objective)
    assert [point.load for point in opened.points] == [4, 8, 16]
    nowhere = loads_within(curve, book.steps, CapacityObjective(latency_p95_ms=1))
    assert [point.load for point in nowhere.points] == [4]


def test_where_the_start_misses_everything_only_what_meets_wins(simulated: Simulated, tmp_path: Path) -> None:
    missing = simulated(busy, *SETTINGS, WITHIN, p95_ms=with_index(400, 400))
    found = tune(missing, tmp_path)
    assert found.end == "nothing-better" and not after(found)
    assert found.objective is not None and not found.objective.levels[0].before.met
    assert found.objective.levels[0].after is None
    cured = tune(simulated(busy, *SETTINGS, WITHIN, p95_ms=with_index(60, 400)), tmp_path)
    assert cured.end == "gained" and after(cured)["innodb_adaptive_hash_index"] is True


def test_what_misses_by_less_than_the_start_does_not_win(simulated: Simulated, tmp_path: Path) -> None:
    def tempting(state: TargetState, level: float) -> Answer:
        return 1000.0 * (2 if state.settings["innodb_adaptive_hash_index"] else 1), {}

    found = tune(simulated(tempting, *SETTINGS, WITHIN, p95_ms=with_index(160, 400)), tmp_path)
    assert found.end == "nothing-better" and not after(found)


def test_what_an_earlier_run_missed_is_not_forgotten(simulated: Simulated, tmp_path: Path) -> None:
    first = tune(simulated(busy, *SETTINGS, WITHIN, p95_ms=with_index(300)), tmp_path, trials=12)
    assert any(trial.missed for trial in first.trials)
    second = tune(simulated(busy, *SETTINGS, WITHIN), tmp_path, trials=12, earlier=first.trials)
    assert second.end == "gained" and "innodb_adaptive_hash_index" not in after(second)


START: dict[str, SettingValue] = {
    "innodb_buffer_pool_size": 1 << 27, "innodb_flush_log_at_trx_commit": 1, "innodb_doublewrite": True,
    "innodb_flush_method": "O_DIRECT",
}  # fmt: skip


def space(*overrides: str, memory_bytes: float | None = 16 * GB) -> tuple[Space, dict[str, str]]:
    return tuning_space.vary(parse(STUDY, overrides), START, memory_bytes, ())


def values(varied: tuple[Space, dict[str, str]]) -> dict[str, tuple[SettingValue, ...]]:
    return {each.name: each.values for each in varied[0].dimensions}


def test_durability_is_kept_unless_the_study_relaxes_it() -> None:
    kept, relaxed = space(), space("remedies.durability=relax")
    assert values(kept).keys() == {"innodb_buffer_pool_size", "innodb_flush_method"}
    assert "durability" in kept[1]["innodb_doublewrite"]
    assert set(values(kept)["innodb_flush_method"]) == {"fsync", "O_DIRECT"}
    assert set(values(relaxed)["innodb_flush_log_at_trx_commit"]) == {0, 1, 2}
    assert "O_DIRECT_NO_FSYNC" in values(relaxed)["innodb_flush_method"]


def test_no_setting_takes_more_than_half_of_the_memory() -> None:
    pool = values(space(memory_bytes=2 * GB))["innodb_buffer_pool_size"]
    assert max(map(float, pool)) == GB


def test_of_a_machine_whose_memory_nobody_knows_only_what_the_study_gives_is_taken() -> None:
    unknown = space(memory_bytes=None)
    assert "tune.settings" in unknown[1]["innodb_buffer_pool_size"]
    assert "innodb_flush_method" in values(unknown)
    given, _ = space('tune.settings={innodb_buffer_pool_size=["64M", "256M"]}', memory_bytes=None)
    assert given.fits(tuple(len(each.values) - 1 for each in given.dimensions))


def test_what_the_diagnosis_names_comes_first() -> None:
    varied, _ = tuning_space.vary(parse(STUDY), START, 16 * GB, ["innodb_flush_method"])
    assert varied.dimensions[0].name == "innodb_flush_method"


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (['tune.settings=["innodb_bufer_pool_size"]'], "no setting 'innodb_bufer_pool_size'"),
        (['tune.settings=["max_connections"]'], "safe range is not known"),
        (["tune.settings={innodb_flush_log_at_trx_commit=[1, 2]}"], "may give up durability"),
        (["tune.settings={sync_binlog=[1, 0]}"], "may give up durability"),
        (["tune.settings={sync_frm=[true, false]}"], "may give up durability"),
        (["tune.settings={innodb_io_capacity={from=900, to=200}}"], "is not a range"),
        (["tune.settings={innodb_io_capacity=[1]}"], "100 to"),
        (['tune.settings={innodb_flush_method={from="fsync", to="O_DIRECT"}}'], "is not a range"),
        (["target.kind=url", "target.settings={}"], "knows no settings to tune"),
    ],
)
def test_what_cannot_be_varied_is_refused(overrides: list[str], words: str) -> None:
    with pytest.raises(StudyError) as refused:
        tuning_space.check(parse(STUDY, overrides))
    assert words in str(refused.value)


def test_a_study_that_leaves_nothing_to_vary_is_refused() -> None:
    with pytest.raises(StudyError, match="no setting is left"):
        space('tune.settings=["innodb_doublewrite"]')
