"""The command `loadframe` and its verbs."""

from collections.abc import Sequence
from io import StringIO
from typing import Annotated, Any

import typer
from typer.main import get_command

import loadframe
from loadframe.cli import (
    about,
    case,
    changes,
    compare,
    curve,
    fleet,
    growth,
    init,
    limits,
    ndb,
    predict,
    runs,
    studies,
    watch,
)
from loadframe.cli.common import REFUSED, USAGE
from loadframe.cli.terminal import answer, emit_error, say, wants_json

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Load a real server step by step until it bends, name the cause, change that one thing, and prove the gain.",
)


def run(arguments: Sequence[str]) -> int:
    """Carry out a command line; its exit code, 2 for one that is refused. Raises what is no answer of a verb."""
    if about.asked():
        return about.complete(program())
    try:
        with program().make_context("loadframe", list(arguments)) as context:
            context.command.invoke(context)
        return 0
    except typer.Exit as end:
        return end.exit_code
    except REFUSED as error:
        said = StringIO()
        error.show(said)  # type: ignore[attr-defined]
        say(said.getvalue().rstrip())
        if wants_json(arguments):
            context_of = getattr(error, "ctx", None)
            verb = context_of.command_path if context_of is not None else "loadframe"
            message = error.format_message()  # type: ignore[attr-defined]
            emit_error({"kind": "usage", "message": message, "remedy": f"`{verb} --help` shows how to use it."})
        return USAGE


def program() -> Any:
    """The command with its verbs, as click has it."""
    return get_command(app)


def _version(wanted: bool) -> None:
    if wanted:
        answer(f"loadframe {loadframe.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    show_completion: about.ShowCompletion = None,
    install_completion: about.InstallCompletion = None,
) -> None:
    pass


app.command()(case.demo)
app.command()(init.init)
app.command()(studies.investigate)
app.command()(studies.measure)
app.command()(studies.capacity)
app.command()(studies.tune)
app.command()(curve.curve)
app.command()(predict.predict)
app.command()(growth.growth)
app.command()(limits.limits)
app.command()(watch.watch)
app.command()(compare.compare)
app.command()(studies.ladder)
app.command()(runs.report)
app.command()(runs.export)
app.command()(runs.serve)
app.add_typer(changes.app, name="changes")
app.add_typer(case.app, name="case")
app.add_typer(fleet.app, name="fleet")
app.command()(ndb.ndb)
app.command()(about.doctor)
app.command()(about.man)
app.add_typer(studies.app, name="study")
