"""From a search for settings to its record and its report on disk; also of a run that was stopped or killed."""

from __future__ import annotations

from dataclasses import replace

from loadframe import reporting
from loadframe.bench.writing import conduct_from, series_of
from loadframe.errors import RunError
from loadframe.model import Tuning
from loadframe.runs.folder import RunFolder
from loadframe.runs.record import describe_study
from loadframe.study import validate

FILE, SCHEMA = "tuning.json", "tuning-record"


def save(run: RunFolder, found: Tuning) -> None:
    """What is known so far, on the disk when this returns; a later call replaces it. The trials have a file of their
    own."""
    run.write_record(FILE, SCHEMA, replace(found, trials=()))


def write_down(run: RunFolder) -> Tuning:
    """The record of a run that has ended, with its trials, how it went, its tables and its report. RunError where it
    holds no search, or not a single finished step."""
    found, steps = run.tuning(), run.steps()
    if found is None or not steps:
        raise RunError(f"{run.path} has no search with a finished step", remedy="It was stopped early; run it again.")
    series = series_of(run)
    run.write_tables(steps, [], series=series.table)
    conduct = run.conduct() or conduct_from(steps)
    bench = run.document("bench.json", "bench")
    study = validate(run.study(), name=str(run.path / "study.json"))
    found = replace(
        found,
        run=str(run.path),
        report=str(run.path / "report.html"),
        study=describe_study(study, version=str(bench["version"]), axis_unit=str(bench["axis_unit"])),
        host=run.host(),
        trials=tuple(run.tuning_trials()),
        conduct=conduct,
        seconds=conduct.seconds,
        warnings=tuple(dict.fromkeys((*found.warnings, *series.warnings))),
    )
    run.write_record(FILE, SCHEMA, found)
    if found.file_text:
        run.write_text(found.file_name, found.file_text)
    reporting.write_tuning_page(found, run.path / "report.html")
    return found
