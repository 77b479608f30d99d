"""The verbs of run folders: report, export in the format of another tool, and serve, runs in a browser."""

import webbrowser
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import loadframe
from loadframe.cli.common import Details, Json, command, opened, tell, writing
from loadframe.cli.terminal import answer, deliver, emit
from loadframe.errors import MissingTool, RunError, UsageError
from loadframe.formats.named_files import write_whole


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


STDOUT = "-"


def _formats() -> list[str]:
    from loadframe.experiments.exporting import of_folders

    of_runs, others = [form.name for form in loadframe.exports()], [kind.formats for kind in of_folders()]
    return list(dict.fromkeys([*of_runs, *(form.name for formats in others for form in formats)]))


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
        from loadframe.experiments.exporting import exported, of_folders

        if as_json and to == STDOUT:
            raise UsageError("--json and the exported run both need standard output", remedy="Add --to FILE.")
        other = next((kind for kind in of_folders() if kind.is_one(run)), None)
        if other is None:
            data = loadframe.export(opened(run), form)
        else:
            data = exported(other.formats, run, run, form, other.of)
        if to == STDOUT:
            deliver(data)
            return
        with writing(to, RunError, "Choose another place."):
            write_whole(Path(to), data)
        if as_json:
            emit({"schema": "loadframe.export/1", "run": str(run), "format": form, "file": to, "bytes": len(data)})
        else:
            answer(f"Written: {to} ({len(data):,} bytes)")
