"""A search for settings, of another distribution, as seen by whoever takes its trials: here, or on other hosts (the
method `trials` of an executor)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, Protocol, Self

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.errors import RunError
from loadframe.model import SettingValue, Step, Steps, TargetState
from loadframe.runs.folder import RunFolder

TRIALS_ROUND = 2
"""The round of the trials' steps; the first one is the curve of the start."""


@dataclass(frozen=True, slots=True)
class Start:
    """The settings as given. steps: at the judged levels. reference: their median throughput (1/s) at each level."""

    steps: tuple[Step, ...]
    reference: Mapping[float, float]

    @classmethod
    def of(cls, steps: Steps, levels: Sequence[float]) -> Self:
        """RunError where at one of these levels most blocks serve nothing."""
        reference = {level: median(step.throughput for step in steps if step.level == level) for level in levels}
        for level, throughput in reference.items():
            if throughput <= 0:
                raise RunError(
                    f"as given, no request is served at {level:g}", remedy="Lower the load, or mend the settings."
                )
        return cls(tuple(step for step in steps if step.level in reference), reference)

    def value(self, steps: Steps) -> float:
        """Mean log of throughput over the start's."""
        return fmean(math.log(step.throughput / self.reference[step.level]) for step in steps)


@dataclass(frozen=True, slots=True)
class Proposed:
    """changes: against the start. proposal: the search's own record of them."""

    title: str
    changes: Mapping[str, SettingValue]
    state: TargetState
    proposal: Any


class SettingsSearch(Protocol):
    """levels: of each trial, in this order. notes: for the report."""

    book: Bookkeeping
    run: RunFolder
    levels: tuple[float, ...]
    notes: list[str]

    @property
    def start(self) -> Start:
        """As measured on this machine."""

    @property
    def varied(self) -> int:
        """How many settings."""

    @property
    def next_number(self) -> int: ...

    def take_here(self, most: int) -> None:
        """Up to number `most`, as far as the budget goes."""

    def left(self, most: int) -> int:
        """Trials left up to number `most`."""

    def proposed(self, pending: Sequence[Proposed] = ()) -> Proposed:
        """pending: being measured now."""

    def floors(self, start: Start) -> dict[float, float]:
        """Throughput (1/s) by level below which a trial against that start is hopeless."""

    def ended(self, number: int, proposed: Proposed, steps: Steps, failed: str, start: Start, host: str) -> None:
        """Learn from a trial, keep and report it. start: of that host. failed: why it did not work, else ""."""

    def left_s(self) -> float:
        """Of the budget, for trials."""
