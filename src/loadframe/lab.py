"""The loop: measure, name what gave, change one thing, prove the gain, say what gives next, write it down.

investigate   the whole loop -> run folder and report
measure       the curve only
compare       a study's alternatives against its target, side by side
ladder        a study's changes one on top of the other: which gave which share
verify        a forecast against what its loads then give
capacity      the highest load that meets the objective, searched from below
tune          better settings, searched and proved
conclude      what a run folder says, also one that was stopped or killed
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from loadframe import reporting
from loadframe.analysis.carryover import carried_over
from loadframe.bench.bench import Bench
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.bench.budget import Budget
from loadframe.bench.checking import check_study, unseen
from loadframe.changes import durable, lists
from loadframe.errors import Interrupted, RunError, StudyError, UserError
from loadframe.experiments import (
    comparing,
    dry_run,
    forecasting,
    ladder_writing,
    searching,
    tuning,
    tuning_space,
    tuning_start,
    tuning_writing,
)
from loadframe.experiments.beside import START, declare, measure_beside
from loadframe.experiments.climbing import Climbed, climb
from loadframe.experiments.examination import Examined, cuts, examine
from loadframe.experiments.foretelling import first_sweep
from loadframe.experiments.ladder_states import LadderStates
from loadframe.experiments.latencies import with_latencies
from loadframe.experiments.profiling import profile_after, profile_around
from loadframe.experiments.proof import decided
from loadframe.experiments.survival import one_of_each_kind, try_restarts
from loadframe.experiments.sweep import curve_of, sweep
from loadframe.experiments.trials import prove_total, try_remedies
from loadframe.experiments.writing import conduct_from, partial, series_of, write_down
from loadframe.machine import check_address_space
from loadframe.model import (
    Capacity,
    Comparison,
    Conduct,
    Curve,
    Forecast,
    Investigation,
    Ladder,
    LoadInterval,
    Round,
    SettingValue,
    StandingChange,
    Step,
    TargetState,
    Tuning,
    TuningTrial,
    Verdict,
)
from loadframe.panics import reserve
from loadframe.prediction import resources, scoring
from loadframe.progress import Progress, Silent
from loadframe.reporting import conduct_words, words
from loadframe.runs.folder import Effective, RunFolder
from loadframe.runs.host import read_host
from loadframe.study import Study, validate

MOST_ROUNDS = 6
"""A remedy that helps is followed by another round; nobody's patience is longer than this."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What `measure` leaves behind. warnings: what of the recording is missing; those of the curve are with it."""

    run: Path
    curve: Curve
    axis_unit: str = ""
    silent_cuts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    conduct: Conduct | None = None


def investigate(study: Study, runs: Path, *, progress: Progress | None = None) -> Investigation:
    """The whole loop. UserError where the study cannot be carried out, Interrupted where the user stopped it; what was
    measured until then is in the run folder either way, with a report of it."""
    run = _new_run(study, runs)
    rounds: list[Round] = []
    total: Verdict | None = None
    with _explaining(run, rounds), _book(study, run, progress) as book:
        book.washes = True
        treatment, state = "A", book.bench.start_state
        already: set[str] = set()

        def note(one: Round) -> None:
            """Nothing that was proved is lost, whatever happens next."""
            rounds[one.number - 1 :] = [one]
            run.save_rounds(rounds)

        beside = declare(book)
        measure_beside(book, run, beside)
        for number in range(1, MOST_ROUNDS + 1):
            effective = _read_back(book, run, treatment)
            curve = first_sweep(book, treatment) if number == 1 else sweep(book, treatment, round_number=number)
            examined = _examine(book, number, treatment, state, effective, curve)
            note(examined.round)
            if number == 1:
                first = examined
                profile_around(book, first)
            tried = try_remedies(book, examined, already, note)
            if tried.kept is None:
                break
            treatment, state = tried.kept
        total = prove_total(book, rounds, treatment)
        profile_after(book, first, treatment)
        try_restarts(book, run, one_of_each_kind(run))
    run.close()
    return write_down(run, rounds, total=total)


def measure(study: Study, runs: Path, *, progress: Progress | None = None) -> Measurement:
    """The study's curve; nothing is changed. Raises as `investigate` does."""
    run = _new_run(study, runs)
    with _explaining(run, []), _book(_alone(study), run, progress) as book:
        book.tries_remedies = False
        effective = _read_back(book, run, "A")
        curve = first_sweep(book, "A")
        silent = cuts(study.target.kind, book.bench.start_state, effective)
    series = series_of(run)
    run.write_tables(run.steps(), [], series=series.table)
    run.close()
    return Measurement(run.path, curve, run.axis_unit(), silent, (*unseen(study), *series.warnings), conduct(run))


