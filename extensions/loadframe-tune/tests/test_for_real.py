"""A search for settings on a real server that a trial restarts."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

import loadframe
import loadframe_tune
from loadframe.study import parse

STUDY = """
[study]
name = "site"
question = "Which settings serve more?"
[target]
kind = "nginx"
[workload]
kind = "http"
[load]
axis = "concurrency"
levels = [2]
[objective]
within = { latency_p95_ms = 60000 }
[measure]
warmup = "150ms"
window = "300ms"
blocks = { min = 2, max = 2 }
budget = "30s"
[tune]
trials = 2
settings = { listen_reuseport = [false, true] }
"""


@pytest.mark.long
def test_every_restart_is_followed_by_a_step_that_counts_for_nothing(tmp_path: Path) -> None:
    found = loadframe_tune.tune(parse(STUDY), tmp_path)
    run = loadframe.open_run(Path(found.run))
    steps = run.steps()
    for _, mine in groupby(steps, key=lambda step: step.treatment):  # listen_reuseport needs a restart
        warming = [step.purpose == "warming" for step in mine]
        assert warming[0] and not any(warming[1:])
    assert {step.treatment for step in steps} == {"A", "B"}
    counted = {number for trial in found.trials for number in trial.steps}
    assert not counted & {step.number for step in steps if step.purpose == "warming"}
    assert found.objective is not None and all(each.before.met for each in found.objective.levels)
    assert loadframe.conclude(run).answer == found
    assert 'id="chart-trials"' in Path(found.report).read_text()
