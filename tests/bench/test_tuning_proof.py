"""The proofs of a search: where the best settings do not hold, the next best ones are held against the start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from loadframe.analysis.sequential import Plan, planned_level
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.model import TargetState, Verdict
from loadframe.progress import Silent
from loadframe.runs.folder import RunFolder
from loadframe_tune.answer import TUNING
from loadframe_tune.model import Tuning
from loadframe_tune.proof import ERROR, MOST_PROOFS, PROOF_ROUND

from .simulated_search import SETTINGS, WITHIN, Answer, Simulated, after, busy, tune, with_index

INDEX = "innodb_adaptive_hash_index"


@dataclass
class Told(Silent):
    """Knows how many trials are over, whether the first proof has begun, and whether what held is measured again."""

    trials: int = 0
    proving: bool = False
    again: bool = False

    def phase(self, words: str, steps: int) -> None:
        self.proving = self.proving or words.startswith("proving")
        self.again = "again, in fresh blocks" in words

    def say(self, words: str) -> None:
        self.trials += words.startswith("trial ")


def lucky(told: Told, **lucks: float) -> Callable[[TargetState, float], Answer]:
    """Settings that are worth so much in trials: all of it, or in the proof what `lucks` says."""

    def model(state: TargetState, level: float) -> Answer:
        capacity = float(state.settings["innodb_io_capacity"])
        index = (lucks["proof"] if told.proving else lucks["trials"]) if state.settings[INDEX] else 1.0
        return 1000 * (capacity / 200) ** lucks["capacity"] * index, {}

    return model


def judged_at(verdict: Verdict, error: float, last: int, first: int = 3) -> bool:
    """Whether a proof of `first` to so many blocks was to err in so many of the cases."""
    return f"at {100 * (1 - planned_level(Plan(first, last), verdict.blocks, error)):.4g} %" in verdict.method


def search(simulated: Simulated, folder: Path, *overrides: str, **lucks: float) -> tuple[Tuning, Bookkeeping]:
    told = Told()
    book = simulated(lucky(told, **lucks), *SETTINGS, *overrides)
    book.progress = told
    return tune(book, folder), book


def test_where_the_best_does_not_hold_the_next_best_is_proved(simulated: Simulated, tmp_path: Path) -> None:
    """The index looks like a third more in the trials, and costs half in the proof."""
    found, book = search(simulated, tmp_path, capacity=0.2, trials=1.3, proof=0.5)
    assert found.end == "gained" and found.proof is not None and found.proof.verdict.low > 1
    assert INDEX not in after(found) and INDEX not in found.file_text and after(found)
    assert found.failed_proofs
    for failed in found.failed_proofs:
        assert failed.changes[INDEX] is True and failed.verdict.decision != "better" and not failed.held
    assert found.failed_proofs[0].expected > 1.2
    last = PROOF_ROUND + len(found.failed_proofs)
    assert {step.round for step in book.steps} == {1, 2, *range(PROOF_ROUND, last + 1)}
    assert found.proof is not None and found.proof.fresh is not None
    mine = [step for step in book.steps if step.round == last]
    blocks = found.proof.verdict.blocks + found.proof.fresh.blocks
    assert len(mine) == 2 * len(found.proof.verdict.levels) * blocks, "nothing of another proof is in it"
    promised = found.expected
    assert 1 < promised < found.proof.verdict.ratio, "as it was before its own proof, with the others' blocks"


def test_what_missed_the_objective_in_its_proof_makes_room_for_the_next(simulated: Simulated, tmp_path: Path) -> None:
    """No trial shows clearly that the index misses it."""
    found = tune(simulated(busy, *SETTINGS, WITHIN, p95_ms=with_index(110)), tmp_path)
    assert found.end == "gained" and INDEX not in after(found)
    assert found.objective is not None and found.objective.met
    assert found.failed_proofs
    for failed in found.failed_proofs:
        assert failed.verdict.decision == "better" and failed.objective is not None and not failed.objective.met


def test_where_nothing_holds_all_proofs_are_told(simulated: Simulated, tmp_path: Path) -> None:
    """What is worth a third in the trials is worth nothing in any proof."""
    told = Told()

    def model(state: TargetState, level: float) -> Answer:
        changed = state.settings["innodb_io_capacity"] != 200 or state.settings[INDEX]
        return 1000.0 * (1.35 if changed and not told.proving else 1), {}

    book = simulated(model, *SETTINGS)
    book.progress = told
    found = tune(book, tmp_path)
    assert found.end == "no-proven-gain" and found.file_text == ""
    assert 1 <= len(found.failed_proofs) <= MOST_PROOFS
    first = found.failed_proofs[0]
    assert (found.proof, found.expected, after(found)) == (first, first.expected, dict(first.changes))
    assert judged_at(first.verdict, ERROR / 2, 5), "another one might follow"
    assert len({tuple(proof.changes.items()) for proof in found.failed_proofs}) == len(found.failed_proofs)
    kept = TUNING.stored(RunFolder.open(next(tmp_path.iterdir())))
    assert kept is not None and kept.end == "stopped", "of a run that is killed now"
    assert kept.failed_proofs == found.failed_proofs


def test_proofs_are_within_the_budget(simulated: Simulated, tmp_path: Path) -> None:
    found, book = search(simulated, tmp_path, "measure.budget=75s", capacity=0.05, trials=1.5, proof=0.75)
    assert book.budget.left_s() >= 0
    assert len(found.failed_proofs) == 1 and found.proof is not None
    assert found.proof.verdict.confidence == 1 - ERROR, "there was no time for another one from the beginning"


@pytest.mark.parametrize(("steps", "left"), [(0, ERROR), (5, ERROR / 2)])
def test_what_the_target_dies_of_amid_a_proof_has_failed_and_the_next_best_is_proved(
    simulated: Simulated, tmp_path: Path, steps: int, left: float
) -> None:
    """After so many steps with it: at once, and where it could have been looked at before, so that it has spent."""
    told, taken = Told(), list[float]()

    def kills(state: TargetState) -> bool:
        if told.proving and state.settings[INDEX]:
            taken.append(1)
        return len(taken) > steps and bool(state.settings[INDEX])

    book = simulated(busy, *SETTINGS, "measure.blocks={min=4, max=5}", kills=kills)
    book.progress = told
    found = tune(book, tmp_path)
    assert found.end == "gained" and INDEX not in after(found) and found.failed_proofs == ()
    failures = found.trials[20:]
    assert failures
    for failed in failures:
        assert failed.changes[INDEX] and failed.failed == "in its proof, the driver lost its connection"
    assert any(f"{INDEX} = True" in warning and "the driver lost its" in warning for warning in found.warnings)
    assert found.proof is not None and found.proof.verdict.decision == "better"
    level = left if len(failures) == MOST_PROOFS - 1 else left / 2
    assert judged_at(found.proof.verdict, level, 5, first=4), found.proof.verdict.method
    assert found.proof.verdict.confidence == pytest.approx(1 - level)


def test_what_the_target_does_not_work_with_in_a_proof_is_told_and_passed_over(
    simulated: Simulated, tmp_path: Path
) -> None:
    told = Told()

    def refuses(state: TargetState) -> bool:
        return told.trials >= 20 and bool(state.settings[INDEX])

    book = simulated(busy, *SETTINGS, refuses=refuses)
    book.progress = told
    found = tune(book, tmp_path)
    assert found.end == "gained" and INDEX not in after(found) and found.failed_proofs == ()
    assert found.trials[20:] and all(trial.failed and trial.changes[INDEX] for trial in found.trials[20:])
    assert len({tuple(trial.changes.items()) for trial in found.trials[20:]}) == len(found.trials[20:])


# --- what is told of settings that held ---


def changed(state: TargetState) -> bool:
    return bool(state.settings[INDEX]) or state.settings["innodb_io_capacity"] != 200


def half_more(told: Told, *, proof: float = 1.0, fresh: float = 1.0) -> Callable[[TargetState, float], Answer]:
    """Settings that are worth a half more, times so much in the proof, and in the fresh blocks after it."""

    def model(state: TargetState, level: float) -> Answer:
        luck = fresh if told.again else proof if told.proving else 1.0
        return 1000.0 * (1.5 * luck if changed(state) else 1.0), {}

    return model


def watched(book: Bookkeeping, told: Told, folder: Path) -> Tuning:
    book.progress = told
    return tune(book, folder)


def recorded(folder: Path) -> Tuning:
    """As a run says that is killed now."""
    kept = TUNING.stored(RunFolder.open(next(folder.iterdir())))
    assert kept is not None
    return kept


def test_a_gain_is_told_from_blocks_that_decided_nothing(simulated: Simulated, tmp_path: Path) -> None:
    told, before = Told(), list[Tuning]()
    model = half_more(told, proof=1.4)

    def looked_at(state: TargetState, level: float) -> Answer:
        if told.again and not before:
            before.append(recorded(tmp_path))
        return model(state, level)

    found = watched(simulated(looked_at, *SETTINGS), told, tmp_path)
    assert found.end == "gained" and found.proof is not None and found.proof.fresh is not None
    assert found.proof.verdict.ratio == pytest.approx(2.1, rel=0.1) and found.proof.verdict.may_overstate
    assert found.reported == found.proof.fresh and found.proof.fresh.ratio == pytest.approx(1.5, rel=0.1)
    assert not found.proof.fresh.may_overstate and "one look, at the end" in found.proof.fresh.method
    assert [row.ratio for row in found.proof.levels] == pytest.approx([1.5] * len(found.proof.levels), rel=0.1)
    assert before[0].proof is not None and before[0].end == "gained", "nothing is lost"
    assert (before[0].proof.verdict, before[0].proof.fresh) == (found.proof.verdict, None)


def test_where_no_time_is_left_for_fresh_blocks_the_gain_is_marked(simulated: Simulated, tmp_path: Path) -> None:
    told = Told()
    book = simulated(half_more(told, proof=1.4), *SETTINGS, "measure.budget=60s")
    book.progress = told
    found = tune(book, tmp_path, trials=1000)
    assert book.budget.left_s() >= 0
    assert found.end == "gained" and found.proof is not None and found.proof.fresh is None
    assert found.reported is not None and found.reported.may_overstate and found.reported == found.proof.verdict


def test_what_fresh_blocks_prove_to_be_worse_is_not_recommended(simulated: Simulated, tmp_path: Path) -> None:
    """Proved and reverted, and so is what is proved next."""
    told = Told()
    found = watched(simulated(half_more(told, fresh=0.3), *SETTINGS), told, tmp_path)
    assert found.end == "no-proven-gain" and found.file_text == ""
    first = found.failed_proofs[0]
    assert first.fresh is not None and not first.held
    assert (first.verdict.decision, first.fresh.decision) == ("better", "worse")
    assert found.proof == first
    kept = recorded(tmp_path)
    assert (kept.end, kept.file_text, kept.failed_proofs) == ("stopped", "", found.failed_proofs)


def test_what_misses_the_objective_in_the_fresh_blocks_is_not_recommended(simulated: Simulated, tmp_path: Path) -> None:
    told = Told()

    def p95_ms(state: TargetState, level: float) -> float:
        return 110.0 if changed(state) and told.again else 50.0

    found = watched(simulated(half_more(told), *SETTINGS, WITHIN, p95_ms=p95_ms), told, tmp_path)
    assert found.end == "no-proven-gain" and found.file_text == ""
    assert found.proof is not None and found.proof.fresh is not None and found.proof.fresh.decision == "better"
    assert found.objective is not None and not found.objective.met


def test_what_the_target_dies_of_in_the_fresh_blocks_is_not_recommended(simulated: Simulated, tmp_path: Path) -> None:
    told = Told()
    book = simulated(half_more(told), *SETTINGS, kills=lambda state: told.again and changed(state))
    found = watched(book, told, tmp_path)
    assert found.end == "nothing-better" and found.file_text == ""
    assert found.trials[20:] and all("the driver lost its connection" in trial.failed for trial in found.trials[20:])
    assert recorded(tmp_path).end == "stopped"
