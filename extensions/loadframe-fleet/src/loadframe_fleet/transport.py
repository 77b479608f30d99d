"""The interface between the coordinator and the agents: connections of its own, or a simulation of a thousand hosts
with its own clock. One thread asks and reads; only `arrived` waits."""

import itertools
import queue
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from loadframe.errors import (
    CageError,
    ChangeError,
    FleetError,
    MissingTool,
    NotRecovered,
    RecordingError,
    StudyError,
    TargetError,
    UserError,
    WorkloadError,
)
from loadframe_fleet.connection import Agent
from loadframe_fleet.wire import Message

REMEDY = "Finished steps are kept. See what became of that host, and run it again."
ERRORS: Mapping[str, type[UserError]] = {
    error.__name__: error
    for error in (TargetError, MissingTool, StudyError, CageError, ChangeError, WorkloadError, RecordingError)
} | {NotRecovered.__name__: TargetError}
"""Errors raised here as they were there; a server that fell there is not restarted from here."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """A message from a host, at at_s by the transport's clock: the answer to the question of that number; or why there
    is none (error, with kind, the name of its class); or why the host is gone (number 0), after which nothing comes
    from it."""

    host: str
    number: int
    at_s: float
    answer: Message | None = None
    error: str = ""
    remedy: str = ""
    gone: str = ""
    kind: str = ""
    details: str = ""

    @property
    def why_not(self) -> str:
        """The error, with the last line of its details."""
        last = self.details.strip().rpartition("\n")[2][-300:]
        return f"{self.error}{last and ': '}{last}"[:2000]


def checked(came: Arrived) -> Message:
    """The answer, or the original UserError."""
    if came.answer is not None:
        return came.answer
    raise ERRORS.get(came.kind, FleetError)(
        f"host {came.host!r}: {came.error}", remedy=came.remedy or REMEDY, details=came.details
    )


class Transport(Protocol):
    """Questions to agents and their answers, in order of arrival."""

    def now_s(self) -> float:
        """Now, by the coordinator's monotonic clock (CLOCK_MONOTONIC, s, or a simulated one)."""

    def ask(self, host: str, question: str, values: Message) -> int:
        """Send a question, and return its unique number at once. For a host that is gone `arrived` reports that for
        each question."""

    def arrived(self, until_s: float) -> Arrived | None:
        """The next message, waiting for it; None at until_s."""


class OverAgents:
    """All agents answer into one queue."""

    def __init__(self, agents: Mapping[str, Agent]) -> None:
        """agents: by the names of their hosts; their maker closes them."""
        self._agents = dict(agents)
        self._numbers = itertools.count(1)
        self._lost: dict[str, str] = {}
        """Hosts that are gone, and why: asking an agent for its last words takes half a second, while the others' load
        goes on."""
        self._came: queue.Queue[Arrived] = queue.Queue()
        for host, agent in self._agents.items():
            agent.once_lost = lambda why, host=host: self._gone(host, why)  # type: ignore[misc]
            if why := agent.lost:  # before we listened
                self._gone(host, why)

    def now_s(self) -> float:
        return time.monotonic()

    def ask(self, host: str, question: str, values: Message) -> int:
        number = next(self._numbers)
        if why := self._lost.get(host):
            self._gone(host, why)
        else:
            answered = self._came.put
            self._agents[host].post(question, values, lambda message, at: answered(_arrived(host, number, message, at)))
        return number

    def arrived(self, until_s: float) -> Arrived | None:
        try:
            return self._came.get(timeout=max(0.0, until_s - time.monotonic()))
        except queue.Empty:
            return None

    def _gone(self, host: str, why: str) -> None:
        self._lost.setdefault(host, why)
        self._came.put(Arrived(host, 0, time.monotonic(), gone=why))


def _arrived(host: str, number: int, message: Message, at_s: float) -> Arrived:
    answer = message.get("answer")
    if isinstance(answer, dict):
        return Arrived(host, number, at_s, answer)
    error = str(message.get("error") or "no answer is in what its agent sent")
    remedy, kind, details = (str(message.get(name, "")) for name in ("remedy", "kind", "details"))
    return Arrived(host, number, at_s, error=error, remedy=remedy, kind=kind, details=details)
