"""Whole investigations on the hosts of a fleet: which host takes which and when, and what is lost. Hosts without
machines first, then workers of dask in a network of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import network
import pytest
from network import Network
from stations import LOADS_WITHIN_S, Station
from workers import TOKEN, engine, laboratory, parent, trial_processes

from hosts_investigations import Asked, InvestigationsOnHosts
from loadframe.progress import Silent
from loadframe.runs.folder import RunFolder
from loadframe.study import Study, parse
from loadframe_fleet import on_hosts
from loadframe_fleet.on_hosts import Came, Done
from loadframe_fleet.records import ATTEMPTS
from waiting import await_that

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
ON_TWO, ON_ONE = {"one": "a", "two": "b"}, {"one": "a", "two": "a"}
"""Kernels of the hosts."""
STUDY = """
[study]
name = "{name}"
question = "What limits it?"
[target]
kind = "sqlite"
[workload]
kind = "job-queue"
[load]
axis = "concurrency"
levels = [1, 2]
"""


@dataclass
class Machines:
    """An engine whose tasks end one by one, and do nothing. lose: why one is lost; "" where it is not."""

    hosts: tuple[str, ...] = ("one", "two")
    lose: Callable[[str, str], str] = lambda host, task: ""
    gone: set[str] = field(default_factory=set)
    most: int = 0
    open: list[tuple[str, str]] = field(default_factory=list)

    def present(self) -> frozenset[str]:
        return frozenset(self.hosts) - {host for host, _ in self.open} - self.gone

    def begin(self, host: str, task: str, asked: Mapping[str, Any]) -> None:
        assert host in self.present() and asked["investigate"]
        self.open.append((host, task))
        self.most = max(self.most, len(self.open))

    def came(self, within_s: float) -> Came | None:
        if not self.open:
            time.sleep(0.01)
            return None
        host, task = self.open.pop(0)
        why = self.lose(host, task)
        return Came(task, host, lost=why) if why else Came(task, host, {"failed": "nothing is here", "boot": "b"})

    def close(self) -> None:
        pass


def studied(name: str) -> Study:
    return parse(STUDY.format(name=name))


def carried_out(
    folder: Path, machines: Machines, kernels: Mapping[str, str], asked: Sequence[Asked]
) -> tuple[list[Done], InvestigationsOnHosts]:
    on = InvestigationsOnHosts(machines, kernels)
    return on(asked, RunFolder.create(folder, "investigated"), Silent()), on


def test_hosts_of_two_kernels_work_at_the_same_time(tmp_path: Path) -> None:
    machines = Machines()
    done, on = carried_out(tmp_path, machines, ON_TWO, [Asked(studied(f"a{number}")) for number in range(6)])
    assert machines.most == 2 and not on.notes
    assert [one.work.title for one in done] == [f"a{number}" for number in range(6)], "in the order of the studies"
    assert Counter(one.host for one in done) == {"one": 3, "two": 3}


def test_hosts_of_one_kernel_take_turns(tmp_path: Path) -> None:
    """Beside another one's load each would find strangers."""
    machines = Machines()
    done, on = carried_out(tmp_path, machines, ON_ONE, [Asked(studied(f"a{number}")) for number in range(4)])
    assert machines.most == 1
    assert Counter(one.host for one in done) == {"one": 2, "two": 2}
    assert on.notes == ["The hosts one, two run on one kernel and took turns: a load beside another one is a stranger."]


def test_what_is_of_a_host_is_investigated_there(tmp_path: Path) -> None:
    asked = [Asked(studied("a"), host) for host in ("two", "two", "one", "two")]
    done, _ = carried_out(tmp_path, Machines(), ON_TWO, asked)
    assert [one.host for one in done] == ["two", "two", "one", "two"]


def test_what_is_lost_is_told_and_begun_again_on_its_host(tmp_path: Path) -> None:
    """Once, and then with its worker each time."""
    lost = Counter[str]()

    def lose(host: str, task: str) -> str:
        lost[host] += 1
        return "its worker has gone" if host == "two" or lost[host] == 1 else ""

    done, on = carried_out(
        tmp_path, Machines(lose=lose), ON_TWO, [Asked(studied("a"), "one"), Asked(studied("b"), "two")]
    )
    assert [one.host for one in done] == ["one", "two"]
    assert done[0].failed == "nothing is here" and done[0].work.attempts == 2
    assert done[1].failed == "it was lost 3 times, on two, two, two: its worker has gone"
    assert "a was lost on one: its worker has gone." in on.notes


