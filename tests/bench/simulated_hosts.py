"""Hosts of a fleet without machines: an engine whose tasks are answered by a model of the target."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.experiments.side_by_side import START
from loadframe.model import Capacity, CapacityObjective, Step, TargetState
from loadframe.runs.formats import decode, encode
from loadframe.runs.lines import Treatment
from loadframe_fleet.on_hosts import Came

from .simulated_search import Answer, busy

MakeStep = Callable[..., Step]
TASK_S = 3.0


@dataclass
class SimulatedEngine:
    """See fleet.on_hosts.Engine.

    speeds: of each host beside this machine. lose: why a task is lost, "" where it is not.
    refuse: why a host cannot carry it out. fail: why the target would not work, on every host. crowded: what each
    host serves while others are loaded, too. model: throughput of a state at a level."""

    book: Bookkeeping
    make_step: MakeStep
    speeds: Mapping[str, float]
    lose: Callable[[str, Mapping[str, Any]], str] = lambda host, asked: ""
    refuse: Callable[[str, Mapping[str, Any]], str] = lambda host, asked: ""
    fail: Callable[[Mapping[str, Any]], str] = lambda asked: ""
    crowded: float = 1.0
    noise: float = 0.01
    model: Callable[[TargetState, float], Answer] = busy
    twice: bool = False
    names: list[str] = field(default_factory=list)
    closed: bool = False
    _open: dict[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    _again: list[Came] = field(default_factory=list)
    _random: random.Random = field(default_factory=lambda: random.Random(3))

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(self.speeds)

    def present(self) -> frozenset[str]:
        return frozenset(self.speeds) - {host for host, _ in self._open.values()}

    def begin(self, host: str, task: str, asked: Mapping[str, Any]) -> None:
        assert host in self.present(), "one slot per host"
        assert task not in self.names, "each task has a name of its own"
        self.names.append(task)
        self._open[task] = host, asked

    def came(self, within_s: float) -> Came | None:
        if self._again:
            return self._again.pop()
        if not self._open:
            self.book.budget.clock.now_s += within_s  # type: ignore[attr-defined]
            return None
        self.book.budget.clock.now_s += TASK_S  # type: ignore[attr-defined]
        task = self._random.choice(list(self._open))
        many = len(self._open) > 1 or "together" in task
        host, asked = self._open.pop(task)
        if why := self.lose(host, asked):
            return Came(task, host, lost=why)
        if why := self.refuse(host, asked):
            return Came(task, host, {"error": why})
        if why := self.fail(asked):
            return Came(task, host, {"steps": [], "failed": why, "boot": "b", "process": 7})
        if "capacity" in asked:
            return Came(task, host, {"capacity": self._capacity(host, asked, many), "failed": "", "boot": "b"})
        found = Came(task, host, {"steps": self._steps(host, asked, many), "failed": "", "boot": "b", "process": 7})
        if self.twice:
            self._again.append(found)
        return found

    def close(self) -> None:
        self.closed = True

    def _capacity(self, host: str, asked: Mapping[str, Any], many: bool) -> str:
        """A search that has found what the model says, to 5 %."""
        state = TargetState(asked["study"]["target"]["settings"], {})
        speed = self.speeds[host] * (self.crowded if many else 1.0)
        load = speed * self.model(state, 1.0)[0] * math.exp(self._random.gauss(0, self.noise))
        return encode("capacity-record", found_at(load)).decode()

    def _steps(self, host: str, asked: Mapping[str, Any], many: bool) -> list[str]:
        states = {START: TargetState(self.book.bench.start_state.settings, {})}
        for line in asked["states"]:
            one = decode("treatment", line.encode(), Treatment, where="the question")
            states[one.name] = one.state
        speed = self.speeds[host] * (self.crowded if many else 1.0)
        steps = []
        for name, level in asked["order"]:
            value = speed * self.model(states[name], level)[0] * math.exp(self._random.gauss(0, self.noise))
            step = replace(self.make_step(level, value, {}), treatment=name, block=asked["block"])
            steps.append(encode("step", step).decode())
        return steps


def found_at(load: float) -> Capacity:
    """A search that has ended there."""
    return Capacity(
        axis="concurrency", axis_unit="", objective=CapacityObjective(latency_p95_ms=50), end="found", load=load,
        low=load * 0.975, high=load * 1.025, error_probability=0.05, precision=0.05, held_s=10.0, load_seconds=20.0,
        seconds_above_share=0.1, open_loop=False, levels=(), trials=(),
    )  # fmt: skip
