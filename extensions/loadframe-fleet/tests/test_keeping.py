"""An agent's worker that says nothing: one that has stopped is ended, one that waits for a CPU is not."""

from __future__ import annotations

import json
import math
import os
import queue
import secrets
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from loadframe.cages.groups import find, put, remove
from loadframe.errors import CageError
from loadframe.host.environment import python
from loadframe_fleet import wire
from loadframe_fleet.agent import ENDS_WITHIN_S, MOST_SILENT_S, Kept, cpu_s, is_kept_waiting
from loadframe_fleet.wire import BEAT_S, SILENT_S, Lines
from waiting import await_that

BEAT = b'{"beat": true}'
STUDY = {
    "study": {"name": "here", "question": "Does it go on?"},
    "target": {"kind": "url", "settings": {"url": "http://127.0.0.1:9"}, "authorised": True, "owner": "this test"},
    "workload": {"kind": "http"},
    "load": {"axis": "concurrency", "levels": [1]},
}
QUOTA_US, PERIOD_US = 1000, 1_000_000


class Agent:
    """What is between a coordinator and a worker: a beat each second, and what comes for the coordinator."""

    def __init__(self, slow_s: float = 0.0) -> None:
        """slow_s: the coordinator takes the first message so slowly."""
        self.came: queue.Queue[dict[str, object]] = queue.Queue()
        self._slow_s = slow_s
        self.kept = Kept(self._say)
        await_that(_workers, "a worker")
        (self.worker,) = _workers()

    def ask(self, number: int, question: str, within_s: float = 60.0, **more: object) -> dict[str, object]:
        """The answer, with a beat each second meanwhile."""
        self.kept.pass_on(json.dumps({"id": number, "ask": question, **more}).encode(), number)
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            self.beat()
            try:
                return self.came.get(timeout=BEAT_S)
            except queue.Empty:
                continue
        raise AssertionError(f"no answer within {within_s:g} s")

    def beat(self) -> None:
        self.kept.pass_on(BEAT)

    def _say(self, line: bytes) -> None:
        slow_s, self._slow_s = self._slow_s, 0.0
        threading.Event().wait(slow_s)
        self.came.put(json.loads(line))


@pytest.fixture
def agent() -> Iterator[Agent]:
    made = Agent()
    yield made
    made.kept.close()


def _workers() -> list[int]:
    """Of this process."""
    return [
        int(folder.name)
        for folder in Path("/proc").glob("[0-9]*")
        if _words(folder) == python("loadframe_fleet.worker") and _parent(folder) == os.getpid()
    ]


def _words(process: Path) -> list[str]:
    try:
        return (process / "cmdline").read_text(encoding="utf-8").split("\0")[:-1]
    except (OSError, UnicodeDecodeError):
        return []


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    except OSError:
        return 0


@contextmanager
def starved(process: int) -> Iterator[None]:
    """A thousandth of a CPU for it, in a control group of its own."""
    try:
        (place,) = [each for each in find(["cpu"]) if "cpu" in each.controllers]
    except CageError as error:
        pytest.skip(f"no group may limit the CPU time here: {error}")
    folder = place.parent / f"loadframe-test-{secrets.token_hex(4)}"
    folder.mkdir()
    try:
        if place.hierarchy.version == 1:
            put(folder / "cpu.cfs_period_us", PERIOD_US)
            put(folder / "cpu.cfs_quota_us", QUOTA_US)
        else:
            put(folder / "cpu.max", f"{QUOTA_US} {PERIOD_US}")
        put(folder / "cgroup.procs", process)
        yield
    finally:
        put(place.parent / "cgroup.procs", process)
        assert remove(folder)


def error_of(answer: dict[str, object]) -> str:
    return str(answer.get("error"))


@pytest.mark.long
def test_a_worker_that_gets_next_to_no_cpu_is_not_ended(agent: Agent) -> None:
    assert "no answer to 'sing'" in error_of(agent.ask(1, "sing"))
    with starved(agent.worker):
        until = time.monotonic() + 4 * SILENT_S
        agent.kept.pass_on(json.dumps({"id": 2, "ask": "set_up", "study": STUDY, "name": "x"}).encode(), 2)
        while time.monotonic() < until:
            agent.beat()
            time.sleep(BEAT_S)
    assert "answer" in agent.ask(3, "cancel"), "first what it was at"


