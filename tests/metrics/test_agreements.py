"""A counter that contradicts what must agree with it is named and left out; what agrees, or cannot be held against
anything, stays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from loadframe.metrics import METRICS
from loadframe.metrics.agreements import (
    OF_A_COMPONENT,
    OF_CONNECTIONS,
    OF_SERVERS,
    OF_THE_MACHINE,
    contradictions,
    without,
)
from loadframe.recording.frames import Facts, Tick
from loadframe.recording.metrics import window_metrics

RECORDED = Path(__file__).parent.parent / "data/recorded"
MB = 1e6


def recorded(name: str) -> tuple[dict[str, float], float]:
    """The metrics of a window, and its throughput."""
    text = json.loads((RECORDED / name).read_text())
    facts = Facts(**text["facts"])
    ticks = [
        Tick(one["at_s"], 0.0, {source: said.encode() for source, said in one["entries"].items()}, facts)
        for one in text["ticks"]
    ]
    return window_metrics(ticks, ticks[0].monotonic_s, ticks[-1].monotonic_s), text["throughput"]


def blind(metrics: Mapping[str, float]) -> set[str]:
    return {one.counter for one in contradictions(metrics)}


def test_a_group_that_the_kernel_does_not_count_is_blind_on_a_recorded_machine() -> None:
    metrics, throughput = recorded("uncounted-group.json")
    assert metrics["target.cage.writes"] == metrics["target.cage.write_bytes"] == 0
    assert metrics["target.io.write_bytes"] > 30 * MB
    (one,) = contradictions({**metrics, "throughput": throughput})
    assert one.counter == "target.cage.write_bytes"
    assert "target.cage.writes" in one.metrics
    assert "bytes written to the disk by the target: 0 B/s" in one.because
    assert "MiB/s and disk bytes written: " in one.because
    assert "target.cage.writes" not in without(metrics, [one])


AGREEING = {
    "throughput": 1000.0,
    "workload.concurrency": 4.0,
    "target.io.write_bytes": 30 * MB,
    "target.cage.write_bytes": 33 * MB,
    "target.cage.writes": 4000.0,
    "target.io.read_bytes": 5 * MB,
    "target.cage.read_bytes": 5 * MB,
    "system.disk.write_bytes": 40 * MB,
    "system.disk.read_bytes": 6 * MB,
    "system.disk.flushes": 900.0,
    "target.cpu.cores": 1.2,
    "target.cpu.thread_cores": 1.15,
    "target.cpu.hottest_thread": 0.9,
    "target.cage.cpu": 1.3,
    "driver.cpu.cores": 0.4,
    "driver.cage.cpu": 0.4,
    "system.cpu.busy_cores": 1.8,
    "system.cpu.utilization": 0.9,
    "target.memory.rss": 200 * MB,
    "target.cage.memory.usage": 300 * MB,
    "target.paging.major_faults": 50.0,
    "system.paging.major_faults": 60.0,
    "mariadb.questions": 1000.0,
    "mariadb.table_locks_waited": 3.0,
    "mariadb.table_open_cache": 400.0,
    "mariadb.connections": 5.0,
}


def test_what_agrees_is_left_alone() -> None:
    assert blind(AGREEING) == set()


@pytest.mark.parametrize(
    ("lying", "goes"),
    [
        ("target.cage.write_bytes", {"target.cage.writes"}),
        ("target.cage.read_bytes", set()),
        ("target.io.write_bytes", set()),
        ("system.disk.write_bytes", {"system.disk.flushes", "system.disk.read_bytes"}),
        ("target.cpu.cores", {"target.cpu.hottest_thread", "target.cpu.thread_cores"}),
        ("target.cpu.thread_cores", {"target.cpu.hottest_thread"}),
        ("target.cage.cpu", set()),
        ("system.cpu.busy_cores", {"system.cpu.utilization"}),
        ("target.cage.memory.usage", set()),
        ("system.paging.major_faults", set()),
        ("mariadb.questions", {"mariadb.table_locks_waited"}),
        ("mariadb.connections", set()),
    ],
)
def test_each_counter_that_stays_0_is_found_with_all_that_comes_from_it(lying: str, goes: set[str]) -> None:
    (one,) = contradictions({**AGREEING, lying: 0.0})
    assert one.counter == lying
    assert set(one.metrics) == {lying, *goes}


def test_clients_that_a_web_server_keeps_waiting_accuse_nobody() -> None:
    """Seen with a new connection for each of 19,200 requests offered per second."""
    waiting = {"throughput": 900.0, "workload.concurrency": 2173.0, "nginx.requests": 901.0, "nginx.connections": 2.0}
    assert blind(waiting) == set()


def test_a_0_that_nothing_contradicts_stays_0() -> None:
    idle = {**AGREEING, "target.cage.write_bytes": 0.0, "target.io.write_bytes": 0.0}
    assert blind(idle) == set()


def test_a_witness_that_was_not_measured_accuses_nobody() -> None:
    alone = {name: value for name, value in AGREEING.items() if name != "target.io.write_bytes"}
    assert blind({**alone, "target.cage.write_bytes": 0.0}) == set()


def test_what_is_blind_is_no_witness() -> None:
    """Neither /proc/PID/io nor the group counts: the disk stays."""
    metrics = {**AGREEING, "target.cage.write_bytes": 0.0, "target.io.write_bytes": 0.0}
    assert "system.disk.write_bytes" not in blind(metrics)


def test_of_a_target_in_pieces_each_is_looked_at_and_what_they_tell_together_goes_with_it() -> None:
    pieces = {
        **{name.replace("target.", "shard1."): value for name, value in AGREEING.items() if name.startswith("target.")},
        **{name: value for name, value in AGREEING.items() if name.startswith("system.")},
        "target.cage.write_bytes": 0.0,
        "target.cage.writes": 0.0,
        "target.cage.cpu": 0.1,
        "target.cpu.cores": 1.2,
        "shard1.cage.write_bytes": 0.0,
    }
    (one,) = contradictions(pieces)
    assert one.counter == "shard1.cage.write_bytes"
    assert {"shard1.cage.writes", "target.cage.write_bytes", "target.cage.writes"} <= set(one.metrics)


def test_every_row_speaks_of_metrics_that_there_are() -> None:
    for row in (*OF_A_COMPONENT, *OF_THE_MACHINE, *OF_SERVERS, *OF_CONNECTIONS):
        for name in (*row.counter, *row.also, *(name for names in row.witnesses for name in names)):
            for component in ("target", "driver") if name.startswith("C.") else ("",):
                full = component + name[1:] if component else name
                known = any(metric.startswith(full) for metric in METRICS) if full.endswith(".") else full in METRICS
                of_the_target_alone = component == "driver" and name.replace("C.", "target.", 1) in METRICS
                assert known or of_the_target_alone, full
