"""The command `loadframe`. A verb's module is imported on demand: help and completion answer at once."""

from collections.abc import Sequence
from importlib import import_module
from io import StringIO
from typing import Annotated, Any

import typer
from typer._click.shell_completion import CompletionItem
from typer.core import TyperGroup
from typer.main import get_command

from loadframe.cli import about
from loadframe.cli.common import PLAIN, REFUSED, USAGE, Json, command
from loadframe.cli.terminal import answer, emit_error, say, wants_json
from loadframe.version import __version__

VERBS = {
    "demo": ("case:demo", "Investigate a job queue in one SQLite file."),
    "init": ("init:init", "Write the first study of your own service."),
    "investigate": ("studies:investigate", "Find what limits a target, change it, and prove the gain."),
    "measure": ("studies:measure", "Measure throughput and latency at each load level."),
    "capacity": ("studies:capacity", "Find the highest load that meets an objective."),
    "curve": ("data:curve", "Compute a curve from a run, a file, or production data."),
    "predict": ("data:predict", "Forecast higher loads from measurements at low ones."),
    "limits": ("studies:limits", "Show every limit and its use, now."),
    "compare": ("compare:compare", "Say whether B is better or worse than A."),
    "ladder": ("studies:ladder", "Apply changes one by one; measure what each adds."),
    "report": ("data:report", "Write the report of a run again, and print it."),
    "doctor": ("about:doctor", "Check this machine: what it has, and what it lacks."),
    "man": ("about:man", "Print the manual page, for man(1)."),
    "changes": ("changes:app", "Show what each run changed and what is not reverted."),
    "case": ("case:app", "Ready-made studies with a story and a known answer."),
    "study": ("studies:app", "Print the schema of study files, or check one."),
}
OF_EXTENSIONS = {
    "export": "Write a run, or a watch, in the format of another tool.",
    "fleet": "Many machines: whether they can be loaded together.",
    "growth": "Forecast how a load goes on as its database grows.",
    "ndb": "Check a config.ini of MySQL Cluster.",
    "serve": "Show runs in a browser, also while they are measured.",
    "tune": "Search for better settings, and prove them.",
    "watch": "Watch a service in production; an alarm before it gives.",
}
LINES = {**{name: line for name, (_, line) in VERBS.items()}, **OF_EXTENSIONS}


class Verbs(TyperGroup):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = dict.fromkeys(LINES)  # type: ignore[assignment]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if self.commands.get(cmd_name) is None and (verb := _verb(cmd_name)) is not None:
            if not isinstance(verb, typer.Typer):
                verb, function = typer.Typer(**PLAIN), verb
                verb.command(cmd_name, context_settings=getattr(function, "context", None))(function)
            made = self.commands[cmd_name] = get_command(verb)
            made.name, made.help = cmd_name, made.help or LINES.get(cmd_name)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(LINES.items()))

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        names = [CompletionItem(name, help=line) for name, line in LINES.items() if name.startswith(incomplete)]
        return [*names, *super(TyperGroup, self).shell_complete(ctx, incomplete)]


def _verb(name: str) -> Any:
    if name in VERBS:
        module, function = VERBS[name][0].split(":")
        return getattr(import_module(f"loadframe.cli.{module}"), function)
    from loadframe.entry_points import VERBS_GROUP, not_installed, registered

    if (verb := registered(VERBS_GROUP, name)) is not None or name not in OF_EXTENSIONS:
        return verb

    def missing(as_json: Json = False) -> None:
        with command(as_json):
            raise not_installed(VERBS_GROUP, name, f"`loadframe {name}`")

    error = not_installed(VERBS_GROUP, name, "It")
    missing.__doc__ = f"{OF_EXTENSIONS[name]} {error.fact}. {error.remedy}"
    missing.context = {"ignore_unknown_options": True, "allow_extra_args": True}  # type: ignore[attr-defined]
    return missing


app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    help="Load a real server step by step until it bends, name the cause, change that one thing, and prove the gain.",
    **PLAIN,
)


def run(arguments: Sequence[str]) -> int:
    """Returns the exit code, 2 for a refused command line. Raises errors outside of verbs."""
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
    return get_command(app)


def _version(wanted: bool) -> None:
    if wanted:
        answer(f"loadframe {__version__}")
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
