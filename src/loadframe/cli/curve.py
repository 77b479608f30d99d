"""loadframe curve RUN|FILE: knee, cliff, capacity and scalability law from data, measured or observed."""

from functools import partial
from typing import Annotated

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
    mapping_of,
    run_or_data,
    show,
)
from loadframe.errors import UsageError

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
        from loadframe.model import Observations, Observed

        if within_latency_p95_ms is not None and not 0 < within_latency_p95_ms < float("inf"):
            raise UsageError(
                f"--within-latency-p95-ms {within_latency_p95_ms:g} is not an objective",
                remedy="Give milliseconds above zero.",
            )
        mapping = mapping_of(load, throughput, response, response_is, use, counter)
        match run_or_data(data, treatment, mapping, also):
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
