"""Settings of the machine, over a fleet: of the target's host, and never of the coordinator's own machine."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest

from loadframe.changes import host
from loadframe.changes.host import Host
from loadframe.errors import TargetError
from loadframe.runs.folder import RunFolder
from loadframe.study import parse
from loadframe_fleet.bench import FleetBench
from loadframe_fleet.hosts import Hosts

STUDY = """\
[study]
name = "web"
question = "How much does it serve?"
[target]
kind = "url"
settings = { url = "http://192.0.2.7:80" }
[workload]
kind = "http"
[load]
axis = "concurrency"
levels = [1]
[remedies]
allow = ["target", "host"]
"""
SETTING = "vm.swappiness"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of the setting, on the coordinator's machine."""
    path = tmp_path / "machine/proc/sys/vm/swappiness"
    path.parent.mkdir(parents=True)
    path.write_text("60\n")
    monkeypatch.setattr(host, "ROOT", tmp_path / "machine")
    monkeypatch.setenv("LOADFRAME_STATE", str(tmp_path / "state"))
    assert Host().read(SETTING) == 60
    return path


def test_a_remedy_changes_the_targets_host_where_the_study_names_no_setting(file: Path, tmp_path: Path) -> None:
    hosts = Mock(spec=Hosts, serving=None, coordinator=Mock())
    hosts.machine.return_value = "web"
    hosts.coordinator.ask_place.return_value = {"read_back": 10, "value": 10, "changes": []}
    surroundings = FleetBench(parse(STUDY), RunFolder.create(tmp_path, "web"), print, hosts)._make_surroundings()
    surroundings.bring("B", {SETTING: 10})
    asked = [call.args[1] for call in hosts.coordinator.ask_place.call_args_list]
    assert {"place": "machine", "do": "set", "name": SETTING, "value": 10} in asked
    surroundings.close()
    assert file.read_text() == "60\n"


def test_a_host_that_is_not_known_is_no_matter_until_its_machine_is_changed(file: Path, tmp_path: Path) -> None:
    hosts = Mock(spec=Hosts, serving=None, coordinator=Mock())
    hosts.machine.side_effect = TargetError("no host of the fleet is the target's", remedy="")
    surroundings = FleetBench(parse(STUDY), RunFolder.create(tmp_path, "web"), print, hosts)._make_surroundings()
    assert surroundings.bring("A", {}) == {} and surroundings.close() == []
    with pytest.raises(TargetError):
        surroundings.bring("B", {SETTING: 10})
    assert file.read_text() == "60\n"
