"""loadframe curve RUN|FILE: knee, cliff, capacity and scalability law from data, measured or observed."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import loadframe
from loadframe.cli.common import (
    AlsoFrom,
    CountersOf,
    Json,
    LoadOf,
    ResponseIs,
    ResponseOf,
    ThroughputOf,
    UseOf,
    command,
    is_folder,
    mapping_of,
    opened,
    show,
)
from loadframe.errors import SampleError, UsageError

if TYPE_CHECKING:
    from loadframe.model import ObservedMapping

UNIT = "units of load"
"""For a CSV file: what its load axis counts."""


def curve(
    data: Annotated[
        str,
        typer.Argument(
            metavar="RUN|FILE",
            help="A run folder, a CSV file of load,throughput, or production data: CSV with times, the JSON of a "
            "Prometheus range query, sysstat's; - is stdin.",
        ),
    ],
    treatment: Annotated[
        str | None, typer.Option("--treatment", help="For a run: the state of the target (A is the one it started in).")
    ] = None,
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
        if within_latency_p95_ms is not None and not 0 < within_latency_p95_ms < float("inf"):
            raise UsageError(
                f"--within-latency-p95-ms {within_latency_p95_ms:g} is not an objective",
                remedy="Give milliseconds above zero.",
            )
        mapping = mapping_of(load, throughput, response, response_is, use, counter)
        if is_folder(data):
            if mapping.given or also:
                raise SampleError(f"{data} is a folder; a series of it cannot be named", remedy="Give a file.")
            _of_run(Path(data), treatment or "A", within_latency_p95_ms, as_json)
        elif treatment is not None:
            raise UsageError("--treatment is for run folders", remedy="Omit it.")
        else:
            _of_file(data, mapping, also or [], within_latency_p95_ms, as_json)


def _of_file(
    place: str, mapping: "ObservedMapping", also: list[str], within_latency_p95_ms: float | None, as_json: bool
) -> None:
    from loadframe.model import Observed

    read = loadframe.read_data(place, mapping, also=also)
    if isinstance(read, Observed):
        learned = loadframe.learn(read, within_latency_p95_ms=within_latency_p95_ms)
        show(as_json, loadframe.learned_json, partial(loadframe.render_learned, unit=UNIT), learned)
        return
    found = loadframe.fit_curve(read, within_latency_p95_ms=within_latency_p95_ms)
    show(as_json, loadframe.curve_json, partial(loadframe.render_curve, unit=UNIT), found)


def _of_run(run: Path, treatment: str, within_latency_p95_ms: float | None, as_json: bool) -> None:
    folder = opened(run)
    case = loadframe.conclude(folder, within_latency_p95_ms=within_latency_p95_ms)
    found = case.state(treatment).curve
    to_json = partial(loadframe.curve_json, quality=case.quality)
    unit, work = case.study.axis_unit, case.study.work_unit
    show(as_json, to_json, partial(loadframe.render_curve, unit=unit, quality=case.quality, work=work), found)
