"""What the steps of a run tell of resources: the machine's, each component's, the driver's."""

from __future__ import annotations

from collections.abc import Callable

from loadframe.model import Step
from loadframe.prediction.resources import observe

StepMaker = Callable[..., Step]
BASE = {"system.cpu.utilization": 0.3, "system.cpu.count": 2.0, "system.disk.busy": 0.2, "workload.lock_held": 0.1}


def test_without_cages_the_machines_cpus_are_the_station(make_step: StepMaker) -> None:
    metrics = {**BASE, "target.cpu.utilization": 0.2, "target.cpu.limit": 2.0, "target.cpu.hottest_thread": 0.15}
    found = observe([make_step(1, 100, metrics), make_step(2, 100, metrics)], name="run", axis="concurrency")
    assert set(found.resources) == {"cpu", "disk", "lock.writer", "target.cpu", "target.hottest_thread"}
    assert found.ceilings == {"target.cpu", "target.hottest_thread"}
    assert found.servers == {"cpu": 2, "target.cpu": 2}
    row = found.rows[0]
    assert (row.load, row.throughput, row.latency_p95_ms, row.latency_mean_ms) == (1, 100, 2, 1.5)


def test_components_in_cages_are_stations_of_their_own(make_step: StepMaker) -> None:
    metrics = {
        **BASE,
        "loader.cpu.utilization": 0.9,
        "loader.cage.cpu.utilization": 0.5,
        "loader.cage.cpu.limit": 0.5,
        "shard1.cage.cpu.utilization": 0.4,
        "shard1.cage.cpu.limit": 3.0,
        "shard1.cage.write_bytes.utilization": 0.3,
    }
    found = observe([make_step(1, 100, metrics)], name="run", axis="pipelines")
    assert set(found.resources) == {"cpu", "disk", "lock.writer", "loader.cpu", "shard1.cpu", "shard1.write_bytes"}
    assert found.ceilings == {"cpu", "shard1.write_bytes"}
    assert found.servers == {"cpu": 2, "loader.cpu": 1, "shard1.cpu": 3}
    assert found.rows[0].utilizations["loader.cpu"] == 0.5


def test_only_what_every_step_tells_counts_and_a_share_is_at_most_one(make_step: StepMaker) -> None:
    found = observe(
        [make_step(1, 100, {"system.disk.busy": 1.02}), make_step(2, 100, BASE)], name="run", axis="concurrency"
    )
    assert found.resources == ("disk",)
    assert found.rows[0].utilizations == {"disk": 1.0}


def test_disturbed_steps_do_not_count_where_others_do(make_step: StepMaker) -> None:
    steps = [
        make_step(1, 100, BASE),
        make_step(1, 100, BASE),
        make_step(1, 100, BASE, flags=("stranger",)),
        make_step(2, 100, BASE, flags=("steal",)),
    ]
    found = observe(steps, name="run", axis="concurrency")
    assert [row.load for row in found.rows] == [1, 1, 2]
    assert observe([], name="run", axis="concurrency").rows == ()
