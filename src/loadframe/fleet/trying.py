"""What a host is told of the steps that it is to take, and the start on all hosts, before anything is compared."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from loadframe.experiments.side_by_side import START
from loadframe.fleet.calibrating import Calibrated, calibrate, likeness_sentences
from loadframe.fleet.on_hosts import OnHosts, Work
from loadframe.model import Purpose, Step
from loadframe.model.fleet_trials import FleetHosts, TaskPurpose
from loadframe.runs import fleet_files
from loadframe.runs.entries import Treatment
from loadframe.runs.folder import RunFolder
from loadframe.runs.formats import encode
from loadframe.study import Study

START_TITLE = "The start"


def steps_asked(
    study: Study,
    order: Sequence[tuple[str, float]],
    *,
    states: Sequence[Treatment] = (),
    block: int = 1,
    round_number: int | None = None,
    purpose: Purpose = "trial",
    floors: Mapping[float, float] | None = None,
) -> dict[str, Any]:
    """See trial.py. order: each treatment with each level. states: of all treatments but the start. floors: throughput
    by level below which there is no hope, so that no further step is taken."""
    return {
        "study": study.resolved(),
        "states": [encode("treatment", each).decode() for each in states],
        "order": [[name, level] for name, level in order],
        "block": block,
        "round": round_number,
        "step": purpose,
        "floors": list((floors or {}).items()),
    }


def alike(
    on: OnHosts,
    study: Study,
    run: RunFolder,
    levels: Sequence[float],
    drawn: random.Random,
    notes: list[str],
    affords: Callable[[], bool],
) -> Calibrated:
    """The start on each host, until all are known to be alike at these levels. FleetError where they are not."""

    def note(found: FleetHosts) -> None:
        fleet_files.add_hosts(run, found)
        notes.extend(likeness_sentences(found))

    def start_on(block: int, purpose: TaskPurpose, hosts: Sequence[str]) -> Mapping[str, Sequence[Step]]:
        return start_of(on, study, levels, block, purpose, hosts)

    return calibrate(on.engine.hosts, levels, start_on, drawn, note, affords)


def start_of(
    on: OnHosts, study: Study, levels: Sequence[float], block: int, purpose: TaskPurpose, hosts: Sequence[str]
) -> dict[str, tuple[Step, ...]]:
    """The start on these hosts, all at the same time."""
    asked = steps_asked(study, [(START, level) for level in levels], block=max(1, block))
    done = on.together(hosts, lambda: Work(purpose, block, START_TITLE, lambda _: asked))
    return {host: each.steps for host, each in done.items()}
