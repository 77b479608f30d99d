"""loadframe predict RUN|FILE: what higher loads will give, what saturates first, and how good such forecasts were."""

from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

import loadframe
from loadframe.cli.common import (
    RUNS,
    AlsoFrom,
    CountersOf,
    Json,
    LoadOf,
    ResponseIs,
    ResponseOf,
    Runs,
    Sets,
    ThroughputOf,
    UseOf,
    command,
    mapping_of,
    run_or_data,
)
from loadframe.cli.terminal import answer, emit, say
from loadframe.errors import UsageError
from loadframe.formats.said import words

if TYPE_CHECKING:
    from loadframe.model import Forecast

KINDS = {"clients": "closed", "rate": "rate"}
UNIT = "units of load"


def predict(
    data: Annotated[
        str,
        typer.Argument(
            metavar="RUN|FILE",
            help="A run folder, a CSV file of load,throughput,util.NAME..., or production data as `curve` reads them; "
            "- is stdin.",
        ),
    ],
    at: Annotated[
        str | None, typer.Option("--at", metavar="L,..", help="The loads to forecast, for example 4,8,12.")
    ] = None,
    up_to: Annotated[
        float | None,
        typer.Option(
            "--up-to",
            metavar="LOAD",
            help="Forecast from the loads up to this one, and score the forecast at the others.",
        ),
    ] = None,
    load_is: Annotated[
        str | None,
        typer.Option("--load-is", metavar="clients|rate", help="What the load counts, if the data do not say."),
    ] = None,
    treatment: Annotated[
        str | None, typer.Option("--treatment", help="For a run: the state of the target (A is the one it started in).")
    ] = None,
    verify: Annotated[
        Path | None,
        typer.Option("--verify", metavar="STUDY", help="Measure the loads of --at, and score the forecast."),
    ] = None,
    load: LoadOf = None,
    throughput: ThroughputOf = None,
    response: ResponseOf = None,
    response_is: ResponseIs = "mean",
    use: UseOf = None,
    counter: CountersOf = None,
    also: AlsoFrom = None,
    overrides: Sets = None,
    runs: Runs = RUNS,
    as_json: Json = False,
) -> None:
    """Forecast throughput, latency and the first limit from measurements at low loads."""
    with command(as_json, measures=verify is not None):
        from loadframe.model import WORK, Observations, Observed

        loads = _loads(at)
        if load_is is not None and load_is not in KINDS:
            raise UsageError(f"--load-is {load_is!r} is unknown", remedy=f"It is one of: {', '.join(KINDS)}.")
        if verify is None and overrides:
            raise UsageError("--set changes a study, and no study was given", remedy="Omit it, or add --verify STUDY.")
        kind = cast(Literal["closed", "rate"] | None, KINDS.get(load_is or ""))
        unit, work = UNIT, WORK
        mapping = mapping_of(load, throughput, response, response_is, use, counter)
        match run_or_data(data, treatment, mapping, also):
            case Observed() as rows:
                forecast = loadframe.predict_observed(rows, loads, up_to=up_to, kind=kind)
            case Observations() as levels:
                forecast = loadframe.predict(levels, loads, up_to=up_to, kind=kind)
            case run:
                unit, work = run.bench().axis_unit, run.bench().work_unit
                forecast = loadframe.predict_run(run, loads, treatment=treatment or "A", up_to=up_to, kind=kind)
        where = None
        if verify is not None:
            forecast, where = _verified(forecast, verify, overrides or [], runs, as_json)
        calibration = loadframe.calibration()
        if as_json:
            shape = loadframe.forecast_json(forecast, calibration=calibration)
            emit(shape if where is None else {**shape, "run": str(where)}, run=where)
        else:
            answer(loadframe.render_forecast(forecast, unit=unit, calibration=calibration, work=work), run=where)
            if where is not None:
                answer(f"Run folder: {where}")


def _verified(
    forecast: "Forecast", study: Path, overrides: list[str], runs: Path, quiet: bool
) -> "tuple[Forecast, Path | None]":
    if forecast.refused is not None:
        say("There is no forecast to verify; nothing was measured.")
        return forecast, None
    levels = ",".join(f"{point.load:g}" for point in forecast.at)
    declared = loadframe.load_study(study, [*overrides, f"load.levels=[{levels}]"])
    from loadframe.cli.progress import shown

    with shown(quiet=quiet) as progress:
        scored, run = loadframe.verify(forecast, declared, runs, progress=progress)
    return scored, run


def _loads(text: str | None) -> list[float]:
    if text is None:
        return []
    try:
        loads = [float(part) for part in text.split(",")]
    except ValueError:
        loads = [inf]
    if not all(isfinite(load) for load in loads):
        raise UsageError(f"--at {words(text)!r} is not a list of loads", remedy="For example --at 4,8,12.")
    return loads
