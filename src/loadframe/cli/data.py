"""The verbs of what was measured or observed: report, curve and predict. An extension reads production data."""

import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, cast

import typer

import loadframe
from loadframe.cli.common import RUNS, Details, Json, Runs, Sets, command, is_folder, opened, progress_of, show, tell
from loadframe.cli.terminal import answer, deliver, emit, say
from loadframe.entry_points import DATA_GROUP, not_installed, registered
from loadframe.errors import MissingTool, UsageError
from loadframe.formats.plain_numbers import finite
from loadframe.formats.said import words

if TYPE_CHECKING:
    from loadframe.model import Forecast, Observations
    from loadframe.runs.folder import RunFolder


class Form(StrEnum):
    """Of a report for people."""

    TEXT, MARKDOWN, PAGE = "text", "md", "html"


def report(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    form: Annotated[
        Form,
        typer.Option(
            "--format", help="How it is printed: md is Markdown for a ticket or a pull request; html the page."
        ),
    ] = Form.TEXT,
    opens: Annotated[bool, typer.Option("--open", help="Also show the page in a browser.")] = False,
    speedscope: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the sampled stacks, for https://www.speedscope.app.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also write every figure, as SVG and PNG, into this folder.")
    ] = None,
    details: Details = False,
    as_json: Json = False,
) -> None:
    """Write a run's report.html again and print what it says."""
    with command(as_json):
        from loadframe.reporting.document import About
        from loadframe.runs.folder import REPORT

        if as_json and form is not Form.TEXT:
            raise UsageError(f"--json prints one object, and --format {form} another form", remedy="Leave out one.")
        folder = opened(run)
        if speedscope is not None:
            loadframe.write_speedscope(folder, speedscope)
        case = loadframe.conclude(folder)
        outcome, page = loadframe.write_answer(folder, case), folder.place(REPORT)
        if figures is not None:
            loadframe.write_figures(outcome, figures)
        match form:
            case Form.PAGE:
                deliver(folder.report())
            case Form.MARKDOWN:
                about = About(str(run), case.study, folder.host())
                answer(loadframe.render_markdown(outcome, details=details, about=about), run=run)
            case Form.TEXT:
                tell(outcome, as_json, details=details)
        if opens and not webbrowser.open_new_tab(page.absolute().as_uri()):
            raise MissingTool("No browser can be started here", remedy=f"Open {page} on a machine that has one.")


UNIT = "units of load"
"""For a CSV file: what its load axis counts."""
PRODUCTION = "production"
REMEDY = "Give a run folder, CSV, the JSON of a Prometheus range query, or what `sadf -j` or `sadf -d` writes."

LoadOf = Annotated[
    str | None, typer.Option(metavar="SERIES", help="For production data: which column or series is the load.")
]
ThroughputOf = Annotated[
    str | None, typer.Option(metavar="SERIES", help="Which is the throughput; counters become rates.")
]
ResponseOf = Annotated[
    str | None,
    typer.Option(metavar="SERIES", help="Which is the response time in seconds, for example A_sum / A_count."),
]
ResponseIs = Annotated[str, typer.Option(metavar="mean|p95", help="What of the response times it is.")]
UseOf = Annotated[
    list[str] | None, typer.Option(metavar="NAME=SERIES", help="Which is the use of a resource, a share from 0 to 1.")
]
CountersOf = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="A series that counts up, if its name does not say.")
]
AlsoFrom = Annotated[list[str] | None, typer.Option(metavar="FILE", help="A further file, joined by its times.")]
TreatmentOf = Annotated[
    str | None, typer.Option(help="For a run: the state of the target (A is the one it started in).")
]


@dataclass(frozen=True, slots=True)
class SeriesOptions:
    """Which series of production data is what (docs/observed.md)."""

    load: str | None
    throughput: str | None
    response: str | None
    response_is: Literal["mean", "p95"]
    use: tuple[str, ...]
    counters: tuple[str, ...]

    @property
    def given(self) -> bool:
        return bool(self.load or self.throughput or self.response or self.use or self.counters)


class Production(Protocol):
    """Made by an entry point of `loadframe.data` from texts with their names, and SeriesOptions."""

    def curve(self, within_latency_p95_ms: float | None, unit: str) -> tuple[dict[str, Any], str]:
        """As JSON and as text. unit: of the load."""

    def predict(
        self, at: Sequence[float], up_to: float | None, kind: Literal["closed", "rate"] | None
    ) -> "Forecast": ...


def _data(
    place: str,
    treatment: str | None,
    load: str | None,
    throughput: str | None,
    response: str | None,
    response_is: str,
    use: list[str] | None,
    counters: list[str] | None,
    also: list[str] | None,
) -> "RunFolder | Observations | Production":
    """UsageError for options of the other one and for another --response-is, MissingTool for production data where
    nothing reads them."""
    from loadframe.formats.csv_tables import is_in_time_order, name_of, parse_observations, read_text

    if response_is not in ("mean", "p95"):
        raise UsageError(f"--response-is {words(response_is, 40)!r} is unknown", remedy="It is mean or p95.")
    statistic: Literal["mean", "p95"] = "p95" if response_is == "p95" else "mean"
    series = SeriesOptions(load, throughput, response, statistic, tuple(use or ()), tuple(counters or ()))
    if is_folder(place):
        if series.given or also:
            raise UsageError(f"{place} is a folder; a series of it cannot be named", remedy="Give a file.")
        return opened(Path(place))
    if treatment is not None:
        raise UsageError("--treatment is for run folders", remedy="Omit it.")
    files = [(read_text(file, remedy=REMEDY), name_of(file)) for file in (place, *(also or ()))]
    if not (series.given or also or is_in_time_order(files[0][0])):
        return parse_observations(*files[0])
    production: Callable[..., Production] | None = registered(DATA_GROUP, PRODUCTION)
    if production is None:
        raise not_installed(DATA_GROUP, PRODUCTION, f"Production data ({name_of(place)})")
    return production(files, series)


