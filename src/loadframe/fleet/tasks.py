"""What trials side by side need of an engine, whatever carries tasks to hosts: dask (engine.py), or a test's own.

A task goes to one host and to no other, and at most one is on a host at a time. The engine repeats nothing: what is
lost is told, and who asked decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Came:
    """How a task has ended: its answer; or lost: why there is none, in words."""

    task: str
    host: str
    answer: Mapping[str, Any] | None = None
    lost: str = ""


class Engine(Protocol):
    """Hosts and tasks on them."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """All of the fleet, by name, whether they are there or not."""

    def present(self) -> frozenset[str]:
        """Those that may be given a task now. FleetError where there will be none any more."""

    def begin(self, host: str, task: str, asked: Mapping[str, Any]) -> None:
        """Give a task to a host that is present. task: a name that no other task has had."""

    def came(self, within_s: float) -> Came | None:
        """The next task that has ended, waiting for it so long. FleetError as `present`."""

    def close(self) -> None:
        """No task goes on. Idempotent."""
