"""The counters of a service: those that its study names."""

from __future__ import annotations

from loadframe.model import CounterSpec
from loadframe.study.declaration import TargetTable


class Counters:
    """What a service counts."""

    def __init__(self, target: TargetTable) -> None:
        self.specs: tuple[CounterSpec, ...] = ()

    def read(self) -> dict[str, float]:
        """All of them now, by CounterSpec.name."""
        return {}
