"""loadframe curve RUN: knee, cliff, capacity and scalability law from a run's data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import loadframe
from loadframe.cli.common import Json, command, emit
from loadframe.errors import RunError


def curve(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    treatment: Annotated[
        str, typer.Option("--treatment", help="The state of the target (A is the one it started in).")
    ] = "A",
    as_json: Json = False,
) -> None:
    """Compute a run's curve anew from its steps."""
    with command(as_json):
        folder = loadframe.open_run(run)
        curves = loadframe.curves(folder)
        if treatment not in curves:
            raise RunError(
                f"{run} has no treatment {treatment!r}", remedy=f"It has: {', '.join(curves)}. Choose with --treatment."
            )
        conduct = loadframe.conduct(folder)
        if as_json:
            emit(loadframe.curve_json(curves[treatment], conduct=conduct))
        else:
            print(loadframe.render_curve(curves[treatment], unit=folder.axis_unit(), conduct=conduct))
