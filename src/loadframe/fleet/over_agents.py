"""The transport of the coordinator over the agents' own connections: see transport.Transport."""

from __future__ import annotations

import itertools
import queue
import time
from collections.abc import Mapping
from typing import Any

from loadframe.fleet.connection import Agent
from loadframe.fleet.transport import Arrived


class OverAgents:
    """All agents answer into one queue."""

    def __init__(self, agents: Mapping[str, Agent]) -> None:
        """agents: by the names of their hosts; whoever made them closes them."""
        self._agents = dict(agents)
        self._numbers = itertools.count(1)
        self._lost: dict[str, str] = {}
        """Hosts that are gone, and why. To ask an agent for its last words takes it half a second: where a rack is
        lost, the load of all others would go on for that long for each of its hosts."""
        self._came: queue.Queue[Arrived] = queue.Queue()
        for host, agent in self._agents.items():
            agent.once_lost = lambda why, host=host: self._gone(host, why)  # type: ignore[misc]
            if why := agent.lost:  # before we listened
                self._gone(host, why)

    def now_s(self) -> float:
        return time.monotonic()

    def ask(self, host: str, question: str, values: Mapping[str, Any]) -> int:
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


def _arrived(host: str, number: int, message: Mapping[str, Any], at_s: float) -> Arrived:
    answer = message.get("answer")
    if isinstance(answer, dict):
        return Arrived(host, number, at_s, answer)
    error = str(message.get("error") or "no answer is in what its agent sent")
    reason, remedy, kind, fact, details = (
        str(message.get(name, "")) for name in ("reason", "remedy", "kind", "fact", "details")
    )
    return Arrived(host, number, at_s, error=error, reason=reason, remedy=remedy, kind=kind, fact=fact, details=details)
