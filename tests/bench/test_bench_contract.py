"""What every bench keeps: the one with real servers, and the simulated one that the experiments are tried on."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from loadframe.bench.base import Bench
from loadframe.bench.bench import RealBench
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.model import Ending, Step, StepRequest, TargetState
from loadframe.runs.folder import RunFolder
from loadframe.study import parse

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
REAL = {
    "sqlite": {"kind": "sqlite", "workload": "job-queue", "axis": "concurrency"},
    "mariadb": {"kind": "mariadb", "workload": "render-farm", "axis": "active_jobs"},
}


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


@contextmanager
def entered(kind: str, folder: Path) -> Iterator[Subject]:
    """A real bench with one treatment."""
    study = parse(QUEUE.format(**REAL[kind]))
    with RealBench(study, RunFolder.create(folder, study.study.name)) as bench:
        bench.declare("A", "as given", bench.start_state)
        if kind == "sqlite":
            yield Subject(bench, "wal_autocheckpoint", 3000, has_process=False)
        else:
            yield Subject(bench, "table_open_cache", 128)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Subject]]:
    """Real benches by their kind, for all tests that go on from whatever a bench has done before."""
    with ExitStack() as stack:
        yield cache(lambda kind: stack.enter_context(entered(kind, tmp_path_factory.mktemp(kind))))


KINDS = ["simulated", "sqlite", pytest.param("mariadb", marks=pytest.mark.server)]


@pytest.fixture(params=KINDS)
def subject(
    request: pytest.FixtureRequest, simulated: Callable[..., Bookkeeping], shared: Callable[[str], Subject]
) -> Subject:
    if request.param == "simulated":
        return Subject(simulated(flat).bench, "table_open_cache", 128)
    return shared(request.param)


@pytest.fixture(params=KINDS)
def new(request: pytest.FixtureRequest, simulated: Callable[..., Bookkeeping], tmp_path: Path) -> Iterator[Subject]:
    """One that has done nothing yet."""
    if request.param == "simulated":
        yield Subject(simulated(flat).bench, "table_open_cache", 128)
        return
    with entered(request.param, tmp_path) as subject:
        yield subject


def step_of(bench: Bench, treatment: str = "A", block: int = 1) -> Step:
    return bench.take_step(StepRequest(treatment, 2.0, 3, block))


def test_it_has_all_that_an_experiment_uses(subject: Subject) -> None:
    for name, wanted in vars(Bench).items():
        if name.startswith("_"):
            continue
        found = inspect.getattr_static(type(subject.bench), name, None)
        if inspect.isfunction(wanted):
            assert inspect.isfunction(found), name
            assert inspect.signature(found, eval_str=True) == inspect.signature(wanted, eval_str=True), name
        else:
            assert hasattr(subject.bench, name), name


def test_it_says_what_it_is(subject: Subject) -> None:
    bench = subject.bench
    assert (bench.kind, bench.is_local) == (bench.study.target.kind, True)
    assert bench.axis_unit == bench.workload.axis_unit != ""
    assert bench.free_disk_bytes > 0
    assert bench.run.path.is_dir()
    assert not bench.is_cache("A")
    assert bench.carries_over("A")


def test_a_state_is_declared_and_used_by_its_name(subject: Subject) -> None:
    bench, start = subject.bench, subject.bench.start_state
    other = replace(start, settings={**start.settings, subject.setting: subject.value})
    before = bench.treatments
    bench.check(other)
    bench.declare("B", "the other", other)
    assert bench.treatments == before + 1
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
    step = subject.bench.take_step(StepRequest("A", 2.0, 1, 1, warmup_s=0.4))
    assert step.window_start_s - step.started_s >= 0.4 - 1e-6


def test_a_step_says_what_it_was_taken_for(subject: Subject) -> None:
    step = subject.bench.take_step(StepRequest("A", 2.0, 1, 1, purpose="sizing"))
    assert (step.purpose, step_of(subject.bench).purpose) == ("sizing", "curve")


@pytest.mark.long
def test_a_target_that_was_ended_begins_again(new: Subject) -> None:
    bench, has_process = new.bench, new.has_process
    assert bench.treatments == 1
    assert bench.starts_fresh("A") is has_process
    step_of(bench)
    assert not bench.starts_fresh("A")
    for how in get_args(Ending) if has_process else ():
        bench.end(how)
        assert bench.starts_fresh("A")
        step_of(bench)
    bench.recover("A")
    assert bench.starts_fresh("A") is has_process
    assert step_of(bench).throughput > 0


@pytest.mark.long
def test_a_profile_is_a_step_of_its_own(subject: Subject) -> None:
    before = subject.bench.run.steps()
    found = subject.bench.take_profile("highest", treatment="A", level=2.0, window_s=0.3)
    assert (found.place, found.treatment, found.level) == ("highest", "A", 2.0)
    assert found.throughput > 0
    assert subject.bench.run.profiled() == [found]
    assert subject.bench.run.steps() == before
