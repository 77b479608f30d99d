"""The verbs of data, measured or observed: curve, knee, cliff, capacity and scalability law; predict, what higher loads
will give, what saturates first, and how good such forecasts were; growth, how a load goes on as the database grows, and
where its memory ends."""

from functools import partial
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

import loadframe
from loadframe.cli.common import RUNS, Json, Runs, Sets, command, is_folder, measured, opened, show, size_of
from loadframe.cli.terminal import answer, emit, say
from loadframe.errors import SampleError, UsageError
from loadframe.formats.plain_numbers import LARGEST, finite
from loadframe.formats.said import words

if TYPE_CHECKING:
    from loadframe.model import Forecast, Observations, Observed
    from loadframe.runs.folder import RunFolder

UNIT = "units of load"
"""For a CSV file: what its load axis counts."""

LoadOf = Annotated[
    str | None,
    typer.Option("--load", metavar="SERIES", help="For production data: which column or series is the load."),
]
ThroughputOf = Annotated[
    str | None,
    typer.Option("--throughput", metavar="SERIES", help="Which is the throughput; counters become rates."),
]
ResponseOf = Annotated[
    str | None,
    typer.Option(
        "--response", metavar="SERIES", help="Which is the response time in seconds, for example A_sum / A_count."
    ),
]
ResponseIs = Annotated[str, typer.Option("--response-is", metavar="mean|p95", help="What of the response times it is.")]
UseOf = Annotated[
    list[str] | None,
    typer.Option("--use", metavar="NAME=SERIES", help="Which is the use of a resource, a share from 0 to 1."),
]
CountersOf = Annotated[
    list[str] | None,
    typer.Option("--counter", metavar="NAME", help="A series that counts up, if its name does not say."),
]
AlsoFrom = Annotated[
    list[str] | None, typer.Option("--also", metavar="FILE", help="A further file, joined by its times.")
]
TreatmentOf = Annotated[
    str | None, typer.Option("--treatment", help="For a run: the state of the target (A is the one it started in).")
]


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
) -> "RunFolder | Observations | Observed":
    """A run folder, or a file's contents. SampleError and UsageError for options of the other one, UsageError for a
    --use without a name, and for another --response-is."""
    from loadframe.formats.observed import named_series
    from loadframe.model import ObservedMapping

    if response_is not in ("mean", "p95"):
        raise UsageError(f"--response-is {words(response_is, 40)!r} is unknown", remedy="It is mean or p95.")
    mapping = ObservedMapping(
        load=load,
        throughput=throughput,
        response=response,
        use=named_series("--use", use or (), "Write it as --use cpu=SERIES."),
        counters=tuple(counters or ()),
        response_is="p95" if response_is == "p95" else "mean",
        axis="load",
    )
    if is_folder(place):
        if mapping.given or also:
            raise SampleError(f"{place} is a folder; a series of it cannot be named", remedy="Give a file.")
        return opened(Path(place))
    if treatment is not None:
        raise UsageError("--treatment is for run folders", remedy="Omit it.")
    return loadframe.read_data(place, mapping, also=also or [])


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
        float | None,
        typer.Option("--within-latency-p95-ms", metavar="MS", help="The latency objective for the capacity."),
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
        from loadframe.model import Observations, Observed

        if within_latency_p95_ms is not None and not 0 < within_latency_p95_ms < float("inf"):
            raise UsageError(
                f"--within-latency-p95-ms {within_latency_p95_ms:g} is not an objective",
                remedy="Give milliseconds above zero.",
            )
        match _data(data, treatment, load, throughput, response, response_is, use, counter, also):
            case Observed() as rows:
                learned = loadframe.learn(rows, within_latency_p95_ms=within_latency_p95_ms)
                show(as_json, loadframe.learned_json, partial(loadframe.render_learned, unit=UNIT), learned)
            case Observations() as levels:
                fitted = loadframe.fit_curve(levels, within_latency_p95_ms=within_latency_p95_ms)
                show(as_json, loadframe.curve_json, partial(loadframe.render_curve, unit=UNIT), fitted)
            case run:
                case = loadframe.conclude(run, within_latency_p95_ms=within_latency_p95_ms)
                fitted = case.state(treatment or "A").curve
                unit, quality, work = case.study.axis_unit, case.quality, case.study.work_unit
                to_text = partial(loadframe.render_curve, unit=unit, quality=quality, work=work)
                show(as_json, partial(loadframe.curve_json, quality=quality), to_text, fitted)


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
    treatment: TreatmentOf = None,
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
        match _data(data, treatment, load, throughput, response, response_is, use, counter, also):
            case Observed() as rows:
                forecast = loadframe.predict_observed(rows, loads, up_to=up_to, kind=kind)
            case Observations() as levels:
                forecast = loadframe.predict(levels, loads, up_to=up_to, kind=kind)
            case run:
                bench = run.bench()
                unit, work = bench.axis_unit, bench.work_unit
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
    return measured(quiet, lambda progress: loadframe.verify(forecast, declared, runs, progress=progress))


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


