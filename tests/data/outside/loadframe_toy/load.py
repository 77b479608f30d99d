"""The load driver: one process for each client, which asks again and again. Its registration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadframe.host.environment import importing
from loadframe.host.processes import Allowance
from loadframe.model import Endpoint, Requirement, SettingValue
from loadframe.workloads.base import KindOfWorkload
from loadframe.workloads.driving import ProcessDriver, start_together
from loadframe.workloads.forking import Worker
from loadframe.workloads.options import read_options, rules, whole, whole_level


@dataclass(frozen=True)
class ToyOptions:
    pause_ms: int = whole(0, 0, 1000, "between an answer and the next request")


class ToyLoad:
    """See loadframe.workloads.base.Workload."""

    kind = "toy-load"
    target_kinds: frozenset[str] = frozenset()
    """None: the toy server names this workload."""
    axes = frozenset({"concurrency"})
    axis_unit = "clients"
    operations: tuple[str, ...] = ("get",)
    judged = operations
    one_lock = False
    runs_to_completion = False

    def __init__(self, options: Mapping[str, SettingValue], allowance: Allowance) -> None:
        self.options = read_options(ToyOptions, self.kind, options)
        self.allowance = allowance

    def check_level(self, level: float) -> int:
        return whole_level(self.kind, "concurrency", level, 1, 64)

    def trials(self) -> Sequence[Sequence[str]]:
        return (importing("loadframe_toy.client"),)

    def install(self, endpoint: Endpoint) -> None:
        """Nothing: the server keeps no data."""

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        self.check_level(level)

    def start(self, endpoint: Endpoint, level: float, folder: Path, duration_s: float) -> ProcessDriver:
        folder = folder.resolve()
        clients = []
        for number in range(self.check_level(level)):
            log = folder / f"requests-{number}.log"
            arguments = [endpoint.address, str(log), repr(duration_s), str(self.options.pause_ms)]
            clients.append(Worker("loadframe_toy.client", arguments, log, folder / f"client-{number}.txt"))
        return start_together(self.kind, clients, self.allowance, duration_s)

    def after_step(self, endpoint: Endpoint) -> None:
        """Nothing is left behind."""

    def remove(self, endpoint: Endpoint) -> None:
        """Nothing was made."""


def requirements(kind: str) -> tuple[Requirement, ...]:
    return (Requirement(kind, "a toy", "in the box", ""),)


KIND = KindOfWorkload(ToyLoad.kind, ToyLoad, rules(ToyOptions), requirements)
