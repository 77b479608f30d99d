"""Many processes are looked at in turn: how often each is, and that a window's numbers are those of all of them."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from loadframe.recording.frame_writer import FrameWriter
from loadframe.recording.frames import Facts, Tick
from loadframe.recording.metrics import window_metrics
from loadframe.recording.readers import RecordingReader
from loadframe.recording.recorder import LOOKS_PER_TICK, RecorderProcess
from loadframe.recording.series import metric_series

PARENT, CHILDREN = 100, range(101, 140)
INTERVAL_S, TICKS = 0.1, 41
RUNNING = 10
"""Children whose thread runs."""


def burnt(pid: int, at_tick: int) -> int:
    """User time so far (clock ticks): up to 0.3 CPUs of each process."""
    return at_tick * (pid % 4)


@dataclass
class Machine:
    """A /proc of processes that take CPU time."""

    root: Path
    began_s: float = field(default_factory=time.monotonic)
    inherited: int = 0
    there: list[int] = field(default_factory=lambda: [PARENT, *CHILDREN])

    def __post_init__(self) -> None:
        self.now_s = self.began_s
        self.recorder = RecorderProcess(
            self.root / "a.lfr", INTERVAL_S, self.root, clocks=lambda: (self.now_s, 1e9 + self.now_s)
        )

    def write(self, pid: int, at_tick: int) -> None:
        parent, inherited = (1, self.inherited) if pid == PARENT else (PARENT, 0)
        state = "R" if CHILDREN[0] <= pid < CHILDREN[0] + RUNNING else "S"
        times = f"{burnt(pid, at_tick):04} 0 {inherited:04} 0"
        stat = f"{pid} (a) {state} {parent} 1 1 0 -1 0 0 0 0 0 {times} 20 0 1 0 0 0 10\n"
        folder = self.root / f"proc/{pid}"
        threads = folder / f"task/{pid}"
        if not threads.exists():
            threads.mkdir(parents=True)
            (folder / "stat").touch()
            (threads / "stat").hardlink_to(folder / "stat")
            (threads / "schedstat").touch()
        for path, text in ((folder / "stat", stat), (threads / "schedstat", f"{burnt(pid, at_tick):04}0000000 0 1\n")):
            with path.open("r+b") as file:  # of the same length always: to truncate a file takes milliseconds
                file.write(text.encode())

    def follow(self) -> None:
        self.recorder.obey({"do": "follow", "component": "target", "pids": self.there})

    def run(self, before_tick: Callable[[int], None] = lambda _tick: None) -> list[Tick]:
        for number in range(TICKS):
            before_tick(number)
            for pid in self.there:
                self.write(pid, number)
            if number == 0:
                self.follow()
            self.recorder.tick(self.now_s)
            self.now_s += INTERVAL_S
        self.recorder.close()
        with RecordingReader(self.root / "a.lfr") as reader:
            return [tick for tick in reader.all_ticks() if tick.sample]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    (tmp_path / "proc").mkdir()
    machine = Machine(tmp_path)
    yield machine
    machine.there = []
    machine.follow()


def looks_at(ticks: list[Tick], pid: int) -> list[int]:
    return [number for number, tick in enumerate(ticks) if f"target:{pid}:/proc/{pid}/stat" in tick.entries]


def test_each_of_many_processes_is_looked_at_once_per_second_and_never_many_at_a_tick(machine: Machine) -> None:
    ticks = machine.run()
    looks = {pid: looks_at(ticks, pid) for pid in machine.there}
    assert looks[PARENT] == [*range(TICKS)], "it inherits from the others at any time"
    for seen in looks.values():
        assert max(later - earlier for earlier, later in pairwise([0, *seen, TICKS - 1])) * INTERVAL_S <= 1.0
    at_once = [sum(number in seen for seen in looks.values()) for number in range(TICKS)]
    assert max(at_once) == min(at_once) == LOOKS_PER_TICK
    assert all(f"target:{pid}:threads" in tick.entries for tick in ticks[3:] for pid in machine.there)


def test_a_block_has_room_for_the_names_of_hundreds_of_processes(tmp_path: Path) -> None:
    writer = FrameWriter(tmp_path / "a.lfr", Facts.of_this_machine(INTERVAL_S))
    sources = [writer.source(f"target:{pid}:{number}") for pid in range(500) for number in range(17)]
    writer.record(1.0, 1e9, [(sources[-1], b"5\n")])
    writer.close()
    with RecordingReader(tmp_path / "a.lfr") as reader:
        assert [tick.entries for tick in reader.all_ticks()] == [{"target:499:16": b"5\n"}]


@pytest.mark.parametrize("length_s", [0.5, 1.0, 2.0])
def test_a_windows_numbers_are_those_of_all_processes(machine: Machine, length_s: float) -> None:
    ticks = machine.run()
    metrics = window_metrics(ticks, machine.began_s + 1, machine.began_s + 1 + length_s)
    cores = sum(burnt(pid, 1) for pid in machine.there) / 10
    assert metrics["target.cpu.cores"] == pytest.approx(cores)
    assert metrics["target.cpu.thread_cores"] == pytest.approx(cores)
    assert metrics["target.cpu.busiest_process"] == pytest.approx(0.3)
    assert metrics["target.processes.count"] == metrics["target.threads.count"] == len(machine.there)
    assert metrics["target.threads.running"] == RUNNING
    assert metrics["target.memory.rss"] == 40 * 10 * 4096
    assert metrics["target.waits.running"] == pytest.approx(cores)
    series = metric_series(machine.root / "a.lfr").table
    assert series is not None
    last = {row["metric"]: row["value"] for row in series.iter_rows(named=True)}
    assert last["target.cpu.cores"] == pytest.approx(cores)
    assert (last["target.processes.count"], last["target.threads.running"]) == (len(machine.there), RUNNING)


@pytest.mark.parametrize("forbidden", [False, True], ids=["by a pidfd", "where a filter forbids pidfds"])
def test_one_that_is_gone_is_noticed_at_the_next_tick_whoevers_turn_it_is(
    forbidden: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_pid: int) -> int:
        raise PermissionError

    if forbidden:
        monkeypatch.setattr(os, "pidfd_open", refuse)
    monkeypatch.setattr(time, "clock_gettime_ns", lambda _clock: 1)  # as if each pid were another's at once
    recorder = RecorderProcess(tmp_path / "a.lfr", INTERVAL_S, Path("/"))
    idle = [subprocess.Popen(["sleep", "60"]) for _ in range(LOOKS_PER_TICK + 3)]
    pids, now_s = [process.pid for process in idle], time.monotonic()
    recorder.obey({"do": "follow", "component": "target", "pids": pids})
    try:
        for number in range(10):
            recorder.tick(now_s + number * INTERVAL_S)
        for process in idle[::2]:
            process.kill()
            process.wait()
        recorder.tick(now_s + 1.0)
        recorder.obey({"do": "follow", "component": "target", "pids": []})
    finally:
        for process in idle:
            process.kill()
            process.wait()
    recorder.close()
    with RecordingReader(tmp_path / "a.lfr") as reader:
        ticks = [tick for tick in reader.all_ticks() if tick.sample]
    gone = [{pid for pid in pids if f"target:{pid}:gone" in tick.entries} for tick in ticks]
    assert gone == [*[set[int]()] * 10, set(pids[::2])]


def test_a_child_that_ends_between_its_turns_counts_once(machine: Machine) -> None:
    ended = CHILDREN[2]
    assert burnt(ended, 1) == 3

    def end(number: int) -> None:
        if number == 25:
            machine.there.remove(ended)
            machine.inherited = burnt(ended, 25)
            machine.follow()

    ticks = machine.run(end)
    metrics = window_metrics(ticks, machine.began_s + 2, machine.began_s + 3)
    spent = sum(burnt(pid, 10) for pid in machine.there) + burnt(ended, 5)
    assert metrics["target.cpu.cores"] == pytest.approx(spent / 100, abs=0.03), (
        "its turns were within 0.3 s of the edge"
    )
