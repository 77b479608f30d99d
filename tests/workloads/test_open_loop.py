"""Requests at a given rate: begun when they should be, latencies from there, whatever became of the ones before."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.model import Endpoint, SettingValue
from loadframe.workloads import registry
from loadframe.workloads.arrivals import ARRIVALS, arrival_times
from loadframe.workloads.driving import ProcessDriver
from loadframe.workloads.request_log import RECORD

RATE, SECONDS = 200, 1.0


def test_arrivals_are_as_many_as_asked_for_in_order_and_at_random() -> None:
    arrivals = arrival_times(500, 4)
    assert len(arrivals) == 2000
    assert all(np.diff(arrivals) >= 0) and arrivals[0] >= 0 and arrivals[-1] <= 4
    # Of exponential gaps the deviation is the mean; of even ones it is 0.
    assert np.diff(arrivals).std() == pytest.approx(1 / 500, rel=0.15)


def test_what_is_offered_and_what_waits_is_counted(tmp_path: Path) -> None:
    now_s = time.monotonic()
    (tmp_path / "log").write_bytes(RECORD.pack(now_s, 1, 0, 0, 0) * 3 + b"torn")
    arrivals = now_s + np.array([-5.0, -4, -3, -2, -1, 1000])
    driver = ProcessDriver("dummy", [], logs=[tmp_path / "log"], printed=[], end_s=None, arrivals=arrivals)
    assert driver.offered(now_s - 4, now_s) == 3, "after the begin, up to the end"
    assert driver.waiting() == 2
    closed = ProcessDriver("dummy", [], logs=[tmp_path / "log"], printed=[], end_s=None)
    assert closed.offered(0, now_s) is None and closed.waiting() == 0


def drive(endpoint: Endpoint, folder: Path, rate: float, **options: SettingValue) -> ProcessDriver:
    workload = registry.make("oltp", {"rows": 200, "tables": 1, **options}, Allowance(US), axis="rate")
    workload.install(endpoint)
    workload.set_level(endpoint, rate)
    driver = workload.start(endpoint, rate, folder, SECONDS)
    assert isinstance(driver, ProcessDriver)
    try:
        assert driver.wait(30)
    finally:
        driver.kill()
    return driver


@pytest.mark.long
@pytest.mark.server
def test_requests_begin_when_they_should(farm_server: Endpoint, tmp_path: Path) -> None:
    driver = drive(farm_server, tmp_path, RATE, threads=8)
    requests = driver.requests()
    begun = np.sort(requests.end_s - requests.latency_ms.astype(np.float64) / 1000)
    arrivals = np.fromfile(tmp_path / ARRIVALS).reshape(-1, 2)[: int(RATE * SECONDS), 0]
    # All but those that were still waiting at the end, each once; a float32 of milliseconds is known to a microsecond.
    assert len(begun) >= 0.5 * len(arrivals)
    nearest = np.abs(begun[:, None] - arrivals[None, :]).min(axis=1)
    assert nearest.max() < 1e-4
    assert len(np.unique(begun.round(5))) > 0.95 * len(begun)
    assert driver.offered(0, time.monotonic()) == len(arrivals)


@pytest.mark.server
def test_a_server_that_falls_behind_is_seen_in_the_latencies(farm_server: Endpoint, tmp_path: Path) -> None:
    """One connection for far more than it can serve: the queue grows to the end, and with it the latency."""
    driver = drive(farm_server, tmp_path, 100_000, threads=1)
    requests = driver.requests()
    assert len(requests) < 0.9 * 100_000 * SECONDS
    assert driver.waiting() > 0.1 * 100_000 * SECONDS
    assert requests.latency_ms[-1] > 0.3 * 1000 * SECONDS
    assert requests.latency_ms[-1] > 1.5 * requests.latency_ms[len(requests) // 10]
