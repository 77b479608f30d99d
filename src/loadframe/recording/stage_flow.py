"""A stage on which several processes work, as its entries find it: each process counts as much as entries pass through
it.

A scanner that is given nothing to scan is idle in every stage. In a plain mean over all workers it would hide that
those of the other one are all at work, or blocked.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

Process = tuple[int, str]
SPENT = {"busy_s": "busy_weighted", "idle_s": "idle_weighted", "blocked_s": "blocked_weighted"}
"""Worker-seconds so far, and the sums of shares of the workers that are made of them."""
SMOOTHED_S = 1.0
"""Over how long the rate of a process is averaged: one that has just ended a large batch is not the only one."""


@dataclass
class _One:
    """A process in a stage, as it was told last."""

    at_s: float
    values: dict[str, float]
    rate: float | None = None

    def take(self, at_s: float, values: Mapping[str, float]) -> dict[str, float]:
        """What its workers did since, as shares of them times seconds."""
        passed_s, before = at_s - self.at_s, self.values
        self.at_s, self.values = at_s, {**before, **values}
        if passed_s <= 0:
            return {}
        more = {name: max(0.0, values[name] - before[name]) for name in values.keys() & before.keys()}
        self._average(more.get("entries", more.get("done", 0.0)) / passed_s, passed_s)
        spent = {name: more[name] for name in SPENT if name in more}
        workers = self.workers or (sum(spent.values()) / passed_s if len(spent) == len(SPENT) else 0.0)
        return {SPENT[name]: value / workers for name, value in spent.items()} if workers else {}

    def _average(self, rate: float, passed_s: float) -> None:
        before = rate if self.rate is None else self.rate
        self.rate = before + (rate - before) * -math.expm1(-passed_s / SMOOTHED_S)

    @property
    def workers(self) -> float:
        return self.values.get("workers", 0.0)


@dataclass
class Flow:
    """The processes of all stages."""

    _stages: dict[str, dict[Process, _One]] = field(default_factory=dict)
    _rates: dict[Process, float] = field(default_factory=dict)
    """Entries a second of each process, in all stages: one of them may be amid one long operation."""
    _sums: dict[str, dict[str, float]] = field(default_factory=dict)

    def add(self, stage: str, process: Process, at_s: float, values: Mapping[str, float]) -> dict[str, float]:
        """Takes a line, none of which is before the last of its process. Of a stage that several processes work on:
        sums of shares of their workers, and how full the queues before it are, at this moment."""
        processes, sums = self._stages.setdefault(stage, {}), self._sums.setdefault(stage, {})
        known = processes.get(process)
        if known is None:
            processes[process] = _One(at_s, dict(values))
        else:
            before = known.rate or 0.0
            did = known.take(at_s, values)
            self._rates[process] = max(0.0, self._rates.get(process, 0.0) + (known.rate or 0.0) - before)
            weight = self._weights(processes)[process] if did else 0.0
            for name, value in did.items():
                sums[name] = sums.get(name, 0.0) + weight * value
        if len(processes) == 1:
            return {}
        return {**sums, **self._queue(processes)}

    def end(self, stage: str, process: Process) -> None:
        """It works on the stage no more."""
        one = self._stages.get(stage, {}).pop(process, None)
        if one is not None and one.rate is not None:
            self._rates[process] = max(0.0, self._rates[process] - one.rate)

    def _weights(self, processes: Mapping[Process, _One]) -> dict[Process, float]:
        """Of each process its part of the entries that pass through; of its workers, where none do."""
        rates = {process: self._rates.get(process, 0.0) for process in processes}
        if not any(rates.values()):
            rates = {process: one.workers or 1.0 for process, one in processes.items()}
        total = sum(rates.values())
        return {process: rate / total for process, rate in rates.items()}

    def _queue(self, processes: Mapping[Process, _One]) -> dict[str, float]:
        queues = {process: one.values for process, one in processes.items() if one.values.get("queue")}
        if len(queues) < len(processes) or not all("waiting" in values for values in queues.values()):
            return {}
        weights = self._weights(processes)
        return {
            "queue_weighted": sum(
                weights[process] * values["waiting"] / values["queue"] for process, values in queues.items()
            )
        }
