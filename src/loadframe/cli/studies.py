"""The verbs of a study file: investigate, measure, capacity and ladder carry one out; study schema|check."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

import loadframe
from loadframe.cli.common import PLAIN, RUNS, Details, Json, Live, Runs, Sets, command, duration_of, measured, tell
from loadframe.cli.executing import OverFleet, SideBySideOver, executor_of
from loadframe.cli.terminal import answer, emit
from loadframe.errors import UsageError
from loadframe.formats.json_text import write_json

if TYPE_CHECKING:
    from loadframe.model import LoadInterval

Result = TypeVar("Result")
StudyFile = Annotated[Path, typer.Argument(help="A study file (TOML).")]


def result_of(
    study: Path,
    overrides: list[str] | None,
    over: Path | None,
    as_json: bool,
    carry_out: Callable[..., Result],
    *,
    drives: bool = False,
    capacities: bool = False,
    live: bool = False,
    **options: Any,
) -> Result:
    """The result of a function of the Python API, with its options, for a study in a file. over, drives, capacities:
    see executor_of."""
    declared = loadframe.load_study(study, overrides or [])
    with executor_of(over, declared, drives=drives, capacities=capacities) as executor:
        carried_out = partial(carry_out, declared, executor=executor, **options)
        return measured(as_json, lambda progress: carried_out(progress=progress), live=live)


def investigate(
    study: StudyFile,
    overrides: Sets = None,
    runs: Runs = RUNS,
    live: Live = False,
    over: OverFleet = None,
    details: Details = False,
    as_json: Json = False,
) -> None:
    """Load the target until it bends, name the cause, change that one thing, prove the gain, and name the next
    limit."""
    with command(as_json, measures=True):
        carry_out = loadframe.investigate
        investigation = result_of(study, overrides, over, as_json, carry_out, drives=True, live=live, runs=runs)
        tell(investigation, as_json, details=details)


def measure(
    study: StudyFile,
    overrides: Sets = None,
    runs: Runs = RUNS,
    live: Live = False,
    over: OverFleet = None,
    as_json: Json = False,
) -> None:
    """Measure throughput and latency at each load level. Changes nothing."""
    with command(as_json, measures=True):
        measurement = result_of(study, overrides, over, as_json, loadframe.measure, drives=True, live=live, runs=runs)
        from loadframe.reporting import document as doc
        from loadframe.reporting import json_shapes, limits_report, verdict_words

        if as_json:
            shape = loadframe.curve_json(measurement.curve, quality=measurement.quality, answers=measurement.answers)
            warnings, clamped = [*shape["warnings"], *measurement.warnings], list(measurement.clamped)
            if measurement.drivers is not None:
                shape["drivers"] = json_shapes.json_object(json_shapes.fields_of(measurement.drivers))
            if measurement.fleet_limits:
                shape["fleet_limits"] = json_shapes.fleet_limits_json(measurement.fleet_limits)
            emit(
                {**shape, "warnings": warnings, "run": str(measurement.run), "silent_cuts": clamped},
                run=measurement.run,
            )
        else:
            more = (
                doc.listed("Drivers", map(verdict_words.drivers_sentence, filter(None, (measurement.drivers,)))),
                limits_report.of_hosts(measurement.fleet_limits),
                doc.listed("Silently clamped", measurement.clamped),
                doc.listed("Recording", measurement.warnings),
            )
            text = loadframe.render_curve(
                measurement.curve,
                unit=measurement.axis_unit,
                work=measurement.work_unit,
                quality=measurement.quality,
                answers=measurement.answers,
                more=more,
            )
            answer(text, run=measurement.run)
            answer(f"Run folder: {measurement.run}")


LONE_GUESS = 1.5
"""A guess without an interval is assumed right up to this factor."""


def capacity(
    study: Annotated[Path, typer.Argument(help="A study file (TOML) with an objective.")],
    hold: Annotated[
        str | None,
        typer.Option(
            "--hold", metavar="TIME", help="Total time for which the level must meet the objective, for example 60s."
        ),
    ] = None,
    guess: Annotated[
        str | None,
        typer.Option(
            "--guess", metavar="LOW..HIGH", help="The expected capacity: a load, or a forecast's 90 % interval."
        ),
    ] = None,
    overrides: Sets = None,
    runs: Runs = RUNS,
    over: SideBySideOver = None,
    as_json: Json = False,
) -> None:
    """Find the highest load that meets the objective, searching from below. Changes nothing."""
    with command(as_json, measures=True):
        outcome = result_of(
            study,
            overrides,
            over,
            as_json,
            loadframe.capacity,
            capacities=True,
            guess=None if guess is None else _interval(guess),
            hold_s=0.0 if hold is None else duration_of("--hold", hold, "60s"),
            runs=runs,
        )
        tell(outcome, as_json)


def _interval(text: str) -> "LoadInterval":
    from loadframe.model import LoadInterval
    from loadframe.study.load_tables import HIGHEST

    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:\.\.\s*(\d+(?:\.\d+)?)\s*)?", text)
    low = float(match[1]) if match else 0.0
    high = float(match[2]) if match and match[2] else low
    if not 0 < low <= high <= HIGHEST:
        raise UsageError(
            f"--guess {text!r} is neither a load nor an interval", remedy="For example --guess 500..700 or --guess 600."
        )
    if low == high:
        return LoadInterval(low, low / LONE_GUESS, low * LONE_GUESS)
    return LoadInterval((low * high) ** 0.5, low, high)


def ladder(
    study: Annotated[Path, typer.Argument(help="A study file (TOML) with one [[change]] per rung.")],
    keep_all: Annotated[
        bool, typer.Option("--keep-all", help="Keep every change, even those that make it worse or do nothing.")
    ] = False,
    overrides: Sets = None,
    runs: Runs = RUNS,
    over: SideBySideOver = None,
    as_json: Json = False,
) -> None:
    """Apply the study's changes one on top of the other, and measure what each one adds."""
    with command(as_json, measures=True):
        outcome = result_of(study, overrides, over, as_json, loadframe.ladder, runs=runs, keep_all=keep_all)
        tell(outcome, as_json)


app = typer.Typer(no_args_is_help=True, **PLAIN)


@app.command()
def schema(as_json: Json = False) -> None:
    """Print the JSON schema of a study."""
    with command(as_json):
        document = loadframe.Study.model_json_schema(by_alias=True)
        if as_json:
            emit({"schema": "loadframe.study-schema/1", "json_schema": document})
        else:
            answer(write_json(document, indent=2))


@app.command()
def check(study: StudyFile, overrides: Sets = None, as_json: Json = False) -> None:
    """Check a study and print it with all defaults filled in."""
    with command(as_json):
        from loadframe.bench.checking import check_study

        declared = loadframe.load_study(study, overrides or [])
        check_study(declared)
        resolved = declared.resolved()
        if as_json:
            emit({"schema": "loadframe.study/1", **resolved})
        else:
            answer(write_json(resolved, indent=2))
