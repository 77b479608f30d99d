"""What a step took in is a measurement of its target only where the target worked meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from loadframe.bench.loading import _check_target
from loadframe.errors import TargetError, WorkloadError
from loadframe.model import UNFINISHED
from loadframe.workloads.request_log import RECORD, from_bytes

DONE = from_bytes(RECORD.pack(1.0, 2.0, 0.0, 0, 0))


def rig(pid: int, *, answers: bool = True) -> Any:
    target = SimpleNamespace(
        pids=lambda: (pid,),
        embedded=False,
        healthy=lambda: answers,
        endpoint=lambda: SimpleNamespace(address="127.0.0.1:80"),
    )
    return SimpleNamespace(target=target)


def test_what_a_stopped_server_left_undone_is_not_measured() -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        _check_target(rig(process.pid), DONE, 4)
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        with pytest.raises(TargetError, match=f"process {process.pid} is stopped"):
            _check_target(rig(process.pid), DONE, 4)
    finally:
        process.kill()
        process.wait()


def test_a_server_out_of_reach_is_told_from_a_load_that_is_too_high() -> None:
    unfinished = from_bytes(RECORD.pack(1.0, 900.0, 0.0, 0, UNFINISHED))
    with pytest.raises(TargetError, match=r"127\.0\.0\.1:80 does not answer"):
        _check_target(rig(os.getpid(), answers=False), unfinished, 4)
    with pytest.raises(WorkloadError, match="No request completed in a step at 4"):
        _check_target(rig(os.getpid()), unfinished, 4)
