"""A target of ours that dies of a load in a simulated run: it goes on below that load, and above it with a remedy."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.errors import NotRecovered
from loadframe.experiments.stopping import concluding
from loadframe.experiments.sweep import sweep
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
