"""A state all of whose requests fail against one that serves: decided, without a ratio."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest

import loadframe
from loadframe.analysis.comparison import combine, margin
from loadframe.experiments import fresh
from loadframe.experiments.proof import level_ratios, verdict_on, verdicts_at_each_level
from loadframe.model import TOO_FEW, UNSETTLED, Comparison, Step, Verdict
from loadframe.reporting import verdict_words

StepMaker = Callable[..., Step]
Row = tuple[int, int]
"""Requests that were done, and that failed."""
SERVES, FAILS = (840, 0), (0, 500)


def judged(make_step: StepMaker, before: list[Row], after: list[Row], *, level: float = 8) -> Verdict:
    return verdict_on(steps(make_step, before, after, level), "A", "B")


def steps(make_step: StepMaker, before: list[Row], after: list[Row], level: float = 8) -> list[Step]:
    return [
        make_step(level, done + block % 2, treatment=name, block=block, requests=done, errors=failed)
        if done
        else make_step(level, 0.0, treatment=name, block=block, requests=0, errors=failed)
        for name, side in (("A", before), ("B", after))
        for block, (done, failed) in enumerate(side)
    ]


@pytest.mark.parametrize(
    ("before", "after", "decision", "answer", "said"),
    [
        (SERVES, FAILS, "worse", "proven-worse", "nothing was served in 3 of 3 blocks at 8; before: 840/s"),
        (FAILS, SERVES, "better", "proven-not-worse", "before, nothing was served in 3 of 3 blocks at 8; after: 840/s"),
    ],
)
def test_who_serves_nothing_is_worse_and_has_no_ratio(
    make_step: StepMaker, before: Row, after: Row, decision: str, answer: str, said: str
) -> None:
    found = judged(make_step, [before] * 3, [after] * 3)
    assert (found.decision, found.has_ratio, found.blocks) == (decision, False, 3)
    assert margin(found, 0.5) == answer
    whole = Comparison("as given", "wal", verdict=found)
    for told in (
        verdict_words.gain_sentence(found, "workers"),
        verdict_words.ratio_words(found),
        verdict_words.proof_sentence(found, "workers"),
        verdict_words.comparison_sentence(whole),
    ):
        assert f"{decision}: {said}" in told and "times" not in told, told
    shape = loadframe.comparison_json([whole])
    assert (shape["decision"], shape["ratio"], shape["low"], shape["high"]) == (decision, None, None, None)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([SERVES] * 3, [(0, 5)] * 3),  # too few of its requests ended to say that all of them fail
        ([(19, 0)] * 3, [FAILS] * 3),
        ([SERVES] * 2, [FAILS] * 2),
        ([FAILS] * 3, [FAILS] * 3),
    ],
)
def test_too_little_decides_nothing(make_step: StepMaker, before: list[Row], after: list[Row]) -> None:
    found = judged(make_step, before, after)
    assert (found.decision, found.has_ratio, margin(found, 0.5)) == ("cannot-tell", False, "cannot-tell")


def test_equal_states_that_fail_at_times_are_called_different_as_rarely_as_promised(make_step: StepMaker) -> None:
    """All ways in which each of six steps may fail, each as likely: the worst case."""
    sides = list(product((SERVES, FAILS), repeat=3))
    found = [judged(make_step, list(one), list(two)) for one in sides for two in sides]
    without = [one for one in found if not one.has_ratio and one.decided]
    assert len(without) / len(found) == 2 / 4**3 <= 0.05


@pytest.mark.parametrize(("gain", "decision"), [(1.0, "worse"), (0.5, "worse"), (2.0, "cannot-tell")])
def test_a_level_at_which_all_fails_is_no_part_of_a_ratio(make_step: StepMaker, gain: float, decision: str) -> None:
    """Nor does what it serves at another load make up for it, or the other way round."""
    low = steps(make_step, [SERVES] * 4, [(int(840 * gain), 0)] * 4, 2)
    found = verdict_on([*low, *steps(make_step, [SERVES] * 4, [FAILS] * 4)], "A", "B")
    assert (found.decision, found.has_ratio) == (decision, False)


def test_the_whole_of_changes_one_of_which_has_no_ratio_has_none(make_step: StepMaker) -> None:
    cured = judged(make_step, [FAILS] * 3, [SERVES] * 3)
    more = judged(make_step, [SERVES] * 3, [(1700, 0)] * 3)
    same = judged(make_step, [SERVES] * 3, [SERVES] * 3)
    assert more.has_ratio and more.decision == "better"
    found = combine([cured, more])
    assert (found.decision, found.has_ratio) == ("better", False) and "nothing was served" in found.method
    assert combine([cured, same]).decision == "cannot-tell"


def test_each_load_of_an_alternative_is_judged_as_a_trial_is(make_step: StepMaker) -> None:
    """Where a warm-up had not ended, or all failed, no ratio of the throughputs is told."""
    rows = [
        *steps(make_step, [SERVES] * 4, [(1700, 0)] * 4, 2),
        *steps(make_step, [SERVES] * 4, [FAILS] * 4, 4),
        *(replace(step, flags=(UNSETTLED,)) for step in steps(make_step, [SERVES] * 4, [(1700, 0)] * 4, 8)),
        *(replace(step, flags=(TOO_FEW,)) for step in steps(make_step, [SERVES] * 4, [(1700, 0)] * 4, 16)),
    ]
    found = verdicts_at_each_level(rows, "A", "B", error=0.05)
    assert [(one.decision, one.has_ratio) for one in found] == [
        ("better", True),
        ("worse", False),
        ("cannot-tell", True),
        ("cannot-tell", False),
    ]


def test_fresh_blocks_are_as_many_as_it_takes_to_see_again_that_one_side_serves_nothing(make_step: StepMaker) -> None:
    """At two levels four blocks."""
    taken = [step for level in (8, 16) for step in steps(make_step, [FAILS] * 4, [SERVES] * 4, level)]
    known = verdict_on(taken, "A", "B")
    assert (known.decision, known.has_ratio) == ("better", False)
    for most in (3, 10):
        blocks = fresh.wanted([known], most)
        again = [step for step in taken if (step.block or 0) < blocks]
        assert verdict_on(again, "A", "B").decision == "better"


def test_a_load_of_which_nothing_can_be_told_has_no_ratio(make_step: StepMaker) -> None:
    quiet = steps(make_step, [SERVES] * 3, [(1680, 0)] * 3)
    rising = [replace(step, flags=(UNSETTLED,)) if step.treatment == "A" else step for step in quiet]
    assert [row.decision for row in level_ratios(quiet, "A", "B")] == ["better"]
    for taken in (rising, steps(make_step, [SERVES], [(1680, 0)])):
        assert verdict_on(taken, "A", "B").decision == "cannot-tell"
        assert level_ratios(taken, "A", "B") == ()
