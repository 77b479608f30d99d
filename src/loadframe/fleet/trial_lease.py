"""That whoever asked for a trial is there: told once a second, through the scheduler, to the worker that carries it
out.

dask tells a worker that its client is gone where the client's connection is closed, as by `kill -9`. Where the link is
cut, or either of them stands still, nothing tells for minutes.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any

from loadframe.fleet.wire import BEAT_S

OWN_LEASE_S = 30.0
"""Of workers that the command has started on its own machine: they end with it at once, and no link is between them.
That it stands still (SIGSTOP) is left, which is no reason to lose trials where the machine is busy."""
_heard: dict[str, float] = {}
"""Of a worker: when it last heard of each task (CLOCK_MONOTONIC, s)."""


def hear(task: str) -> None:
    """On a worker: who wants this task is there."""
    if task in _heard:
        _heard[task] = time.monotonic()


def expect(task: str) -> None:
    """On a worker: from now on it should be heard of."""
    _heard[task] = time.monotonic()


def silent_s(task: str) -> float:
    """On a worker: for how long it has not been heard of."""
    return time.monotonic() - _heard[task]


def forget(task: str) -> None:
    """On a worker: it has ended."""
    _heard.pop(task, None)


class Lease:
    """On the coordinator, from the begin of a task until `end`."""

    def __init__(self, client: Any, address: str, task: str) -> None:
        """client: of dask; address: of the worker."""
        self._client = client
        self._address = address
        self._task = task
        self._over = threading.Event()
        threading.Thread(target=self._beat, daemon=True).start()

    def end(self) -> None:
        """The task is not wanted any more, or has ended."""
        self._over.set()

    def _beat(self) -> None:
        beat_s = 0.0
        while not self._over.wait(beat_s):
            beat_s = BEAT_S
            with contextlib.suppress(Exception):  # the worker or the scheduler has gone, and with it the task
                self._client.run(hear, self._task, workers=[self._address], on_error="ignore")
