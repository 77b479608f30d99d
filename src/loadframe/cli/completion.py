"""Completion in bash, zsh and fish: --show-completion, --install-completion, and what the shell asks at the tab key."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer._completion_shared import get_completion_script, install
from typer.completion import get_completion_inspect_parameters, shell_complete

from loadframe.cli.terminal import answer
from loadframe.errors import OutputError

PROGRAM, VARIABLE = "loadframe", "_LOADFRAME_COMPLETE"
"""The variable is how the shell's function asks: complete_bash, complete_zsh, complete_fish."""


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def asked() -> bool:
    """Whether a shell's function asks what could follow; then nothing else is to be done."""
    return VARIABLE in os.environ


def complete(program: Any) -> int:
    """Print what could follow the words that the shell passes in the environment; the exit code that it expects."""
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
