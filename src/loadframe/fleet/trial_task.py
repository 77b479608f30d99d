"""What a dask worker is asked for: texts in, texts out. A trial is a process of its own (trial.py), which ends where
the worker is killed, where the task is cancelled, and where the coordinator is gone, or silent (trial_lease.py)."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from typing import Any

import dask
from distributed import get_worker

from loadframe.fleet import trial_lease
from loadframe.fleet.cleaning import cleaned_up
from loadframe.fleet.looking import facts
from loadframe.fleet.wire import LONGEST_LINE, written
from loadframe.formats.json_text import parse_json, write_json
from loadframe.host.environment import own_environment, python
from loadframe.host.processes import MARK

POLL_S = 0.1
NANNYS_SEED = "6640"
"""distributed/nanny.py"""
ENDS_WITHIN_S = 25.0
"""A trial that is to end puts everything back first."""


def look(asked: str) -> str:
    """What this host is, and which of these variables (secrets that the study names) its worker does not have."""
    given = parse_json(asked.encode())
    missing = [name for name in given["secrets"] if name not in os.environ]
    return write_json({"facts": facts(), "missing": missing, "process": os.getpid()})


def carry_out(asked: str) -> str:
    """A trial: its answer as trial.py gives it, with boot and process of this host; or died: why there is none."""
    given = parse_json(asked.encode())
    process = subprocess.Popen(
        python("loadframe.fleet.trial"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment(),
        start_new_session=True,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    said: list[bytes] = []
    reading = threading.Thread(target=lambda: said.append(process.stdout.read(LONGEST_LINE)), daemon=True)  # type: ignore[union-attr]
    reading.start()
    why, task, lease_s = "", str(given["task"]), float(given["lease_s"])
    trial_lease.expect(task)
    with process.stdout:
        try:
            with contextlib.suppress(BrokenPipeError):  # it has died, which its end tells
                process.stdin.write(written(given))
                process.stdin.flush()
            until = time.monotonic() + float(given["within_s"])
            while process.poll() is None and not why:
                if not _wanted(task):
                    why = "it was cancelled"
                elif trial_lease.silent_s(task) > lease_s:
                    why = f"its coordinator has said nothing for {lease_s:g} s"
                elif time.monotonic() > until:
                    why = f"it had not ended within {float(given['within_s']):g} s"
                _beat(process)
                time.sleep(POLL_S)
            trial_lease.forget(task)
            if why:
                _end(process)
            reading.join(POLL_S * 10)
        finally:
            _hang_up(process)
    left = cleaned_up(_environment()) if process.returncode else ""  # where it could not do so by itself
    me = {"boot": facts()["boot"], "process": os.getpid(), "task": given["task"]}
    if why or not said or not said[0].strip():
        why = why or f"its process has ended by {_how(process.returncode)}"
        return write_json({**me, "died": f"{why}{left and '. '}{left}"})
    return write_json({**parse_json(said[0]), **me})


def _environment() -> dict[str, str]:
    """Without what dask sets for its own workers (threads of libraries, the allocator, the seed of hashes): servers
    would have it, too. Nor is it of the lease of the workers: it has one of its own."""
    given: dict[str, Any] = dask.config.get("distributed.nanny.pre-spawn-environ", {}) or {}
    given = {"PYTHONHASHSEED": NANNYS_SEED, **given, MARK: os.environ.get(MARK)}
    return {name: value for name, value in own_environment().items() if str(given.get(name)) != value}


def _wanted(task: str) -> bool:
    """Whether the scheduler still wants it from this worker."""
    state = get_worker().state.tasks.get(task)
    return state is not None and state.state not in ("cancelled", "released", "forgotten")


def _beat(process: subprocess.Popen[bytes]) -> None:
    """It is to know that we are not stopped."""
    assert process.stdin is not None
    with contextlib.suppress(OSError):  # it has ended, which its end tells
        process.stdin.write(written({"beat": True}))
        process.stdin.flush()


def _hang_up(process: subprocess.Popen[bytes]) -> None:
    """A beat that it did not take any more is in the way of closing, and nothing is lost with it."""
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    _hang_up(process)
    try:
        process.wait(ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