TIMES = {"k": 1e3, "M": 1e6, "G": 1e9}


def growth(
    data: Annotated[
        str,
        typer.Argument(
            metavar="RUN|CSV",
            help="A run over the axis entries or change_rate, or a CSV file of entries,seconds[,reads]; - is stdin.",
        ),
    ],
    at: Annotated[
        str | None, typer.Option("--at", metavar="N,..", help="The sizes to forecast, in entries: 10M,100M.")
    ] = None,
    up_to: Annotated[
        str | None,
        typer.Option("--up-to", metavar="N", help="Forecast from the load up to N entries, and score it at the rest."),
    ] = None,
    memory: Annotated[
        list[str] | None,
        typer.Option("--memory", metavar="NAME=SIZE", help="A memory of the database, for example buffer_pool=4GiB."),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option("--database", metavar="SIZE", help="The size of the database at the end of the load."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Forecast the rate and the time of a load at more entries, from one long load or loads of several sizes."""
    with command(as_json):
        from loadframe.model import Memories

        sizes = [_count(part, "--at") for part in at.split(",")] if at is not None else []
        limit = _count(up_to, "--up-to") if up_to is not None else None
        run = opened(Path(data)) if is_folder(data) else None
        if run is not None and run.declared().load.axis == "change_rate":  # of a change log: following is judged
            steps, followed = loadframe.following_of_run(run)
            show(as_json, loadframe.following_json, loadframe.render_following, steps, followed)
            return
        windows = loadframe.windows_of_run(run) if run is not None else loadframe.read_load(data)
        held = dict(_memory(text) for text in memory or [])
        if held and database is None:
            raise UsageError(
                "--memory alone does not tell how many entries it holds",
                remedy="Add --database SIZE, at the load's end.",
            )
        entry = (
            _size(database, "--database") / max(window.after for window in windows) if database is not None else None
        )
        forecast = loadframe.forecast_growth(windows, sizes, memories=Memories(held, entry), up_to=limit)
        show(as_json, loadframe.growth_json, loadframe.render_growth, forecast)


def _count(text: str, option: str) -> float:
    text = text.strip()
    times = TIMES.get(text[-1:], 1.0)
    value = finite(text.removesuffix(text[-1:]) if times > 1 else text)
    if value is None or not 1 <= value * times <= LARGEST:
        raise UsageError(
            f"{option} {words(text)!r} is no number of entries", remedy="For example 300k, 10M or 2500000."
        )
    return value * times


def _memory(text: str) -> tuple[str, float]:
    name, equals, size = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--memory {words(text)!r} is not NAME=SIZE", remedy="For example buffer_pool=4GiB.")
    return name, _size(size, "--memory", "buffer_pool=4GiB")


def _size(text: str, option: str, example: str = "4GiB") -> float:
    size = size_of(option, text, example)
    if size == 0:
        raise UsageError(f"{option} is 0", remedy="Leave it out, or give a size above zero.")
    return float(size)
