"""A limit that shows in no counter of harm is suspected only where it fills as throughput ends to grow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from loadframe.analysis.comparison import verdict_at_end
from loadframe.analysis.curve import LevelSample, fit
from loadframe.diagnosis.findings import diagnose
from loadframe.diagnosis.judging import judge
from loadframe.diagnosis.waiting_limits import behind
from loadframe.diagnosis.windows import look
from loadframe.ledger.reading import read_limits
from loadframe.ledger.rules import rules_for
from loadframe.model import Evidence, Finding, Price, Remedy, RuledOut, Step, TargetState
from loadframe.study.exposed_tables import LimitTable

StepMaker = Callable[..., Step]
IDLE = {"system.cpu.utilization": 0.3, "system.cpu.count": 2.0}
LEVELS = (1, 2, 4, 8, 16)
POOL = LimitTable.model_validate({"name": "pool", "use": "in_use", "ceiling": "size", "title": "the pool"})


def steps_of(
    make_step: StepMaker,
    in_use: Callable[[float], float],
    throughput: Callable[[float], float],
    more: Mapping[str, float] = IDLE,
    *,
    levels: Sequence[float] = LEVELS,
) -> list[Step]:
    return [
        make_step(
            level,
            throughput(level) * (1 + 0.01 * block),
            {**more, "service.in_use": in_use(level), "service.size": 4.0},
            block=block,
        )
        for block in (1, 2, 3)
        for level in levels
    ]


def diagnosed(steps: Sequence[Step], limit: LimitTable = POOL) -> tuple[list[Finding], list[RuledOut]]:
    samples = [
        LevelSample(
            level,
            tuple(step.throughput for step in steps if step.level == level),
            tuple(step.latency.p95_ms for step in steps if step.level == level),
        )
        for level in sorted({step.level for step in steps})
    ]
    curve = fit(samples, axis="concurrency", treatment="A")
    limits = [one.limit for one in read_limits(steps, TargetState(), {}, rules_for([limit], steps))]
    findings, cleared = diagnose(look(curve, steps), limits)
    return list(findings), [one for one in cleared if one.id == "service.pool"]


def plateau(level: float) -> float:
    return 50.0 * min(level, 4)


def test_a_pool_that_is_full_from_the_bend_on_is_suspected_and_no_more(make_step: StepMaker) -> None:
    (first, *_), _ = diagnosed(steps_of(make_step, lambda level: min(level, 4), plateau))
    assert (first.id, first.status, first.title) == ("service.pool", "suspected", "the pool is full at 4")
    full, below = first.evidence
    assert (full.value, full.comparison, below.comparison) == (4, ">=", "<") and below.value < 4
    assert first.reached_at is not None and 2 <= first.reached_at.load <= 8
    assert "nothing counts them" in first.explanation


def test_a_ceiling_may_be_a_number(make_step: StepMaker) -> None:
    number = LimitTable.model_validate({"name": "pool", "use": "in_use", "ceiling": 4})
    (first, *_), _ = diagnosed(steps_of(make_step, lambda level: min(level, 4), plateau), number)
    assert (first.id, first.title) == ("service.pool", "pool is full at 4")


@pytest.mark.parametrize(
    "in_use",
    [lambda level: min(level, 3), lambda level: 4.0, lambda level: 4.0 if level in (1, 16) else 3.0, lambda level: 0.0],
    ids=["not full", "full at every level, while throughput grows", "full at times", "unused"],
)
def test_what_does_not_begin_at_the_bend_is_ruled_out(in_use: Callable[[float], float], make_step: StepMaker) -> None:
    found, cleared = diagnosed(steps_of(make_step, in_use, plateau))
    assert "service.pool" not in [one.id for one in found] and len(cleared) == 1


def test_a_use_above_its_ceiling_is_a_metric_of_something_else(make_step: StepMaker) -> None:
    found, (cleared,) = diagnosed(steps_of(make_step, lambda level: 900.0 if level >= 4 else 3.0, plateau))
    assert "service.pool" not in [one.id for one in found]
    assert "above its ceiling of 4: one of the two metrics is not what the study says" in cleared.because


def test_a_full_pool_while_throughput_grows_on_is_no_cause(make_step: StepMaker) -> None:
    found, cleared = diagnosed(steps_of(make_step, lambda level: min(level, 4), lambda level: 50.0 * level))
    assert "service.pool" not in [one.id for one in found] and len(cleared) == 1


def test_a_pool_of_one_is_full_at_every_level_of_a_flat_curve(make_step: StepMaker) -> None:
    found, _ = diagnosed(steps_of(make_step, lambda level: 4.0, lambda level: 50.0))
    (pool,) = [one for one in found if one.id == "service.pool"]
    assert pool.reached_at is None and pool.score <= 0.5


def test_a_pool_in_front_of_busy_cpus_comes_behind_them(make_step: StepMaker) -> None:
    busy = {"system.cpu.utilization": 0.98, "system.cpu.own": 0.97, "target.saturation": 0.97, "system.cpu.count": 2.0}
    found, _ = diagnosed(steps_of(make_step, lambda level: min(level, 4), plateau, busy))
    ids = [one.id for one in found]
    assert "service.pool" in ids and ids[0] != "service.pool"
    (pool,) = [one for one in found if one.id == "service.pool"]
    assert "may be what fills it" in pool.explanation


def test_cpus_that_others_use_are_none_that_it_waits_for(make_step: StepMaker) -> None:
    crowd = {"system.cpu.utilization": 0.98, "system.cpu.own": 0.1, "target.saturation": 0.05, "system.cpu.count": 2.0}
    (pool,) = [
        one
        for one in diagnosed(steps_of(make_step, lambda level: min(level, 4), plateau, crowd))[0]
        if one.id == "service.pool"
    ]
    assert pool.score > 0.6 and "may be what fills it" not in pool.explanation


def test_it_comes_behind_the_finding_that_names_it_as_what_serves(make_step: StepMaker) -> None:
    full = Evidence("service.in_use", 4, "about", 4, "on the plateau")
    seen = Finding("service.parallelism", "4 at a time", None, (full,), 0.51)
    pool = Finding("service.pool", "full", None, (full,), 0.9)
    other = replace(pool, id="service.other", evidence=(replace(full, metric="service.queued"),))
    scores = {one.id: one.score for one in behind([seen, pool, other])}
    assert scores["service.other"] == 0.9 > scores["service.parallelism"] == 0.51 > scores["service.pool"]


def test_a_use_that_was_not_told_at_a_level_says_nothing(make_step: StepMaker) -> None:
    steps = steps_of(make_step, lambda level: min(level, 4), plateau)
    unsure = [step for step in steps if step.level != 8]
    unsure += [make_step(8, plateau(8), IDLE, block=block) for block in (1, 2, 3)]
    found, cleared = diagnosed(unsure)
    assert "service.pool" not in [one.id for one in found] and not cleared


def test_it_is_confirmed_only_where_more_than_the_former_ceiling_was_in_use(make_step: StepMaker) -> None:
    before = steps_of(make_step, lambda level: 4.0, lambda level: 200.0, levels=[8])
    (pool,) = [
        one
        for one in diagnosed(steps_of(make_step, lambda level: min(level, 4), plateau))[0]
        if one.id == "service.pool"
    ]
    remedy = Remedy("raise", "raise", ("service.pool",), (), Price())
    gain = verdict_at_end({8.0: [100.0, 101.0, 99.0]}, {8.0: [200.0, 202.0, 198.0]})

    def judged(after: float) -> str:
        made = [
            make_step(8, 400.0, {**IDLE, "service.in_use": after, "service.size": 16.0}, block=block, treatment="B")
            for block in (1, 2, 3)
        ]
        return judge([pool], remedy, gain, before, made)[0].status

    assert judged(8.0) == "confirmed"
    assert judged(4.0) == "helped", "of a larger pool a smaller share is in use by arithmetic alone"