def compare(
    study: Study,
    runs: Path,
    *,
    enough: Callable[[Verdict], bool] = decided,
    progress: Progress | None = None,
) -> list[Comparison]:
    """The study's alternatives, each measured in the same blocks as its target, until the verdict is `enough` or blocks
    or budget are used up. StudyError where there is none; raises as `investigate` does."""
    if not study.alternative:
        raise StudyError(
            f"the study {study.study.name} has no alternative to compare with",
            remedy="Add an [[alternative]] with a name and target.settings, or give two runs or CSV files.",
        )
    run = _new_run(study, runs)
    with _explaining(run, []), _book(study, run, progress) as book:
        book.warms = book.washes = True
        judged = comparing.alternatives(book, enough=enough)
    series = series_of(run)
    carried = map(str, carried_over(run.steps()))
    notes = *unseen(study), *map(words.sentence, conduct_words.sentences(conduct(run))), *carried, *series.warnings
    found = [replace(each, run=str(run.path), notes=notes) for each in judged]
    run.write_tables(run.steps(), [], series=series.table)
    run.write_document(
        "verdicts.json", "verdicts", {"alternatives": [reporting.comparison_json([each]) for each in found]}
    )
    run.close()
    return found


def ladder(study: Study, runs: Path, *, keep_all: bool = False, progress: Progress | None = None) -> Ladder:
    """The study's changes in its order, each against the state before it, and what is kept of them as a whole.

    Changes that are not proven to be better are taken back, but with keep_all. StudyError where the study has none;
    raises as `investigate` does, and what was measured until then is in the run folder either way."""
    if not study.change:
        raise StudyError(
            f"the study {study.study.name} has no change to measure",
            remedy="Add a [[change]] with a name and target.settings for each rung, in order.",
        )
    run = _new_run(study, runs)
    with _explaining(run, []), _book(_alone(study), run, progress) as book:
        book.warms = True
        states = LadderStates(book)
        dry_run.check_changes(book.bench, states)

        def note(climbed: Climbed) -> None:
            """Nothing that was proved is lost, whatever happens next."""
            ladder_writing.save(run, climbed, keeps_all=keep_all)

        note(Climbed(()))
        climbed = climb(book, states, keep_all=keep_all, note=note)
        top = states.name(climbed.kept)
        cut = cuts(study.target.kind, states.of(climbed.kept), _read_back(book, run, top))
        note(replace(climbed, missing=(*climbed.missing, *map(words.sentence, cut), *unseen(study))))
    run.close()
    return ladder_writing.write_down(run)


def verify(forecast: Forecast, study: Study, runs: Path, *, progress: Progress | None = None) -> tuple[Forecast, Path]:
    """A forecast scored by measuring the study's levels, and the run folder of that; the scores are kept. Raises as
    `investigate` does."""
    measured = measure(study, runs, progress=progress)
    rows = resources.observe(open_run(measured.run).steps(), name=str(measured.run), axis=study.load.axis).rows
    return forecasting.remember(scoring.score(forecast, rows)), measured.run


def capacity(
    study: Study,
    runs: Path,
    *,
    hold_s: float = 0.0,
    guess: LoadInterval | None = None,
    progress: Progress | None = None,
) -> Capacity:
    """The highest load of the study's axis that meets its objective, to the study's precision; nothing is changed.

    hold_s: the level that is shown to meet must have met for so long in all. guess: where a forecast expects it, with
    its 90 % interval. StudyError without an objective or a range; raises as `investigate` does."""
    objective, settings = searching.objective_of(study), searching.settings_of(study, hold_s=hold_s, guess=guess)
    run = _new_run(study, runs)
    with _explaining(run, []), _book(_alone(study), run, progress) as book:
        book.tries_remedies = False
        _read_back(book, run, "A")
        found = searching.find(book, settings, objective)
    series = series_of(run)
    notes = *map(words.sentence, conduct_words.sentences(conduct(run))), *series.warnings
    found = replace(found, run=str(run.path), warnings=(*found.warnings, *unseen(study), *notes))
    run.write_tables(run.steps(), [], series=series.table)
    run.write_record("capacity.json", "capacity-record", found)
    run.close()
    return found


