"""`loadframe ladder --fleet` on workers of dask: processes of this machine that stand in for hosts."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from workers import attempts, laboratory, trial_processes

RUNGS = """
[[change]]
name = "more"
target = { settings = { pool = 8 } }
[[change]]
name = "one"
target = { settings = { pool = 1 } }
"""


@pytest.mark.measures
@pytest.mark.timeout(600)
def test_a_ladder_is_measured_on_both_hosts(begin: Callable[..., subprocess.Popen[str]], open_folder: Path) -> None:
    folder = laboratory(open_folder / "here", budget="280s", more=RUNGS)
    command = begin(folder, verb="ladder")
    out, said = command.communicate(timeout=550)
    assert command.returncode == 0, f"{out}\n{said}"
    found = json.loads(out)
    assert found["kept"] == ["more"] and found["total"]["ratio"] == pytest.approx(4, rel=0.25)
    assert found["steps"][1]["decision"] == "worse" and not found["steps"][1]["kept"]
    assert {each["likeness"] for each in found["hosts"]["hosts"]} == {"alike"}
    blocks = [each for each in attempts(folder) if each["purpose"] == "block" and each["counted"]]
    assert Counter(each["host"] for each in blocks).keys() == {"one", "two"}
    assert all(len({step["treatment"] for step in each["steps"]}) == 2 for each in blocks), "whole on one host"
    assert not trial_processes(folder)
    assert "Traceback" not in said


@pytest.mark.long
def test_a_host_whose_machine_may_not_be_changed_is_refused(
    begin: Callable[..., subprocess.Popen[str]], open_folder: Path
) -> None:
    more = RUNGS + '[remedies]\nallow = ["host"]\n[[change]]\nname = "wide"\n'
    more += 'host = { settings = { "net.core.somaxconn" = 4096 } }\n'
    folder = laboratory(open_folder / "here", more=more)
    command = begin(folder, verb="ladder")
    out, said = command.communicate(timeout=120)
    assert command.returncode == 1, f"{out}\n{said}"
    error = json.loads(out)
    assert "host 'one' may be changed" in error["message"] and 'may_change = ["machine"]' in error["remedy"]
    assert not list(folder.glob("runs/*")), "before anything is measured"
