"""The loop: measure, name the cause, change one thing, prove the gain, name the next limit, write it down; and the
other verbs that measure. What a run folder says: experiments.reading."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from loadframe.analysis.disturbance import is_disturbed
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.errors import StudyError
from loadframe.experiments import answer_kinds, climbing, comparing, forecasting, searching
from loadframe.experiments.climbing import Climbed, LadderStates, climb
from loadframe.experiments.examination import clamped_in
from loadframe.experiments.frame import HERE, Executor, alone, looked_at, new_run, on_bench, profiled, read_back
from loadframe.experiments.growing_costs import measure_after_pause, restart_confirms
from loadframe.experiments.profiling import profile_after
from loadframe.experiments.reading import conclude, open_run
from loadframe.experiments.side_by_side import declare, measure_side_by_side, one_of_each_kind, try_restarts
from loadframe.experiments.stopping import concluding
from loadframe.experiments.sweep import curve_of, measure_block, sweep
from loadframe.experiments.trials import prove_total, try_remedies
from loadframe.experiments.writing import finish, hosts_of, partial, write_down
from loadframe.model import (
    WORK,
    AnswersCompared,
    Capacity,
    Comparison,
    Curve,
    FleetDrivers,
    FleetLimit,
    Forecast,
    Investigation,
    Ladder,
    LoadInterval,
    Round,
    RunQuality,
    Verdict,
)
from loadframe.prediction import resources
from loadframe.prediction.forecasting import came, score
from loadframe.progress import Progress
from loadframe.reporting import answers, words
from loadframe.reporting.json_shapes import comparison_json
from loadframe.study import Study

MOST_ROUNDS = 6


@dataclass(frozen=True, slots=True)
class Measurement:
    """warnings: what of the recording is missing; those of the curve are with it. answers: of the target, next to
    programs that report the same. drivers: all hosts that drove against fewer of them. fleet_limits: of each host of a
    fleet, and of its links."""

    run: Path
    curve: Curve
    axis_unit: str = ""
    work_unit: str = WORK
    clamped: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    quality: RunQuality | None = None
    answers: tuple[AnswersCompared, ...] = ()
    drivers: FleetDrivers | None = None
    fleet_limits: tuple[FleetLimit, ...] = ()


def investigate(
    study: Study, runs: Path, *, progress: Progress | None = None, executor: Executor = HERE
) -> Investigation:
    """The whole loop. executor: where steps are taken. UserError where the study cannot be carried out, Interrupted
    where the user stopped it; what was measured until then is in the run folder either way, with a report of it. Where
    the target does not recover from a step, what was measured before is concluded from."""
    run = new_run(study, runs, executor)
    rounds: list[Round] = []
    with on_bench(study, run, progress, executor) as book:
        book.washes = True
        treatment, state = "A", book.bench.start_state
        already: set[str] = set()

        def note(round_: Round) -> None:
            """Nothing that was proved is lost, whatever happens next."""
            rounds[round_.number - 1 :] = [round_]
            run.save_rounds(rounds)

        with concluding(book):
            measure_side_by_side(book, run, declare(book))
            for number in range(1, MOST_ROUNDS + 1):
                effective = read_back(book, treatment)
                curve = first_sweep(book, treatment) if number == 1 else sweep(book, treatment, round_number=number)
                paused = number == 1 and measure_after_pause(book, treatment)
                curve = curve_of(book.steps, study, treatment) if paused else curve
                examined = looked_at(book, number, treatment, state, effective, curve)
                note(examined.round)
                if number == 1:
                    first = examined = restart_confirms(book, profiled(book, examined), paused=paused)
                    note(examined.round)
                    drivers = executor.compare_drivers(book, treatment, curve)
                    if drivers is not None and drivers.limit_the_curve:
                        break
                tried = try_remedies(book, examined, already, note)
                if tried.kept is None:
                    break
                treatment, state = tried.kept
            prove_total(book, rounds, treatment)
            profile_after(book, first, treatment)
            try_restarts(book, run, one_of_each_kind(run))
    run.close()
    return write_down(run, rounds or partial(run))


def measure(study: Study, runs: Path, *, progress: Progress | None = None, executor: Executor = HERE) -> Measurement:
    """The study's curve; nothing is changed. Raises as `investigate` does."""
    run = new_run(study, runs, executor)
    with on_bench(alone(study), run, progress, executor) as book:
        book.tries_remedies = False
        effective = read_back(book, "A")
        curve = first_sweep(book, "A")
        clamped = clamped_in(book.bench.start_state, effective)
        drivers = executor.compare_drivers(book, "A", curve)
    end, hosts = finish(run), hosts_of(run)
    others = [f"{finding.title}: {finding.explanation}" for finding in hosts.others]
    fell = [said] if (said := answers.stop_sentence(run.stop(), run.bench().axis_unit)) else []
    run.close()
    curve = conclude(run).state("A").curve  # also with the steps of fewer drivers
    return Measurement(
        run.path, curve, end.study.axis_unit, end.study.work_unit, clamped,
        (*fell, *end.warnings, *others, *hosts.missing), end.quality, end.answers, drivers, hosts.limits,
    )  # fmt: skip


