"""doctor, man, and completion in bash, zsh and fish."""

import os
import re
import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer._completion_shared import get_completion_script, install
from typer.completion import get_completion_inspect_parameters, shell_complete

from loadframe.cli.common import Json, command
from loadframe.cli.terminal import answer, deliver, emit
from loadframe.errors import OutputError
from loadframe.formats.plain_numbers import whole
from loadframe.version import __version__

EXIT_CODES = {
    "0": "done",
    "1": "action needed, and the message says which",
    "2": "usage error",
    "3": "a verdict that you asked to fail on",
    "4": "cannot tell, where you asked for a verdict",
    "130": "interrupted and reverted",
}
ENVIRONMENT = {
    "LOADFRAME_STATE": "the state directory",
    "LOADFRAME_SCRATCH": "the folder for temporary data of servers",
    "NO_COLOR": "no colours on the terminal",
}
PROGRAM, VARIABLE = "loadframe", "_LOADFRAME_COMPLETE"
"""By which the shell's function asks: complete_bash, complete_zsh, complete_fish."""


def doctor(as_json: Json = False) -> None:
    """Check this machine: its servers and load drivers, what can be recorded, what can be limited."""
    from loadframe.machine import examine

    with command(as_json):
        rows = examine()
        if as_json:
            facts = [
                {"part": row.kind, "what": row.what, "found": row.present, "how_to_get_it": row.how_to_get_it}
                for row in rows
            ]
            emit({"schema": "loadframe.doctor/1", "version": __version__, "checks": facts})
            return
        width = max(len(row.what) for row in rows)
        for row in rows:
            mark = "ok     " if row.present else "MISSING"
            answer(f"{mark} {row.kind:18} {row.what:{width}}  {row.present or row.how_to_get_it}")


def man(as_json: Json = False) -> None:
    """Print the manual page, for man(1)."""
    from loadframe.cli.main import program

    with command(as_json):
        page = manual(program())
        if as_json:
            emit({"schema": "loadframe.man/1", "page": page}, with_secrets=True)
        else:
            deliver(f"{page}\n".encode())


def manual(program: Any) -> str:
    """In man(7)."""
    summary = program.help.split(". ")[0].rstrip(".")
    given = whole(os.environ.get("SOURCE_DATE_EPOCH", ""))  # of a reproducible build (reproducible-builds.org/specs)
    date = time.gmtime(given if given is not None and 0 <= given < 1 << 40 else None)
    lines = [
        f'.TH LOADFRAME 1 "{time.strftime("%Y-%m-%d", date)}" "loadframe {__version__}" "User Commands"',
        ".SH NAME",
        f"loadframe \\- {_text(summary[0].lower() + summary[1:])}",
        ".SH SYNOPSIS",
        ".B loadframe",
        ".I VERB",
        "[\\fIOPTION\\fR ...]",
        ".SH DESCRIPTION",
        _text(program.help),
        "Every verb takes \\fB\\-\\-json\\fR and then prints one JSON object on standard output.",
        ".SH OPTIONS",
        *_options(program, "loadframe"),
        ".SH VERBS",
    ]
    for name, verb in _verbs(program, "loadframe"):
        usage = verb.collect_usage_pieces(verb.make_context(name, [], resilient_parsing=True))
        lines += [f".SS {_text(' '.join((name, *usage)))}", _text(verb.help), *_options(verb, name)]
    for title, rows in (("EXIT STATUS", EXIT_CODES), ("ENVIRONMENT", ENVIRONMENT)):
        lines += [f".SH {title}", *(line for name, what in rows.items() for line in _entry(name, f"{what}."))]
    return "\n".join(lines)


def _verbs(group: Any, above: str) -> Iterator[tuple[str, Any]]:
    for name in group.list_commands(None):
        verb = group.get_command(None, name)
        if hasattr(verb, "commands"):
            yield from _verbs(verb, f"{above} {name}")
        else:
            yield f"{above} {name}", verb


def _options(verb: Any, name: str) -> Iterator[str]:
    context = verb.make_context(name, [], resilient_parsing=True)
    for parameter in verb.get_params(context):
        if (record := parameter.get_help_record(context)) is not None:
            yield from _entry(*record)


def _entry(term: str, what: str) -> Iterator[str]:
    yield ".TP"
    yield f"\\fB{_text(term)}\\fR"
    yield _text(what)


def _text(text: str) -> str:
    line = re.sub(r"\s+", " ", text).strip().replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{line}" if line.startswith((".", "'")) else line


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def asked() -> bool:
    return VARIABLE in os.environ


def complete(program: Any) -> int:
    """Returns the exit code that the shell expects."""
    get_completion_inspect_parameters()  # makes typer's shells known
    try:
        return shell_complete(program, {}, PROGRAM, VARIABLE, os.environ[VARIABLE])
    except SystemExit as end:  # fish asks by the exit code whether there is anything
        return int(end.code or 0)


def _show(shell: Shell | None) -> None:
    if shell is not None:
        answer(get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell.value))
        raise typer.Exit


def _install(shell: Shell | None) -> None:
    if shell is None:
        return
    try:
        _, path = install(shell=shell.value, prog_name=PROGRAM, complete_var=VARIABLE)
    except OSError as error:
        raise OutputError(
            f"completion cannot be installed below {Path.home()}: {error.strerror}",
            remedy=f"`loadframe --show-completion {shell.value}` prints it; put it where your shell finds it.",
        ) from error
    answer(f"Written: {path}. Open a new {shell.value} to use it; {PROGRAM} must be on your PATH.")
    raise typer.Exit


ShowCompletion = Annotated[
    Shell | None,
    typer.Option(
        "--show-completion",
        metavar="SHELL",
        callback=_show,
        is_eager=True,
        help="Print completion for bash, zsh or fish.",
    ),
]
InstallCompletion = Annotated[
    Shell | None,
    typer.Option(
        "--install-completion",
        metavar="SHELL",
        callback=_install,
        is_eager=True,
        help="Install completion for bash, zsh or fish, for the user who runs this.",
    ),
]
