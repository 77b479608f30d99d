"""Whole investigations, each on one host of a fleet: its baseline, its changes and its proof are of that host.

Nothing is compared between hosts, so whether they are alike is not asked. What would spoil an investigation is a load
beside it: on one kernel each sees the others' processes as strangers. So hosts of one kernel take turns, and hosts of
different kernels work side by side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from loadframe.progress import Progress
from loadframe.runs.folder import RunFolder
from loadframe.study import Study
from loadframe_fleet.declaration import Fleet
from loadframe_fleet.observing import Observing
from loadframe_fleet.on_hosts import Done, Engine, OnHosts, Work
from loadframe_fleet.trials import engine_over

AGAIN = "Start their workers again, and run it again."
PATIENCE, ENDS_S = 3.0, 300.0
"""An investigation hangs that takes this many times its budget, and these seconds on top: the budget is for steps, and
what is done before and after them takes its own time."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A study to investigate. host: the one that it is of; "" where any may take it."""

    study: Study
    host: str = ""


class InvestigationsOnHosts:
    """Goes through whole investigations on these hosts."""

    def __init__(
        self,
        engine: Engine,
        kernels: Mapping[str, str],
        notes: Sequence[str] = (),
        observing: Observing | None = None,
    ) -> None:
        """kernels: of each host, by name. notes: for the reader. observing: see OnHosts."""
        self._observing = observing
        self._engine = engine
        self._kernels = kernels
        self.notes = [*notes, *turns_sentences(kernels)]

    def __call__(
        self, asked: Sequence[Asked], run: RunFolder, progress: Progress, told: Callable[[Done], None] = lambda _: None
    ) -> list[Done]:
        """Each on one host, in this order. run: has a line for every task. told: is given each as it ends. FleetError
        where no host is left."""
        longest_s = max((_within_s(each.study) for each in asked), default=ENDS_S)
        on = OnHosts(self._engine, run, progress, longest_s, self.notes, AGAIN, self._kernels, self._observing)
        return on.all_of([_work(number, each) for number, each in enumerate(asked, start=1)], told)


@contextmanager
def investigations_over(fleet: Fleet, studies: Sequence[Study]) -> Iterator[InvestigationsOnHosts]:
    """What goes through whole investigations of these studies on the fleet's hosts. Raises as `engine_over`."""
    with engine_over(fleet, studies) as (engine, observing):
        yield InvestigationsOnHosts(engine, engine.kernels, engine.notes, observing)


def turns_sentences(kernels: Mapping[str, str]) -> list[str]:
    """Which hosts take turns, for the reader."""
    shared = [kernel for kernel, count in Counter(kernels.values()).items() if count > 1]
    names = [", ".join(host for host, kernel in kernels.items() if kernel == each) for each in shared]
    return [
        f"The hosts {each} run on one kernel and took turns: a load beside another one is a stranger." for each in names
    ]


def _work(number: int, one: Asked) -> Work:
    told: dict[str, Any] = {
        "study": one.study.resolved(), "investigate": True, "within_s": _within_s(one.study)
    }  # fmt: skip
    return Work("investigation", number, one.study.study.name, lambda _: told, only=one.host)


def _within_s(study: Study) -> float:
    return PATIENCE * study.measure.budget + ENDS_S
