"""A remedy that is kept because failures ended, where the throughput stays as it is; and one that only seems so."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.experiments.examination import examine
from loadframe.experiments.sweep import sweep
from loadframe.experiments.trials import Tried, try_remedies
from loadframe.model import TargetState
from loadframe.reporting import change_words

from .test_series_simulated import Answer

Simulated = Callable[..., Bookkeeping]
Failing = Callable[[TargetState, random.Random], float]
QUEUE = (
    "target.kind=sqlite", "target.settings={busy_timeout=0}", "workload.kind=job-queue", "load.axis=concurrency",
    "load.levels=[4,8]",
)  # fmt: skip
SERVED = 40.0
SEEDS = 40
SHARE = 0.05


def queue(simulated: Simulated, failing: Failing, seed: int, *, worth: float = 1.0) -> tuple[Bookkeeping, Tried]:
    """A queue that gives up on its lock in one request of ten as it is looked at first; how many of SERVED fail in each
    step of the proof. worth: of what waits for the lock, in throughput."""
    chance, proving = random.Random(seed), list[bool]()

    def model(state: TargetState, level: float) -> Answer:
        waits = float(state.settings["busy_timeout"]) > 0
        failed = failing(state, chance) if proving else SERVED / 10
        return SERVED * (worth if waits else 1), {"workload.errors": failed, "sqlite.database_bytes": 4096.0}

    book = simulated(model, *QUEUE)
    study, bench = book.bench.study, book.bench
    curve = sweep(book, "A", round_number=1)
    examined = examine(
        book.of("A"),
        number=1,
        treatment="A",
        state=bench.start_state,
        effective=bench.use("A"),
        curve=curve,
        target_kind="sqlite",
        highest_level=study.levels[-1],
    )
    assert "lock.busy_errors" in {finding.id for finding in examined.round.findings}
    proving.append(True)
    return book, try_remedies(book, examined, set())


def waits(state: TargetState) -> bool:
    return float(state.settings["busy_timeout"]) > 0


def ends(state: TargetState, chance: random.Random) -> float:
    """One request in ten fails, in bursts; none where it waits."""
    return 0.0 if waits(state) else chance.choice([2, 4, 6])


def seldom(state: TargetState, chance: random.Random) -> float:
    """One request in a hundred, whether it waits or not."""
    return sum(chance.random() < 0.01 for _ in range(int(SERVED)))


def stalls(state: TargetState, chance: random.Random) -> float:
    """A third of the requests in one step of eight, whether it waits or not."""
    return SERVED / 3 if chance.random() < 0.125 else 0.0


def status(tried: Tried) -> str:
    return next(finding.status for finding in tried.round.findings if finding.id == "lock.busy_errors")


@pytest.mark.parametrize("seed", range(5))
def test_a_remedy_that_ends_failures_is_kept_where_the_throughput_stays(simulated: Simulated, seed: int) -> None:
    book, tried = queue(simulated, ends, seed)
    (trial,) = tried.round.tried
    assert trial.verdict.decision == "no-proven-difference"
    assert trial.kept and tried.kept is not None and tried.kept[1].settings["busy_timeout"] == 5000
    assert trial.note.startswith("requests that failed fell from") and trial.note.endswith("to none")
    assert status(tried) == "confirmed"
    assert book.bench.used[-1] == tried.kept[0]  # type: ignore[attr-defined]


def test_one_that_ends_failures_and_costs_throughput_is_not_kept(simulated: Simulated) -> None:
    _, tried = queue(simulated, ends, 0, worth=0.7)
    assert tried.kept is None
    assert [trial.verdict.decision for trial in tried.round.tried] == ["worse"]


@pytest.mark.long
@pytest.mark.parametrize("failing", [seldom, stalls])
def test_one_after_which_failures_are_fewer_by_chance_is_not_kept(simulated: Simulated, failing: Failing) -> None:
    kept = sum(queue(simulated, failing, seed)[1].kept is not None for seed in range(SEEDS))
    assert kept <= SHARE * SEEDS


def test_failures_that_may_have_ended_by_chance_say_nothing_of_their_cause(simulated: Simulated) -> None:
    """Two stalls before, none after: neither confirmed nor refuted, and it is said."""
    left = [2]

    def before(state: TargetState, chance: random.Random) -> float:
        if waits(state) or not left[0]:
            return 0.0
        left[0] -= 1
        return SERVED / 3

    book, tried = queue(simulated, before, 0)
    (trial,) = tried.round.tried
    assert not trial.kept and tried.kept is None
    assert trial.note.endswith("which may be chance: too few requests failed, or too unevenly")
    assert status(tried) == "suspected"
    assert book.bench.used[-1] == "A"  # type: ignore[attr-defined]


def test_failures_that_go_on_in_fresh_blocks_have_not_ended(simulated: Simulated) -> None:
    """As if a stall had lasted as long as the proof."""
    quiet = [6]

    def lucky(state: TargetState, chance: random.Random) -> float:
        if not waits(state) or not quiet[0]:
            return ends(TargetState({"busy_timeout": 0}, {}), chance)
        quiet[0] -= 1
        return 0.0

    book, tried = queue(simulated, lucky, 0)
    (trial,) = tried.round.tried
    assert trial.fresh is not None and not trial.kept and tried.kept is None
    said = "reverted, as in fresh blocks it is not proved again that fewer requests fail"
    assert change_words.trial_sentence(trial).startswith(said)
    assert status(tried) == "suspected"
    assert book.bench.used[-1] == "A"  # type: ignore[attr-defined]
