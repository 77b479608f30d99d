"""A target in several pieces: each has a cage, processes and metrics of its own, and the target is all of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from loadframe.bench.bench import RealBench
from loadframe.bench.checking import check_study
from loadframe.cages import groups
from loadframe.errors import StudyError
from loadframe.kinds.registry import KINDS
from loadframe.ledger.rules import RULES
from loadframe.metrics import IN_FRONT, METRICS
from loadframe.model import StepRequest
from loadframe.runs.folder import RunFolder
from loadframe.study import Study, parse
from loadframe.workloads.oltp import Oltp

STUDY = """
[study]
name = "q"
question = "?"
[target]
kind = "{kind}"
{shards}
[workload]
kind = "{workload}"
[load]
axis = "concurrency"
levels = [2]
[measure]
warmup = "150ms"
window = "400ms"
"""


@pytest.mark.parametrize(
    ("kind", "workload", "shards", "cage", "fact"),
    [
        ("postgres", "oltp", "shards = 2", "", "cannot load a target of kind 'sharded postgres'"),
        ("sqlite", "job-queue", "shards = 2", "", "cannot load a target of kind 'sharded sqlite'"),
        ("postgres", "oltp", "", "[cage.shard]\nprocesses = 100", "postgres has no component 'shard'"),
    ],
)
def test_what_does_not_fit_together_is_refused(kind: str, workload: str, shards: str, cage: str, fact: str) -> None:
    with pytest.raises(StudyError, match=fact):
        check_study(parse(STUDY.format(kind=kind, workload=workload, shards=shards) + cage))


def test_what_stands_in_front_of_shards_has_metrics_and_rules_of_its_own() -> None:
    in_front = {name for kind in KINDS.values() for name in (*kind.before, *kind.more_before)}
    assert in_front == set(IN_FRONT)
    for name in in_front:
        assert f"{name}.cage.cpu.utilization" in METRICS
        assert any(rule.id == f"cage.{name}.cpu_quota" for rule in RULES)


def test_shards_have_their_own_cages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Oltp, "target_kinds", frozenset({"sharded postgres"}))
    text = STUDY.format(kind="postgres", workload="oltp", shards="shards = 2")
    with pytest.raises(StudyError, match="no cage of its own") as caught:
        check_study(parse(text + "[cage]\nprocesses = 100"))
    assert "[cage.shard]" in caught.value.remedy
    with pytest.raises(StudyError, match="no component 'shards'") as caught:
        check_study(parse(text + "[cage.shards]\nprocesses = 100"))
    assert "[cage.shard]" in caught.value.remedy


@pytest.mark.long
@pytest.mark.server
@pytest.mark.skipif(groups.available()["cpu"] is None, reason="this machine grants no control group for CPU time")
def test_each_shard_is_seen_by_itself_and_all_together_as_the_target(
    opened: Callable[[Study], RunFolder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The load goes to the first one; the second one has nothing to do."""
    monkeypatch.setattr(Oltp, "target_kinds", frozenset({"sharded postgres"}))
    text = STUDY.format(kind="postgres", workload="oltp", shards="shards = 2")
    study = parse(text + "[cage.shard]\ncpu_quota = 0.5\n[workload.options]\nrows = 500\n")
    check_study(study)
    with RealBench(study, opened(study)) as bench:
        bench.declare("A", "as given", bench.start_state)
        assert bench.use("A")["cpu.max"] == 50_000
        step = bench.take_step(StepRequest("A", 2, 1, 1))
        found = step.metrics
        assert found["shard1.cage.cpu.limit"] == found["shard2.cage.cpu.limit"] == 0.5
        assert found["shard1.cpu.cores"] > 5 * found["shard2.cpu.cores"]
        assert found["target.cpu.cores"] == pytest.approx(found["shard1.cpu.cores"] + found["shard2.cpu.cores"])
        assert found["target.cage.cpu"] == found["shard1.cage.cpu"]
        assert found["target.saturation"] <= 1.5, "of its own half CPU, not of both halves"
        assert found["shard2.threads.count"] >= 5
        assert found["target.memory.rss"] > found["shard1.memory.rss"]
