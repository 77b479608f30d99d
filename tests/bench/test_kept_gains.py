"""What is told of a kept gain: fresh blocks, or that they are missing; and the error that all remedies share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from loadframe.analysis.sequential import ErrorBudget
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.diagnosis import judging
from loadframe.experiments import fresh, writing
from loadframe.experiments.sweep import sweep
from loadframe.experiments.trials import Tried, prove_total, try_remedies
from loadframe.experiments.writing import write_down
from loadframe.model import Step, TargetState, Verdict
from loadframe.progress import Silent
from loadframe.reporting import change_words, verdict_words
from loadframe.runs.folder import RunFolder, Treatment
from loadframe.runs.lines import read_host

from .test_loop_simulated import examined, table_cache
from .test_series_simulated import Answer, caged, in_cage

Simulated = Callable[..., Bookkeeping]


@dataclass
class Phases(Silent):
    """Knows what is being measured."""

    words: str = ""

    def phase(self, words: str, steps: int) -> None:
        self.words = words

    @property
    def proving(self) -> bool:
        return self.words.startswith("proving")

    @property
    def again(self) -> bool:
        return "again, in fresh blocks" in self.words


def farm(simulated: Simulated, *overrides: str, proving: float = 1.0, again: float = 1.0) -> tuple[Bookkeeping, Tried]:
    """A table cache whose larger size is worth three times as much, times so much while it is proved, and while it is
    measured once more."""
    phases = Phases()

    def lucky(state: TargetState, level: float) -> Answer:
        throughput, metrics = table_cache(state, level)
        luck = proving if phases.proving else again if phases.again else 1.0
        return throughput * (luck if float(state.settings["table_open_cache"]) > 64 else 1.0), metrics

    book = simulated(lucky, *overrides)
    book.progress = phases
    return book, try_remedies(book, examined(book, sweep(book, "A", round_number=1)), set())


def test_what_is_told_of_a_kept_gain_is_from_blocks_that_decided_nothing(simulated: Simulated) -> None:
    book, tried = farm(simulated, proving=1.5)
    trial = tried.round.tried[0]
    assert trial.kept and trial.fresh is not None
    assert trial.verdict.ratio == pytest.approx(4.5, rel=0.1)
    assert trial.reported.ratio == pytest.approx(3, rel=0.1)
    (variant,) = writing.variants_of([tried.round], book.steps, None)
    assert variant.reported == trial.fresh and variant.levels == trial.levels
    assert (trial.verdict.may_overstate, trial.reported.may_overstate) == (True, False)
    judged = {row.load: row.ratio for row in trial.levels}
    assert judged[32] == pytest.approx(3, rel=0.1)
    decided = [step for step in book.steps if step.number in trial.deciding]
    assert len(decided) == 2 * len(trial.verdict.levels) * trial.verdict.blocks
    assert "may be overstated" not in verdict_words.gain_sentence(trial.reported)
    assert "the deciding blocks gave 4.5 times" in change_words.trial_sentence(trial)


def test_where_no_time_is_left_it_is_said_whence_the_number_is(simulated: Simulated) -> None:
    _, tried = farm(simulated, "measure.budget=50s", proving=1.5)
    trial = tried.round.tried[0]
    assert trial.kept and trial.fresh is None
    assert trial.reported.may_overstate
    (variant,) = writing.variants_of([tried.round], (), None)
    assert variant.reported.may_overstate
    assert "from the deciding blocks, may be overstated" in verdict_words.gain_sentence(variant.reported)


def test_how_many_fresh_blocks_there_are_is_settled_before_them(simulated: Simulated) -> None:
    for again in (1.0, 0.4):
        _, tried = farm(simulated, again=again)
        trial = tried.round.tried[0]
        assert trial.fresh is not None
        assert trial.fresh.blocks == fresh.wanted([trial.verdict], 5)
        assert "one look, at the end" in trial.fresh.method


def test_what_fresh_blocks_prove_to_be_worse_is_taken_back(simulated: Simulated) -> None:
    book, tried = farm(simulated, again=0.1)
    trial = tried.round.tried[0]
    assert trial.fresh is not None
    assert (trial.verdict.decision, trial.fresh.decision, trial.kept) == ("better", "worse", False)
    assert tried.kept is None
    assert book.bench.used[-1] == "A"  # type: ignore[attr-defined]


def test_a_gain_that_fresh_blocks_do_not_prove_again_is_not_kept(simulated: Simulated) -> None:
    book, tried = farm(simulated, again=0.335)
    trial = tried.round.tried[0]
    assert (trial.verdict.decision, trial.reported.decision) == ("better", "no-proven-difference")
    assert tried.kept is None and not trial.kept
    assert tried.round.findings[0].status == "suspected", "neither helped nor refuted: the two contradict each other"
    assert book.bench.used[-1] == "A"  # type: ignore[attr-defined]
    assert "reverted, as fresh blocks did not prove the gain again" in change_words.trial_sentence(trial)
    assert book.error.left == pytest.approx(0.025), "nothing was proved, and its level of the error is spent"


def little(simulated: Simulated, budget: str, *, wave: float) -> tuple[Bookkeeping, Tried]:
    """A table cache whose larger size is worth 12 %, in blocks of which every second one is `wave` times as fast on
    both sides, so that their ratios agree."""
    phases, taken = Phases(), 0

    def model(state: TargetState, level: float) -> Answer:
        nonlocal taken
        _, metrics = table_cache(state, level)
        proof = phases.proving or phases.again
        taken += proof
        fast = wave if proof and (taken - 1) // 4 % 2 else 1.0
        return 3000 * fast * (1.12 if float(state.settings["table_open_cache"]) > 64 else 1.0), metrics

    book = simulated(model, f"measure.budget={budget}", noise=0.002)
    book.progress = phases
    return book, try_remedies(book, examined(book, sweep(book, "A", round_number=1)), set())


@pytest.mark.parametrize("budget", ["40s", "300s"])
def test_a_gain_within_the_noise_of_its_blocks_is_not_kept(simulated: Simulated, budget: str) -> None:
    """With room for fresh blocks and without."""
    _, tried = little(simulated, budget, wave=1.15)
    trial = tried.round.tried[0]
    assert trial.verdict.decision == "better" and trial.reported.floor is not None
    assert trial.reported.ratio < trial.reported.floor[1]
    assert (trial.fresh is None) == (budget == "40s")
    assert tried.kept is None and not trial.kept
    assert all(finding.status == "suspected" for finding in tried.round.findings)
    why = judging.IN_NOISE if trial.fresh is None else judging.IN_FRESH_NOISE
    assert f"reverted, as {why}" in change_words.trial_sentence(trial)


@pytest.mark.parametrize(("wave", "kept"), [(1.0, True), (1.15, False)])
def test_what_is_left_of_the_budget_is_for_fresh_blocks_where_nothing_is_kept_without_them(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch, wave: float, kept: bool
) -> None:
    """Else the curve of what is kept comes first."""
    reserves_s = []

    def no_room(*_: object, reserve_s: float, **__: object) -> list[Step]:
        reserves_s.append(reserve_s)
        return []

    monkeypatch.setattr(fresh, "measure_again", no_room)
    _, tried = little(simulated, "300s", wave=wave)
    assert tried.round.tried[0].kept == kept
    assert (reserves_s[0] > 0) == kept


@pytest.mark.long
def test_the_curves_of_a_report_have_nothing_of_the_blocks_that_decided(simulated: Simulated, tmp_path: Path) -> None:
    """Else the peak that leads the answer would be chosen by them. Five blocks decide, three are fresh."""
    book, tried = farm(simulated, "measure.blocks={min=5,max=6}", proving=1.5)
    assert tried.kept is not None
    run = RunFolder.create(tmp_path, "kept")
    run.write_record("study.json", "study", book.bench.study.resolved())
    run.write_record("bench.json", "bench", {"seed": 1, "version": "", "axis_unit": "jobs"})
    run.write_record("host.json", "host", read_host())
    for name, state in book.bench.states.items():  # type: ignore[attr-defined]
        run.append_line("treatments.jsonl", "treatment", Treatment(name, name, state))
    for step in book.steps:
        run.add_step(step, b"", np.array([1.0], dtype=np.float32))
    after = replace(tried.round, number=2, treatment=tried.kept[0], tried=(), findings=())
    told = write_down(run, [tried.round, after])
    assert told.gain == tried.round.tried[0].fresh
    highest = told.rounds[1].curve.points[-1]
    assert (highest.load, highest.throughput) == (32, pytest.approx(9000, rel=0.05))


def test_the_whole_gain_of_several_remedies_is_measured_in_as_many_blocks_as_were_settled(
    simulated: Simulated,
) -> None:
    book, tried = farm(simulated)
    one = tried.round
    assert tried.kept is not None
    prove_total(book, [one, one], tried.kept[0])
    total = [step for step in book.steps if step.round == 2]
    told, levels = one.tried[0].reported, one.tried[0].verdict.levels
    blocks = fresh.wanted([told, told], book.bench.study.measure.blocks.max)
    assert Counter((step.treatment, step.level) for step in total) == {
        (name, level): blocks for name in ("A", tried.kept[0]) for level in levels
    }


# --- one error for all ---


def held(state: TargetState, level: float) -> Answer:
    """Nothing helps, and both limits seem to be full all the time."""
    _, metrics = caged(TargetState({}, {"io.wiops": 60, "io.wbps": 180_000}), level)
    return 30.0, metrics


def test_all_remedies_of_an_investigation_share_one_error(simulated: Simulated) -> None:
    book = simulated(held, noise=0.03)
    levels = []
    tried = try_remedies(book, in_cage(book), set())
    error = ErrorBudget(0.05)
    for trial in tried.round.tried:
        level = (1 - trial.verdict.confidence) / 2
        levels.append(level)
        assert level == pytest.approx(error.level(last=False))
        error = error.after(level, decided=trial.verdict.decision == "better")
    assert len(levels) == 3 and sum(levels) < 0.05
    assert book.error.left == pytest.approx(error.left) and error.left == pytest.approx(0.05 / 8)


def test_a_gain_that_is_proved_leaves_the_error_to_the_next_remedy(simulated: Simulated) -> None:
    book, tried = farm(simulated)
    assert tried.kept is not None
    assert tried.round.tried[0].verdict.confidence == pytest.approx(0.95)
    assert book.error.left == 0.05


@pytest.mark.parametrize(("budget", "confidence"), [("1000s", 0.975), ("46s", 0.95)])
def test_where_no_other_proof_has_room_all_that_is_left_is_for_this_one(
    simulated: Simulated, budget: str, confidence: float
) -> None:
    """Behind a remedy that was tried in vain."""
    book = simulated(table_cache, f"measure.budget={budget}")
    found = examined(book, sweep(book, "A", round_number=1))
    book.error = ErrorBudget(0.025)
    tried = try_remedies(book, found, set())
    assert tried.round.tried[0].verdict.confidence == pytest.approx(confidence)


def test_without_any_error_left_nothing_is_tried(simulated: Simulated) -> None:
    book = simulated(held)
    state = in_cage(book)
    book.error = ErrorBudget(0.0)
    tried = try_remedies(book, state, set())
    assert tried.round.tried == ()
    assert all("5 % of error" in each.because for each in tried.round.untried)


def test_fresh_blocks_are_as_many_as_the_noise_asks_for(simulated: Simulated) -> None:
    _, tried = farm(simulated)
    assert fresh.wanted([tried.round.tried[0].verdict], 10) == fresh.BLOCKS
    loud = Verdict(1.1, 0.9, 1.3, "better", 3, "", (0.9, 1.1, 1.3))
    assert fresh.wanted([loud], 10) == 10
    assert fresh.wanted([loud], 2) == fresh.BLOCKS


def test_blocks_that_agree_by_chance_do_not_make_fresh_ones_fewer_than_the_noise_of_each_state_asks_for() -> None:
    lucky = Verdict(1.3, 1.29, 1.31, "better", 3, "", (1.29, 1.3, 1.31), floor=(1 / 1.12, 1.12))
    assert fresh.wanted([lucky], 10) == 6
    assert fresh.wanted([replace(lucky, floor=(0.98, 1.02))], 10) == fresh.BLOCKS
    assert fresh.wanted([replace(lucky, floor=None)], 10) == fresh.BLOCKS
