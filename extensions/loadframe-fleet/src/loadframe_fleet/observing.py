"""Hosts that are recorded while trials run, and make no load: a database that all of them use, or a switch's host. An
agent records from the first trial to the last; each task's window is known by that host's clock. An observer has seen
the loads of all trials that ran side by side."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Self

from loadframe.errors import FleetError, StepVoid
from loadframe.recording.metrics import window_metrics
from loadframe.runs.folder import RunFolder
from loadframe.study import parse
from loadframe_fleet.clocks import Offset
from loadframe_fleet.connection import Agent
from loadframe_fleet.coordinator import Coordinator
from loadframe_fleet.declaration import Fleet
from loadframe_fleet.hosts import HostRecordings, reached, set_up
from loadframe_fleet.records import Observed, watched_of
from loadframe_fleet.wire import Say

STUDY = """
[study]
name = "beside-trials"
question = "What goes on during the trials?"
[target]
kind = "service"
command = ["true", "{port}"]
[workload]
kind = "http"
[load]
axis = "concurrency"
levels = [1]
"""
"""The study for the agent: as it begins no load, it needs nothing of the measured study, nor its secrets."""
UTILIZATION = "system.cpu.utilization"
BUSY = 0.9
REMEDY = "Mend that host, or take it out of the fleet file; what has ended is kept."


class Observing:
    """Enter it before the first task; for a fleet without observers it does nothing."""

    def __init__(self, fleet: Fleet, say: Say = lambda _: None) -> None:
        self._fleet = fleet
        self._say = say
        self._hosts = fleet.observers
        self._stack = ExitStack()
        self._agents: dict[str, Agent] = {}
        self._coordinator: Coordinator
        self._begun: dict[str, tuple[float, Mapping[str, Offset]]] = {}
        """By task: when it began, and the clocks then."""
        self._recordings: HostRecordings | None = None
        self._full: set[str] = set()

    def __enter__(self) -> Self:
        """FleetError for a host that cannot be reached, or cannot record."""
        if not self._hosts:
            return self
        with ExitStack() as stack:
            self._say(f"Reaching {len(self._hosts)} hosts that are recorded during the trials")
            self._agents = reached(self._hosts, self._fleet.fleet.ssh_config, self._say, stack)
            with _fleet_errors():
                self._coordinator = set_up(self._agents, parse(STUDY), (), "")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        if self._recordings is not None:
            self._recordings.close()
        self._stack.close()

    @property
    def notes(self) -> tuple[str, ...]:
        names = ", ".join(self._agents)
        return (f"Recorded during the trials, without load: {names}.",) if names else ()

    def check(self) -> None:
        """FleetError where an observer is lost, and with it its recording of the current trials."""
        for name, agent in self._agents.items():
            if agent.lost:
                raise _lost(f"host {name!r} is lost: {agent.lost}")

    def begin(self, task: str) -> None:
        """FleetError as `check`."""
        if self._agents:
            with _fleet_errors():
                self._begun[task] = time.monotonic(), self._coordinator.clocks(self._agents)

    def end(self, task: str, run: RunFolder) -> dict[str, Observed]:
        """What each observer recorded since the task's beginning, also stored in the run folder. FleetError as `check`,
        and where a clock was set meanwhile."""
        if not self._agents:
            return {}
        (began_s, before), ended_s = self._begun.pop(task), time.monotonic()
        with _fleet_errors():
            after = self._coordinator.clocks(self._agents)
            clocks = {name: self._coordinator.unset(name, before[name], after[name]) for name in self._agents}
            self._recordings = self._recordings or HostRecordings(self._coordinator, run)
            self._recordings.fetch(self._agents)
        observed = {}
        for name, clock in clocks.items():
            window = clock.window(began_s, ended_s)
            observed[name] = Observed(
                *window, clock, watched_of(window_metrics(self._recordings.ticks(name, *window), *window))
            )
        return observed

    def newly_full(self, observers: Mapping[str, Observed]) -> Iterator[str]:
        """Observers whose CPUs were used up meanwhile, each once."""
        for name, seen in observers.items():
            if seen.metrics.get(UTILIZATION, 0.0) >= BUSY and name not in self._full:
                self._full.add(name)
                yield f"{seen.metrics[UTILIZATION]:.0%} of the CPUs of host {name}, which takes no load, were busy"


@contextmanager
def _fleet_errors() -> Iterator[None]:
    try:
        yield
    except StepVoid as error:
        raise _lost(error.fact.partition("): ")[2], error.remedy) from error


def _lost(why: str, remedy: str = "") -> FleetError:
    return FleetError(f"what goes on during the trials is not recorded: {why}", remedy=remedy or REMEDY)
