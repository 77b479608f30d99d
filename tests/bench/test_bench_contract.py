"""What every bench keeps: the one with real servers, and the simulated one that the experiments are tried on."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import get_args

import pytest

from loadframe.bench.base import Bench
from loadframe.bench.bench import RealBench
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.model import Ending, Step, TargetState
from loadframe.runs.folder import RunFolder
from loadframe.study import Study, parse

QUEUE = """
[study]
name = "contract"
question = "?"
[target]
kind = "{kind}"
[workload]
kind = "{workload}"
[load]
axis = "{axis}"
levels = [2, 4]
[measure]
window = "0.3s"
budget = "60s"
"""
SQLITE = {"kind": "sqlite", "workload": "job-queue", "axis": "concurrency"}
MARIADB = {"kind": "mariadb", "workload": "render-farm", "axis": "active_jobs"}


@dataclass(frozen=True)
class Subject:
    """A bench that was entered, a setting of its target's with another value, and whether the target is a process of
    its own, which can end."""

    bench: Bench
    setting: str
    value: int
    has_process: bool = True


def flat(state: TargetState, level: float) -> tuple[float, dict[str, float]]:
    return 1000.0, {}


def opened_with(named: dict[str, str], opened: Callable[[Study], RunFolder]) -> RealBench:
    study = parse(QUEUE.format(**named))
    return RealBench(study, opened(study))


@pytest.fixture(params=["simulated", "sqlite", pytest.param("mariadb", marks=pytest.mark.server)])
def subject(
    request: pytest.FixtureRequest, simulated: Callable[..., Bookkeeping], opened: Callable[[Study], RunFolder]
) -> Iterator[Subject]:
    if request.param == "simulated":
        yield Subject(simulated(flat).bench, "table_open_cache", 128)
    elif request.param == "sqlite":
        with opened_with(SQLITE, opened) as bench:
            bench.declare("A", "as given", bench.start_state)
            yield Subject(bench, "wal_autocheckpoint", 3000, has_process=False)
    else:
        with opened_with(MARIADB, opened) as bench:
            bench.declare("A", "as given", bench.start_state)
            yield Subject(bench, "table_open_cache", 128)


def step_of(bench: Bench, treatment: str = "A", block: int = 1) -> Step:
    return bench.take_step(round_number=3, block=block, treatment=treatment, level=2.0)


def test_it_has_all_that_an_experiment_uses(subject: Subject) -> None:
    for name, wanted in vars(Bench).items():
        if name.startswith("_"):
            continue
        found = inspect.getattr_static(type(subject.bench), name, None)
        if inspect.isfunction(wanted):
            assert inspect.isfunction(found), name
            assert inspect.signature(found) == inspect.signature(wanted), name
        else:
            assert hasattr(subject.bench, name), name


def test_it_says_what_it_is(subject: Subject) -> None:
    bench = subject.bench
    assert (bench.kind, bench.is_local) == (bench.study.target.kind, True)
    assert bench.axis_unit == bench.workload.axis_unit != ""
    assert bench.free_disk_bytes > 0
    assert bench.run.path.is_dir()
    assert bench.treatments == 1
    assert not bench.is_cache("A")
    assert bench.carries_over("A")


def test_a_state_is_declared_and_used_by_its_name(subject: Subject) -> None:
    bench, start = subject.bench, subject.bench.start_state
    other = replace(start, settings={**start.settings, subject.setting: subject.value})
    bench.check(other)
    bench.declare("B", "the other", other)
    assert bench.treatments == 2
    assert bench.use("B")[subject.setting] == subject.value
    assert bench.use("A")[subject.setting] != subject.value
    with pytest.raises(KeyError):
        bench.use("C")


def test_a_step_is_what_was_asked_for(subject: Subject) -> None:
    bench = subject.bench
    first, second = step_of(bench), step_of(bench, block=2)
    assert [(step.round, step.block, step.treatment, step.level) for step in (first, second)] == [
        (3, 1, "A", 2.0),
        (3, 2, "A", 2.0),
    ]
    assert first.number != second.number
    for step in (first, second):
        assert step.throughput > 0
        assert step.requests > 0
        assert step.started_s <= step.window_start_s < step.window_end_s <= step.ended_s
        assert step.latency.p50_ms > 0


def test_no_less_than_it_is_told_is_cut_off_as_warm_up(subject: Subject) -> None:
    step = subject.bench.take_step(round_number=1, block=1, treatment="A", level=2.0, warmup_s=0.4)
    assert step.window_start_s - step.started_s >= 0.4 - 1e-6


def test_a_step_says_what_it_was_taken_for(subject: Subject) -> None:
    step = subject.bench.take_step(round_number=1, block=1, treatment="A", level=2.0, purpose="sizing")
    assert (step.purpose, step_of(subject.bench).purpose) == ("sizing", "curve")


def test_a_target_that_was_ended_begins_again(subject: Subject) -> None:
    bench = subject.bench
    assert bench.begins_anew("A") is subject.has_process
    step_of(bench)
    assert not bench.begins_anew("A")
    for how in get_args(Ending) if subject.has_process else ():
        bench.end(how)
        assert bench.begins_anew("A")
        step_of(bench)
    bench.recover("A")
    assert bench.begins_anew("A") is subject.has_process
    assert step_of(bench).throughput > 0


def test_a_profile_is_a_step_of_its_own(subject: Subject) -> None:
    found = subject.bench.take_profile("highest", treatment="A", level=2.0, window_s=0.3)
    assert (found.place, found.treatment, found.level) == ("highest", "A", 2.0)
    assert found.throughput > 0
    assert subject.bench.run.profiled() == [found]
    assert subject.bench.run.steps() == []
