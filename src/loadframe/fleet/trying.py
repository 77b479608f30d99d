"""What a host is told of the steps that it is to take, and the start on all hosts, before anything is compared."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadframe.experiments.proof import grain_of
from loadframe.experiments.side_by_side import START
from loadframe.experiments.tuning_start import Start
from loadframe.fleet.calibrating import Sample, calibrate, likeness_sentences
from loadframe.fleet.on_hosts import OnHosts, Work
from loadframe.model import Purpose, Step
from loadframe.model.fleet_hosts import FleetHosts
from loadframe.model.fleet_trials import TaskPurpose
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


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What is known. starts: of each host, as it serves while all are loaded: what its trials are held against."""

    found: FleetHosts
    starts: Mapping[str, Start]


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
    together: dict[str, list[Step]] = {host: [] for host in on.engine.hosts}

    def start_on(block: int, purpose: TaskPurpose, hosts: Sequence[str]) -> Mapping[str, Sample]:
        taken = start_of(on, study, levels, block, purpose, hosts)
        if purpose == "together":
            for host, steps in taken.items():
                together[host] += steps
        return {host: _sample(steps) for host, steps in taken.items()}

    found = calibrate(on.engine.hosts, levels, start_on, drawn, noting(run, notes), affords)
    return Calibrated(found, {host: Start.of(steps, levels) for host, steps in together.items()})


def noting(run: RunFolder, notes: list[str]) -> Callable[[FleetHosts], None]:
    """Keeps how alike the hosts are, in the run and in words."""

    def note(found: FleetHosts) -> None:
        fleet_files.HOSTS.add(run, found)
        notes.extend(likeness_sentences(found))

    return note


def start_of(
    on: OnHosts, study: Study, levels: Sequence[float], block: int, purpose: TaskPurpose, hosts: Sequence[str]
) -> dict[str, tuple[Step, ...]]:
    """The start on these hosts, all at the same time."""
    asked = steps_asked(study, [(START, level) for level in levels], block=max(1, block))
    done = on.together(hosts, lambda: Work(purpose, block, START_TITLE, lambda _: asked))
    return {host: each.steps for host, each in done.items()}


def _sample(steps: Sequence[Step]) -> Sample:
    return Sample({step.level: step.throughput for step in steps}, {step.level: grain_of(step) for step in steps})
