"""loadframe demo: the main job on the embedded default."""

from __future__ import annotations

from loadframe.cli.case import run_case
from loadframe.cli.common import RUNS, Json, Runs, Sets, command

CASE = "job-queue"
TIME = "measure.budget=150s"
"""A little more than the quick profile has, for narrower intervals."""


def demo(overrides: Sets = None, runs: Runs = RUNS, as_json: Json = False) -> None:
    """Investigate a job queue in one SQLite file. Needs nothing else installed."""
    with command(as_json, measures=True) as reached:
        run_case(CASE, "quick", None, [TIME, *(overrides or [])], runs, as_json, reached)
