"""Squid is loaded, and its limits are read, as those of every target."""

from __future__ import annotations

from pathlib import Path

import pytest

import loadframe
from loadframe.experiments.limits_now import limits
from loadframe.study import load

pytestmark = pytest.mark.server

STUDY = """
[study]
name = "squid"
question = "How much does it serve?"
[target]
kind = "squid"
[workload]
kind = "http"
[workload.options]
objects = 20
smallest_bytes = 5000
[load]
axis = "concurrency"
levels = [2]
[measure]
window = "300ms"
warmup = "200ms"
blocks = { min = 2, max = 2 }
budget = "30s"
profile = "off"
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


@pytest.mark.long
def test_http_loads_it_and_its_counters_are_in_its_steps(study: Path, tmp_path: Path) -> None:
    measured = loadframe.measure(load(study), runs=tmp_path / "runs")
    steps = loadframe.open_run(measured.run).steps()
    counted = [step for step in steps if "squid.requests" in step.metrics]
    assert 2 * len(counted) > len(steps), "a busy machine may miss a reading"
    for step in counted:
        assert step.metrics["squid.requests"] > step.throughput / 2, "two readings are never of the same moment"
        assert step.metrics["squid.descriptors"] < step.metrics["squid.descriptors_allowed"]


@pytest.mark.long
def test_its_limits_are_read_without_any_account(study: Path) -> None:
    read = {limit.id: limit for limit in limits(study=load(study)).limits}
    assert read["squid.max_filedescriptors"].use < read["squid.max_filedescriptors"].ceiling
    assert read["process.open_files"].use > 0
