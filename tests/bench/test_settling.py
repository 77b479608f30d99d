"""A step whose warm-up had not ended is taken again with a longer one, within the budget; else its level proves nothing
and that is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from loadframe.analysis import comparison
from loadframe.analysis.window import unsettled
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.bench.settling import held
from loadframe.experiments.proof import judged_levels, prove
from loadframe.experiments.sweep import curve_of, sweep
from loadframe.model import UNSETTLED, Step, StepRequest, TargetState
from loadframe.reporting import verdict_words

Simulated = Callable[..., Bookkeeping]
StepMaker = Callable[..., Step]


def flat(state: TargetState, level: float) -> tuple[float, dict[str, float]]:
    return 1000.0, {}


def asked(book: Bookkeeping) -> list[tuple[str, float, float]]:
    bench: Any = book.bench
    found: list[tuple[str, float, float]] = bench.asked
    return found


def take(book: Bookkeeping, level: float = 8, treatment: str = "A", block: int = 1) -> Step:
    return book.take(StepRequest(treatment, level, 1, block))


def test_a_step_is_taken_again_with_a_warm_up_four_times_as_long_as_it_was(simulated: Simulated) -> None:
    book = simulated(flat, needs_s=lambda treatment, level: 2.0 if level == 8 else 0.0)
    step = take(book)
    assert UNSETTLED not in step.flags
    assert asked(book) == [("A", 8, 0.0), ("A", 8, pytest.approx(4.8))]
    assert [UNSETTLED in one.flags for one in book.steps] == [True, False], "the first one stays in the run"
    take(book, level=16)
    assert asked(book)[2:] == [("A", 16, 0.0)]


def test_a_level_that_was_slow_has_the_longer_warm_up_from_then_on(simulated: Simulated) -> None:
    book = simulated(flat, needs_s=lambda treatment, level: 2.0)
    for block in (1, 2, 3):
        take(book, block=block)
    assert [round(warmup_s, 3) for _, _, warmup_s in asked(book)] == [0.0, 4.8, 0.0, 4.8, 4.8]
    take(book, treatment=book.next_treatment("more memory", TargetState({})))
    assert asked(book)[-1] == ("B", 8, pytest.approx(4.8)), "what is compared has the same"


def test_a_longer_warm_up_that_gives_no_more_is_not_kept(simulated: Simulated) -> None:
    """On a loud machine some steps climb by chance."""
    book = simulated(flat, needs_s=lambda treatment, level: 2.0, lacks=0.0)
    for block in range(1, 5):
        take(book, block=block)
    assert [round(warmup_s, 3) for _, _, warmup_s in asked(book)] == [0.0, 4.8] * 4


def test_the_longest_is_kept_for_no_further_step(simulated: Simulated) -> None:
    """A search for settings on a loud machine had warm-ups of 35 s before windows of 0.3 s, each kept for the next."""
    book = simulated(flat, "measure.budget=2000s", needs_s=lambda treatment, level: 7.0)
    for block in range(1, 4):
        take(book, block=block)
    assert [round(warmup_s, 3) for _, _, warmup_s in asked(book)] == [0.0, 4.8, 24.0] * 3


def test_a_warm_up_that_is_kept_grows_no_further_than_one_that_is_not(simulated: Simulated) -> None:
    needs = {"s": 2.0}
    book = simulated(flat, "measure.budget=2000s", needs_s=lambda treatment, level: needs["s"])
    for block in (1, 2):
        take(book, block=block)
    assert book.settling.warmup_s(8) == pytest.approx(4.8)
    needs["s"] = 1e6
    for block in (3, 4):
        assert UNSETTLED in take(book, block=block).flags
    assert [round(warmup_s, 3) for _, _, warmup_s in asked(book)[4:]] == [4.8, 24.0] * 2


def test_it_goes_on_twice_and_then_the_step_is_what_it_is(simulated: Simulated) -> None:
    book = simulated(flat, needs_s=lambda treatment, level: 1e6)
    assert UNSETTLED in take(book).flags
    assert [round(warmup_s, 3) for _, _, warmup_s in asked(book)] == [0.0, 4.8, 24.0]


def test_steps_taken_again_use_no_more_than_a_tenth_of_the_budget(simulated: Simulated) -> None:
    book = simulated(flat, "measure.budget=100s", needs_s=lambda treatment, level: 1e6)
    for block in range(1, 6):
        take(book, block=block)
    assert 0 < sum(warmup_s for _, _, warmup_s in asked(book)) <= 10


def test_a_sweep_counts_the_settled_steps_alone(simulated: Simulated) -> None:
    book = simulated(flat, needs_s=lambda treatment, level: 2.0 if level == 32 else 0.0)
    curve = sweep(book, "A", round_number=1)
    assert curve.points[-1].throughput == pytest.approx(1000, rel=0.05)
    assert all(point.settled for point in curve.points)
    assert not [words for words in curve.warnings if "warm-up" in words]


def test_a_level_that_does_not_settle_is_told_and_left_out_of_proofs(simulated: Simulated) -> None:
    book = simulated(flat, needs_s=lambda treatment, level: 1e6 if level == 32 else 0.0)
    curve = sweep(book, "A", round_number=1)
    assert [point.load for point in curve.points if not point.settled] == [32]
    assert any(words.startswith("not-settled: at 32 ") for words in curve.warnings)
    assert judged_levels(curve, None) == (8, 16)


def slow(*levels: float) -> Callable[[str, float], float]:
    """What settles at no warm-up: the second treatment at these levels."""
    return lambda treatment, level: 1e6 if treatment == "B" and level in levels else 0.0


def test_a_proof_leaves_out_a_level_at_which_one_side_had_not_settled(simulated: Simulated) -> None:
    """Without that, a change that makes the warm-up longer is called worse."""
    book = simulated(flat, needs_s=slow(32))
    book.next_treatment("more memory", TargetState({}))
    ((proved, _),) = prove(book, [("A", "B")], (16, 32), round_number=1)
    verdict, levels = proved.verdict, proved.levels
    assert verdict.ratio == pytest.approx(1, abs=0.05)
    assert [row.load for row in levels] == [16]
    assert "left out, as the warm-up there had not ended: 32" in verdict.method


def test_a_proof_of_which_no_level_has_settled_decides_nothing(simulated: Simulated) -> None:
    book = simulated(flat, needs_s=slow(16, 32))
    book.next_treatment("more memory", TargetState({}))
    ((proved, _),) = prove(book, [("A", "B")], (16, 32), round_number=1)
    verdict = proved.verdict
    assert verdict.decision == "cannot-tell"
    assert "at 16, 32 the warm-up had not ended: nothing is decided" in verdict.method


@pytest.mark.parametrize(
    ("before", "after", "rises_before", "rises_after", "decision"),
    [
        (1000, 3000, 0.0, 0.3, "better"),
        (3000, 1000, 0.3, 0.0, "worse"),
        (1000, 3000, 0.0, -0.3, "cannot-tell"),
        (1000, 3000, 0.3, 0.0, "cannot-tell"),
        (1000, 3000, 0.3, 0.3, "cannot-tell"),
        (1000, 6000, 0.3, 0.3, "better"),
        (6000, 1000, 0.3, -0.1, "worse"),
        (1000, 6000, 0.3, -0.3, "cannot-tell"),
        (1000, 1000, 0.0, 0.3, "cannot-tell"),
    ],
)
def test_a_gain_is_decided_where_what_a_warm_up_can_still_change_is_less_than_it(
    make_step: StepMaker, before: float, after: float, rises_before: float, rises_after: float, decision: str
) -> None:
    steps = [
        make_step(
            4, throughput * (1 + 0.01 * block), treatment=name, block=block, flags=(UNSETTLED,) if rise else (),
            batches=tuple(throughput * (1 + rise * (i / 7 - 0.5)) for i in range(8)),
        )
        for block in range(1, 5)
        for name, throughput, rise in (("A", before, rises_before), ("B", after, rises_after))
    ]  # fmt: skip
    sides = ({4.0: [step.throughput for step in steps if step.treatment == name]} for name in "AB")
    verdict = held(comparison.verdict_at_end(*sides), steps, "A", "B")
    assert (verdict.decision, verdict.unsettled_at) == (decision, (4.0,))
    told = verdict_words.gain_sentence(verdict)
    if decision == "cannot-tell":
        assert told.startswith("nothing is decided, as the warm-up had not ended at 4: ")
        assert comparison.margin(verdict, 0.03) == "cannot-tell", "no green light where nothing is decided"
    else:
        assert told.endswith("; the warm-up had not ended at 4, and the interval holds what it can still change")


def climbing(make_step: StepMaker, rise: float, *, seed: int = 1, noise: float = 0.05, **others: Any) -> list[Step]:
    """Three steps of eight slices, from `rise` / 2 below the mean to as much above it."""
    random = np.random.default_rng(seed)
    line = 1000 * (1 + rise * np.linspace(-0.5, 0.5, 8))
    rows = [line * (1 + random.normal(0, noise, 8)) for _ in range(3)]
    times = {"window_start_s": 0.2, "ended_s": 1.2, "window_end_s": 1.2, **others}
    return [make_step(4, float(row.mean()), batches=tuple(row), **times) for row in rows]


def test_what_no_step_shows_alone_the_steps_of_a_level_show_together(make_step: StepMaker) -> None:
    found = [unsettled(climbing(make_step, 0.16, seed=seed)) for seed in range(40)]
    assert found.count((4.0,)) >= 30
    assert [unsettled(climbing(make_step, 0.0, seed=seed)) for seed in range(40)].count((4.0,)) <= 2
    assert not any(unsettled(climbing(make_step, -0.12, seed=seed)) for seed in range(20)), "it falls"


def test_where_nothing_was_cut_off_a_climb_belongs_to_what_is_measured(make_step: StepMaker) -> None:
    assert unsettled(climbing(make_step, 0.5, window_start_s=0.0)) == ()


def test_a_curve_whose_blocks_climb_together_says_so(make_step: StepMaker, simulated: Simulated) -> None:
    book = simulated(flat)
    curve = curve_of(climbing(make_step, 0.2), book.bench.study, "A")
    assert [point.settled for point in curve.points] == [False]


@pytest.mark.parametrize(("more", "kept"), [(1.2, 4.8), (1.0, 0.0)])
def test_levels_that_climb_only_together_are_measured_again_with_a_longer_warm_up(
    simulated: Simulated, more: float, kept: float
) -> None:
    """No step carries the flag, and the slices of all of them rise. Kept is it only where it gives more."""
    book = simulated(flat, noise=0.001)
    bench: Any = book.bench
    real = bench.take_step

    def rising(request: StepRequest) -> Step:
        step: Step = real(request)
        long = request.warmup_s > 2
        throughput = step.throughput * (more if long else 1)
        rise = 0.2 if request.level == 32 and not long else 0.0
        batches = tuple(throughput * (1 + rise * (i / 7 - 0.5)) for i in range(8))
        return replace(step, throughput=throughput, batches=batches)

    bench.take_step = rising
    curve = sweep(book, "A", round_number=1)
    assert [round(warmup_s, 3) for _, level, warmup_s in asked(book) if level == 32][-2:] == [4.8, 4.8]
    assert all(point.settled for point in curve.points)
    assert curve.points[-1].steps == 2
    assert all(warmup_s == 0 for _, level, warmup_s in asked(book) if level != 32)
    assert book.settling.warmup_s(32) == pytest.approx(kept)


def test_a_warm_up_that_the_study_names_stays_as_long_and_what_it_leaves_is_told(simulated: Simulated) -> None:
    book = simulated(flat, "measure.warmup=200ms", noise=0.001)
    bench: Any = book.bench
    real = bench.take_step

    def rising(request: StepRequest) -> Step:
        step: Step = real(request)
        return replace(step, batches=tuple(step.throughput * (0.9 + 0.2 * i / 7) for i in range(8)))

    bench.take_step = rising
    curve = sweep(book, "A", round_number=1)
    assert not any(warmup_s for _, _, warmup_s in asked(book))
    assert not any(point.settled for point in curve.points)
    assert any(words.startswith("not-settled: at 4, 8, 16, 32 ") for words in curve.warnings)
