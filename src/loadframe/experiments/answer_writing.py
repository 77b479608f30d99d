"""Records and reports of ladders and of searches for settings or capacity, also of runs that were stopped or killed."""

from dataclasses import replace
from typing import TypeVar

from loadframe.analysis import cpu_use
from loadframe.errors import RunError, StudyError
from loadframe.experiments.climbing import Climbed
from loadframe.experiments.side_by_side import START
from loadframe.experiments.tuning_proof import with_file
from loadframe.experiments.writing import Ended, copied, finish, summary_of
from loadframe.kinds import registry
from loadframe.model import Capacity, Ladder, Tuning
from loadframe.reporting.document import About
from loadframe.reporting.reports import render_page
from loadframe.runs.folder import REPORT, RunFolder
from loadframe.runs.formats import DAMAGED

LADDER, TUNING = ("ladder.json", "ladder-record"), ("tuning.json", "tuning-record")

Answer = TypeVar("Answer", Ladder, Tuning)


def save_ladder(run: RunFolder, climbed: Climbed, *, keeps_all: bool) -> None:
    """Write the ladder as far as it went; it is on the disk when this returns. A later call replaces it."""
    ladder = Ladder(
        run=str(run.path),
        report=str(run.place(REPORT)),
        study=summary_of(run, run.declared()),
        host=run.host(),
        rungs=climbed.rungs,
        total=climbed.total,
        interactions=climbed.interactions,
        keeps_all=keeps_all,
        finished=False,
        warnings=climbed.missing,
    )
    run.write_record(*LADDER, ladder)


def save_tuning(run: RunFolder, tuning: Tuning) -> None:
    """Write the record of a search for settings; its trials have a file of their own."""
    run.write_record(*TUNING, replace(tuning, trials=()))


def write_ladder(run: RunFolder) -> Ladder:
    """Write record, tables and report of a finished ladder. RunError where there is no record or no finished step."""
    return _write_down(run, run.ladder())


def write_tuning(run: RunFolder) -> Tuning:
    """Write record, tables and report of a search for settings that has ended. RunError as `write_ladder`."""
    return _write_down(run, run.tuning())


def _write_down(run: RunFolder, answer: Answer | None) -> Answer:
    if answer is None or not run.steps():
        raise RunError(f"{run.path} has no finished step", remedy="It was stopped early; run it again.")
    answer = whole(run, answer, finish(run))
    if isinstance(answer, Ladder):
        run.write_record(*LADDER, answer)
    else:
        run.write_record(*TUNING, answer)
        if answer.file_name:
            run.write_text(answer.file_name, answer.file_text)
    run.write_report(render_page(answer))
    return answer


def whole(run: RunFolder, answer: Answer, end: Ended) -> Answer:
    """Complete an answer with run quality, a search also with trials and file. RunError for settings it cannot have."""
    answer = replace(
        answer,
        run=end.run,
        report=end.report,
        quality=end.quality,
        seconds=end.quality.seconds,
        hosts=run.hosts_alike(),
        warnings=end.after(answer.warnings),
    )
    if isinstance(answer, Ladder):
        titles = {name: "" if name == START else treatment.title for name, treatment in run.treatments().items()}
        return replace(
            answer,
            finished=run.closed(),
            cpu_use=cpu_use.of_states(run.steps(), titles),
            to_copy=copied(run.declared(), answer.net_changes),
        )
    try:
        study = run.declared()
        answer = with_file(answer, registry.of_study(study) if study.target.kind in registry.KINDS else None)
    except StudyError as error:
        raise RunError(f"{run.place(TUNING[0])}: {error.fact}", remedy=DAMAGED) from error
    return replace(answer, study=end.study, host=end.host, trials=tuple(run.tuning_trials()))


def write_capacity(run: RunFolder, capacity: Capacity, *, ended: bool = False) -> Capacity:
    """Write the report of a search for the capacity, and at its end the record. RunError where that fails."""
    end = finish(run)
    capacity = replace(capacity, run=end.run, warnings=(*capacity.warnings, *end.notes) if ended else capacity.warnings)
    if ended:
        run.write_record("capacity.json", "capacity-record", capacity)
    run.write_report(render_page(capacity, About(end.run, end.study, end.host), end.quality))
    return capacity
