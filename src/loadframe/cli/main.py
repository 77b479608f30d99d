"""The command `loadframe` and its verbs."""

from __future__ import annotations

from typing import Annotated

import typer

import loadframe
from loadframe.cli import (
    capacity,
    case,
    changes,
    compare,
    curve,
    demo,
    doctor,
    investigate,
    ladder,
    limits,
    measure,
    ndb,
    predict,
    report,
    study,
    tune,
)

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Load a real server step by step until it bends, name what gave, change that one thing and prove the gain.",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"loadframe {loadframe.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    pass


app.command()(demo.demo)
app.command()(investigate.investigate)
app.command()(measure.measure)
app.command()(capacity.capacity)
app.command()(tune.tune)
app.command()(curve.curve)
app.command()(predict.predict)
app.command()(limits.limits)
app.command()(compare.compare)
app.command()(ladder.ladder)
app.command()(report.report)
app.add_typer(changes.app, name="changes")
app.add_typer(case.app, name="case")
app.command()(ndb.ndb)
app.command()(doctor.doctor)
app.add_typer(study.app, name="study")
