"""loadframe curve RUN|CSV: knee, cliff, capacity and scalability law from data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import loadframe
from loadframe.cli.common import Json, command, is_folder, opened
from loadframe.cli.terminal import answer, emit
from loadframe.errors import RunError, SampleError

UNIT = "units of load"
"""For a CSV file: what its load axis counts."""


def curve(
    data: Annotated[
        str, typer.Argument(metavar="RUN|CSV", help="A run folder, or a CSV file of load,throughput; - is stdin.")
    ],
    treatment: Annotated[
        str | None, typer.Option("--treatment", help="For a run: the state of the target (A is the one it started in).")
    ] = None,
    within_latency_p95_ms: Annotated[
        float | None,
        typer.Option("--within-latency-p95-ms", metavar="MS", help="The latency objective for the capacity."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compute a curve from a run's steps, or from your own measurements."""
    with command(as_json):
        if within_latency_p95_ms is not None and not 0 < within_latency_p95_ms < float("inf"):
            raise SampleError(
                f"--within-latency-p95-ms {within_latency_p95_ms:g} is not an objective",
                remedy="Give milliseconds above zero.",
            )
        if is_folder(data):
            _of_run(Path(data), treatment or "A", within_latency_p95_ms, as_json)
        elif treatment is not None:
            raise SampleError("--treatment is for run folders", remedy="Omit it.")
        else:
            _of_csv(data, within_latency_p95_ms, as_json)


def _of_csv(place: str, within_latency_p95_ms: float | None, as_json: bool) -> None:
    found = loadframe.fit_curve(loadframe.read_observations(place), within_latency_p95_ms=within_latency_p95_ms)
    if as_json:
        emit(loadframe.curve_json(found))
    else:
        answer(loadframe.render_curve(found, unit=UNIT))


def _of_run(run: Path, treatment: str, within_latency_p95_ms: float | None, as_json: bool) -> None:
    folder = opened(run)
    curves = loadframe.curves(folder, within_latency_p95_ms=within_latency_p95_ms)
    if treatment not in curves:
        raise RunError(
            f"{run} has no treatment {treatment!r}", remedy=f"It has: {', '.join(curves)}. Choose with --treatment."
        )
    quality = loadframe.quality(folder)
    if as_json:
        emit(loadframe.curve_json(curves[treatment], quality=quality))
    else:
        answer(loadframe.render_curve(curves[treatment], unit=folder.axis_unit(), quality=quality))