def curve(
    data: Annotated[
        str,
        typer.Argument(
            metavar="RUN|FILE",
            help="A run folder, a CSV file of load,throughput, or production data: CSV with times, the JSON of a "
            "Prometheus range query, sysstat's; - is stdin.",
        ),
    ],
    treatment: TreatmentOf = None,
    within_latency_p95_ms: Annotated[
        float | None, typer.Option(metavar="MS", help="The latency objective for the capacity.")
    ] = None,
    load: LoadOf = None,
    throughput: ThroughputOf = None,
    response: ResponseOf = None,
    response_is: ResponseIs = "mean",
    use: UseOf = None,
    counter: CountersOf = None,
    also: AlsoFrom = None,
    as_json: Json = False,
) -> None:
    """Compute a curve from a run's steps, from your own measurements, or from production data."""
    with command(as_json):
        from loadframe.model import Observations
        from loadframe.runs.folder import RunFolder

        if within_latency_p95_ms is not None and not 0 < within_latency_p95_ms < inf:
            raise UsageError(
                f"--within-latency-p95-ms {within_latency_p95_ms:g} is not an objective",
                remedy="Give milliseconds above zero.",
            )
        match _data(data, treatment, load, throughput, response, response_is, use, counter, also):
            case Observations() as levels:
                fitted = loadframe.fit_curve(levels, within_latency_p95_ms=within_latency_p95_ms)
                show(as_json, loadframe.curve_json, partial(loadframe.render_curve, unit=UNIT), fitted)
            case RunFolder() as run:
                case = loadframe.conclude(run, within_latency_p95_ms=within_latency_p95_ms)
                unit, quality, work = case.study.axis_unit, case.quality, case.study.work_unit
                to_text = partial(loadframe.render_curve, unit=unit, quality=quality, work=work)
                show(
                    as_json, partial(loadframe.curve_json, quality=quality), to_text, case.state(treatment or "A").curve
                )
            case production:
                shape, text = production.curve(within_latency_p95_ms, UNIT)
                show(as_json, lambda: shape, lambda: text)


KINDS = {"clients": "closed", "rate": "rate"}


def predict(
    data: Annotated[
        str,
        typer.Argument(
            metavar="RUN|FILE",
            help="A run folder, a CSV file of load,throughput,util.NAME..., or production data as `curve` reads them; "
            "- is stdin.",
        ),
    ],
    at: Annotated[str | None, typer.Option(metavar="L,..", help="The loads to forecast, for example 4,8,12.")] = None,
    up_to: Annotated[
        float | None,
        typer.Option(
            metavar="LOAD", help="Forecast from the loads up to this one, and score the forecast at the others."
        ),
    ] = None,
    load_is: Annotated[
        str | None, typer.Option(metavar="clients|rate", help="What the load counts, if the data do not say.")
    ] = None,
    treatment: TreatmentOf = None,
    verify: Annotated[
        Path | None, typer.Option(metavar="STUDY", help="Measure the loads of --at, and score the forecast.")
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
        from loadframe.model import WORK, Observations
        from loadframe.runs.folder import RunFolder

        loads = _loads(at)
        if load_is is not None and load_is not in KINDS:
            raise UsageError(f"--load-is {load_is!r} is unknown", remedy=f"It is one of: {', '.join(KINDS)}.")
        if verify is None and overrides:
            raise UsageError("--set changes a study, and no study was given", remedy="Omit it, or add --verify STUDY.")
        kind = cast(Literal["closed", "rate"] | None, KINDS.get(load_is or ""))
        unit, work = UNIT, WORK
        match _data(data, treatment, load, throughput, response, response_is, use, counter, also):
            case Observations() as levels:
                forecast = loadframe.predict(levels, loads, up_to=up_to, kind=kind)
            case RunFolder() as run:
                bench = run.bench()
                unit, work = bench.axis_unit, bench.work_unit
                forecast = loadframe.predict_run(run, loads, treatment=treatment or "A", up_to=up_to, kind=kind)
            case production:
                forecast = production.predict(loads, up_to, kind)
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
    with progress_of(quiet) as progress:
        return loadframe.verify(forecast, declared, runs, progress=progress)


def _loads(text: str | None) -> list[float]:
    if text is None:
        return []
    loads = [finite(part) for part in text.split(",")]
    known = [load for load in loads if load is not None]
    if len(known) < len(loads):
        raise UsageError(f"--at {words(text)!r} is not a list of loads", remedy="For example --at 4,8,12.")
    return known