@pytest.mark.long
def test_a_worker_to_which_the_agent_has_not_listened_is_not_ended() -> None:
    """A slow link takes longer for an answer than a worker may be silent; its beats wait to be read."""
    agent = Agent(slow_s=SILENT_S + 1.5)
    try:
        assert "no answer to 'sing'" in error_of(agent.ask(1, "sing"))
        assert "no answer to 'dance'" in error_of(agent.ask(2, "dance"))
    finally:
        agent.kept.close()


class ReadMeanwhile:
    """What a worker has said a moment ago: another thread reads it between any two looks."""

    def __init__(self) -> None:
        self._waits = True

    def _look(self, _: float = 0.0) -> bool:
        """Nothing was read for long, and something waits to be read; then neither."""
        waited, self._waits = self._waits, False
        return waited

    silent_for = unread = _look


def test_a_worker_that_is_heard_between_two_looks_is_not_silent(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent.kept, "_lines", ReadMeanwhile())
    monkeypatch.setattr("loadframe_fleet.agent.is_kept_waiting", lambda _: False)
    assert not agent.kept._is_silent()


def test_what_is_read_was_heard_before(monkeypatch: pytest.MonkeyPatch) -> None:
    source, sink = os.pipe()
    lines, read, heard = Lines(source), os.read, []
    lines.heard_s = -math.inf

    def reading(descriptor: int, most: int) -> bytes:
        heard.append(not lines.silent_for(SILENT_S))
        return read(descriptor, most)

    monkeypatch.setattr(wire.os, "read", reading)
    os.write(sink, BEAT + b"\n")
    assert lines.line(1.0) == BEAT and heard == [True]
    os.close(source)
    os.close(sink)


@pytest.mark.long
def test_a_worker_that_has_stopped_is_ended_and_said_to_be(agent: Agent) -> None:
    assert "no answer to 'sing'" in error_of(agent.ask(1, "sing"))
    os.kill(agent.worker, signal.SIGSTOP)
    assert "has done nothing for 6 s" in error_of(agent.ask(2, "sing", within_s=MOST_SILENT_S))


@pytest.mark.long
def test_a_worker_that_has_stopped_is_not_waited_for_at_the_end(agent: Agent) -> None:
    assert "no answer to 'sing'" in error_of(agent.ask(1, "sing"))
    os.kill(agent.worker, signal.SIGSTOP)
    begun = time.monotonic()
    agent.kept.close()
    assert time.monotonic() - begun < ENDS_WITHIN_S


@pytest.mark.parametrize(("state", "waits"), [("R", True), ("D", True), ("S", False), ("T", False)])
def test_a_thread_that_is_runnable_or_in_the_kernel_is_kept_waiting(tmp_path: Path, state: str, waits: bool) -> None:
    for thread, its in ((7, "S"), (8, state)):
        folder = tmp_path / f"proc/7/task/{thread}"
        folder.mkdir(parents=True)
        (folder / "stat").write_text(f"{thread} (a (b) c) {its} {' '.join('1' * 21)}\n", encoding="utf-8")
    assert is_kept_waiting(7, tmp_path) == waits
    assert not is_kept_waiting(9, tmp_path), "it has ended"


def test_what_a_process_had_of_the_cpus_is_read_behind_its_name(tmp_path: Path) -> None:
    (tmp_path / "proc/7").mkdir(parents=True)
    stat = f"7 (a (b) 9 c) R {' '.join('1' * 10)} 250 150 {' '.join('0' * 9)}\n"
    (tmp_path / "proc/7/stat").write_text(stat, encoding="utf-8")
    assert cpu_s(7, tmp_path) == 400 / os.sysconf("SC_CLK_TCK")
    assert cpu_s(9, tmp_path) == 0.0, "it has ended"
