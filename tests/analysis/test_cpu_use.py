"""Which thread is busiest in each state of a ladder, from the metrics of its steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from loadframe.analysis.cpu_use import of_states
from loadframe.model import CpuUse, Step

MakeStep = Callable[..., Step]
TITLES = {"A": "", "B": "pool"}


def cluster(main: float, sql: float) -> dict[str, float]:
    return {
        "target.cpu.cores": 1.4,
        "target.cpu.hottest_thread": 0.9,
        "sql1.cpu.cores": 1.0,
        "sql1.cpu.limit": 2.0,
        "sql1.cpu.hottest_thread": sql,
        "shard1.cpu.cores": 0.4,
        "shard1.cpu.limit": 1.0,
        "shard1.cpu.hottest_thread": 0.2,
        "driver.cpu.cores": 0.001,
        "recorder.cpu.cores": 0.03,
        "ndb.main_cpu": main,
        "ndb.ldm_cpu": 0.05,
        "system.cpu.utilization": 0.9,
        "system.cpu.count": 2.0,
    }


@pytest.mark.extension("loadframe_ndb")
def test_of_pieces_each_is_told_busiest_first_and_not_their_sum(make_step: MakeStep) -> None:
    def step(metrics: dict[str, float], treatment: str, throughput: float, **more: Any) -> Step:
        return make_step(8.0, throughput, metrics, treatment=treatment, **more)

    steps = [
        step(cluster(0.9, 0.9), "B", 1.0, purpose="warming"),
        step(cluster(0.1, 0.1), "B", 200.0),
        step(cluster(0.1, 0.3), "A", 100.0),
        step(cluster(0.2, 0.4), "A", 110.0),
        step(cluster(0.3, 0.5), "A", 120.0),
    ]
    start, pool = of_states(steps, TITLES)
    assert (start.state, start.throughput, start.steps, start.busy) == ("", 110.0, 3, 0.9)
    assert start.threads == (CpuUse("sql1", 0.4, 1.0), CpuUse("shard1", 0.2, 1.0))
    assert start.kinds == (CpuUse("main", 0.2, 1.0), CpuUse("ldm", 0.05, 1.0))
    assert start.components == (CpuUse("sql1", 1.0, 2.0), CpuUse("shard1", 0.4, 1.0))
    assert (pool.state, pool.threads[0].name) == ("pool", "shard1")


def test_a_target_in_one_piece_is_told_by_its_name_at_the_highest_level(make_step: MakeStep) -> None:
    metrics = {"target.cpu.cores": 0.5, "target.cpu.hottest_thread": 0.5, "system.cpu.count": 4.0}
    (one,) = of_states([make_step(1.0, 5.0, {}), make_step(4.0, 9.0, metrics)], {"A": ""})
    assert (one.level, one.throughput) == (4.0, 9.0)
    assert one.threads == (CpuUse("target", 0.5, 1.0),)
    assert one.components == (CpuUse("target", 0.5, 4.0),)
    assert one.kinds == ()
    assert one.busy is None
