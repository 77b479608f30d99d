"""Which stage of a pipeline limits it. The rivals are the two rules of thumb: the stage with the longest operations,
and the one with the longest queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from loadframe.analysis.curve import LevelSample, fit
from loadframe.diagnosis.findings import diagnose
from loadframe.diagnosis.windows import look
from loadframe.ledger.reading import read_limits
from loadframe.ledger.rules import rules_for
from loadframe.model import Finding, RuledOut, Step, TargetState
from loadframe_pipelines import causes
from loadframe_pipelines.stages import Limiting, Stage, limiting

StepMaker = Callable[..., Step]


def _stage(name: str, busy: float | None, idle: float = 0.0, blocked: float = 0.0, **more: float) -> Stage:
    return Stage(name, busy=busy, idle=idle, blocked=blocked, done=1000.0, entries=1000.0, **more)


CLOGGED = [
    _stage("SCAN", 0.3, blocked=0.7, workers=2),
    _stage("GET_INFO", 0.4, blocked=0.6, workers=4, waiting=400, room=0.9, ms_per_op=9),
    _stage("DB_APPLY", 0.98, workers=1, waiting=90, room=0.9, ms_per_op=4),
    _stage("ACK", 0.05, idle=0.95, workers=1, waiting=0),
]
"""A slow sink: the operation of GET_INFO takes longer, and more entries wait before it; but it has four workers."""
STARVED = [
    _stage("SCAN", 0.99, workers=1, ms_per_op=1),
    _stage("GET_INFO", 0.3, idle=0.7, workers=4, waiting=3, ms_per_op=5),
    _stage("DB_APPLY", 0.4, idle=0.6, workers=1, waiting=60, batch=100, ms_per_op=60),
]
"""A slow source: entries wait before DB_APPLY, but for its batch to be filled."""


def _name(stages: list[Stage]) -> str:
    found = limiting(stages)
    assert isinstance(found, Limiting), found
    return stages[found.at].name if found.kind != "source" else "source"


def _longest_operation(stages: list[Stage]) -> str:
    return max(stages, key=lambda stage: stage.ms_per_op or 0.0).name


def _longest_queue(stages: list[Stage]) -> str:
    return max(stages, key=lambda stage: stage.waiting or 0.0).name


@pytest.mark.parametrize(("stages", "name"), [(CLOGGED, "DB_APPLY"), (STARVED, "SCAN")])
def test_the_stage_that_limits_is_found_where_the_rules_of_thumb_name_another(stages: list[Stage], name: str) -> None:
    assert _name(stages) == name
    assert _longest_operation(stages) != name
    assert _longest_queue(stages) != name


def test_what_the_other_stages_show_bears_it_out() -> None:
    clogged, starved = limiting(CLOGGED), limiting(STARVED)
    assert isinstance(clogged, Limiting)
    assert isinstance(starved, Limiting)
    assert clogged.seen == ("queue", "before", "behind")
    assert starved.seen == ("behind",)


def test_of_two_stages_at_work_the_later_limits_where_entries_wait_before_it() -> None:
    stages = [
        _stage("SCAN", 0.95, workers=1),
        _stage("APPLY", 0.97, workers=1, waiting=500, growth=50.0),
        _stage("ACK", 0.1, idle=0.9),
    ]
    assert _name(stages) == "APPLY"
    stages[1] = _stage("APPLY", 0.9, workers=1, waiting=0.1, growth=0.0, room=0.01)
    assert _name(stages) == "SCAN"


def test_a_queue_that_only_trembles_is_not_one_that_fills() -> None:
    stages = [
        _stage("SCAN", 0.97, workers=1),
        _stage("APPLY", 0.9, workers=1, waiting=5, room=0.05, growth=20.0),
    ]
    assert _name(stages) == "SCAN"
    stages[1] = _stage("APPLY", 0.9, workers=1, waiting=5, room=0.05, growth=200.0)
    assert _name(stages) == "APPLY"


def test_a_later_stage_that_is_nearly_always_at_work_and_keeps_up_is_not_the_one() -> None:
    """As seen: queries of one entry on one thread, a full queue before them, and transactions that are as fast."""
    stages = [
        _stage("SCAN", 0.02, blocked=0.98, workers=1),
        _stage("GET_INFO_DB", 1.0, workers=1, waiting=10_000, room=1.0, growth=0.0),
        _stage("GET_INFO_FS", 0.05, idle=0.98, workers=1, waiting=0.0, room=0.0),
        _stage("DB_APPLY", 0.87, idle=0.17, workers=1, waiting=118, room=0.01, growth=-70.0),
    ]
    found = limiting(stages)
    assert found == Limiting("stage", 1, ("queue", "before"), also=3)


def test_where_all_stages_wait_the_source_limits() -> None:
    stages = [_stage(name, 0.2, idle=0.8, workers=1, waiting=0) for name in ("READ", "APPLY")]
    assert _name(stages) == "source"


def test_it_is_not_told_where_workers_say_nothing_of_their_time() -> None:
    found = limiting([_stage("SCAN", 0.9), Stage("APPLY", waiting=1000)])
    assert isinstance(found, str)
    assert found.startswith("APPLY reports neither")


def test_it_is_not_told_where_what_holds_back_is_between_the_stages() -> None:
    found = limiting([_stage("SCAN", 0.2, blocked=0.8), _stage("APPLY", 0.4, idle=0.6)])
    assert isinstance(found, str)
    assert "something between" in found


def test_it_is_not_told_where_no_stage_is_at_work_all_the_time() -> None:
    assert isinstance(limiting([_stage("SCAN", 0.6, idle=0.1), _stage("APPLY", 0.5, idle=0.1)]), str)


def _pool(name: str, at_work: float, waiting: float, idle: float) -> Stage:
    return Stage(name, at_work=at_work, waiting=waiting, entries=100.0, pool_idle=idle)


def test_of_one_pool_for_all_stages_the_one_that_takes_most_of_it() -> None:
    """RobinHood tells the seconds in each stage, and how many threads are idle in all."""
    stages = [_pool("GET_INFO_FS", 1.0, 5000, 0.0), _pool("DB_APPLY", 7.0, 900, 0.0)]
    found = limiting(stages)
    assert found == Limiting("pool", 1, ("queue",))


def test_of_one_pool_a_stage_before_which_entries_wait_while_workers_are_idle() -> None:
    stages = [_pool("GET_INFO_FS", 0.5, 0, 6.0), _pool("DB_APPLY", 1.0, 4000, 6.0)]
    assert limiting(stages) == Limiting("quota", 1, ("queue",))


def test_of_one_pool_that_is_idle_and_finds_no_queue_the_source_limits() -> None:
    assert limiting([_pool("GET_INFO_FS", 0.5, 0, 6.0), _pool("DB_APPLY", 0.5, 0, 6.0)]) == Limiting("source", 0)


def test_work_that_contradicts_the_time_of_operations_is_seen() -> None:
    assert Stage("A", at_work=1.0, batch=10, current=100).contradicts
    assert not Stage("A", at_work=1.0, batch=10, current=9).contradicts
    assert not Stage("A", at_work=1.0, batch=10, current=1).contradicts


# --- as findings ---


def _metrics(stages: list[Stage]) -> dict[str, float]:
    metrics: dict[str, float] = {}
    for order, stage in enumerate(stages):
        ends = {
            "order": float(order),
            "busy_share": stage.busy,
            "idle_share": stage.idle,
            "blocked_share": stage.blocked,
            "workers": stage.workers,
            "busy": (stage.busy or 0.0) * (stage.workers or 1.0) if stage.at_work is None else stage.at_work,
            "current": stage.current,
            "current_most": stage.most_current,
            "entries": stage.entries,
            "waiting": stage.waiting,
            "queue_share": stage.room,
        }
        metrics |= {f"pipeline.{stage.name}.{end}": value for end, value in ends.items() if value is not None}
    return metrics


def _diagnosed(
    make_step: StepMaker, rows: Sequence[tuple[float, float, list[Stage]]], more: dict[str, float] | None = None
) -> tuple[tuple[Finding, ...], tuple[RuledOut, ...]]:
    """rows: level, throughput, what the stages do there."""
    steps = [
        make_step(level, throughput * (1 + 0.01 * block), _metrics(stages) | (more or {}), block=block)
        for block in (1, 2, 3)
        for level, throughput, stages in rows
    ]
    samples = [
        LevelSample(level, tuple(step.throughput for step in steps if step.level == level), (1.0,) * 3)
        for level, _, _ in rows
    ]
    windows = look(fit(samples, axis="scan_threads", treatment="A"), steps)
    return diagnose(windows, [])


RISING = [(1.0, 1000.0, STARVED), (2.0, 2000.0, STARVED), (4.0, 3000.0, CLOGGED), (8.0, 3000.0, CLOGGED)]


def test_levels_of_millions_are_written_out(make_step: StepMaker) -> None:
    """The full study loads up to 3,000,000 entries; "3e+06" is no number for people."""
    rows = [(1e6 * level, throughput, stages) for level, throughput, stages in RISING]
    first = _diagnosed(make_step, rows)[0][0]
    assert "At 1,000,000 to 2,000,000 it is SCAN." in first.explanation
    assert "at 4,000,000 to 8,000,000" in first.evidence[0].window


def test_the_stage_past_the_bend_is_the_first_finding(make_step: StepMaker) -> None:
    first = _diagnosed(make_step, RISING)[0][0]
    assert first.id == "pipeline.DB_APPLY"
    assert first.reached_at is not None
    assert first.reached_at.load == 4
    assert "At 1 to 2 it is SCAN." in first.explanation
    assert {each.metric for each in first.evidence} >= {
        "pipeline.DB_APPLY.busy_share",
        "pipeline.DB_APPLY.waiting",
        "pipeline.SCAN.blocked_share",
        "pipeline.ACK.idle_share",
    }


def test_the_stage_that_limits_next_is_named(make_step: StepMaker) -> None:
    near = [*CLOGGED[:2], CLOGGED[2], _stage("ACK", 0.7, idle=0.3, workers=1, waiting=0)]
    found = _diagnosed(make_step, [(1.0, 1000.0, near), (2.0, 1000.0, near), (4.0, 1000.0, near)])[0][0]
    assert "The next one is ACK, at work for 70 % of the time." in found.explanation


def test_every_other_stage_is_ruled_out_by_what_its_workers_do(make_step: StepMaker) -> None:
    first = _diagnosed(make_step, RISING)[0][0]
    why = {each.id: each.because for each in first.ruled_out}
    assert "blocked for 70 %" in why["pipeline.SCAN"]
    assert "idle for 95 %" in why["pipeline.ACK"]


ONE_THREAD = [
    _stage("GET_INFO_FS", 0.23, idle=0.08, blocked=0.69, workers=1, waiting=526),
    _stage("DB_APPLY", 0.69, idle=0.31, workers=1, waiting=0),
]
"""The reader of a change log at its highest rate: one thread looks a batch up and writes it, in turns."""


ONE_DIRECTORY = [
    _stage("SCAN", 0.25, idle=0.75, workers=4, at_work=1.0, current=1.0, most_current=1.0),
    _stage("GET_INFO_FS", 0.1, idle=0.9, workers=4, waiting=0),
    _stage("DB_APPLY", 0.3, idle=0.7, workers=1, waiting=0),
]
"""All files are in one directory of a slow file system: one thread lists it, the other three have none to list."""


def test_a_stage_with_one_operation_at_a_time_limits_though_most_of_its_workers_are_idle() -> None:
    assert limiting(ONE_DIRECTORY) == Limiting("single", 0, ("behind",))
    slow_source = replace(ONE_DIRECTORY[0], most_current=3.0)
    assert limiting([slow_source, *ONE_DIRECTORY[1:]]) == Limiting("source", 0)
    between = replace(ONE_DIRECTORY[0], at_work=0.6)
    assert limiting([between, *ONE_DIRECTORY[1:]]) == Limiting("source", 0), "nothing is in work much of the time"


def test_one_operation_at_a_time_is_a_finding_that_more_workers_cannot_help(make_step: StepMaker) -> None:
    alone = [_stage("SCAN", 0.98, workers=1), *ONE_DIRECTORY[1:]]
    rows = [(1.0, 1000.0, alone), (2.0, 1000.0, ONE_DIRECTORY), (4.0, 1000.0, ONE_DIRECTORY)]
    first = _diagnosed(make_step, rows)[0][0]
    assert first.id == "pipeline.SCAN"
    assert first.reached_at is not None and first.reached_at.load == 1.0
    assert "one operation at a time" in first.title
    assert "More workers cannot help" in first.explanation
    assert any(each.metric == "pipeline.SCAN.current_most" for each in first.evidence)


def test_one_operation_at_a_time_is_seen_in_the_mean_of_levels(make_step: StepMaker) -> None:
    """The first level has one worker, which is at work all the time; throughput is flat from there on."""
    alone = [
        _stage("SCAN", 0.98, workers=1, at_work=0.98, current=1.0, most_current=1.0),
        *ONE_DIRECTORY[1:],
    ]
    two = [replace(ONE_DIRECTORY[0], busy=0.5, idle=0.5, workers=2), *ONE_DIRECTORY[1:]]
    first = _diagnosed(make_step, [(1.0, 1000.0, alone), (2.0, 1000.0, two)])[0][0]
    assert first.id == "pipeline.SCAN"


def test_processes_of_which_one_has_no_entries_are_said(make_step: StepMaker) -> None:
    apply = replace(CLOGGED[2], workers=2, at_work=0.98)
    rows = [(1.0, 1000.0, CLOGGED), (2.0, 1000.0, [*CLOGGED[:2], apply, CLOGGED[3]])]
    first = _diagnosed(make_step, rows)[0][0]
    assert first.id == "pipeline.DB_APPLY"
    assert "in the processes that entries pass through" in first.title
    assert "hardly any entries" in first.explanation


def test_of_stages_that_take_turns_the_one_that_takes_most_limits() -> None:
    found = limiting(ONE_THREAD)
    assert found == Limiting("turns", 1, ("before",))
    slow_source = [
        _stage("GET_INFO_FS", 0.12, idle=0.54, blocked=0.34, workers=1),
        _stage("DB_APPLY", 0.34, idle=0.66, workers=1),
    ]
    assert isinstance(limiting(slow_source), str), "idle half of the time"
    unseen = [_stage("READ", 0.3, blocked=0.7, workers=1), _stage("WRITE", 0.2, idle=0.8, workers=1)]
    assert isinstance(limiting(unseen), str), "what READ waits for is not WRITE"
    several = [_stage("READ", 0.3, blocked=0.7, workers=1), _stage("WRITE", 0.7, idle=0.3, workers=4)]
    assert isinstance(limiting(several), str), "they are not one thread's"


def test_stages_that_take_turns_are_a_finding_with_what_they_do_together(make_step: StepMaker) -> None:
    steps = [(level, rate, ONE_THREAD) for level, rate in ((1.0, 100.0), (2.0, 200.0), (4.0, 210.0), (8.0, 205.0))]
    (finding,) = [one for one in _diagnosed(make_step, steps)[0] if one.id.startswith("pipeline.")]
    assert finding.id == "pipeline.DB_APPLY"
    assert "in one stage at a time, most of the time in DB_APPLY" in finding.title
    assert any("92 % together" in each.source for each in finding.evidence)


def test_where_the_cpus_are_used_up_they_come_first(make_step: StepMaker) -> None:
    """Workers that wait for a CPU are at work all the time, too."""
    busy = {"system.cpu.utilization": 0.99, "system.cpu.own": 0.97, "workload.stages": 4.0}
    found = _diagnosed(make_step, RISING, busy)[0]
    stage = next(each for each in found if each.id == "pipeline.DB_APPLY")
    assert found[0].id == "cpu.saturated"
    assert "may wait for a CPU" in stage.explanation


@pytest.mark.parametrize(("component", "cause"), [("target", "cage.cpu_quota"), ("driver", "cage.driver.cpu_quota")])
def test_where_a_quota_of_the_cpus_is_used_up_it_comes_first(make_step: StepMaker, component: str, cause: str) -> None:
    """A stage at work only waits for the next period of the quota."""
    cage = f"{component}.cage.cpu"
    spent = {f"{cage}.utilization": 0.85, f"{cage}.throttled_share": 0.9, "workload.stages": 4.0}
    found = _diagnosed(make_step, RISING, spent)[0]
    assert found[0].id == cause
    (stage,) = [one for one in found if one.id.startswith("pipeline.")]
    assert "may wait for a CPU" in stage.explanation


def test_a_driver_that_is_the_pipeline_does_not_hide_its_stages(make_step: StepMaker) -> None:
    found = _diagnosed(make_step, RISING, {"driver.saturation": 0.99, "workload.stages": 4.0})[0]
    assert "driver.limited" not in {each.id for each in found}
    assert "pipeline.DB_APPLY" in {each.id for each in found}
    other = _diagnosed(make_step, RISING, {"driver.saturation": 0.99})[0]
    assert [each.id for each in other] == ["driver.limited"]


def test_idle_stages_below_the_bend_are_no_finding(make_step: StepMaker) -> None:
    idle = [_stage("READ", 0.2, idle=0.8, workers=1), _stage("APPLY", 0.2, idle=0.8, workers=1)]
    growing = [(level, 100 * level, idle) for level in (1.0, 2.0, 4.0, 8.0)]
    own = {"workload.stages": 2.0}
    found, cleared = _diagnosed(make_step, growing, own)
    assert not found
    assert [each.id for each in cleared if each.id.startswith("pipeline.")] == ["pipeline.source"]
    flat = [(level, 100.0, idle) for level in (1.0, 2.0, 4.0, 8.0)]
    assert _diagnosed(make_step, flat, own)[0][0].id == "pipeline.source"
    assert not _diagnosed(make_step, flat)[0], "a load from outside is what feeds it"


def test_what_cannot_be_seen_is_said(make_step: StepMaker) -> None:
    blank = [Stage("SCAN", waiting=3.0, entries=10.0), Stage("APPLY", waiting=900.0, entries=10.0)]
    rows = [(level, 100.0, blank) for level in (1.0, 2.0, 4.0)]
    metrics = {f"pipeline.{name}.waiting": 5.0 for name in ("SCAN", "APPLY")}
    steps = [make_step(level, 100.0, metrics, block=block) for block in (1, 2) for level, _, _ in rows]
    samples = [LevelSample(level, (100.0, 100.0), (1.0, 1.0)) for level, _, _ in rows]
    (told,) = causes.findings(look(fit(samples, axis="scan_threads", treatment="A"), steps))
    assert isinstance(told, RuledOut)
    assert "is not known" in told.because


def test_the_ledger_has_the_workers_the_queue_and_the_change_log(make_step: StepMaker) -> None:
    metrics = _metrics(CLOGGED) | {"pipeline.DB_APPLY.queue": 100.0, "changelog.changes.behind": 0.25}
    steps = [make_step(4.0, 100.0, metrics)]
    limits = {one.limit.id: one.limit for one in read_limits(steps, TargetState(), {}, rules_for((), steps))}
    assert (limits["pipeline.DB_APPLY"].use, limits["pipeline.DB_APPLY"].ceiling) == (pytest.approx(0.98), 1)
    assert (limits["pipeline.DB_APPLY.queue"].use, limits["pipeline.DB_APPLY.queue"].ceiling) == (0.9, 1)
    assert (limits["changelog.changes"].use, limits["changelog.changes"].ceiling) == (0.25, 1)
    assert "pipeline.ACK.queue" not in limits


def test_workers_that_come_with_the_load_are_no_limit_that_a_few_of_them_exceed(make_step: StepMaker) -> None:
    """A worker for each thread, a third of its time at work: at 4 threads 1.3 of 4, which is not 1.3 of 1."""
    told = {f"pipeline.STAT.{end}": 0.33 for end in ("busy_share", "idle_share", "blocked_share")}
    steps = [
        make_step(level, 100.0, {**told, "pipeline.STAT.busy": 0.33 * level, "pipeline.STAT.workers": level})
        for level in (4.0, 2.0, 1.0)
    ]
    (one,) = [each for each in read_limits(steps, TargetState(), {}, rules_for((), steps)) if "STAT" in each.limit.id]
    assert (one.limit.use, one.limit.ceiling) == (0.33, 1)
    assert max(one.uses) < one.limit.ceiling


def _logged(make_step: StepMaker, behind: dict[float, float]) -> tuple[Finding | RuledOut, ...]:
    steps = [
        make_step(level, 100.0 * level, {"changelog.changes.behind": share, "changelog.changes.pending": 900 * share})
        for level, share in behind.items()
    ]
    samples = [LevelSample(level, (100.0 * level,), (1.0,)) for level in behind]
    return causes.findings(look(fit(samples, axis="change_rate", treatment="A"), steps))


def test_a_change_log_that_is_not_followed_is_a_finding_from_where_it_falls_behind(make_step: StepMaker) -> None:
    (found,) = _logged(make_step, {1.0: 0.0, 2.0: 0.01, 4.0: 0.3, 8.0: 0.6})
    assert isinstance(found, Finding)
    assert found.id == "changelog.changes"
    assert "40 % of real time" in found.title
    assert found.reached_at is not None
    assert (found.reached_at.low, found.reached_at.high) == (2, 4)


def test_a_change_log_that_is_followed_is_none(make_step: StepMaker) -> None:
    (found,) = _logged(make_step, {1.0: 0.0, 2.0: 0.01})
    assert isinstance(found, RuledOut)
