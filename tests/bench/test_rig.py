"""Targets on the bench: each in one state at a time, every change in the journal; two kinds beside each other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loadframe.bench.bench import RealBench
from loadframe.bench.checking import check_study
from loadframe.bench.rig import Rig
from loadframe.cages import groups
from loadframe.changes.journal import not_reverted, read
from loadframe.errors import TargetError
from loadframe.model import ChangeRecord, StepRequest, TargetState
from loadframe.recording.series import metric_series
from loadframe.runs.folder import RunFolder
from loadframe.study import Study, parse

SMALL, LARGE = TargetState({"cache": 1}, {}), TargetState({"cache": 2}, {})


class Remembering:
    """A target, and a workload, that remember what was asked of them. refuses: a state that it cannot be brought to.
    impossible: one with which it would not start."""

    kind = "remembering"
    private = True
    initial = None

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.refuses: TargetState | None = None
        self.refusal: BaseException = TargetError("it will not start with this")
        self.impossible: TargetState | None = None
        self.checked: list[TargetState] = []

    def check(self, state: TargetState) -> None:
        self.checked.append(state)
        if state == self.impossible:
            raise TargetError("it would not start with this")

    def start(self, state: TargetState) -> None:
        self.done.append(("start", state.settings["cache"]))

    def apply(self, state: TargetState) -> None:
        self.done.append(("apply", state.settings["cache"]))
        if state == self.refuses:
            raise self.refusal

    def abandon(self) -> list[ChangeRecord]:
        self.done.append("stop")
        return []

    def leave(self) -> list[ChangeRecord]:
        return []

    def effective(self) -> dict[str, int]:
        return {"cache": 1}

    def install(self, workload: object) -> None:
        self.done.append("install")


@pytest.fixture
def target() -> Remembering:
    return Remembering()


def bring(rig: Rig, target: Remembering, *states: TargetState) -> None:
    for state in states:
        rig.bring("A", state, target)  # type: ignore[arg-type]


def test_it_is_started_once_and_then_changed(target: Remembering, tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "run")
    rig = Rig(target, run)  # type: ignore[arg-type]
    bring(rig, target, SMALL, SMALL, LARGE, LARGE)
    assert target.done == [("start", 1), "install", ("apply", 2)]
    assert [entry.status for entry in read(run.path)] == ["intent", "applied"]
    assert len(not_reverted(read(run.path))) == 1
    rig.close()
    assert not not_reverted(read(run.path))
    rig.close()
    assert len(read(run.path)) == 3, "what has ended does not end again"


def test_what_cannot_be_changed_is_stopped_and_started_anew(target: Remembering, tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "run")
    rig = Rig(target, run)  # type: ignore[arg-type]
    target.refuses = LARGE
    bring(rig, target, SMALL)
    with pytest.raises(TargetError):
        bring(rig, target, LARGE)
    bring(rig, target, SMALL)
    assert target.done[2:] == [("apply", 2), "stop", ("start", 1)]
    rig.close()
    assert not not_reverted(read(run.path))


def test_ctrl_c_amid_a_change_asks_the_target_for_nothing(target: Remembering, tmp_path: Path) -> None:
    """It is killed with the bench: a server that is starting, or hangs, takes two minutes over a clean end."""
    rig = Rig(target, RunFolder.create(tmp_path, "run"))  # type: ignore[arg-type]
    target.refuses, target.refusal = LARGE, KeyboardInterrupt()
    bring(rig, target, SMALL)
    with pytest.raises(KeyboardInterrupt):
        bring(rig, target, LARGE)
    rig.close()
    assert target.done[2:] == [("apply", 2)]


def test_what_would_not_start_is_refused_and_nothing_stops_for_it(target: Remembering, tmp_path: Path) -> None:
    rig = Rig(target, RunFolder.create(tmp_path, "run"))  # type: ignore[arg-type]
    target.impossible = LARGE
    bring(rig, target, SMALL)
    with pytest.raises(TargetError, match="would not start"):
        bring(rig, target, LARGE)
    bring(rig, target, SMALL)
    assert target.done == [("start", 1), "install"]


def test_each_state_is_checked_once_and_not_the_one_it_starts_in(target: Remembering, tmp_path: Path) -> None:
    rig = Rig(target, RunFolder.create(tmp_path, "run"))  # type: ignore[arg-type]
    rig.check(LARGE)
    bound = TargetState(LARGE.settings, {}, cpus={"cage.cpus": "0"})
    bring(rig, target, SMALL, LARGE, SMALL, bound, LARGE)
    assert target.checked == [LARGE]


def test_a_recovered_target_has_closed_its_journal(target: Remembering, tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "run")
    rig = Rig(target, run)  # type: ignore[arg-type]
    bring(rig, target, SMALL, LARGE)
    rig.stop()
    assert not not_reverted(read(run.path))
    bring(rig, target, SMALL)
    assert target.done[-2:] == ["stop", ("start", 1)]


TWO = """
[study]
name = "two"
question = "Which serves more?"
[target]
kind = "mariadb"
[target.settings]
max_connections = 40
[workload]
kind = "oltp"
[workload.options]
rows = 500
[load]
axis = "concurrency"
levels = [1, 2]
[measure]
window = "600ms"
[[alternative]]
name = "postgres"
target = { kind = "postgres", settings = { max_connections = 30 } }
"""


@pytest.mark.long
@pytest.mark.server
def test_two_kinds_of_server_side_by_side(opened: Callable[[Study], RunFolder]) -> None:
    """Each step is of its own server: its processes, its counters."""
    caged = groups.available()["memory"] is not None
    study = parse(TWO + ('[cage]\nmemory = "1GiB"\n' if caged else ""))
    check_study(study)
    run = opened(study)
    with RealBench(study, run) as bench:
        bench.declare("A", "as given", bench.start_state)
        bench.declare("B", "postgres", TargetState({"max_connections": 30}, bench.start_state.limits), "postgres")
        assert (bench.use("A")["max_connections"], bench.use("B")["max_connections"]) == (40, 30)
        steps = [
            bench.take_step(StepRequest(name, 2, 1, block)) for block, name in ((1, "A"), (1, "B"), (2, "B"), (2, "A"))
        ]
    for step in steps:
        own, other = ("mariadb.", "postgres.") if step.treatment == "A" else ("postgres.", "mariadb.")
        assert any(name.startswith(own) for name in step.metrics)
        assert not any(name.startswith(other) for name in step.metrics)
        assert step.metrics["target.cpu.cores"] > 0
        assert not caged or 0 < step.metrics["target.cage.memory.usage"] < step.metrics["target.cage.memory.limit"]
    if caged:
        usage = {
            name: [step.metrics["target.cage.memory.usage"] for step in steps if step.treatment == name]
            for name in "AB"
        }
        assert max(usage["A"]) != max(usage["B"]), "each in a cage of its own"
    series = metric_series(run.path / "raw" / "host.lfr").table
    assert series is not None
    told = set(series.filter(series["metric"].str.contains("connections"))["metric"].unique())
    assert {"mariadb.connections", "postgres.connections"} <= told
    rates = series.filter(series["metric"] == "mariadb.questions")["value"]
    assert rates.max() < 1e6, "nothing grows from the one server to the other"
    assert [treatment.kind for treatment in run.treatments().values()] == ["mariadb", "postgres"]