def tune(
    study: Study,
    runs: Path,
    *,
    trials: int | None = None,
    resume: Path | None = None,
    progress: Progress | None = None,
) -> Tuning:
    """Better settings for the study's target, searched in trials and proved against the start in fresh blocks.

    trials: their number; None: tune.trials. resume: a run of the same study that goes on; its trials begin the new
    run. StudyError where there is nothing to vary, RunError where the run is of another study, or began with other
    settings than are in effect now; raises as `investigate` does."""
    tuning_space.check(study)
    earlier = _trials_of(resume, study) if resume is not None else []
    run = _new_run(study, runs)
    with _explaining(run, []), _book(_alone(study), run, progress) as book:
        book.tries_remedies, book.warms = False, True
        effective = _read_back(book, run, "A")
        if resume is not None:
            _check_start(resume, effective)
        tuning_start.measure_start(book)
        curve = curve_of(book.steps, study, "A")
        found = tuning.tune(
            book,
            run,
            _examine(book, 1, "A", book.bench.start_state, effective, curve),
            trials=study.tune.trials if trials is None else trials,
            memory_bytes=_memory_bytes(book.bench, run),
            earlier=earlier,
        )
    resumed_from = str(resume) if resume is not None else ""
    tuning_writing.save(run, replace(found, resumed_from=resumed_from, warnings=(*found.warnings, *unseen(study))))
    run.close()
    return tuning_writing.write_down(run)


def _memory_bytes(bench: Bench, run: RunFolder) -> float | None:
    """Of the target's cage, or its machine; None where that is another one."""
    here = run.host().memory_bytes
    return min(here, bench.study.cage.memory or here) if bench.is_local else None


def _trials_of(path: Path, study: Study) -> list[TuningTrial]:
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


def _check_start(path: Path, effective: Mapping[str, SettingValue]) -> None:
    """That a run began where another one goes on from it: its trials are told as changes of its start, and held against
    what that served."""
    before = open_run(path).effective().get(START, effective)
    if differing := [name for name in before if name in effective and before[name] != effective[name]]:
        told = ", ".join(f"{name} was {before[name]}, is {effective[name]}" for name in differing)
        raise RunError(
            f"{path} began with other settings than are in effect now: {told}",
            remedy="Its trials say nothing of that. Put it back as it was, or search anew, without --resume.",
        )


def open_run(path: Path) -> RunFolder:
    """An existing run folder. RunError where it is none."""
    return RunFolder.open(path)


def conclude(run: RunFolder) -> Investigation:
    """What a run folder says; for a run without a conclusion, what its finished steps say. RunError where there is
    not a single finished step."""
    _check_steps(run, run.steps())
    if (found := run.investigation()) is not None:
        return with_latencies(run, found)
    return write_down(run, partial(run), interrupted=not run.closed())


def measured_ladder(run: RunFolder) -> Ladder | None:
    """The ladder of a run folder, as far as it went, with its report written again; None for other runs. RunError where
    there is not a single finished step."""
    _check_steps(run, run.steps())
    return ladder_writing.write_down(run) if run.ladder() is not None else None


def measured_tuning(run: RunFolder) -> Tuning | None:
    """What a run's search for settings found, as far as it went, with its report written again; None for other runs.
    RunError where there is not a single finished step."""
    _check_steps(run, run.steps())
    return tuning_writing.write_down(run) if run.tuning() is not None else None


def curves(run: RunFolder, *, within_latency_p95_ms: float | None = None) -> dict[str, Curve]:
    """The curve of every treatment of a run, computed anew from its steps; under another objective than its study's
    where one is given. RunError where there are no steps."""
    steps = [step for step in run.steps() if step.counts]
    _check_steps(run, steps)
    if not steps:
        raise RunError(f"{run.path} has no finished step", remedy="It was stopped before the first one; run it again.")
    declared = run.study()
    if within_latency_p95_ms is not None:
        declared["objective"] = {**declared.get("objective", {}), "within": {"latency_p95_ms": within_latency_p95_ms}}
    study = validate(declared, name=str(run.place("study.json")))
    treatments = sorted({step.treatment for step in steps}, key=lambda name: (len(name), name))
    return {name: curve_of(steps, study, name) for name in treatments}


def conduct(run: RunFolder) -> Conduct:
    """How a run went: its steps and their flags, and what recording it cost. RunError where there is no step."""
    noted = run.conduct()
    if noted is not None:
        return noted
    steps = run.steps()
    if not steps:
        raise RunError(f"{run.path} has no finished step", remedy="It was stopped before the first one; run it again.")
    return conduct_from(steps)


def _check_steps(run: RunFolder, steps: Sequence[Step]) -> None:
    for step in steps:
        if not (step.level > 0 and 0 <= step.throughput < float("inf")):
            raise RunError(
                f"{run.path}: step {step.number} has level {step.level:g} and throughput {step.throughput:g}",
                remedy="steps.jsonl was damaged or edited.",
            )


# --- the frame around the loop ----------------------------------------------------------------------------------------


