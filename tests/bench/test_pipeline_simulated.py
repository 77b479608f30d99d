"""A stage that limits is confirmed by giving it more, and held against taking from it: on a simulated target."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.experiments.controls import lessened
from loadframe.experiments.examination import examine
from loadframe.experiments.sweep import sweep
from loadframe.experiments.trials import Tried, try_remedies
from loadframe.model import Change, Knob, Price, Remedy, SettingValue, TargetState

pytestmark = pytest.mark.extension("loadframe_pipelines")
Simulated = Callable[..., Bookkeeping]
Answer = tuple[float, Mapping[str, float]]
KNOBS = (Knob("db_threads", low=1, high=64, raises="pipeline.DB_APPLY", layer="application"),)
PER_WORKER, PER_CLIENT = 100.0, 60.0


def stages(state: TargetState, level: float, *, needs: bool = True) -> Answer:
    """DB_APPLY passes 100 entries a second with each of its workers; needs: whether that is what limits."""
    workers = float(state.options["db_threads"])
    capacity = workers * PER_WORKER if needs else 4 * PER_WORKER
    served = min(level * PER_CLIENT, capacity, 3000.0)
    busy = min(1.0, served / capacity)
    told = {"order": 1.0, "workers": workers, "busy": busy * workers, "busy_share": busy, "blocked_share": 0.0}
    apply = {**told, "idle_share": 1 - busy, "entries": served, "done": served, "capacity": served / busy}
    apply |= {"waiting": 50.0 if busy > 0.9 else 0.0}
    full = busy > 0.99
    scan = {"order": 0.0, "workers": 1.0, "busy_share": 0.3, "idle_share": 0.0 if full else 0.7}
    scan |= {"blocked_share": 0.7 if full else 0.0, "entries": served, "done": served}
    metrics = {"system.cpu.utilization": 0.2, "system.cpu.count": 2.0, "system.cpu.own": 0.2}
    metrics |= {f"pipeline.DB_APPLY.{end}": value for end, value in apply.items()}
    return served, metrics | {f"pipeline.SCAN.{end}": value for end, value in scan.items()}


def tried(book: Bookkeeping, workers: int) -> Tried:
    bench, state = book.bench, TargetState(options={"db_threads": workers})
    bench.states["A"] = state  # type: ignore[attr-defined]

    def use(name: str) -> dict[str, SettingValue]:
        if bench.used[-1:] != [name]:  # type: ignore[attr-defined]
            bench.used.append(name)  # type: ignore[attr-defined]
        return dict(bench.states[name].options)  # type: ignore[attr-defined]

    bench.use = use  # type: ignore[method-assign]
    curve = sweep(book, "A", round_number=1)
    examined = examine(
        book.of("A"),
        number=1,
        treatment="A",
        state=state,
        effective=use("A"),
        curve=curve,
        target_kind="mariadb",
        highest_level=32,
        knobs=KNOBS,
    )
    return try_remedies(book, examined, set())


def test_more_workers_confirm_the_stage_and_fewer_of_them_cost_in_proportion(simulated: Simulated) -> None:
    found = tried(simulated(stages), 4)
    (trial,) = found.round.tried
    (change,) = trial.remedy.changes
    assert (change.layer, change.setting, change.before, change.after) == ("application", "db_threads", 4, 16)
    assert found.kept is not None
    assert found.kept[1].options == {"db_threads": 16}
    first = found.round.findings[0]
    assert (first.id, first.status) == ("pipeline.DB_APPLY", "confirmed")
    less = next(control for control in trial.controls if control.kind == "less")
    assert less.holds
    assert less.verdict is not None
    assert less.verdict.ratio == pytest.approx(0.25, rel=0.1)


def test_a_stage_that_does_not_need_what_was_taken_from_it_is_not_confirmed(simulated: Simulated) -> None:
    """Its gain came with more workers, and with fewer nothing is lost: something else came with the change."""

    def odd(state: TargetState, level: float) -> Answer:
        return stages(TargetState(options={"db_threads": max(4, int(state.options["db_threads"]))}), level)

    found = tried(simulated(odd), 4)
    less = next(control for control in found.round.tried[0].controls if control.kind == "less")
    assert less.holds is False
    assert found.round.findings[0].status == "helped"


def test_a_counter_proof_that_one_disturbed_block_leaves_open_is_measured_on(simulated: Simulated) -> None:
    """Of the first three blocks one is half as fast with less; without the fourth and fifth nothing was decided."""
    asked = {"less": 0}

    def disturbed(state: TargetState, level: float) -> Answer:
        served, metrics = stages(state, level)
        less = state.options["db_threads"] == 1
        asked["less"] += less
        return served * (0.2 if less and asked["less"] <= 2 else 1.0), metrics

    found = tried(simulated(disturbed), 4)
    less = next(control for control in found.round.tried[0].controls if control.kind == "less")
    assert less.verdict is not None
    assert (less.holds, less.verdict.blocks > 3) == (True, True), less


def test_more_workers_that_wait_for_what_is_behind_gain_nothing_and_refute_nothing(simulated: Simulated) -> None:
    """A database with one writer: the stage limits, and more of its workers only wait for the writer's lock."""
    found = tried(simulated(lambda state, level: stages(state, level, needs=False)), 4)
    assert found.kept is None
    assert (found.round.findings[0].id, found.round.findings[0].status) == ("pipeline.DB_APPLY", "suspected")


def test_on_a_noisy_machine_what_is_taken_is_enough_to_be_told(simulated: Simulated) -> None:
    """Blocks of one treatment differ threefold, as they were seen to: half of what there was is not told from that."""
    noise = [1.0, 1.5, 0.8, 0.55, 1.2, 1.6, 0.6]
    asked = {"less": 0}

    def noisy(state: TargetState, level: float) -> Answer:
        served, metrics = stages(state, level)
        asked["less"] += bool(asked["less"]) or int(state.options["db_threads"]) < 8
        return served * (noise[asked["less"] * 3 % len(noise)] if asked["less"] else 1.0), metrics

    found = tried(simulated(noisy), 8)
    less = next(control for control in found.round.tried[0].controls if control.kind == "less")
    assert (found.round.findings[0].status, less.holds) == ("confirmed", True), less


@pytest.mark.parametrize(
    ("before", "after", "less_"),
    [(4, 16, 1), (5, 20, 1), (2, 8, 1), (10, 40, 2), (10, 15, 5), (1000, 4000, 250), (1, 4, None), (16, 4, None)],
)
def test_as_much_less_as_the_remedy_gives_more(before: int, after: int, less_: int | None) -> None:
    change = Change("application", "db_threads", before, after)
    less = lessened(Remedy("more", "more", ("pipeline.DB_APPLY",), (change,), Price()))
    assert (None if less is None else less.changes[0].after) == less_


@pytest.mark.long
def test_with_little_time_the_stage_is_held_against_less_before_other_levels_are_looked_at(
    simulated: Simulated,
) -> None:
    """From a budget for the proof alone up to one for everything."""
    proved: list[tuple[bool, bool]] = []
    for seconds in range(30, 160, 4):
        found = tried(simulated(stages, f"measure.budget={seconds}s"), 4)
        if found.kept is None or found.round.findings[0].status != "confirmed":
            continue
        (trial,) = found.round.tried
        less = next(control for control in trial.controls if control.kind == "less")
        judged = trial.verdict.levels
        proved.append((less.verdict is not None, len(trial.levels) > len(judged)))
    assert (False, True) not in proved
    assert {(True, False), (True, True)} <= set(proved), proved
