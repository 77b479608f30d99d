"""After a kill, what stands is shown, and put back by hand or by the next command."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loadframe.changes.durable import DurableJournal
from loadframe.changes.host import Host
from loadframe.cli.changes import _reason
from loadframe.host.state import state_directory
from loadframe.model import ChangeRecord

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


@pytest.mark.long
def test_what_stands_is_listed_and_put_back_by_hand(loadframe: Command, swappiness: Path) -> None:
    listed = loadframe("changes", "list")
    for word in ("was killed", "runs/killed", "vm.swappiness of this machine: 60 -> 1"):
        assert word in listed.out
    assert "No run" not in listed.out
    assert swappiness.read_text().startswith("1\n"), "looking changes nothing"
    (change,) = loadframe("changes", "list", "--json").json["standing"]
    assert (change["setting"], change["before"], change["running"]) == ("vm.swappiness", 60, False)
    reverted = loadframe("changes", "revert")
    assert (reverted.code, reverted.out) == (0, "vm.swappiness of this machine: put back from 1 to 60\n")
    assert swappiness.read_text().startswith("60\n")
    again = loadframe("changes", "revert", "--json")
    assert (again.code, again.json["reverted"]) == (0, [])


@pytest.mark.long
def test_what_is_forgotten_is_named_and_not_reverted(loadframe: Command, swappiness: Path) -> None:
    (change,) = loadframe("changes", "list", "--json").json["standing"]
    assert f"(id {change['id']})" in loadframe("changes", "list").out
    unknown = loadframe("changes", "forget", "0123")
    assert (unknown.code, f"now: {change['id']}" in unknown.err) == (1, True)
    forgotten = loadframe("changes", "forget", change["id"])
    assert forgotten.code == 0
    for word in ("vm.swappiness of this machine", "may still be 1", "it was 60", "nothing reverts it"):
        assert word in forgotten.out
    assert swappiness.read_text().startswith("1\n")
    assert loadframe("changes", "list", "--json").json["standing"] == []
    assert "vm.swappiness" not in loadframe(*MEASURING).err
    assert (loadframe("changes", "forget", change["id"]).code, swappiness.read_text()[0]) == (1, "1")


def test_what_a_command_that_runs_has_changed_is_not_forgotten(loadframe: Command, tmp_path: Path) -> None:
    file = tmp_path / "proc/sys/vm/swappiness"
    file.parent.mkdir(parents=True)
    file.write_text("60\n")
    journal, host = DurableJournal("a study", tmp_path / "runs/here"), Host(tmp_path)
    journal.set(host, "vm.swappiness", 1)
    (change,) = loadframe("changes", "list", "--json").json["standing"]
    refused = loadframe("changes", "forget", change["id"], "--json")
    assert (refused.code, "runs (pid" in refused.json["message"]) == (1, True)
    assert [each.status for each in journal.back(host)] == ["reverted"]


MEASURING = ("measure", "missing.toml")
"""It fails, once it has put back what was changed."""


def test_the_next_command_that_measures_puts_it_back_and_says_so(loadframe: Command, swappiness: Path) -> None:
    done = loadframe(*MEASURING)
    assert "its changes: vm.swappiness of this machine: put back from 1 to 60" in done.err
    assert swappiness.read_text().startswith("60\n")
    assert "vm.swappiness" not in loadframe(*MEASURING).err


@pytest.mark.long
def test_a_command_that_only_reads_says_in_a_line_what_stands_and_changes_nothing(
    loadframe: Command, swappiness: Path
) -> None:
    for verb in (("case", "list"), ("doctor",), ("study", "schema")):
        done = loadframe(*verb)
        (line,) = [each for each in done.err.splitlines() if "vm.swappiness" in each]
        for word in ("Still changed", "runs/killed", "`loadframe changes revert`"):
            assert word in line
        assert (done.code, swappiness.read_text()[0]) == (0, "1")


@pytest.mark.long
def test_what_cannot_be_put_back_is_said_by_every_command_and_ends_revert_with_1(
    loadframe: Command, swappiness: Path
) -> None:
    swappiness.rename(swappiness.with_name("gone"))
    assert "cannot be put back to 60" in loadframe(*MEASURING).err
    swappiness.with_name("gone").rename(swappiness)
    assert "cannot be put back to 60" in loadframe("case", "list").err
    assert "cannot be put back to 60" in loadframe(*MEASURING).err
    assert swappiness.read_text()[0] == "1", "it was tried a moment ago"
    assert "Could not be reverted" in loadframe("changes", "list").out
    swappiness.rename(swappiness.with_name("gone"))
    failed = loadframe("changes", "revert")
    assert (failed.code, "cannot be put back to 60" in failed.out) == (1, True)
    swappiness.with_name("gone").rename(swappiness)
    assert loadframe("changes", "revert").code == 0
    assert swappiness.read_text().startswith("60\n")


@pytest.mark.long
@pytest.mark.parametrize("text", ["null", "{}", '{"schema": "loadframe.standing/7"}'])
def test_a_file_that_cannot_be_used_is_named_by_every_command_and_stops_none(
    loadframe: Command, swappiness: Path, text: str
) -> None:
    file = state_directory() / "changes/odd.json"
    file.write_text(text)
    try:
        assert str(file) in loadframe("case", "list").err
        listed = loadframe("changes", "list")
        assert (listed.code, str(file) in listed.out, "vm.swappiness" in listed.out) == (0, True, True)
        assert loadframe("changes", "list", "--json").json["unreadable"][0]["file"] == str(file)
        reverted = loadframe("changes", "revert")
        assert (reverted.code, str(file) in reverted.out) == (1, True)
        assert swappiness.read_text().startswith("60\n")
        assert file.read_text() == text
    finally:
        file.unlink()


@pytest.mark.long
def test_a_state_directory_that_cannot_be_used_stops_what_measures_and_not_what_reads(
    loadframe: Command, tmp_path: Path
) -> None:
    state = tmp_path / "open"
    state.mkdir()
    state.chmod(0o777)
    read = loadframe("case", "list", LOADFRAME_STATE=str(state))
    assert (read.code, "chmod 700" in read.err) == (0, True)
    assert "chmod 700" in loadframe("doctor", LOADFRAME_STATE=str(state)).out
    measured = loadframe(*MEASURING, LOADFRAME_STATE=str(state))
    assert (measured.code, "chmod 700" in measured.err) == (1, True)


@pytest.mark.long
def test_what_was_tried_for_no_cause_is_told_without_one() -> None:
    tried = ChangeRecord("pool", 4, 16, remedy="pool = 16", why="the study declares it")
    assert _reason(tried) == "pool = 16: the study declares it"
    assert (
        _reason(replace(tried, finding="service.serial")) == "pool = 16, against service.serial: the study declares it"
    )
