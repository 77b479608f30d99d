"""After a kill, what stands is shown, and put back by hand or by the next command."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]

KILLED = """
import os, signal, sys
from pathlib import Path
from loadframe.changes.durable import DurableJournal
from loadframe.changes.host import Host
DurableJournal("a study", Path("runs/killed")).set(Host(Path(sys.argv[1])), "vm.swappiness", 1)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def swappiness(tmp_path: Path) -> Path:
    """A setting of a made-up machine, that a command has changed from 60 to 1 before it was killed."""
    file = tmp_path / "proc/sys/vm/swappiness"
    file.parent.mkdir(parents=True)
    file.write_text("60\n")
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=tmp_path, check=False)
    assert (done.returncode, file.read_text()) == (-signal.SIGKILL, "1\n\n")
    return file


def test_what_stands_is_listed_and_put_back_by_hand(loadframe: Command, swappiness: Path) -> None:
    listed = loadframe("changes", "list")
    for word in ("was killed", "runs/killed", "vm.swappiness of this machine: 60 -> 1"):
        assert word in listed.out
    assert "No run" not in listed.out
    assert swappiness.read_text().startswith("1\n"), "looking changes nothing"
    (standing,) = loadframe("changes", "list", "--json").json["standing"]
    assert (standing["setting"], standing["before"], standing["running"]) == ("vm.swappiness", 60, False)
    reverted = loadframe("changes", "revert")
    assert (reverted.code, reverted.out) == (0, "vm.swappiness of this machine: put back from 1 to 60\n")
    assert swappiness.read_text().startswith("60\n")
    again = loadframe("changes", "revert", "--json")
    assert (again.code, again.json["reverted"]) == (0, [])


def test_the_next_command_puts_it_back_and_says_so(loadframe: Command, swappiness: Path) -> None:
    done = loadframe("case", "list")
    assert "what it had changed: vm.swappiness of this machine: put back from 1 to 60" in done.err
    assert swappiness.read_text().startswith("60\n")
    assert "vm.swappiness" not in loadframe("case", "list").err


def test_what_cannot_be_put_back_is_said_by_every_command_and_ends_revert_with_1(
    loadframe: Command, swappiness: Path
) -> None:
    swappiness.rename(swappiness.with_name("gone"))
    assert "cannot be put back to 60" in loadframe("case", "list").err
    failed = loadframe("changes", "revert")
    assert (failed.code, "cannot be put back to 60" in failed.out) == (1, True)
    swappiness.with_name("gone").rename(swappiness)
    assert loadframe("changes", "revert").code == 0
