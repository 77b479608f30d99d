"""The verbs serve and export."""

from pathlib import Path
from typing import Annotated

import typer

from loadframe.cli.common import RUNS, Json, command, opened, writing
from loadframe.cli.terminal import answer, deliver, emit
from loadframe.errors import RunError, UsageError
from loadframe.formats.named_files import write_whole


def serve(
    runs: Annotated[
        list[Path] | None, typer.Argument(help="Folders of runs, or single runs; runs/ by default.")
    ] = None,
    port: Annotated[int, typer.Option(metavar="PORT", help="The port on 127.0.0.1; 0: any that is free.")] = 0,
    as_json: Json = False,
) -> None:
    """Show runs in a browser, also while they are measured. Ends with Ctrl-C."""
    with command(as_json):
        from loadframe.experiments.reading import answer_of, conclude
        from loadframe_live.serving import Address
        from loadframe_live.serving import serve as serve_page
        from loadframe_live.view import Reads

        def ready(address: Address) -> None:
            if as_json:
                own = {"url": address.url, "port": address.port, "token": address.token}
                emit({"schema": "loadframe.serve/1", **own}, with_secrets=True)
            else:
                answer(f"Open {address.url}\nThe address is a key: whoever has it can read these runs. Ctrl-C ends it.")

        serve_page(runs or [RUNS], reads=Reads(conclude, answer_of), port=port, ready=ready)


STDOUT = "-"


def _formats() -> list[str]:
    from loadframe_live.exporting import FORMATS, of_folders

    names = [form.name for form in FORMATS]
    names += [form.name for kind in of_folders() for form in kind.formats]
    return list(dict.fromkeys(names))


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
        from loadframe.reporting.exports import exported
        from loadframe_live import exporting

        if as_json and to == STDOUT:
            raise UsageError("--json and the exported run both need standard output", remedy="Add --to FILE.")
        folders = next((kind for kind in exporting.of_folders() if kind.is_one(run)), None)
        data = (
            exporting.export(opened(run), form)
            if folders is None
            else exported(folders.formats, run, run, form, folders.of)
        )
        if to == STDOUT:
            deliver(data)
            return
        with writing(to, RunError, "Choose another place."):
            write_whole(Path(to), data)
        if as_json:
            emit({"schema": "loadframe.export/1", "run": str(run), "format": form, "file": to, "bytes": len(data)})
        else:
            answer(f"Written: {to} ({len(data):,} bytes)")
