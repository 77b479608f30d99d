"""A target of ours that dies of a load in a simulated run: it goes on below that load, and above it with a remedy."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.errors import NotRecovered
from loadframe.experiments.examination import examine
from loadframe.experiments.stopping import concluding
from loadframe.experiments.sweep import sweep
from loadframe.experiments.trials import Tried, try_remedies
from loadframe.model import TargetState

Simulated = Callable[..., Bookkeeping]


def serves(_: TargetState, level: float) -> tuple[float, Mapping[str, float]]:
    return 10 * level, {}


def small(state: TargetState, level: float) -> bool:
    """It dies of 16 with its own settings, and of 8 as it is started with less."""
    return level >= (16 if state.settings["table_open_cache"] == 64 else 8)


def test_the_levels_below_are_measured_in_every_block(simulated: Simulated) -> None:
    book = simulated(serves, falls=small)
    curve = sweep(book, "A", round_number=1)
    assert [point.load for point in curve.points] == [4.0, 8.0]
    assert len({step.block for step in book.of("A") if step.level == 8}) >= 3
    stop = book.bench.run.stop()
    assert stop is not None and (stop.level, stop.treatment, stop.died, stop.went_on) == (16.0, "A", "SIGKILL", True)
    assert stop.log == ("out of beds",) and stop.step == 0


def test_each_state_has_its_own_load_at_which_it_falls(simulated: Simulated) -> None:
    book = simulated(serves, falls=small)
    sweep(book, "A", round_number=1)
    worse = book.next_treatment("less", TargetState({"table_open_cache": 32}, {}))
    better = book.next_treatment("more", TargetState({"table_open_cache": 64}, {}))
    sweep(book, worse, round_number=2)
    assert (book.levels("A"), book.levels(worse), book.levels(better)) == ([4, 8], [4], [4, 8, 16, 32])
    assert book.levels("A", worse) == [4]
    stop = book.bench.run.stop()
    assert stop is not None and stop.treatment == "A", "the first state is what the answer is about"


def test_one_that_falls_at_every_load_is_an_error(simulated: Simulated) -> None:
    book = simulated(serves, falls=lambda state, level: True)
    with pytest.raises(NotRecovered), concluding(book):
        sweep(book, "A", round_number=1)


def test_below_the_lowest_level_lower_loads_are_measured(simulated: Simulated) -> None:
    book = simulated(serves, falls=lambda state, level: level >= 4)
    assert [point.load for point in sweep(book, "A", round_number=1).points] == [1.0, 2.0]


def overrun(state: TargetState, level: float) -> tuple[float, Mapping[str, float]]:
    """The cache is full from 16 on, which costs nothing there."""
    full = level > 12
    return (3000.0 if full else 9000.0), {
        "mariadb.open_tables": min(5 * level + 3, float(state.settings["table_open_cache"])),
        "mariadb.table_open_cache": float(state.settings["table_open_cache"]),
        "mariadb.opened_tables": 6000.0 if full else 1.0,
    }


def tried_where(simulated: Simulated, falls: Callable[[TargetState, float], bool]) -> tuple[Bookkeeping, Tried]:
    book = simulated(overrun, falls=falls)
    curve = sweep(book, "A", round_number=1)
    found = examine(
        book.of("A"), number=1, treatment="A", state=book.bench.start_state, effective=book.bench.use("A"), curve=curve,
        target_kind="mariadb", highest_level=book.bench.study.levels[-1],
    )  # fmt: skip
    return book, try_remedies(book, found, set())


def test_a_remedy_without_a_gain_below_is_kept_where_the_target_stands_with_it_and_falls_without(
    simulated: Simulated,
) -> None:
    """Every other load was judged, and what mattered, whether the target lives, was not looked at."""
    book, tried = tried_where(simulated, lambda state, level: level >= 32 and state.settings["table_open_cache"] == 64)
    assert tried.kept is not None
    after, _ = tried.kept
    (trial,) = tried.round.tried
    assert trial.kept and trial.note.startswith("at 32 the target falls again without it, and serves 2,9")
    assert trial.verdict.decision == "no-proven-difference"
    assert 32 not in {row.load for row in trial.levels}, "there is no ratio to nothing"
    assert {step.treatment for step in book.steps if step.level == 32} == {after}
    assert [(stop.level, stop.treatment) for stop in book.bench.run.stops()] == [(32.0, "A"), (32.0, "A")]
    assert not any(finding.status in ("refuted", "confirmed") for finding in tried.round.findings)
    assert [point.load for point in sweep(book, after, round_number=2).points][-1] == 32, "its curve has that load"


def test_one_that_falls_with_it_too_goes_on_as_it_was(simulated: Simulated) -> None:
    book, tried = tried_where(simulated, lambda state, level: level >= 32)
    assert tried.kept is None
    assert [trial.kept for trial in tried.round.tried] == [False]
    assert book.bench.use("A")["table_open_cache"] == 64