def test_what_is_of_a_host_that_has_gone_is_lost_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_hosts, "RETURNS_WITHIN_S", 0.2)
    asked = [Asked(studied("a"), "two"), Asked(studied("b"), "one"), Asked(studied("c"))]
    done, _ = carried_out(tmp_path, Machines(gone={"two"}), ON_TWO, asked)
    assert [(one.host, one.failed) for one in done] == [
        ("two", "its host has gone"), ("one", "nothing is here"), ("one", "nothing is here")
    ]  # fmt: skip


COORDINATOR = """
import json, sys
from pathlib import Path
from loadframe_fleet.declaration import load
from hosts_investigations import Asked
from hosts_investigations import investigations_over
from loadframe.progress import Silent
from loadframe.runs.folder import RunFolder
from loadframe.study import load as study
asked = study(Path("study.toml"), sys.argv[1:])
with investigations_over(load(Path("fleet.toml")), [asked]) as on:
    run = RunFolder.create(Path("runs"), "investigated")
    done = on([Asked(asked)], run, Silent())
    print(json.dumps([[one.host, one.failed, one.work.attempts] for one in done]))
    print(json.dumps(on.notes))
"""
SHORT = ("load.levels=[1, 2, 8]", "measure.window=300ms", "measure.budget=10s")


@pytest.fixture(scope="module")
def lan() -> Iterator[Network]:
    with Network(["host", "beside"]) as made:
        yield made


@pytest.mark.measures
@pytest.mark.timeout(500)
@pytest.mark.skipif(not network.possible(), reason="no network namespaces may be made here")
def test_a_host_names_a_cause_beside_an_observer_after_another_one_was_lost(lan: Network, open_folder: Path) -> None:
    """Of a service with a pool of two: 20 ms each, so it is flat from two on. The budget is too short to prove more."""
    within = lan.within("host")
    watcher = Station("watcher", open_folder / "watcher", ["observer"], by=lan.within("beside"))
    with engine(open_folder, {"one": 0.02, "two": 0.02}, within=within) as address:
        folder = laboratory(open_folder / "here", f'scheduler = "{address}"')
        with (folder / "fleet.toml").open("a") as file:
            file.write(watcher.row())
        paths = os.pathsep.join(filter(None, [str(BENCHMARKS), os.environ.get("PYTHONPATH")]))
        words = [
            *within,
            "env",
            f"LABORATORY_TOKEN={TOKEN}",
            f"PYTHONPATH={paths}",
            sys.executable,
            "-c",
            COORDINATOR,
            *SHORT,
        ]
        with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                await_that(
                    lambda: trial_processes(open_folder) or process.poll() is not None, "an investigation runs",
                    LOADS_WITHIN_S,
                )  # fmt: skip
                assert process.poll() is None, process.communicate()
                (trial,) = trial_processes(open_folder)
                os.kill(parent(trial), signal.SIGKILL)
                out, said = process.communicate(timeout=200)
            finally:
                process.kill()
        assert process.returncode == 0, said
    done, notes = map(json.loads, out.splitlines())
    assert done == [["two", "", 2]]
    assert any("was lost on one" in words for words in notes) and any("took turns" in words for words in notes)
    assert "Recorded during the trials, without load: watcher." in notes
    (path,) = folder.glob("runs/*")
    kept = ATTEMPTS.of(RunFolder.open(path))
    assert [each.counted for each in kept] == [False, True]
    assert all("watcher" in each.observed for each in kept), "also of the lost one, which may have begun just now"
    (one,) = [each for each in kept if each.counted]
    assert "system.cpu.utilization" in one.observed["watcher"].metrics
    assert one.purpose == "investigation" and one.steps and one.investigation is not None
    assert one.investigation.rounds[0].findings[0].id == "service.parallelism"
    assert not trial_processes(open_folder)
    await_that(lambda: watcher.as_before, "the observer as before")
