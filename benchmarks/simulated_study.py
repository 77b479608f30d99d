"""A study whose target is never started, and what `investigate` reads of its steps, for benchmarks and tests."""

from __future__ import annotations

from collections.abc import Sequence

from loadframe.experiments.examination import examine
from loadframe.experiments.sweep import curve_of
from loadframe.model import Round, Step, TargetState
from loadframe.study import Study, parse

QUEUE = """
[study]
name = "queue"
question = "?"
[target]
kind = "sqlite"
[workload]
kind = "job-queue"
[load]
axis = "concurrency"
levels = {levels}
"""


def examined(steps: Sequence[Step], study: Study) -> Round:
    """A study's first round, from steps of treatment A, before any remedy is tried."""
    return examine(
        steps,
        number=1,
        treatment="A",
        state=TargetState(),
        effective={},
        curve=curve_of(steps, study, "A"),
        target_kind=study.target.kind,
        highest_level=max(step.level for step in steps),
    ).round


def queue(levels: Sequence[int], more: str = "") -> Study:
    """A job queue in SQLite. more: tables of the study beside those that every study has."""
    return parse(QUEUE.format(levels=list(levels)) + more)
