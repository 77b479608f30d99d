"""Alternatives beside a study's target, on real servers: each step is of its own side, the report tells both."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest

import loadframe
from loadframe.bench.rig import Rig
from loadframe.study import parse
from loadframe.workloads.http import HttpByWorkingSet

STUDY = """
[study]
name = "modes"
question = "What does the write-ahead log change?"
[target]
kind = "sqlite"
[workload]
kind = "job-queue"
[load]
axis = "concurrency"
levels = [1, 2, 4]
[measure]
warmup = "150ms"
window = "300ms"
blocks = { min = 3, max = 3 }
budget = "25s"
profile = "off"
[remedies]
allow = []
[[alternative]]
name = "wal"
target = { settings = { journal_mode = "wal", synchronous = "OFF" } }
"""


@pytest.mark.measures
def test_an_alternative_has_its_own_curve_causes_and_ratios(tmp_path: Path) -> None:
    found = loadframe.investigate(parse(STUDY), tmp_path)
    (wal,) = found.alternatives
    assert (wal.name, wal.target_kind) == ("wal", "sqlite")
    assert wal.round.effective["journal_mode"] == "WAL"
    assert found.rounds[0].effective["journal_mode"] == "DELETE"
    assert [verdict.levels for verdict in wal.by_level] == [(1.0,), (2.0,), (4.0,)]
    assert wal.verdict.ratio > 2
    before, after = found.rounds[0].curve.points, wal.round.curve.points
    loads = {point.load for point in after}
    assert loads == {1, 2, 4} and {point.load for point in before} >= loads, "a decline of the target is bisected"
    assert all(point.steps >= 2 for point in (*before, *after))
    assert {witness.metric for witness in wal.witnesses} >= {"target.cpu.cores", "target.memory.rss"}
    of_the_cause = {item.metric for finding in found.rounds[0].findings for item in finding.evidence}
    assert not of_the_cause or of_the_cause & {witness.metric for witness in wal.witnesses}
    if "disk.fsync" in {finding.id for finding in found.rounds[0].findings}:
        flushes = next(one for one in wal.witnesses if one.metric == "system.disk.flushes_per_request")
        assert flushes.target > flushes.alternative
    text, page = loadframe.render_text(found, details=True), Path(found.report).read_text()
    assert "wal against sqlite: " in " ".join(text.split())
    assert "sqlite and wal side by side" in page
    assert 'id="chart-side-by-side-1"' in page
    shape = loadframe.investigation_json(found)["alternatives"][0]
    assert shape["by_level"][0]["schema"] == "loadframe.verdict/1"
    assert loadframe.conclude(loadframe.open_run(Path(found.run))).answer == found


CACHES = """
[study]
name = "caches"
question = "What is still there after a restart?"
[target]
kind = "varnish"
[target.settings]
storage_kind = "file"
storage_size = "32MiB"
[workload]
kind = "http"
[workload.options]
smallest_bytes = 65536
connections = 2
[load]
axis = "working_set"
levels = [1, 2]
[measure]
warmup = "150ms"
window = "300ms"
blocks = { min = 2, max = 2 }
budget = "2m"
profile = "off"
cold = true
[remedies]
allow = []
[[alternative]]
name = "nginx"
target = { kind = "nginx-cache" }
"""


@pytest.mark.long
@pytest.mark.server
def test_caches_warm_and_cold_and_what_they_keep_when_they_are_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mapped store is lost with its process; files are still there, also after SIGKILL."""
    emptied = Mock(side_effect=Rig.empty)
    monkeypatch.setattr(Rig, "empty", lambda rig: emptied(rig))
    warmed = Mock(side_effect=HttpByWorkingSet.warm)
    monkeypatch.setattr(HttpByWorkingSet, "warm", lambda *given: warmed(*given))
    found = loadframe.investigate(parse(CACHES), tmp_path)
    kept = {(one.target_kind, one.how): (one.kept, one.asked) for one in found.warm_restarts}
    assert kept == {
        ("varnish", "a clean stop"): (0, 16),
        ("varnish", "SIGKILL"): (0, 16),
        ("nginx-cache", "a clean stop"): (16, 16),
        ("nginx-cache", "SIGKILL"): (16, 16),
    }
    text = " ".join(loadframe.render_text(found, details=True).split())
    assert "nginx-cache 16 of 16 objects 16 of 16 objects" in text
    assert "Warm restart" in Path(found.report).read_text()
    (nginx,) = found.alternatives
    assert [verdict.levels for verdict in nginx.cold] == [(1.0,), (2.0,)]
    assert "With nothing cached: " in " ".join(loadframe.render_text(found, details=True).split())
    assert "<h3>With nothing cached</h3>" in Path(found.report).read_text()
    run = loadframe.open_run(Path(found.run))
    cold = {treatment.name for treatment in run.treatments().values() if treatment.cold_of}
    steps = run.steps()
    began_cold = [step for step in steps if step.treatment in cold]
    assert len(began_cold) >= 8, "two caches at two levels in two blocks; disturbed steps are repeated"
    assert emptied.call_count == len(began_cold)
    warm = len(steps) - len(began_cold)
    assert warmed.call_count == warm + 2 * len(kept), "a restart is preceded and followed by asking for all"
    assert all(step.window_start_s == step.started_s for step in steps if step.treatment in cold)
    assert {entry["how"] for entry in loadframe.investigation_json(found)["survivals"]} == {"a clean stop", "SIGKILL"}
