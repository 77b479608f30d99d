"""One comparison of the first state with that of the kept changes: its ratios at each load, and over all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import pytest

from loadframe.experiments import writing
from loadframe.experiments.proof import level_ratios, verdict_on
from loadframe.model import (
    Curve,
    CurvePoint,
    LevelRatio,
    Peak,
    Price,
    Remedy,
    Round,
    Step,
    TargetState,
    Trial,
    Variant,
    Verdict,
)
from loadframe.reporting import verdict_words

FACTORS = {"A": 100.0, "B": 500.0, "C": 3000.0, "D": 4000.0}
SPREAD = {1: 0.98, 2: 1.03, 3: 1.01}
LOSS = "the last commits may be lost"
AT_CURVES = 4.0
"""Times the first state's throughput in the last curve: what no block of the two together shows."""


def curve(name: str) -> Curve:
    value = AT_CURVES * FACTORS["A"] if name == "C" else FACTORS[name]
    points = tuple(CurvePoint(load, value, 0.95 * value, 1.05 * value, 1.0, 3) for load in (1.0, 2.0, 4.0))
    return Curve("workers", name, points, "plateau", Peak(1.0, value), None, None, None, None)


def blocks(make_step: Callable[..., Step], pair: str, number: int, *, first: int = 1) -> list[Step]:
    """The pair at two loads in three blocks; the state after gains a fifth more at 4 than at 2."""
    return [
        make_step(
            level,
            FACTORS[name] * SPREAD[block] * (1.2 if name == pair[1] and level == 4 else 1.0) * (1 + 0.01 * level),
            treatment=name,
            round=number,
            block=first + block - 1,
            purpose="proof",
            requests=1000,
        )
        for block in SPREAD
        for name in pair
        for level in (2.0, 4.0)
    ]


def trial(steps: Sequence[Step], pair: str, gives_up: str | None = None) -> Trial:
    remedy = Remedy(pair, pair, ("disk.fsync",), (), Price(gives_up))
    return Trial(remedy, True, {}, *pair, verdict=verdict_on(steps, *pair), levels=level_ratios(steps, *pair))


def found(
    make_step: Callable[..., Step], *, total: bool, change: Callable[[Trial], Trial] = lambda one: one
) -> tuple[Variant, Variant]:
    one, two = blocks(make_step, "AB", 1), blocks(make_step, "BC", 2)
    tried = [(change(trial(one, "AB")),), (change(trial(two, "BC", LOSS)),), ()]
    steps = [*one, *two, *(blocks(make_step, "AC", 3) if total else ())]
    rounds = [
        writing.with_intervals(Round(number, name, TargetState(), {}, curve(name), (), (), mine, ()), steps)
        for number, (name, mine) in enumerate(zip("ABC", tried, strict=True), start=1)
    ]
    safe, risky = writing.variants_of(rounds, steps, None)
    return safe, risky


KNOWN = Round(1, "A", TargetState(), {}, curve("A"), (), (), (), ())


def by_load(rows: Sequence[LevelRatio]) -> Mapping[float, float]:
    return {row.load: row.ratio for row in rows}


def mean(rows: Sequence[LevelRatio], loads: Sequence[float]) -> float:
    return math.exp(fmean(math.log(row.ratio) for row in rows if row.load in loads))


def test_blocks_that_held_both_states_against_each_other_give_the_gain_and_its_loads(
    make_step: Callable[..., Step],
) -> None:
    safe, risky = found(make_step, total=True)
    assert by_load(risky.levels) == pytest.approx({1: AT_CURVES, 2: 30, 4: 36}, rel=0.01)
    assert [row.from_curves for row in risky.levels] == [True, False, False]
    assert risky.reported.levels == (2, 4) and risky.reported.blocks == 3
    assert risky.reported.ratio == pytest.approx(mean(risky.levels, (2, 4)))
    assert risky.gain.load == 4 and (risky.gain.before, risky.gain.after) == pytest.approx((104, 3740), rel=0.02)
    assert by_load(safe.levels) == pytest.approx({1: 5, 2: 5, 4: 6}, rel=0.01), "of one change its own trial"
    assert (safe.gives_up, risky.gives_up) == ("", LOSS)
    said = verdict_words.proof_sentence(risky.reported, "workers")
    assert said.startswith("Block by block, on average over 2 and 4 workers: 32.9 times")
    assert verdict_words.by_load(risky, "workers").endswith("; at 1 from the curves, not block by block")


def test_without_such_blocks_all_is_from_the_curves_and_says_so(make_step: Callable[..., Step]) -> None:
    """Not the product of the trials beside the loads of the curves: 33 times, where each load has 4."""
    _, risky = found(make_step, total=False)
    assert all(row.from_curves for row in risky.levels)
    assert risky.reported.levels == (2, 4)
    assert (risky.reported.ratio, risky.reported.decision) == (pytest.approx(AT_CURVES), "better")
    assert risky.reported.low >= min(row.low for row in risky.levels)
    said = verdict_words.proof_sentence(risky.reported, "workers")
    assert said.startswith("From the curves, not block by block, on average over 2 and 4 workers: 4.0 times")
    assert "0 blocks" not in said + verdict_words.gain_sentence(risky.reported, "workers")


def test_a_load_and_all_of_them_have_intervals_of_one_method(make_step: Callable[..., Step]) -> None:
    taken = [step for step in blocks(make_step, "AB", 1) if step.level == 4]
    whole, (row,) = verdict_on(taken, "A", "B"), level_ratios(taken, "A", "B")
    assert (row.ratio, row.low, row.high) == (whole.ratio, whole.low, whole.high)


