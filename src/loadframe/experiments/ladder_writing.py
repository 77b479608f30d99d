"""From a measured ladder to its record and its report on disk; also of a run that was stopped or killed."""

from __future__ import annotations

from dataclasses import replace

from loadframe.analysis import cpu_use
from loadframe.errors import RunError
from loadframe.experiments.climbing import Climbed
from loadframe.experiments.side_by_side import START
from loadframe.experiments.writing import Ended, finish
from loadframe.model import Ladder
from loadframe.reporting.ladder_report import render_ladder_page
from loadframe.runs import fleet_files
from loadframe.runs.folder import REPORT, RunFolder
from loadframe.runs.record import describe_study

FILE, SCHEMA = "ladder.json", "ladder-record"


def save(run: RunFolder, climbed: Climbed, *, keeps_all: bool) -> Ladder:
    """The ladder as far as it went, on the disk when this returns; a later call replaces it."""
    bench = run.bench()
    study = run.declared()
    found = Ladder(
        run=str(run.path),
        report=str(run.place(REPORT)),
        study=describe_study(study, version=bench.version, axis_unit=bench.axis_unit, work_unit=bench.work_unit),
        host=run.host(),
        rungs=climbed.rungs,
        total=climbed.total,
        interactions=climbed.interactions,
        keeps_all=keeps_all,
        finished=False,
        warnings=climbed.missing,
    )
    run.write_record(FILE, SCHEMA, found)
    return found


def write_down(run: RunFolder) -> Ladder:
    """The record of a run that has ended, with how it went, its tables and its report. RunError where it holds no
    ladder, or not a single finished step."""
    found = run.ladder()
    if found is None or not run.steps():
        raise RunError(f"{run.path} has no ladder with a finished step", remedy="It was stopped early; run it again.")
    found = whole(run, found, finish(run))
    run.write_record(FILE, SCHEMA, found)
    run.write_report(render_ladder_page(found))
    return found


def whole(run: RunFolder, found: Ladder, end: Ended) -> Ladder:
    """A ladder with how its run went."""
    return replace(
        found,
        run=end.run,
        report=end.report,
        finished=run.closed(),
        quality=end.quality,
        seconds=end.quality.seconds,
        warnings=end.after(found.warnings),
        hosts=fleet_files.HOSTS.last(run),
        cpu_use=cpu_use.of_states(
            run.steps(), {name: "" if name == START else one.title for name, one in run.treatments().items()}
        ),
    )
