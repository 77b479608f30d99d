"""From a search for settings to its record and its report on disk; also of a run that was stopped or killed."""

from __future__ import annotations

from dataclasses import replace

from loadframe.errors import RunError, StudyError
from loadframe.experiments.tuning_answer import with_file
from loadframe.experiments.writing import Ended, finish
from loadframe.kinds import registry
from loadframe.model import Tuning
from loadframe.reporting.tuning_report import render_tuning_page
from loadframe.runs import fleet_files
from loadframe.runs.folder import RunFolder
from loadframe.runs.formats import DAMAGED

FILE, SCHEMA = "tuning.json", "tuning-record"


def save(run: RunFolder, found: Tuning) -> None:
    """What is known so far, on the disk when this returns; a later call replaces it. The trials have a file of their
    own."""
    run.write_record(FILE, SCHEMA, replace(found, trials=()))


def _with_file(run: RunFolder, found: Tuning) -> Tuning:
    """With the settings to copy. RunError where the record names some that the study's target cannot have."""
    try:
        study = run.declared()
        return with_file(found, registry.of_study(study) if study.target.kind in registry.KINDS else None)
    except StudyError as error:
        raise RunError(f"{run.place(FILE)}: {error.fact}", remedy=DAMAGED) from error


def write_down(run: RunFolder) -> Tuning:
    """The record of a run that has ended, with its trials, how it went, its tables and its report. RunError where it
    holds no search, or not a single finished step."""
    found = run.tuning()
    if found is None or not run.steps():
        raise RunError(f"{run.path} has no search with a finished step", remedy="It was stopped early; run it again.")
    found = whole(run, found, finish(run))
    run.write_record(FILE, SCHEMA, found)
    if found.file_name:
        run.write_text(found.file_name, found.file_text)
    run.write_report(render_tuning_page(found))
    return found


def whole(run: RunFolder, found: Tuning, end: Ended) -> Tuning:
    """A search with its trials, the settings to copy, and how its run went."""
    return replace(
        _with_file(run, found),
        run=end.run,
        report=end.report,
        study=end.study,
        host=end.host,
        trials=tuple(run.tuning_trials()),
        quality=end.quality,
        seconds=end.quality.seconds,
        hosts=fleet_files.HOSTS.last(run),
        warnings=end.after(found.warnings),
    )