def compare(
    study: Study,
    runs: Path,
    *,
    enough: Callable[[Verdict], bool] = attrgetter("decided"),
    progress: Progress | None = None,
) -> list[Comparison]:
    """Each alternative is measured in the same blocks as its target, until the verdict is `enough` or blocks or budget
    are used up. StudyError where there is none; raises as `investigate` does."""
    if not study.alternative:
        raise StudyError(
            f"the study {study.study.name} has no alternative to compare with",
            remedy="Add an [[alternative]] with a name and target.settings, or give two runs or CSV files.",
        )
    run = new_run(study, runs)
    with on_bench(study, run, progress) as book:
        book.warms = book.washes = True
        judged = comparing.alternatives(book, enough=enough)
    end = finish(run)
    comparisons = [replace(comparison, run=end.run, notes=end.notes) for comparison in judged]
    run.write_record(
        "verdicts.json", "verdicts", {"alternatives": [comparison_json([comparison]) for comparison in comparisons]}
    )
    run.close()
    return comparisons


def ladder(
    study: Study, runs: Path, *, keep_all: bool = False, progress: Progress | None = None, executor: Executor = HERE
) -> Ladder:
    """The study's changes in its order, each against the state before it, and what is kept of them as a whole. Changes
    that are not proven to be better are reverted, but with keep_all. executor: takes the blocks. StudyError where the
    study has none; raises as `investigate` does."""
    if not study.change:
        raise StudyError(
            f"the study {study.study.name} has no change to measure",
            remedy="Add a [[change]] with a name and target.settings for each rung, in order.",
        )
    run = new_run(study, runs)
    with on_bench(alone(study), run, progress) as book:
        book.warms = True
        states = LadderStates(book)
        climbing.check_changes(book.bench, states)
        notes: list[str] = []

        def note(climbed: Climbed) -> None:
            """As in `investigate`."""
            whole = replace(climbed, missing=tuple(dict.fromkeys((*climbed.missing, *notes))))
            answer_kinds.save_ladder(run, whole, keeps_all=keep_all)

        note(Climbed(()))
        executor.begin_blocks(book, run, states, notes)
        climbed = climb(book, states, keep_all=keep_all, note=note)
        top = states.name(climbed.kept)
        cut = clamped_in(states.of(climbed.kept), read_back(book, top))
        note(replace(climbed, missing=(*climbed.missing, *map(words.sentence, cut))))
    run.close()
    return answer_kinds.LADDER.write(run)


def verify(forecast: Forecast, study: Study, runs: Path, *, progress: Progress | None = None) -> tuple[Forecast, Path]:
    """A forecast scored by measuring the study's levels, and the run folder of that. Raises as `investigate` does."""
    measured = measure(study, runs, progress=progress)
    steps = conclude(open_run(measured.run)).state("A").steps
    rows = resources.observe(steps, name=str(measured.run), axis=study.load.axis).rows
    return forecasting.remember(score(forecast, rows)), measured.run


def capacity(
    study: Study,
    runs: Path,
    *,
    hold_s: float = 0.0,
    guess: LoadInterval | None = None,
    progress: Progress | None = None,
    executor: Executor = HERE,
) -> Capacity:
    """The highest load of the study's axis that meets its objective, to the study's precision; nothing is changed.
    hold_s: the level that is shown to meet must have met for so long in all. guess: where a forecast expects it, with
    its 90 % interval. executor: a fleet's searches it with the settings of the alternatives, too. StudyError without an
    objective or a range; raises as `investigate` does."""
    objective, settings = searching.objective_of(study), searching.settings_of(study, hold_s=hold_s, guess=guess)
    run = new_run(study, runs)
    with on_bench(alone(study), run, progress) as book:
        book.tries_remedies = False
        read_back(book, "A")
        highest = searching.find(book, settings, objective)
        highest = executor.capacities(book, run, study, highest)
    end = finish(run)
    answer_kinds.CAPACITY.save(run, replace(highest, warnings=(*highest.warnings, *end.notes)))
    highest = answer_kinds.CAPACITY.write(run, end)
    run.close()
    return highest


# --- start small and predict: the low levels, a forecast of the others before they are measured, its score ---

FILE, SCHEMA = "forecast.json", "forecast-record"
MOST_TIMES = 2
"""While others use the machine, the low levels are measured in up to this many times the study's fewest blocks."""


def first_sweep(book: Bookkeeping, treatment: str) -> Curve:
    """The first curve; if the study asks for it, forecast from the low levels and scored by the others."""
    up_to = book.bench.study.load.forecast_up_to
    if up_to is None:
        return sweep(book, treatment, round_number=1)
    forecast = _foretell(book, treatment, up_to)
    curve, run = sweep(book, treatment, round_number=1), book.bench.run
    measured = resources.observe(book.of(treatment), name=str(run.path), axis=book.bench.study.load.axis)
    beyond = [row for row in measured.rows if row.load > forecast.measured[-1]]
    scored = forecasting.remember(score(forecast, beyond))
    run.write_record(FILE, SCHEMA, came(scored, measured, curve))
    return curve


def _foretell(book: Bookkeeping, treatment: str, up_to: float) -> Forecast:
    study = book.bench.study
    low = [level for level in study.levels if level <= up_to]
    blocks = study.measure.blocks.min
    book.progress.phase(f"measuring the {len(low)} levels to forecast from", len(low) * blocks)
    for block in range(1, MOST_TIMES * blocks + 1):
        steps = book.of(treatment)
        calm = [step.level for step in steps if not is_disturbed(step, steps)]
        enough = min(calm.count(level) for level in low) >= blocks
        if block > blocks and (enough or not book.budget.affords(study.levels)):
            break
        measure_block(book, treatment, low, block, round_number=1)
    asked = [level for level in study.levels if level > up_to]
    forecast = forecasting.predict_run(book.bench.run, asked, treatment=treatment, ahead=True)
    book.bench.run.write_record(FILE, SCHEMA, forecast)
    return forecast
