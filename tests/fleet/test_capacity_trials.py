"""`loadframe capacity --fleet` on workers of dask: processes of this machine that stand in for hosts."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from workers import attempts, laboratory, trial_processes

OTHERS = """
[objective]
within = { latency_p95_ms = 150 }
[[alternative]]
name = "more"
target = { settings = { pool = 8 } }
[[alternative]]
name = "one"
target = { settings = { pool = 1 } }
"""
SHORT = (
    "--set", "load.axis=rate", "--set", "load.levels=[20, 1200]", "--set", "measure.precision=0.2",
    "--set", "measure.budget=60s",
)  # fmt: skip
"""The rate at which a pool of two falls behind is sharp: searches of the same differ little, so three blocks tell."""


@pytest.mark.alone
@pytest.mark.timeout(600)
def test_each_settings_has_its_capacity(begin: Callable[..., subprocess.Popen[str]], open_folder: Path) -> None:
    folder = laboratory(open_folder / "here", window="300ms", more=OTHERS)
    command = begin(folder, *SHORT, verb="capacity")
    out, said = command.communicate(timeout=550)
    assert command.returncode == 0, f"{out}\n{said}"
    found = json.loads(out)
    beside = {each["name"]: each for each in found["beside"]}
    assert beside["more"]["decision"] == "better" and beside["more"]["ratio"] == pytest.approx(4, rel=0.4)
    assert beside["one"]["decision"] == "worse" and beside["one"]["ratio"] < 0.9
    assert {each["likeness"] for each in found["hosts"]["hosts"]} == {"alike"}
    kept = Counter((each["purpose"], each["host"]) for each in attempts(folder))
    assert kept["together", "one"] == kept["together", "two"] == kept["alone", "one"] == kept["alone", "two"]
    assert sum(count for (purpose, _), count in kept.items() if purpose == "capacity") == 2
    (run,) = folder.glob("runs/*")
    assert "Other settings" in (run / "report.html").read_text(encoding="utf-8")
    assert not trial_processes(folder)
    assert "Traceback" not in said


def test_without_other_settings_it_is_refused(begin: Callable[..., subprocess.Popen[str]], open_folder: Path) -> None:
    folder = laboratory(open_folder / "here", more="[objective]\nwithin = { latency_p95_ms = 150 }\n")
    command = begin(folder, *SHORT, verb="capacity")
    out, said = command.communicate(timeout=120)
    assert command.returncode == 1, f"{out}\n{said}"
    assert "[[alternative]]" in json.loads(out)["remedy"]
    assert not list(folder.glob("runs/*")), "before anything is measured"
