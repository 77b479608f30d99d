"""The verbs that measure: investigate, measure, capacity and ladder; limits; and study schema|check."""

import re
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

import loadframe
from loadframe.cli.common import (
    PLAIN,
    RUNS,
    Details,
    Json,
    Live,
    Runs,
    Sets,
    command,
    duration_of,
    progress_of,
    show,
    tell,
)
from loadframe.cli.terminal import answer, emit, say
from loadframe.entry_points import EXECUTORS_GROUP, not_installed, registered
from loadframe.errors import SampleError, UsageError
from loadframe.formats.json_text import write_json
from loadframe.formats.said import words

if TYPE_CHECKING:
    from loadframe.model import LoadInterval
    from loadframe.study import Study

Result = TypeVar("Result")
StudyFile = Annotated[Path, typer.Argument(help="A study file (TOML).")]
OverFleet = Annotated[
    Path | None, typer.Option("--fleet", metavar="FILE", help="Let the drivers of this fleet make the load.")
]
SideBySideOver = Annotated[
    Path | None, typer.Option("--fleet", metavar="FILE", help="Measure side by side on the hosts of this fleet.")
]


def result_of(
    carry_out: Callable[..., Result],
    study: "Study",
    as_json: bool,
    fleet: Path | None = None,
    *,
    drives: bool = False,
    capacities: bool = False,
    live: bool = False,
    **options: Any,
) -> Result:
    """The result of carry_out, on this machine, or on the hosts of the fleet in this file, which drive the steps of one
    bench (drives), or take whole trials side by side (capacities: searches with the study's alternatives). MissingTool,
    StudyError."""
    from loadframe.experiments.frame import HERE

    with ExitStack() as stack:
        executor = HERE
        if fleet is not None:
            if (over := registered(EXECUTORS_GROUP, "fleet")) is None:
                raise not_installed(EXECUTORS_GROUP, "fleet", "--fleet")
            executor = stack.enter_context(over(fleet, study, say, drives=drives, capacities=capacities))
        progress = stack.enter_context(progress_of(as_json, live=live))
        return carry_out(study, executor=executor, progress=progress, **options)


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
        declared = loadframe.load_study(study, overrides or [])
        outcome = result_of(loadframe.investigate, declared, as_json, over, drives=True, live=live, runs=runs)
        tell(outcome, as_json, details=details)


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
        declared = loadframe.load_study(study, overrides or [])
        measurement = result_of(loadframe.measure, declared, as_json, over, drives=True, live=live, runs=runs)
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
        typer.Option(metavar="TIME", help="Total time for which the level must meet the objective, for example 60s."),
    ] = None,
    guess: Annotated[
        str | None,
        typer.Option(metavar="LOW..HIGH", help="The expected capacity: a load, or a forecast's 90 % interval."),
    ] = None,
    overrides: Sets = None,
    runs: Runs = RUNS,
    over: SideBySideOver = None,
    as_json: Json = False,
) -> None:
    """Find the highest load that meets the objective, searching from below. Changes nothing."""
    with command(as_json, measures=True):
        declared = loadframe.load_study(study, overrides or [])
        expected = None if guess is None else _interval(guess)
        hold_s = 0.0 if hold is None else duration_of("--hold", hold, "60s")
        search = partial(loadframe.capacity, guess=expected, hold_s=hold_s)
        tell(result_of(search, declared, as_json, over, capacities=True, runs=runs), as_json)


def _interval(text: str) -> "LoadInterval":
    from loadframe.model import LoadInterval
    from loadframe.study.load_tables import HIGHEST

    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:\.\.\s*(\d+(?:\.\d+)?)\s*)?", text)
    low = float(match[1]) if match else 0.0
    high = float(match[2]) if match and match[2] else low
    if not 0 < low <= high <= HIGHEST:
        remedy = "For example --guess 500..700 or --guess 600."
        raise UsageError(f"--guess {text!r} is neither a load nor an interval", remedy=remedy)
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
        declared = loadframe.load_study(study, overrides or [])
        tell(result_of(loadframe.ladder, declared, as_json, over, runs=runs, keep_all=keep_all), as_json)


def limits(
    pid: Annotated[int | None, typer.Option(metavar="P", help="The pid of a process on this machine.")] = None,
    target: Annotated[
        Path | None, typer.Option(metavar="STUDY", help="A study; its target is started for the reading.")
    ] = None,
    attach: Annotated[
        str | None,
        typer.Option(
            metavar="KIND:ADDRESS",
            help="A running server: mariadb:SOCKET, postgres:SOCKET_DIR, or KIND:HOST:PORT. It is only read.",
        ),
    ] = None,
    option_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The account for --attach, in section [client] or [NAME].")
    ] = None,
    user: Annotated[
        str, typer.Option(help="The account's name. The password comes from the file, MYSQL_PWD or PGPASSWORD.")
    ] = "",
    over: Annotated[
        str | None, typer.Option(metavar="TIME", help="Watch for this long, for example 10m, and say what runs out.")
    ] = None,
    stages: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="A file in which a pipeline prints what its stages do.")
    ] = None,
    overrides: Sets = None,
    as_json: Json = False,
) -> None:
    """Show every limit and its use for a process, a server, a study's target, or this machine."""
    with command(as_json, measures=target is not None):
        if target is not None and (pid is not None or attach is not None):
            raise typer.BadParameter("--target starts its own server: omit --pid and --attach")
        if attach is None and (option_file is not None or user):
            raise typer.BadParameter("--option-file and --user belong to --attach")
        if target is None and overrides:
            raise typer.BadParameter("--set belongs to --target")
        for file in stages or ():
            if not file.is_file():
                raise SampleError(
                    f"--stages {words(file, 80)} is no file", remedy="Name what the pipeline prints, written to a file."
                )
        study = loadframe.load_study(target, overrides or []) if target is not None else None
        over_s = None if over is None else duration_of("--over", over, "10m")
        if over_s is not None and over_s < 1:
            raise UsageError(f"--over {over} is too short to see a change", remedy="Watch for at least 1s.")
        with progress_of(as_json) as progress:
            ledger = loadframe.limits(
                pid=pid,
                study=study,
                server=attach,
                option_file=option_file,
                user=user,
                over_s=over_s,
                stages=stages or (),
                progress=progress if over_s is not None else None,
            )
        show(as_json, loadframe.ledger_json, loadframe.render_limits, ledger)


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
