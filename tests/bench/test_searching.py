"""The capacity search over a simulated bench: what is proposed is loaded, what is disturbed is made again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from loadframe.analysis.capacity import Settings
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.errors import StudyError, TargetError
from loadframe.experiments.searching import find, objective_of, settings_of
from loadframe.model import Capacity, LoadInterval, Step, StepRequest, TargetState
from loadframe.study import parse

from .conftest import STUDY

Simulated = Callable[..., Bookkeeping]
AT_RATE = (
    "workload.kind=oltp",
    "load.axis=rate",
    "load.levels={from=50,to=5000,count=2}",
    "objective.within.loss_ratio=0.01",
    "measure.budget=1000s",
)
CAPACITY = 612.0


def served(state: TargetState, level: float) -> tuple[float, Mapping[str, float]]:
    """Up to its capacity everything, beyond it half."""
    return (level if level <= CAPACITY else CAPACITY / 2), {"workload.offered": level}


def search(book: Bookkeeping, **changes: Any) -> Capacity:
    study = book.bench.study
    return find(book, replace(settings_of(study), **changes), objective_of(study))


def test_the_capacity_is_found_and_every_trial_told(simulated: Simulated) -> None:
    book = simulated(served, *AT_RATE, noise=0.0)
    found = search(book)
    assert found.end == "found"
    assert found.low is not None and found.high is not None and found.load is not None
    assert found.low <= CAPACITY < found.high <= 1.05 * found.low + 1
    assert found.low <= found.load < found.high
    assert found.error_probability <= 0.05
    assert [trial.step for trial in found.trials] == [step.number for step in book.steps]
    assert found.load_seconds == pytest.approx(sum(trial.seconds for trial in found.trials))
    above = sum(trial.seconds for trial in found.trials if trial.load > found.load)
    assert found.seconds_above_share == pytest.approx(above / found.load_seconds)
    assert found.open_loop and not found.warnings
    assert all(float(trial.load).is_integer() for trial in found.trials)


def test_trials_below_say_where_to_look(simulated: Simulated) -> None:
    """One CPU, used up at the capacity: three trials that met carry a forecast, and no trial is far above."""

    def told(state: TargetState, level: float) -> tuple[float, Mapping[str, float]]:
        throughput, metrics = served(state, level)
        return throughput, {**metrics, "target.cage.cpu.utilization": min(level / CAPACITY, 1.0)}

    from_afar = (*AT_RATE[:2], "load.levels={from=5,to=5000,count=2}", *AT_RATE[3:])
    found, blind = (search(simulated(model, *from_afar, noise=0.0)) for model in (told, served))
    assert found.expected is not None and found.expected.low < CAPACITY < found.expected.high
    assert blind.expected is None
    assert found.end == blind.end == "found"
    assert found.low is not None and found.high is not None and found.low <= CAPACITY < found.high
    assert sum(trial.counted for trial in found.trials) < sum(trial.counted for trial in blind.trials)


def test_a_server_that_works_cheaper_the_busier_it_is_is_not_followed_in_small_steps(simulated: Simulated) -> None:
    """The busier it is the less it does for a request: a forecast is far too low, and one is enough of that."""

    def told(state: TargetState, level: float) -> tuple[float, Mapping[str, float]]:
        throughput, metrics = served(state, level)
        share = level / CAPACITY
        return throughput, {**metrics, "target.cage.cpu.utilization": min(1.0, share * (4 - 3 * min(share, 1.0)))}

    from_afar = (*AT_RATE[:2], "load.levels={from=2,to=5000,count=2}", *AT_RATE[3:])
    found, blind = (search(simulated(model, *from_afar, noise=0.0)) for model in (told, served))
    assert found.end == "found" and found.low is not None and found.low <= CAPACITY
    assert len(found.trials) <= len(blind.trials) + 12


def test_a_guess_is_not_forecast_anew(simulated: Simulated) -> None:
    guess = LoadInterval(600, 500, 720)
    assert search(simulated(served, *AT_RATE, noise=0.0), guess=guess).expected == guess


def test_a_collapse_is_followed_by_a_load_that_met(simulated: Simulated) -> None:
    found = search(simulated(served, *AT_RATE, noise=0.0))
    recoveries = [trial for trial in found.trials if not trial.counted]
    assert recoveries and all(trial.met and trial.load < CAPACITY for trial in recoveries)


def test_a_disturbed_trial_that_met_counts_and_one_that_missed_is_made_again(simulated: Simulated) -> None:
    book = simulated(served, *AT_RATE, noise=0.0, flags=("steal",))
    found = search(book)
    assert all(trial.counted or not trial.met or "recover" in trial.note for trial in found.trials)
    again = [trial for trial in found.trials if "made again" in trial.note and not trial.counted]
    forced = [trial for trial in found.trials if trial.counted and not trial.met]
    loads = [trial.load for trial in again]
    assert sorted(loads) == sorted({trial.load for trial in forced}), "what a second trial has, too, the load has"
    assert len(again) == book.repeated > 0
    assert found.low is not None and found.low <= CAPACITY


def test_an_overloaded_trial_with_few_requests_counts_as_missed(simulated: Simulated) -> None:
    book = simulated(served, *AT_RATE, noise=0.0, needs_window_s=lambda _, level: 1e6 if level > CAPACITY else 0.0)
    found = search(book)
    assert found.end == "found"
    assert found.low is not None and found.high is not None and found.low <= CAPACITY < found.high


def test_a_trial_that_met_in_no_window_that_the_budget_has_ends_the_search(
    simulated: Simulated, make_step: Callable[..., Step]
) -> None:
    book = simulated(served, *AT_RATE, noise=0.0)
    few = make_step(50, 50.0, flags=("too-few",), metrics={"workload.offered": 50.0}, needed_s=1e6)
    bench, steps = cast(Any, book.bench), iter([few] * 3)
    bench.take_step = lambda request: next(steps)
    found = search(book)
    assert [(trial.met, trial.counted) for trial in found.trials] == [(True, False)]
    assert found.end == "undecided"
    assert any("give measure.budget more time" in warning for warning in found.warnings)


def test_the_budget_ends_the_search_and_what_is_known_is_told(simulated: Simulated) -> None:
    book = simulated(served, *AT_RATE, "measure.budget=6s", noise=0.0)
    found = search(book)
    assert found.end == "undecided"
    assert len(found.trials) <= 4
    assert any("budget ended" in warning for warning in found.warnings)


def test_the_level_is_held_for_as_long_as_asked(simulated: Simulated) -> None:
    found = search(simulated(served, *AT_RATE, noise=0.0), hold_s=30.0)
    assert found.held_s >= 30


def test_a_target_that_dies_of_a_load_does_not_meet_at_it(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = simulated(served, *AT_RATE, noise=0.0)
    take = book.bench.take_step

    def deadly(request: StepRequest) -> Step:
        if request.level > CAPACITY:
            book.bench.dead = True  # type: ignore[attr-defined]
            raise TargetError("the server died")
        return take(request)

    monkeypatch.setattr(book.bench, "take_step", deadly)
    found = search(book)
    assert found.end == "found"
    assert found.low is not None and found.high is not None and found.low <= CAPACITY < found.high
    assert any("the server died" in trial.missed for trial in found.trials)


def test_a_target_that_never_works_is_an_error(simulated: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
    book = simulated(served, *AT_RATE, noise=0.0)

    def dead(_: StepRequest) -> Step:
        raise TargetError("no such socket")

    monkeypatch.setattr(book.bench, "take_step", dead)
    with pytest.raises(TargetError, match="no such socket"):
        search(book)


def test_a_closed_loop_is_judged_by_its_latency(simulated: Simulated) -> None:
    """The simulated p95 is 2 ms at any level."""
    closed = "objective.within.latency_p95_ms=1", "load.levels=[1,64]"
    missed = search(simulated(served, *closed, noise=0.0))
    assert (missed.end, missed.load, missed.high) == ("below-range", None, 1)
    assert "p95 latency 2 ms, more than 1 ms" in missed.trials[0].missed
    meets = search(simulated(served, "objective.within.latency_p95_ms=3", "load.levels=[1,64]", noise=0.0))
    assert (meets.end, meets.load, meets.high) == ("above-range", 64, None)
    assert not meets.open_loop


def test_without_an_objective_or_a_range_there_is_nothing_to_search() -> None:
    with pytest.raises(StudyError, match="no objective"):
        objective_of(parse(STUDY))
    with pytest.raises(StudyError, match="4 alone"):
        settings_of(parse(STUDY, ["load.levels=[4]"]))
    at_rate = objective_of(parse(STUDY, [*AT_RATE[:3]]))
    assert (at_rate.loss_ratio, at_rate.latency_p95_ms) == (0.01, None)


def test_the_study_says_what_is_searched() -> None:
    guess = LoadInterval(600, 500, 720)
    wanted = settings_of(parse(STUDY, ["measure.precision=0.1"]), hold_s=60, guess=guess)
    assert wanted == Settings(4, 32, precision=0.1, trial_s=1.0, hold_s=60, guess=guess)
