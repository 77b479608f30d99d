"""Where a search for settings goes on from: the trials of an earlier run."""

from collections.abc import Mapping
from pathlib import Path

from loadframe.errors import RunError
from loadframe.experiments.reading import open_run
from loadframe.experiments.side_by_side import START
from loadframe.model import SettingValue, TuningTrial
from loadframe.study import Study


def trials_of(path: Path, study: Study) -> list[TuningTrial]:
    """The trials of a run of the same study."""
    run = open_run(path)
    before, now = run.study(), study.resolved()
    tables = ("target", "cage", "workload", "load", "host", "objective")
    differing = [table for table in tables if before.get(table) != now[table]]
    if differing:
        raise RunError(
            f"{path} is a run of another study: {', '.join(differing)} differ",
            remedy=f"Go on with its own study, {path}/study.toml.",
        )
    return run.tuning_trials()


def check_start(path: Path, effective: Mapping[str, SettingValue]) -> None:
    """That a run began where another one goes on from it: its trials are told as changes of its start, and held against
    what that served."""
    before = open_run(path).effective().get(START, effective)
    if differing := [name for name in before if name in effective and before[name] != effective[name]]:
        told = ", ".join(f"{name} was {before[name]}, is {effective[name]}" for name in differing)
        raise RunError(
            f"{path} began with settings other than those in effect now: {told}",
            remedy="Its trials do not apply to them. Restore the old settings, or search again without --resume.",
        )