def earlier(one: Trial) -> Trial:
    return replace(one, levels=tuple(replace(row, low=row.ratio, high=row.ratio) for row in one.levels))


def test_a_trial_of_an_earlier_version_has_its_intervals_from_the_steps(make_step: Callable[..., Step]) -> None:
    for old, new in zip(found(make_step, total=True, change=earlier), found(make_step, total=True), strict=True):
        for one, two in zip(old.levels, new.levels, strict=True):
            assert (one.ratio, one.low, one.high) == pytest.approx((two.ratio, two.low, two.high))
            assert two.low < two.ratio < two.high


def test_where_fresh_blocks_followed_the_deciding_ones_do_not_count(make_step: Callable[..., Step]) -> None:
    deciding = [
        replace(step, throughput=2 * step.throughput) for step in blocks(make_step, "AB", 1) if step.treatment == "B"
    ]
    first = [step for step in blocks(make_step, "AB", 1) if step.treatment == "A"]
    decided = sorted([*first, *deciding], key=lambda step: step.block or 0)
    again = blocks(make_step, "AB", 1, first=4)
    one = trial(decided, "AB")
    one = replace(one, fresh=verdict_on(again, "A", "B"), levels=())
    known = Round(1, "A", TargetState(), {}, curve("A"), (), (), (one,), ())
    (told,) = writing.with_intervals(known, [*decided, *again]).tried
    assert by_load(told.levels) == pytest.approx({2: 5, 4: 6}, rel=0.01)
    assert told.reported.ratio == pytest.approx(mean(told.levels, (2, 4)))


@pytest.mark.parametrize("later", ["AC", "AD"])
def test_another_trial_or_a_control_of_the_same_round_is_no_part_of_a_trial(
    make_step: Callable[..., Step], later: str
) -> None:
    """In their blocks of the same numbers the state before is faster."""
    mine = blocks(make_step, "AB", 1)
    others = [replace(step, throughput=1.3 * step.throughput) for step in blocks(make_step, later, 1)]
    one = earlier(trial(mine, "AB"))
    for steps in ([*mine, *others], [*others, *mine]):
        (told,) = writing.with_intervals(replace(KNOWN, tried=(one,)), steps).tried
        assert by_load(told.levels) == pytest.approx(by_load(one.levels))


def test_trials_of_the_last_state_are_no_part_of_the_total(make_step: Callable[..., Step]) -> None:
    one, two, total = blocks(make_step, "AB", 1), blocks(make_step, "BC", 2), blocks(make_step, "AC", 3)
    vain = [replace(step, throughput=0.5 * step.throughput) for step in blocks(make_step, "CD", 3)]
    tried = [(trial(one, "AB"),), (trial(two, "BC"),), (replace(trial(vain, "CD"), kept=False),)]
    rounds = [
        replace(KNOWN, number=number, treatment=name, curve=curve(name), tried=mine)
        for number, (name, mine) in enumerate(zip("ABC", tried, strict=True), start=1)
    ]
    (told,) = writing.variants_of(rounds, [*one, *two, *vain, *total], None)
    assert by_load(told.levels) == pytest.approx({1: AT_CURVES, 2: 30, 4: 36}, rel=0.01)


def test_a_run_that_ended_right_after_its_second_change_has_the_widths_of_both_sides(
    make_step: Callable[..., Step],
) -> None:
    """One more round would have measured the curve of the state with both."""
    one, two = blocks(make_step, "AB", 1), blocks(make_step, "BC", 2)
    narrow = replace(
        curve("A"),
        points=tuple(replace(p, throughput_low=p.throughput, throughput_high=p.throughput) for p in curve("A").points),
    )
    for width, decision in ((1.02, "better"), (40.0, "no-proven-difference"), (1.0, "cannot-tell")):
        last = trial(two, "BC")
        last = replace(
            last,
            levels=tuple(replace(row, low=row.ratio / width, high=row.ratio * width) for row in last.levels),
        )
        rounds = [
            replace(KNOWN, curve=narrow, tried=(trial(one, "AB"),)),
            replace(KNOWN, number=2, treatment="B", curve=curve("B"), tried=(last,)),
        ]
        (told,) = writing.variants_of(rounds, [*one, *two], None)
        assert (told.reported.decision, told.reported.ratio > 25) == (decision, True)


def test_a_ratio_without_an_interval_decides_nothing_and_gives_way_to_the_curves() -> None:
    """Seen: "5.12x at 4 workers", of rows of an earlier version, where the curves had 5.0 (4.6 to 5.5)."""
    rows = tuple(LevelRatio(load, 100.0, 500.0, 5.0, 5.0, 5.0) for load in (2.0, 4.0, 8.0))
    assert not any(row.decided for row in rows) and rows[0].decision == "cannot-tell"
    verdict = Verdict(5.0, 4.6, 5.5, "better", 3, "", levels=(2.0, 4.0))
    one = Trial(Remedy("b", "b", (), (), Price()), True, {}, "A", "B", verdict=verdict, levels=rows)
    first, second = (
        Round(number, name, TargetState(), {}, curve(name), (), (), (), ()) for number, name in enumerate("AB")
    )
    (variant,) = writing.variants_of([replace(first, tried=(one,)), second], (), None)
    assert [(row.load, row.from_curves, row.decided) for row in variant.levels] == [
        (1, True, True), (2, True, True), (4, True, True), (8, False, False)
    ]  # fmt: skip
    assert all(row.low < row.ratio < row.high for row in variant.levels if row.from_curves)
    (alone,) = writing.variants_of([replace(first, tried=(one,))], (), None)
    assert [row.decided for row in alone.levels if row.load > 1] == [False] * 3, "no curve of the state after"
