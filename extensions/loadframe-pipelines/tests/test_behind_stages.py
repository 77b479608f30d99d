"""What a stage that limits waits for in its server: by the operations of the stage, not by its entries."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from loadframe.analysis.curve import LevelSample, fit
from loadframe.diagnosis import judging
from loadframe.diagnosis.findings import diagnose
from loadframe.diagnosis.remedies import Situation, propose
from loadframe.diagnosis.windows import look
from loadframe.model import Finding, Step, TargetState, Verdict

StepMaker = Callable[..., Step]
RATE, BATCH = 2000.0, 50.0
STAGES = {
    "workload.stages": 2.0,
    "pipeline.SCAN.order": 0.0,
    "pipeline.SCAN.busy_share": 0.2,
    "pipeline.SCAN.blocked_share": 0.8,
    "pipeline.SCAN.idle_share": 0.0,
    "pipeline.SCAN.workers": 1.0,
    "pipeline.SCAN.done": RATE / 30,
    "pipeline.DB_APPLY.order": 1.0,
    "pipeline.DB_APPLY.busy_share": 0.98,
    "pipeline.DB_APPLY.blocked_share": 0.0,
    "pipeline.DB_APPLY.idle_share": 0.02,
    "pipeline.DB_APPLY.workers": 1.0,
    "pipeline.DB_APPLY.waiting": 9.0,
    "pipeline.DB_APPLY.queue_share": 0.9,
    "pipeline.DB_APPLY.entries": RATE,
    "pipeline.DB_APPLY.done": RATE / BATCH,
    "pipeline.DB_APPLY.capacity": RATE,
    "pipeline.DB_APPLY.server_share": 0.9,
}
FLUSHES = {
    "system.disk.flushes": RATE / BATCH,
    "system.disk.flushes_per_request": 1 / BATCH,
    "system.pressure.io.some": 0.7,
    "system.cpu.own": 0.3,
    "target.cage.writes": 2 * RATE / BATCH,
}
READS = {"mariadb.pool_reads": 0.5 * RATE / BATCH, "system.cpu.own": 0.3}
"""One page for two operations, one entry in a hundred."""


def _findings(make_step: StepMaker, more: dict[str, float]) -> tuple[Finding, ...]:
    steps = [
        make_step(level, RATE * (1 + 0.01 * block), STAGES | more, block=block)
        for block in (1, 2, 3)
        for level in (1.0, 2.0, 4.0)
    ]
    samples = [LevelSample(level, (RATE, RATE * 1.01, RATE * 1.02), (1.0,) * 3) for level in (1.0, 2.0, 4.0)]
    windows = look(fit(samples, axis="scan_threads", treatment="A"), steps)
    return diagnose(windows, [])[0]


def _ids(found: tuple[Finding, ...]) -> list[str]:
    return [one.id for one in found]


def test_a_flush_for_each_batch_is_what_the_stage_waits_for(make_step: StepMaker) -> None:
    stage, cause = _findings(make_step, FLUSHES)[:2]
    assert (stage.id, cause.id, cause.behind) == ("pipeline.DB_APPLY", "disk.fsync", "pipeline.DB_APPLY")
    assert "every commit waits for the disk" in stage.explanation
    assert "It is what DB_APPLY waits for." in cause.explanation
    told = {piece.metric: piece for piece in cause.evidence}
    assert told["system.disk.flushes_per_request"].value == pytest.approx(1 / BATCH), "in the entries of the load"
    assert told["system.disk.flushes_per_request"].threshold == pytest.approx(0.5 / BATCH, rel=0.05)
    assert told["pipeline.DB_APPLY.server_share"].value == pytest.approx(0.9)
    assert told["target.cage.writes"].value == pytest.approx(2 * RATE / BATCH)


def test_all_that_is_seen_there_is_told_the_deeper_first(make_step: StepMaker) -> None:
    found = _findings(make_step, FLUSHES | READS)
    assert _ids(found)[:3] == ["pipeline.DB_APPLY", "disk.fsync", "mariadb.buffer_pool"]
    assert "every commit waits for the disk; the buffer pool is too small" in found[0].explanation


@pytest.mark.parametrize(
    "more",
    [
        {"pipeline.DB_APPLY.server_share": 0.3},
        {"workload.stages": math.nan},
        {"pipeline.DB_APPLY.server_share": math.nan},
        {"pipeline.DB_APPLY.done": math.nan},
        {"system.disk.flushes_per_request": 0.1 / BATCH},
        {"system.pressure.io.some": 0.01},
    ],
    ids=["computes", "a service's", "not told", "no operations", "few flushes", "no wait"],
)
def test_without_the_evidence_nothing_is_behind_the_stage(make_step: StepMaker, more: dict[str, float]) -> None:
    """nan: that metric is missing."""

    def without(level: float, rate: float, metrics: dict[str, float], block: int) -> Step:
        kept = {name: value for name, value in metrics.items() if not math.isnan(value)}
        return make_step(level, rate, kept, block=block)

    assert not [one for one in _findings(without, FLUSHES | more) if one.behind or one.id == "disk.fsync"]


SITUATION = Situation(
    target_kind="mariadb",
    state=TargetState(settings={}),
    effective={"innodb_flush_log_at_trx_commit": 1, "innodb_buffer_pool_size": 8 << 20},
    demands={},
    ceilings={},
    most_open_files=1024,
)


def test_its_remedies_come_before_those_of_the_stage_and_are_for_both(make_step: StepMaker) -> None:
    found = propose(_findings(make_step, FLUSHES | READS), SITUATION)
    assert [one.id.split(".")[1] for one in found] == ["flush_log_each_second", "buffer_pool"]
    assert found[0].addresses == ("disk.fsync", "pipeline.DB_APPLY")
    assert found[1].addresses == ("mariadb.buffer_pool", "pipeline.DB_APPLY")


def test_a_cause_has_its_remedy_also_without_its_stage(make_step: StepMaker) -> None:
    """Of a run that was kept, a finding may be looked at alone."""
    cause = next(one for one in _findings(make_step, FLUSHES) if one.behind)
    assert [one.id for one in propose([cause], SITUATION)] == ["mariadb.flush_log_each_second"]


def _sides(make_step: StepMaker, flushes: float) -> tuple[list[Step], list[Step]]:
    before = [make_step(4.0, RATE, STAGES | FLUSHES, block=block) for block in (1, 2, 3)]
    there = {
        **STAGES,
        **FLUSHES,
        "system.disk.flushes_per_request": flushes,
        "pipeline.DB_APPLY.entries": 3 * RATE,
    }
    after = [make_step(4.0, 3 * RATE, there, block=block) for block in (1, 2, 3)]
    return before, after


VERDICT = Verdict(ratio=3.0, low=2.8, high=3.2, decision="better", blocks=3, method="test")


def test_a_change_of_the_server_confirms_the_cause_and_the_stage(make_step: StepMaker) -> None:
    found = _findings(make_step, FLUSHES)
    flush = propose(found, SITUATION)[0]
    settled = judging.judge(found, flush, VERDICT, *_sides(make_step, 0.0001))
    assert {one.id: one.status for one in settled[:2]} == {"pipeline.DB_APPLY": "confirmed", "disk.fsync": "confirmed"}


def test_where_the_flushes_stay_the_cause_is_not_confirmed(make_step: StepMaker) -> None:
    found = _findings(make_step, FLUSHES)
    flush = propose(found, SITUATION)[0]
    settled = judging.judge(found, flush, VERDICT, *_sides(make_step, 1 / BATCH))
    assert settled[1].status == "helped" and settled[1].id == "disk.fsync"


def test_another_cause_of_another_stage_is_none_of_this_limit(make_step: StepMaker) -> None:
    found = _findings(make_step, FLUSHES)
    flush = propose(found, SITUATION)[0]
    apart = tuple(replace(one, behind="") for one in found)
    settled = judging.judge(apart, flush, VERDICT, *_sides(make_step, 0.0001))
    assert sorted(one.status for one in settled[:2]) == ["confirmed", "helped"]
