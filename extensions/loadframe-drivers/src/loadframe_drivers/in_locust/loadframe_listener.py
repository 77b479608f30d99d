"""Loaded by locust next to the user's locustfile, in locust's process: prints each request as
docs/driving-with-a-command.md says, and writes into LOADFRAME_UNJUDGED why Little's law cannot check the reported
times. It has a folder of its own, because locust looks there for modules too."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from io import BufferedWriter, FileIO
from typing import Any

import gevent
from locust import FastHttpUser, HttpUser, TaskSet, User, events

LONGEST = 64
FLUSH_S = 0.2
BUFFER_BYTES = 1 << 18
USERS = "users"
STOP_S = 0.02
"""A step's extra time, so that the last requests of a closed loop are those that the clock ended."""


class Log:
    def __init__(self, path: str, duration_s: float) -> None:
        self._file = BufferedWriter(FileIO(path, "a"), BUFFER_BYTES)
        self._duration_s = duration_s
        self._begun = False

    def add(self, name: str, latency_ms: float, size: int, error: str | None) -> float | None:
        """Write a request that has just ended. After the first one: the seconds until the step's end; else None."""
        line = {"end": time.monotonic(), "latency_ms": latency_ms, "operation": name, "bytes": max(size, 0)}
        if error is not None:
            line["error"] = error
        self._file.write(json.dumps(line).encode() + b"\n")
        if self._begun:
            return None
        self._begun = True
        return max(self._duration_s + STOP_S - latency_ms / 1000.0, 0.0)

    def flush(self) -> None:
        """A killed locust should lose little."""
        self._file.flush()


log = Log(os.environ["LOADFRAME_OUTPUT"], float(os.environ["LOADFRAME_DURATION_S"]))


def check(environment: Any, **_: Any) -> None:
    """Exit unless exactly one decides how many users there are: the level, or the locustfile's own shape."""
    axis, shape = os.environ["LOADFRAME_AXIS"], environment.shape_class
    if axis == USERS and shape is not None:
        sys.exit(
            f"the locustfile has a shape ({type(shape).__name__}), which decides how many users there are: give "
            "load.axis another name than users, and let the shape follow LOADFRAME_LEVEL"
        )
    if axis != USERS and shape is None:
        sys.exit(f"load.axis is {axis}, and the locustfile has no LoadTestShape that follows LOADFRAME_LEVEL")
    gevent.spawn(_flush)


def begin(environment: Any, **_: Any) -> None:
    """A locust ended by SIGTERM must not look like one that finished its work."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if why := unjudged(environment.user_classes):
        with open(os.environ["LOADFRAME_UNJUDGED"], "a", encoding="utf-8") as file:  # noqa: PTH123
            file.write(why)

    def note(
        request_type: str, name: str, response_time: float, response_length: int, exception: Any, **_: Any
    ) -> None:
        error = None if exception is None else (str(exception) or type(exception).__name__)[:200]
        left_s = log.add(f"{request_type} {name}"[:LONGEST], float(response_time), int(response_length or 0), error)
        if left_s is not None:
            gevent.spawn_later(left_s, environment.runner.quit)

    environment.events.request.add_listener(note)


def end(**_: Any) -> None:
    log.flush()


def unjudged(classes: Sequence[Any]) -> str:
    """Why N = X R cannot check the unit of these users' times; "" if it can."""
    if any(own_wait(user_class, User) for user_class in classes):
        return "users wait between tasks"
    return "clients of locust" if all(issubclass(user_class, HttpUser | FastHttpUser) for user_class in classes) else ""


def own_wait(of: Any, base: Any) -> bool:
    tasks = [task for task in getattr(of, "tasks", ()) if isinstance(task, type)]
    return of.wait_time is not base.wait_time or any(own_wait(task, TaskSet) for task in tasks if task is not of)


def _flush() -> None:
    while True:
        gevent.sleep(FLUSH_S)
        log.flush()


for event, listener in ((events.init, check), (events.test_start, begin), (events.quitting, end)):
    listen: Any = event.add_listener
    listen(listener)
