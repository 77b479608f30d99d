"""`loadframe capacity --fleet`: a search is a task on a host, on workers of dask that stand in for hosts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from workers import TOKEN, begun, laboratory, trial_processes

from loadframe.progress import Silent
from loadframe.runs.folder import RunFolder
from loadframe.study import load as load_study
from loadframe_fleet.declaration import load
from loadframe_fleet.engine import DaskEngine
from loadframe_fleet.on_hosts import OnHosts, Work
from loadframe_fleet.records import ATTEMPTS

WITHIN = "[objective]\nwithin = { latency_p95_ms = 150 }\n"
BY_RATE = ["load.axis=rate", "load.levels=[20, 800]", "measure.precision=0.3", "measure.budget=60s"]


@pytest.mark.measures
@pytest.mark.timeout(300)
def test_a_search_is_a_task_on_one_host(open_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two at a time serve 20 ms each: 100 each second at most. That hosts are alike takes nine such searches at least,
    so the whole is tested with an engine without machines (tests/bench/test_capacities_side_by_side.py)."""
    folder = laboratory(open_folder / "here", window="300ms", more=WITHIN)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("LABORATORY_TOKEN", TOKEN)
    study = load_study(folder / "study.toml", BY_RATE)
    asked = {"study": study.resolved(), "capacity": {"guess": [100, 60, 150], "changed": False}}
    run, notes = RunFolder.create(tmp_path, "searched"), list[str]()
    with DaskEngine(load(folder / "fleet.toml"), ["LABORATORY_TOKEN"]) as engine:
        on = OnHosts(engine, run, Silent(), 120.0, notes, "Run it again.")
        (done,) = on.all_of([Work("capacity", 1, "The start", lambda _: asked)])
    found = done.capacity
    assert found is not None and not done.failed, done
    assert found.load is not None and 40 < found.load < 130
    (kept,) = [each for each in ATTEMPTS.of(run) if each.counted]
    assert kept.capacity == found and kept.host == done.host in ("one", "two")
    assert not trial_processes(folder)


@pytest.mark.long
def test_without_other_settings_it_is_refused_before_any_host_is_reached(open_folder: Path) -> None:
    folder = laboratory(open_folder / "here", more=WITHIN)
    with begun(folder, "capacity") as command:  # no worker runs
        try:
            out, said = command.communicate(timeout=60)
        finally:
            command.kill()
    assert command.returncode == 1, f"{out}\n{said}"
    assert "[[alternative]]" in json.loads(out)["remedy"]
    assert "Reaching" not in said
    assert not list(folder.glob("runs/*")), "before anything is measured"
