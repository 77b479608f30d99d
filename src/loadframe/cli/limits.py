"""loadframe limits: the ledger now, and what is reached first."""

from pathlib import Path
from typing import Annotated

import typer

import loadframe
from loadframe.cli.common import Json, Sets, command, duration_of, measured, show
from loadframe.errors import SampleError, UsageError
from loadframe.formats.said import words


def limits(
    pid: Annotated[int | None, typer.Option("--pid", metavar="P", help="The pid of a process on this machine.")] = None,
    target: Annotated[
        Path | None, typer.Option("--target", metavar="STUDY", help="A study; its target is started for the reading.")
    ] = None,
    attach: Annotated[
        str | None,
        typer.Option(
            "--attach",
            metavar="KIND:ADDRESS",
            help="A running server: mariadb:SOCKET, postgres:SOCKET_DIR, or KIND:HOST:PORT. It is only read.",
        ),
    ] = None,
    option_file: Annotated[
        Path | None,
        typer.Option("--option-file", metavar="FILE", help="The account for --attach, in section [client] or [NAME]."),
    ] = None,
    user: Annotated[
        str,
        typer.Option("--user", help="The account's name. The password comes from the file, MYSQL_PWD or PGPASSWORD."),
    ] = "",
    over: Annotated[
        str | None,
        typer.Option("--over", metavar="TIME", help="Watch for this long, for example 10m, and say what runs out."),
    ] = None,
    stages: Annotated[
        list[Path] | None,
        typer.Option("--stages", metavar="FILE", help="A file in which a pipeline prints what its stages do."),
    ] = None,
    overrides: Sets = None,
    as_json: Json = False,
) -> None:
    """Show every limit and its use for a process, a server, a study's target, or this machine."""
    with command(as_json, measures=target is not None):
        if target is not None and (pid is not None or attach is not None):
            raise typer.BadParameter("--target starts its own server: omit --pid and --attach")
        if attach is None and (option_file is not None or user):
            raise typer.BadParameter("--option-file and --user belong to --attach")
        if target is None and overrides:
            raise typer.BadParameter("--set belongs to --target")
        for file in stages or ():
            if not file.is_file():
                raise SampleError(
                    f"--stages {words(file, 80)} is no file", remedy="Name what the pipeline prints, written to a file."
                )
        study = loadframe.load_study(target, overrides or []) if target is not None else None
        over_s = None if over is None else duration_of("--over", over, "10m")
        if over_s is not None and over_s < 1:
            raise UsageError(f"--over {over} is too short to see a change", remedy="Watch for at least 1s.")
        ledger = measured(
            as_json,
            lambda progress: loadframe.limits(
                pid=pid,
                study=study,
                server=attach,
                option_file=option_file,
                user=user,
                over_s=over_s,
                stages=stages or (),
                progress=progress if over_s is not None else None,
            ),
        )
        show(as_json, loadframe.ledger_json, loadframe.render_limits, ledger)