def _new_run(study: Study, runs: Path) -> RunFolder:
    check_address_space()
    check_study(study)
    reserve(RunError)
    run = RunFolder.create(runs, study.study.name)
    run.write_document("study.json", "study", study.resolved())
    run.write_text("study.toml", study.as_toml())
    run.write_record("host.json", "host", read_host())
    return run


def _alone(study: Study) -> Study:
    """The study without its alternatives, where nothing of them is measured."""
    return study.model_copy(update={"alternative": []})


@contextmanager
def _book(study: Study, run: RunFolder, progress: Progress | None) -> Iterator[Bookkeeping]:
    """The bench, with the target in the state that the study declares as treatment A; its cost noted at the end."""
    budget = Budget(study.measure.budget, study.measure.window)
    seed = random.SystemRandom().randrange(2**32)
    told = progress or Silent()
    bench = Bench(study, run, told.say)
    try:
        with bench:
            run.write_document(
                "bench.json", "bench", {"seed": seed, "version": bench.version, "axis_unit": bench.axis_unit}
            )
            _note_driver(run, bench, told)
            book = Bookkeeping(bench, budget, told, random.Random(seed))
            book.next_treatment("as given", bench.start_state)
            dry_run.check_alternatives(bench)
            try:
                yield book
            finally:
                run.write_record("conduct.json", "conduct", bench.conduct(budget.spent_s(), book.steps, book.repeated))
    finally:
        for outcome in bench.put_back:
            told.say(str(outcome))
        _note_standing(run, durable.failed(bench.put_back))


def _note_driver(run: RunFolder, bench: Bench, told: Progress) -> None:
    """Under which user the load driver runs belongs to the facts; where that is root, it is said at once, too."""
    host = run.host()
    run.write_record("host.json", "host", replace(host, facts={**host.facts, "load driver": str(bench.driver_user)}))
    if bench.driver_user.stays_root:
        told.say(f"The load driver runs as {bench.driver_user}.")


def _note_standing(run: RunFolder, standing: tuple[StandingChange, ...]) -> None:
    """What could not be put back belongs to how the run went, which is written before that."""
    noted = run.conduct()
    if standing and noted is not None:
        run.write_record("conduct.json", "conduct", replace(noted, standing=standing))


def _read_back(book: Bookkeeping, run: RunFolder, treatment: str) -> dict[str, SettingValue]:
    """Bring the target to a state, and keep what it really uses then."""
    effective = book.bench.use(treatment)
    run.append_line("effective.jsonl", "effective", Effective(treatment, effective))
    return effective


def _examine(
    book: Bookkeeping,
    number: int,
    treatment: str,
    state: TargetState,
    effective: dict[str, SettingValue],
    curve: Curve,
) -> Examined:
    return examine(
        book.of(treatment),
        number=number,
        treatment=treatment,
        state=state,
        effective=effective,
        curve=curve,
        target_kind=book.bench.study.target.kind,
        highest_level=book.bench.study.levels[-1],
        free_disk_bytes=book.bench.free_disk_bytes,
    )


@contextmanager
def _explaining(run: RunFolder, rounds: list[Round]) -> Iterator[None]:
    """Whatever ends the loop early, what was measured is written down first and the message says where."""
    try:
        yield
    except KeyboardInterrupt:
        report = _rescue(run, rounds)
        raise Interrupted(f"Stopped. {_put_back(run)}; nothing is left running.{report}") from None
    except UserError as error:
        report = _rescue(run, rounds)
        noted = run.conduct()
        standing = [] if noted is None else map(words.sentence, conduct_words.standing_sentences(noted.standing))
        error.details = "\n".join(part for part in (error.details, *standing, report.strip()) if part)
        raise
    except Exception as error:  # a fault of ours, or a machine that has no more of something
        error.add_note(_rescue(run, rounds).strip())
        raise


def _put_back(run: RunFolder) -> str:
    """Whether a run that was stopped has left something changed, in words."""
    if any(record.run == str(run.path.absolute()) for record in lists.read()):
        return "Not everything could be put back: `loadframe changes revert` tries again"
    return "Everything was reverted"


def _rescue(run: RunFolder, rounds: list[Round]) -> str:
    """A report of the finished steps; in words, where it is."""
    finished = len(run.steps())
    if not finished:
        return f"\nNo step had finished; the run folder is {run.path}."
    try:
        measured = measured_ladder(run) or measured_tuning(run)
        concluded = measured or write_down(run, rounds or partial(run), interrupted=True)
    except Exception as error:  # noqa: BLE001 - what has ended the loop matters more than what keeps a report away
        return f"\n{finished} finished steps are kept in {run.path} (no report of them: {error})."
    return f"\n{finished} finished steps are kept in {run.path}; their report: {concluded.report}"
