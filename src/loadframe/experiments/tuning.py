"""The search for settings on a real target: trial after trial, and the proof of the best."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from loadframe.analysis.selection import select
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.diagnosis.remedies import propose
from loadframe.errors import RunError
from loadframe.experiments import within
from loadframe.experiments.answer_writing import save_tuning
from loadframe.experiments.examination import Examined
from loadframe.experiments.proof import judged_levels
from loadframe.experiments.reading import open_run
from loadframe.experiments.side_by_side import START
from loadframe.experiments.tuning_proof import answer, proved
from loadframe.experiments.tuning_space import vary
from loadframe.experiments.tuning_trials import Start, Trials
from loadframe.model import SettingValue, Tuning, TuningTrial
from loadframe.runs.folder import RunFolder
from loadframe.study import Study
from loadframe.tuning.search import Search


def tune(
    book: Bookkeeping,
    run: RunFolder,
    examined: Examined,
    *,
    trials: int,
    memory_bytes: float | None,
    earlier: Sequence[TuningTrial],
    searching: Callable[[Trials, int], None],
) -> Tuning:
    """Search from the study's state, and prove the best. examined: its first curve, which says what to try first, and
    at which levels settings are judged, the highest first. memory_bytes: as for tuning_space.vary. earlier: trials of a
    run to continue. searching: takes the trials."""
    study, round_ = book.bench.study, examined.round
    remedies = [
        {change.setting: change.after for change in remedy.changes if change.layer == "server" and change.needed}
        for remedy in propose(round_.findings, examined.situation)
        if remedy.price.durability is None or study.remedies.durability == "relax"
    ]
    first = list(dict.fromkeys(name for remedy in remedies for name in remedy))
    space, left_out = vary(study, round_.effective, memory_bytes, first)
    asked, steps = within.asked(study), select(book.of(START)).steps
    curve = round_.curve if asked is None else within.loads_within(round_.curve, steps, asked)
    levels = tuple(reversed(judged_levels(curve, examined.bend)))
    search = Search(space, tries=[remedy for remedy in remedies if remedy], seed=book.random.randrange(2**32))
    start, names = Start.of(steps, levels), {space.start: START}
    tuned = Trials(book, run, space, search, levels, round_.state, start, objective=asked, names=names)
    tuned.begin(earlier)
    answered = partial(answer, tuned, left_out, tuple(finding.title for finding in round_.findings))
    save_tuning(run, answered(()))
    searching(tuned, trials)
    return answered(proved(tuned, lambda proofs: save_tuning(run, answered(proofs))), ended=True)


def trials_of(path: Path, study: Study) -> list[TuningTrial]:
    """The trials of a run of the same study; RunError for a run of another one."""
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
    """RunError unless a run began with the settings in effect now: its trials are relative to its start."""
    before = open_run(path).effective().get(START, effective)
    if differing := [name for name in before if name in effective and before[name] != effective[name]]:
        changes = ", ".join(f"{name} was {before[name]}, is {effective[name]}" for name in differing)
        raise RunError(
            f"{path} began with settings other than those in effect now: {changes}",
            remedy="Its trials do not apply to them. Restore the old settings, or search again without --resume.",
        )
