"""What one treatment leaves behind for the next: seen in steps that count, or only in those that are left out."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from loadframe.analysis.carryover import carried_over
from loadframe.model import Step

MakeStep = Callable[..., Step]


def blocks(
    make_step: MakeStep,
    count: int,
    *,
    left_out: float = 1.0,
    counted: float = 1.0,
    seed: int = 1,
    levels: tuple[float, ...] = (8.0,),
) -> list[Step]:
    """Blocks of two equal treatments in drawn order. A serves so many times as much right after B: in steps that are
    left out, and in the first one that counts."""
    chance, steps, last = random.Random(seed), list[Step](), ""
    for block in range(1, count + 1):
        for treatment in chance.sample("AB", 2):
            changed = treatment != last and bool(last)
            for number, level in enumerate(chance.sample(levels, len(levels))):
                pays = changed and treatment == "A" and number == 0
                served, before = 1000 * chance.gauss(1, 0.02), 1000 * chance.gauss(1, 0.02)
                if changed and number == 0:
                    steps.append(
                        make_step(level, before * (left_out if pays else 1), purpose="warming", treatment=treatment)
                    )
                steps.append(make_step(level, served * (counted if pays else 1), block=block, treatment=treatment))
            last = treatment
    return steps


def test_what_only_the_steps_that_are_left_out_show_is_told_as_left_out(make_step: MakeStep) -> None:
    (found,) = carried_over(blocks(make_step, 5, left_out=0.21))
    assert (found.treatment, found.left_out) == ("A", True)
    assert found.ratio == pytest.approx(0.21, rel=0.1) and found.low < found.ratio < found.high
    assert "are left out" in str(found)


@pytest.mark.parametrize("levels", [(8.0,), (4.0, 8.0)])
def test_what_steps_that_count_show_is_told_as_part_of_the_comparison(
    make_step: MakeStep, levels: tuple[float, ...]
) -> None:
    (found,) = carried_over(blocks(make_step, 10, left_out=0.2, counted=0.5, levels=levels))
    assert (found.treatment, found.left_out) == ("A", False)
    assert found.ratio == pytest.approx(0.5, rel=0.1)
    assert "the comparison includes" in str(found)


def test_equal_steps_are_rarely_called_carried_over(make_step: MakeStep) -> None:
    assert sum(bool(carried_over(blocks(make_step, 6, seed=seed))) for seed in range(100)) == 0


def test_a_sweep_before_the_first_change_is_no_step_after_itself(make_step: MakeStep) -> None:
    """The machine was twice as fast then."""
    sweep = [make_step(8.0, 2000.0, block=block) for block in (1, 2, 3)]
    assert carried_over([*sweep, *blocks(make_step, 6)]) == ()


def test_of_a_step_that_was_measured_again_the_last_counts(make_step: MakeStep) -> None:
    """Here the first one of each pair is spoilt."""
    steps = []
    for step in blocks(make_step, 6):
        again = [make_step(8.0, 100.0, block=step.block, treatment=step.treatment)] if step.counts else []
        steps += [*again, make_step(8.0, step.throughput, block=step.block, treatment=step.treatment)]
    assert [found for found in carried_over(steps) if not found.left_out] == []


def test_few_steps_say_nothing(make_step: MakeStep) -> None:
    assert carried_over(blocks(make_step, 1, left_out=0.1)) == ()
    assert carried_over([]) == ()
