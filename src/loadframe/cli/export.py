"""loadframe export RUN --format NAME: a run or a watch in the format of another tool."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import loadframe
from loadframe.cli.common import Json, command, opened
from loadframe.cli.terminal import answer, deliver, emit
from loadframe.errors import RunError, UsageError
from loadframe.experiments.exporting_watch import WATCH_FORMATS, export_watch, is_watch_folder
from loadframe.formats.named_files import write_whole

STDOUT = "-"


def _formats() -> list[str]:
    of_runs, of_watches = [one.name for one in loadframe.exports()], [one.name for one in WATCH_FORMATS]
    return list(dict.fromkeys([*of_runs, *of_watches]))


def export(
    run: Annotated[Path, typer.Argument(help="A run folder, or the folder of a watch.")],
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME",
            autocompletion=_formats,
            help="openmetrics, bencher, hdrhistogram, speedscope; curve, steps, limits or requests with .csv or "
            ".parquet; of a watch: openmetrics; samples, alarms or gaps with .csv or .parquet.",
        ),
    ],
    to: Annotated[str, typer.Option("--to", metavar="FILE", help="The file to write; - is stdout.")] = STDOUT,
    as_json: Json = False,
) -> None:
    """Write a run, or a watch, in the format of another tool."""
    with command(as_json):
        if as_json and to == STDOUT:
            raise UsageError("--json and the exported run both need standard output", remedy="Add --to FILE.")
        data = export_watch(run, form) if is_watch_folder(run) else loadframe.export(opened(run), form)
        if to == STDOUT:
            deliver(data)
            return
        try:
            write_whole(Path(to), data)
        except OSError as error:
            raise RunError(f"{to} cannot be written: {error.strerror}", remedy="Choose another place.") from error
        if as_json:
            emit({"schema": "loadframe.export/1", "run": str(run), "format": form, "file": to, "bytes": len(data)})
        else:
            answer(f"Written: {to} ({len(data):,} bytes)")
