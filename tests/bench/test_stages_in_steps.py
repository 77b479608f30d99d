"""What a real service prints of its stages is in its steps, the series and the ledger, and names what limits it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import polars
import pytest

from loadframe import lab
from loadframe.experiments import reading
from loadframe.runs.folder import RunFolder
from loadframe.study import Study, validate

SERVICE = Path(__file__).parents[1] / "commands" / "staged.py"


@pytest.fixture
def study(own_state: Path) -> Iterator[Study]:
    """The service where every user can read it: each entry takes 20 ms in APPLY, which has two workers."""
    folder = own_state.parent / "staged"
    folder.mkdir()
    folder.chmod(0o755)
    shutil.copy(SERVICE, folder)
    (folder / SERVICE.name).chmod(0o644)
    command = ["python3", str(folder / SERVICE.name), "--port", "{port}", "--apply", "20"]
    yield validate(
        {
            "study": {"name": "staged", "question": "Which stage limits it?"},
            "target": {"kind": "service", "command": command, "metrics": [{"stages": "{log}"}]},
            "workload": {"kind": "http"},
            "load": {"axis": "concurrency", "levels": [1, 16]},
            "measure": {"window": "1s", "blocks": {"min": 2, "max": 2}, "budget": "30s", "profile": "off"},
        }
    )
    shutil.rmtree(folder)


@pytest.mark.long
@pytest.mark.server
def test_the_stage_that_limits_is_seen_in_steps_series_and_ledger(study: Study, tmp_path: Path) -> None:
    found = lab.measure(study, runs=tmp_path)
    run = RunFolder.open(found.run)
    for step in run.steps():
        busy = step.metrics["pipeline.APPLY.busy_share"]
        assert busy > 0.85 if step.level == 16 else busy < 0.85
        assert step.metrics["pipeline.APPLY.entries"] == pytest.approx(step.throughput, rel=0.3)
    assert "workload.stages" not in run.steps()[0].metrics, "the load driver is another program"
    series = polars.read_parquet(found.run / "metrics.parquet")
    assert {"pipeline.PARSE.waiting", "pipeline.SEND.idle_share"} <= set(series["metric"].unique())
    (one,) = reading.conclude(run).rounds
    assert "pipeline.APPLY" in {finding.id for finding in one.findings}
    assert {"pipeline.APPLY", "pipeline.APPLY.queue"} <= {limit.id for limit in one.limits}
    assert {"pipeline.PARSE", "pipeline.SEND"} <= {each.id for each in one.findings[0].ruled_out}
