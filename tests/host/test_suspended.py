"""Processes that are stopped are told from those that run, whatever they are called."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from loadframe.host.signals import stopped_by_signal, suspended


def tree(root: Path, pid: int, name: str, state: str) -> None:
    folder = root / f"proc/{pid}"
    folder.mkdir(parents=True)
    (folder / "stat").write_text(f"{pid} ({name}) {state} 1 1 1 0 -1")


def test_only_a_signal_stops(tmp_path: Path) -> None:
    for pid, (name, state) in enumerate([("a", "T"), ("T) S (b", "T"), ("c) T", "S"), ("d", "t"), ("e", "Z")], 1):
        tree(tmp_path, pid, name, state)
    assert suspended(range(1, 7), tmp_path) == (1, 2)


def test_a_stopped_process_is_told_and_one_that_goes_on_is_not() -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        assert stopped_by_signal([process.pid]) == ""
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        assert (
            stopped_by_signal([process.pid, os.getpid()]) == f"process {process.pid} is stopped by a signal (SIGSTOP)"
        )
    finally:
        process.kill()
        process.wait()
    assert stopped_by_signal([process.pid]) == ""


def test_who_is_stopped_again_and_again_is_only_slow() -> None:
    process = subprocess.Popen(["sleep", "60"])
    looks = 0

    def goes_on_meanwhile(_seconds: float) -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            process.send_signal(signal.SIGCONT)
            os.waitid(os.P_PID, process.pid, os.WCONTINUED | os.WNOWAIT)

    try:
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        assert stopped_by_signal([process.pid], goes_on_meanwhile) == ""
        assert looks == 3
    finally:
        process.kill()
        process.wait()
