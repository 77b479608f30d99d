"""The search for settings on a real target: trial after trial, and the proof of the best."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from loadframe.analysis.selection import select
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.diagnosis.remedies import propose
from loadframe.errors import RunError
from loadframe.experiments.examination import Examined
from loadframe.experiments.frame import HERE, Executor, alone, looked_at, new_run, on_bench, read_back
from loadframe.experiments.proof import judged_levels
from loadframe.experiments.reading import open_run
from loadframe.experiments.searching import asked_of_settings
from loadframe.experiments.settings_search import SettingsSearch
from loadframe.experiments.side_by_side import START
from loadframe.experiments.sweep import curve_of
from loadframe.model import SettingValue
from loadframe.progress import Progress
from loadframe.runs.folder import RunFolder
from loadframe.study import Study
from loadframe_tune import space
from loadframe_tune.answer import TUNING, save
from loadframe_tune.model import Tuning, TuningTrial
from loadframe_tune.proof import answer, proved
from loadframe_tune.search import Search
from loadframe_tune.trials import Start, Trials, loads_within, measure_start, trials_in


def tune(
    study: Study,
    runs: Path,
    *,
    trials: int | None = None,
    resume: Path | None = None,
    progress: Progress | None = None,
    executor: Executor = HERE,
) -> Tuning:
    """Better settings for the study's target, searched in trials and proved against the start in fresh blocks.

    trials: their number; None: tune.trials. resume: a run of the same study that goes on; its trials begin the new
    run. executor: where trials are taken. StudyError where there is nothing to vary, RunError where the run is of
    another study, or began with other settings than are in effect now; raises as `loadframe.investigate` does."""
    space.check(study)
    earlier = trials_of(resume, study) if resume is not None else []
    run = new_run(study, runs)
    with on_bench(alone(study), run, progress) as book:
        book.tries_remedies, book.warms = False, True
        effective = read_back(book, START)
        if resume is not None:
            check_start(resume, effective)
        measure_start(book)
        curve, here = curve_of(book.steps, study, START), run.host().memory_bytes
        tuned = searched(
            book,
            run,
            looked_at(book, 1, START, book.bench.start_state, effective, curve),
            trials=study.tune.trials if trials is None else trials,
            memory_bytes=min(here, study.cage.memory or here) if book.bench.is_local else None,
            earlier=earlier,
            searching=executor.trials,
        )
    save(run, replace(tuned, resumed_from=str(resume) if resume is not None else ""))
    run.close()
    return TUNING.write(run)


def searched(
    book: Bookkeeping,
    run: RunFolder,
    examined: Examined,
    *,
    trials: int,
    memory_bytes: float | None,
    earlier: Sequence[TuningTrial],
    searching: Callable[[SettingsSearch, int], None],
) -> Tuning:
    """examined: the first curve, which says what to try first, and at which levels settings are judged, the highest
    first. memory_bytes: as for space.vary. earlier: trials of a run to continue. searching: takes the trials."""
    study, round_ = book.bench.study, examined.round
    remedies = [
        {change.setting: change.after for change in remedy.changes if change.layer == "server" and change.needed}
        for remedy in propose(round_.findings, examined.situation)
        if remedy.price.durability is None or study.remedies.durability == "relax"
    ]
    first = list(dict.fromkeys(name for remedy in remedies for name in remedy))
    varied, left_out = space.vary(study, round_.effective, memory_bytes, first)
    asked, steps = asked_of_settings(study), select(book.of(START)).steps
    curve = round_.curve if asked is None else loads_within(round_.curve, steps, asked)
    levels = tuple(reversed(judged_levels(curve, examined.bend)))
    search = Search(varied, tries=[remedy for remedy in remedies if remedy], seed=book.random.randrange(2**32))
    start, names = Start.of(steps, levels), {varied.start: START}
    tuned = Trials(book, run, varied, search, levels, round_.state, start, objective=asked, names=names)
    tuned.begin(earlier)
    answered = partial(answer, tuned, left_out, tuple(finding.title for finding in round_.findings))
    save(run, answered(()))
    searching(tuned, trials)
    return answered(proved(tuned, lambda proofs: save(run, answered(proofs))), ended=True)


def trials_of(path: Path, study: Study) -> list[TuningTrial]:
    """RunError for a run of another study."""
    run = open_run(path)
    before, now = run.study(), study.resolved()
    tables = ("target", "cage", "workload", "load", "host", "objective")
    differing = [table for table in tables if before.get(table) != now[table]]
    if differing:
        raise RunError(
            f"{path} is a run of another study: {', '.join(differing)} differ",
            remedy=f"Go on with its own study, {path}/study.toml.",
        )
    return trials_in(run)


def check_start(path: Path, effective: Mapping[str, SettingValue]) -> None:
    """RunError unless a run began with the settings in effect now: its trials are relative to its start."""
    before = open_run(path).effective().get(START, effective)
    if differing := [name for name in before if name in effective and before[name] != effective[name]]:
        changes = ", ".join(f"{name} was {before[name]}, is {effective[name]}" for name in differing)
        raise RunError(
            f"{path} began with settings other than those in effect now: {changes}",
            remedy="Its trials do not apply to them. Restore the old settings, or search again without --resume.",
        )
