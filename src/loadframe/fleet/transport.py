"""What the coordinator of steps needs of the agents, whatever carries its questions to them: connections of its own
(over_agents.py), or a simulation of some thousand hosts with a clock of its own.

One thread asks and reads. Nothing here waits but `arrived`, so that the clock may be any one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Arrived:
    """What came from a host, at at_s by the transport's clock: the answer to the question of that number; or why it has
    none, in words (error; reason: of model.VoidReason where the agent knows it; fact, details, kind: of the error that
    it was there, by the name of its class); or why the host is gone, after which
    nothing more comes from it (gone; number 0)."""

    host: str
    number: int
    at_s: float
    answer: Mapping[str, Any] | None = None
    error: str = ""
    reason: str = ""
    remedy: str = ""
    gone: str = ""
    kind: str = ""
    fact: str = ""
    details: str = ""


class Transport(Protocol):
    """Questions to agents and what comes back, in the order in which it comes."""

    def now_s(self) -> float:
        """Of the coordinator's clock, which never goes back (CLOCK_MONOTONIC, s, or a simulated one)."""

    def ask(self, host: str, question: str, values: Mapping[str, Any]) -> int:
        """Send a question, and answer its number at once, which no other question has. Of a host that is gone `arrived`
        tells it, once more for each question. values: as JSON has them (wire.py)."""

    def arrived(self, until_s: float) -> Arrived | None:
        """The next that came, waiting for it; None once it is until_s."""
