"""A step says what disturbed it, and only that."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from loadframe.analysis.window import Summary, summarise
from loadframe.bench import evaluation
from loadframe.model import FLAGS
from loadframe.recording.frames import Facts, Tick

QUIET = {"system.cpu.count": 4.0, "system.cpu.utilization": 0.6, "target.cpu.cores": 1.0, "driver.cpu.cores": 0.5}


def summary() -> Summary:
    """Of a window up to 2 s."""
    ends_s = np.linspace(1.0, 2.0, 500)
    none = np.zeros(500, np.uint32)
    return summarise(
        ends_s,
        np.ones(500, np.float32),
        np.zeros(500, np.float32),
        none,
        none,
        operations=("a",),
        judged=("a",),
        planned_s=None,
        floor_s=0.1,
        fixed_warmup_s=None,
    )


def flags(metrics: Mapping[str, float], *, late: bool = False) -> tuple[str, ...]:
    return evaluation.flags(summary(), {**QUIET, **metrics}, late=late)


@pytest.mark.parametrize(
    ("metrics", "flag"),
    [
        ({"system.cpu.steal": 0.2}, "steal"),
        ({"system.cpu.foreign": 0.3}, "stranger"),
        ({"system.clock.step": 0.5}, "clock-step"),
        ({"system.cpu.frequency_drop": 0.2}, "frequency"),
        ({"system.cpu.throttles": 2.0}, "frequency"),
        ({"system.disk.stall_ms": 120.0}, "disk-stalled"),
        ({"driver.saturation": 0.97}, "driver-limited"),
        ({"target.parts_lost": 1.0}, "part-lost"),
        ({"driver.cpu.beside": 0.6, "target.cpus.busy": 0.97, "target.cpus.wait": 0.4}, "driver-beside"),
        ({"workload.driver_lag": 0.3}, "driver-lag"),
    ],
)
def test_each_disturbance_has_its_flag(metrics: Mapping[str, float], flag: str) -> None:
    assert flags(metrics) == (flag,)
    assert flag in FLAGS


def test_a_quiet_step_has_none_and_a_gap_is_one() -> None:
    calm = {"system.cpu.frequency_drop": 0.05, "workload.driver_lag": 0.1, "system.disk.stall_ms": 50.0}
    assert flags(calm) == ()
    assert flags({}, late=True) == ("recorder-late",)


FACTS = Facts(0.1, 100, 2, 4096, boottime_offset_s=5.0, started_s=0.0, started_wall_s=1e9)


@pytest.mark.parametrize(
    ("until_s", "late"), [(2.5, False), (summary().window_end_s - 0.25, False), (1.5, True), (-1.0, True)]
)
def test_ticks_that_are_missing_at_the_end_of_the_window_were_missed(until_s: float, late: bool) -> None:
    """Also where the recording was read before the recorder got a CPU again: then no later tick shows the gap."""
    times = [at_s for at_s in np.arange(0.0, 3.0, 0.1) if at_s <= until_s]
    ticks = [Tick(at_s, at_s + 1e9, {}, FACTS) for at_s in times]
    assert evaluation.is_late(ticks, summary()) == late


def test_a_full_machine_is_not_the_drivers_fault() -> None:
    assert flags({"workload.driver_lag": 0.5, "system.cpu.utilization": 0.99}) == ()
    assert flags({"driver.saturation": 1.0, "target.saturation": 0.95}) == ()
