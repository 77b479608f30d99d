"""The interface between the coordinator and the agents: connections of its own, or a simulation with its own clock. One
thread asks and reads; only `arrived` waits."""

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
from loadframe_fleet.connection import Agent, with_last_line
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
    is none (error; kind: its class); or why the host is gone (number 0), after which nothing comes from it."""

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
        return with_last_line(self.error, self.details)[:2000]


def checked(came: Arrived) -> Message:
    """Raises the original UserError."""
    if came.answer is not None:
        return came.answer
    raise ERRORS.get(came.kind, FleetError)(
        f"host {came.host!r}: {came.error}", remedy=came.remedy or REMEDY, details=came.details
    )


class Transport(Protocol):
    def now_s(self) -> float:
        """By the coordinator's monotonic clock, or a simulated one."""

    def ask(self, host: str, question: str, values: Message) -> int:
        """Returns its unique number at once. `arrived` reports a host that is gone for each."""

    def arrived(self, until_s: float) -> Arrived | None:
        """The next message; None at until_s."""


class OverAgents:
    """All agents, by host, answer into one queue; their maker closes them."""

    def __init__(self, agents: Mapping[str, Agent]) -> None:
        self._agents = dict(agents)
        self._numbers = itertools.count(1)
        self._lost: dict[str, str] = {}
        """Why hosts are gone: asking an agent for it takes half a second, while the load of others goes on."""
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
            self._agents[host].post(
                question, values, lambda message, at_s: self._came.put(_arrived(host, number, message, at_s))
            )
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
