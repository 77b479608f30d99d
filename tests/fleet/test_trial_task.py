"""A trial on a worker of dask that does not end as it should: what it changed of its host is put back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import network
import pytest

WORKER = Path(__file__).with_name("trial_on_worker.py")
pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(not network.possible(), reason="no network namespaces may be made here"),
]


def trial(folder: Path, how: str) -> dict[str, Any]:
    """In a network of its own, so that the host's settings are."""
    state, scratch = folder / "state", folder / "scratch"
    state.mkdir()
    scratch.mkdir(mode=0o755)
    own = {"LOADFRAME_STATE": str(state), "LOADFRAME_SCRATCH": str(scratch), "PYTHONPATH": str(WORKER.parent)}
    own["PYTHONPATH"] += f":{os.environ.get('PYTHONPATH', '')}"
    within = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    words = [*within, sys.executable, str(WORKER), how, str(folder / "here")]
    done = subprocess.run(words, env={**os.environ, **own}, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    assert not [*scratch.iterdir(), *state.glob("*/*.json")], "nothing is left"
    return found


def test_the_worker_of_a_trial_that_is_killed_puts_back_what_it_changed(open_folder: Path) -> None:
    found = trial(open_folder, "killed")
    assert found["before"] != found["changed"] and found["after"] == found["before"]
    died = found["answer"]["died"]
    assert "its process has ended by signal 9" in died
    assert "net.core.somaxconn" in died and "put back" in died, "and says so"
