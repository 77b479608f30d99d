"""One small unit of work at intervals, in an open loop: its response counts from its due time, and never more than one
runs."""

import _thread
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from loadframe.connections.address import decide, joined
from loadframe.connections.bounds import MIB
from loadframe.errors import UserError
from loadframe.host.privilege import Privilege
from loadframe_watch.find import Ports
from loadframe_watch.journal import Clocks
from loadframe_watch.small_answer import ask
from loadframe_watch.sources import check_port, run

ANSWER_BYTES = 16 * MIB
LONGEST_S = 120.0
"""A longer unit of work has failed."""


@dataclass(frozen=True, slots=True)
class Done:
    """response_s: from its intended start; late_s: how long it waited for the one before."""

    response_s: float
    late_s: float
    error: str = ""


class Unit:
    """Runs the work in a thread, without threading.Thread: that one waits until the thread runs, which costs as much as
    the request. do: returns what is wrong, "" for a success."""

    def __init__(self, do: Callable[[], str], clocks: Clocks) -> None:
        self._do, self._clocks = do, clocks
        self.running = False
        self._due: float | None = None
        self._done: deque[Done] = deque()
        self.skipped = 0

    def begin(self, due_s: float) -> None:
        """due_s: CLOCK_MONOTONIC. At most one waits for the running one; further ones are counted as skipped."""
        if self.running:
            self.skipped += self._due is not None
            self._due = due_s if self._due is None else self._due
            return
        self._start(due_s)

    def finished(self) -> list[Done]:
        if self._due is not None and not self.running:
            due_s, self._due = self._due, None
            self._start(due_s)
        done = []
        while self._done:
            done.append(self._done.popleft())
        return done

    def _start(self, due_s: float) -> None:
        self.running = True
        try:
            _thread.start_new_thread(self._work, (due_s,))
        except RuntimeError as error:  # the system has no more threads
            self._ended(due_s, due_s, f"it was not begun: {error}")

    def _work(self, due_s: float) -> None:
        began_s, error = self._clocks.monotonic(), "it ended by a fault of Loadframe, which stderr has"
        try:
            error = self._do()
        except UserError as failed:
            error = failed.fact
        finally:
            self._ended(due_s, began_s, error)

    def _ended(self, due_s: float, began_s: float, error: str) -> None:
        self._done.append(Done(self._clocks.monotonic() - due_s, max(0.0, began_s - due_s), error[:200]))
        self.running = False


def work_of(unit: Mapping[str, Any], user: Privilege | None, ports: Ports) -> Callable[[], str]:
    def command() -> str:
        run(list(unit["command"]), user, within_s=LONGEST_S)
        return ""

    return command if unit["form"] == "command" else lambda: _request(unit, ports)


def _request(unit: Mapping[str, Any], ports: Ports) -> str:
    place = decide(unit["host"], unit["port"])
    check_port(place, ports)
    headers = [(str(name), str(value)) for name, value in unit["headers"]]
    try:
        answer = ask(
            place.number, place.port, unit["path"], host=joined(place.host, place.port), headers=headers,
            most_bytes=ANSWER_BYTES, within_s=LONGEST_S,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        return f"no answer: {str(error) or type(error).__name__}"
    wanted = unit["expect"]
    right = answer.status == wanted if wanted else 200 <= answer.status < 300
    return "" if right else f"status {answer.status}"
