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
        _check_target(rig(process.pid), [1, 2, 3], 4)  # type: ignore[arg-type]
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        with pytest.raises(TargetError, match=f"process {process.pid} is stopped"):
            _check_target(rig(process.pid), [1, 2, 3], 4)  # type: ignore[arg-type]
    finally:
        process.kill()
        process.wait()


def test_a_server_out_of_reach_is_told_from_a_load_that_is_too_high() -> None:
    with pytest.raises(TargetError, match=r"127\.0\.0\.1:80 does not answer"):
        _check_target(rig(os.getpid(), answers=False), [], 4)  # type: ignore[arg-type]
    with pytest.raises(WorkloadError, match="No request completed in a step at 4"):
        _check_target(rig(os.getpid()), [], 4)  # type: ignore[arg-type]
