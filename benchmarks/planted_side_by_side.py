"""Planted causes on the hosts of a fleet, each of them whole on one: for planted.py --fleet.

Nothing is compared between hosts: an investigation is of one. They are told apart all the same, by a small study on
each of them (A/A), and refused where they differ or disturb one another: a cause may not be seen beside a neighbour's
load.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from loadframe.experiments.frame import new_run
from loadframe.fleet.declaration import load
from loadframe.fleet.on_hosts import Done, OnHosts, Work
from loadframe.fleet.trial import answered
from loadframe.fleet.trials_over import engine_over
from loadframe.fleet.trying import alike
from loadframe.progress import Silent
from loadframe.study import Study, parse

PROGRAM = Path("benchmarks/planted.py")
"""Below the folder in which each worker was started."""
AS_A_TASK = "--as-a-task"
LONGEST_S = 900.0
AGAIN = "Start their workers again, and run it again."
AS_GIVEN = """
[study]
name = "as-given"
question = "Are the hosts alike?"
[target]
kind = "sqlite"
[workload]
kind = "job-queue"
[load]
axis = "concurrency"
levels = [2]
[measure]
window = "1s"
warmup = "300ms"
profile = "off"
"""


def side_by_side(
    fleet: Path, names: Sequence[str], runs: Path, told: Callable[[str, Mapping[str, Any]], None]
) -> list[str]:
    """told: is given the name and the answer of each as it ends. What a reader must know, in sentences. FleetError."""
    study: Study = parse(AS_GIVEN)
    notes: list[str] = []
    with engine_over(load(fleet), study, print) as engine:
        run = new_run(study, runs)
        on = OnHosts(engine, run, Silent(), LONGEST_S, notes, AGAIN)
        found = alike(on, study, run, study.levels, random.Random(), notes, lambda: True)
        notes += [f"{each.host} is {each.likeness} to {each.beside}" for each in found.found.hosts]
        works = [Work("case", number, name, _asked(name, runs)) for number, name in enumerate(names, start=1)]
        left = list(works)

        def ended(done: Done) -> None:
            told(done.work.title, {"host": done.host, **done.answer, "failed": done.failed})

        on.carry_out(lambda: bool(left), lambda: left.pop(0), ended)
        run.close()
    return notes


def answer(investigated: Callable[[str, Path], dict[str, Any]]) -> None:
    """As a task on a host. investigated: of a name, with runs in a folder, what there is to tell."""
    answered(lambda asked: investigated(str(asked["name"]), Path(str(asked["runs"]))))


def _asked(name: str, runs: Path) -> Callable[[str], Mapping[str, Any]]:
    asked = {"program": [str(PROGRAM), AS_A_TASK], "name": name, "runs": str(runs), "within_s": LONGEST_S}
    return lambda _: asked
