"""loadframe init: the first study of your own service, written and checked with one short step."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import loadframe
from loadframe.cli.common import RUNS, Json, Runs, command, measured
from loadframe.cli.terminal import answer, emit, say
from loadframe.errors import StudyError

SHORT = ("load.levels=[1]", "measure.window=500ms", "measure.budget=1m", "measure.profile=off")
"""The step by which a new study is checked: one client."""


def init(
    start: Annotated[
        str | None, typer.Option("--command", metavar="COMMAND", help="The command that starts your service.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=1, max=65535, help="The port on which it listens; alone: a service that runs."),
    ] = None,
    pid: Annotated[int | None, typer.Option("--pid", help="The process of a service that runs.")] = None,
    path: Annotated[str, typer.Option("--path", help="What to request from it.")] = "/",
    name: Annotated[str, typer.Option("--name", help="A name for the study.")] = "",
    file: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="The study file to write; NAME.toml without it.")
    ] = None,
    check: Annotated[bool, typer.Option("--check/--no-check", help="Take one short step with it.")] = True,
    runs: Runs = RUNS,
    as_json: Json = False,
) -> None:
    """Write a study of your own service: by its command, or by its port if it runs already."""
    if start is None and port is None and pid is None:
        start, port = _ask()
    with command(as_json, measures=check) as reached:
        beginning = loadframe.begin(command=start, port=port, pid=pid, path=path, name=name)
        written = _write(file or Path(f"{beginning.name}.toml"), beginning.toml)
        reached["study"] = str(written)
        for sentence in beginning.found:
            say(sentence)
        say(f"Wrote {written}.")
        study = loadframe.load_study(written, SHORT if check else ())
        found = measured(as_json, lambda progress: loadframe.measure(study, runs, progress=progress)) if check else None
        point = found.curve.points[0] if found is not None else None
        if as_json:
            emit(
                {
                    "schema": "loadframe.init/1",
                    "study": str(written),
                    "name": beginning.name,
                    "found": list(beginning.found),
                    "hints": list(beginning.hints),
                    "checked": None if point is None else {"load": point.load, "throughput": point.throughput},
                    "run": None if found is None else str(found.run),
                }
            )
            return
        if point is not None:
            answer(f"Checked: one client gets {point.throughput:,.4g} answers a second.")
        for sentence in beginning.hints:
            answer(sentence)
        answer(f"Next: loadframe investigate {written}")


def _ask() -> tuple[str | None, int | None]:
    """The command or the port, of a person. A usage error where there is none to ask."""
    if not sys.stdin.isatty():
        raise typer.BadParameter("name your service with --command, --port or --pid")
    said = typer.prompt("The command that starts your service, or the port on which it listens", err=True).strip()
    return (None, int(said)) if said.isascii() and said.isdigit() else (said, None)


def _write(path: Path, text: str) -> Path:
    """A new file. StudyError where there is one already, or it cannot be written."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise StudyError(f"{path} is there already", remedy="Name another file with --output, or remove it.") from None
    except OSError as error:
        raise StudyError(
            f"{path} cannot be written: {error.strerror}", remedy="Name another file with --output."
        ) from error
    return path
