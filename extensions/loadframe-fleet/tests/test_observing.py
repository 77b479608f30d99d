"""Hosts with the role observer beside trials: what they saw of each, and what becomes of a trial where one is lost. The
observer is a host in a network of its own; the trials are of an engine without machines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import network
import pytest
from network import Network
from stations import Station
from workers import laboratory

from loadframe.errors import FleetError
from loadframe.progress import Silent
from loadframe.recording.readers import RecordingReader
from loadframe.runs.folder import RunFolder
from loadframe_fleet.declaration import load
from loadframe_fleet.observing import Observing
from loadframe_fleet.on_hosts import Came, OnHosts, Work
from loadframe_fleet.records import ATTEMPTS, recording_of
from waiting import await_that

TRIAL = '[[host]]\nname = "one"\nroles = ["trial"]\nworker = "one"\n'
pytestmark = pytest.mark.skipif(not network.possible(), reason="no network namespaces may be made here")


@dataclass
class Lasting:
    """An engine of one host whose tasks take a while. meanwhile: is called as one begins."""

    lasts_s: float
    meanwhile: Callable[[], object] = lambda: None
    hosts: tuple[str, ...] = ("one",)
    open: dict[str, float] = field(default_factory=dict)

    def present(self) -> frozenset[str]:
        return frozenset() if self.open else frozenset(self.hosts)

    def begin(self, host: str, task: str, asked: Mapping[str, Any]) -> None:
        self.open[task] = time.monotonic()
        self.meanwhile()

    def came(self, within_s: float) -> Came | None:
        time.sleep(0.02)
        ended = [task for task, began_s in self.open.items() if time.monotonic() - began_s > self.lasts_s]
        for task in ended:
            del self.open[task]
            return Came(task, "one", {"failed": "nothing is here", "boot": "b"})
        return None

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def lan() -> Iterator[Network]:
    with Network(["beside"]) as made:
        yield made


@pytest.fixture
def watcher(lan: Network, open_folder: Path) -> Station:
    return Station("watcher", open_folder / "watcher", ["observer"], by=lan.within("beside"))


def observed(folder: Path, watcher: Station, engine: Lasting, count: int) -> RunFolder:
    """Trials of that number, one after another, beside it."""
    path = folder / "fleet.toml"
    path.write_text(f'[fleet]\nname = "laboratory"\n{TRIAL}{watcher.row()}')
    run, notes = RunFolder.create(folder, "observed"), list[str]()
    with Observing(load(path)) as observing:
        on = OnHosts(engine, run, Silent(), 60.0, notes, "Run it again.", observing=observing)
        on.all_of([Work("trial", number, f"Trial {number}", lambda _: {}) for number in range(1, count + 1)])
    assert "Recorded during the trials, without load: watcher." in notes
    return run


def test_what_an_observer_saw_is_with_each_trial(open_folder: Path, watcher: Station) -> None:
    run = observed(open_folder, watcher, Lasting(1.0), 2)
    first, second = (each.observed["watcher"] for each in ATTEMPTS.of(run))
    for seen in (first, second):
        assert 1.0 <= seen.to_s - seen.from_s < 10
        assert {"system.cpu.utilization", "system.cpu.count", "system.memory.available"} <= seen.metrics.keys()
        assert seen.clock.exchanges and seen.clock.uncertainty_s < 1
    assert first.to_s <= second.from_s
    reader = RecordingReader(run.place(recording_of("watcher")))
    ticks = reader.ticks_between(first.from_s, second.to_s)
    reader.close()
    assert ticks and ticks[-1].monotonic_s - ticks[0].monotonic_s > 1.0, "the recording is in the run folder"
    await_that(lambda: watcher.as_before, "the observer as before")


def test_trials_end_with_an_observer_that_is_lost(open_folder: Path, watcher: Station) -> None:
    engine = Lasting(60.0, meanwhile=lambda: os.kill(watcher.agent, signal.SIGKILL))
    begun_s = time.monotonic()
    with pytest.raises(FleetError, match="during the trials is not recorded: host 'watcher' is lost") as refused:
        observed(open_folder, watcher, engine, 1)
    assert time.monotonic() - begun_s < 45, "not at the end of the trial"
    assert "take it out of the fleet file" in refused.value.remedy
    await_that(lambda: watcher.as_before, "the observer as before")


@pytest.mark.parametrize(
    ("by", "told"),
    [(["false"], "host 'watcher' cannot be reached"), (["env", "LC_ALL=C"], "Loadframe is 0.0.0 there")],
)
def test_an_observer_that_cannot_record_is_refused_before_anything_is_measured(
    begin: Callable[..., subprocess.Popen[str]], open_folder: Path, by: Sequence[str], told: str
) -> None:
    older = "import loadframe_fleet.looking as looking\nlooking.__version__ = '0.0.0'"
    watcher = Station("watcher", open_folder / "watcher", ["observer"], by=by, before=older)
    folder = laboratory(open_folder / "here")
    with (folder / "fleet.toml").open("a") as file:
        file.write(watcher.row())
    command = begin(folder)
    out, said = command.communicate(timeout=120)
    assert command.returncode == 1, f"{out}\n{said}"
    error = json.loads(out)
    assert error["kind"] == "FleetError" and told in error["message"], error
    assert error["remedy"] and not list(folder.glob("runs/*"))
