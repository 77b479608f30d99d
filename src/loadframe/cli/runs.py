"""The verb of run folders: report."""

import webbrowser
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import loadframe
from loadframe.cli.common import Details, Json, command, opened, tell
from loadframe.cli.terminal import answer, deliver
from loadframe.errors import MissingTool, UsageError


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
