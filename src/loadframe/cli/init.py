"""loadframe init: the first study of your own service, written and checked with one short step."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

import loadframe
from loadframe.cli.common import RUNS, Json, Runs, command, progress_of, writing
from loadframe.cli.terminal import answer, emit, say
from loadframe.errors import StudyError, TooFewRequests
from loadframe.system.files import Folder, Whose

SHORT = (
    "load.levels=[1]", "measure.window=500ms", "measure.blocks.min=2", "measure.blocks.max=2", "measure.budget=5s",
    "measure.profile=off",
)  # fmt: skip
MOST_LISTED = 12


def init(
    start: Annotated[
        str | None, typer.Option("--command", metavar="COMMAND", help="The command that starts your service.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="The port on which it listens; alone: a service that runs.")
    ] = None,
    pid: Annotated[
        int | None,
        typer.Option(help="The process of a service that runs; with --port: which one, where several hold the port."),
    ] = None,
    path: Annotated[str, typer.Option(help="What to request from it.")] = "/",
    name: Annotated[str, typer.Option(help="A name for the study.")] = "",
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
    if start is None and sys.stdin.isatty():
        port, pid = _decide(port, pid)
    with command(as_json, measures=check):
        beginning = loadframe.begin(command=start, port=port, pid=pid, path=path, name=name)
        os.environ.update(beginning.secrets)  # for the check; the study names them, and does not have them
        written = file or Path(f"{beginning.name}.toml")
        if os.path.lexists(written):
            raise _taken(written)
        for sentence in beginning.known:
            say(sentence)
        from loadframe.study import parse

        study = parse(beginning.toml, SHORT if check else (), name=str(written))
        measurement = None
        try:
            if check:
                with progress_of(as_json) as progress:
                    measurement = loadframe.measure(study, runs, progress=progress)
        except TooFewRequests as error:
            beginning = beginning.slower(error)
        # once all went well: a failure leaves no file; only its owner may read it: it has words of a command
        with writing(written, StudyError, "Name another file with --output."):
            try:
                descriptor = Folder(written.parent, Whose.NAMED, StudyError).new_file(written.name, 0o600)
            except FileExistsError:
                raise _taken(written) from None
            with os.fdopen(descriptor, "w", encoding="utf-8") as study_file:
                study_file.write(beginning.toml)
        say(f"Wrote {written}.")
        point = measurement.curve.points[0] if measurement is not None else None
        if as_json:
            known = {"name": beginning.name, "found": list(beginning.known), "hints": list(beginning.hints)}
            checked = None if point is None else {"load": point.load, "throughput": point.throughput}
            where = None if measurement is None else str(measurement.run)
            emit({"schema": "loadframe.init/1", "study": str(written), **known, "checked": checked, "run": where})
            return
        if point is not None:
            answer(f"Checked: one client gets {point.throughput:,.4g} answers a second.")
        for sentence in beginning.hints:
            answer(sentence)
        answer(f"Next: loadframe investigate {written}")


def _ask() -> tuple[str | None, int | None]:
    services = [service.words for service in loadframe.services()]
    more = [f"{len(services) - MOST_LISTED} more"] if len(services) > MOST_LISTED else []
    lines = [f"  {words}" for words in (*services[:MOST_LISTED], *more)]
    here = ["On this machine these listen:", *lines] if lines else []
    if not sys.stdin.isatty():
        raise typer.BadParameter("\n".join(("name your service with --command, --port or --pid", *here)))
    for line in here:
        say(line)
    said = typer.prompt("The command that starts your service, or the port on which it listens", err=True).strip()
    return (None, int(said)) if said.isascii() and said.isdigit() else (said, None)


def _decide(port: int | None, pid: int | None) -> tuple[int | None, int | None]:
    several = loadframe.services(port, pid)
    if len(several) < 2:
        return port, pid
    say("Several could be meant:")
    for number, service in enumerate(several, start=1):
        say(f"  {number}  {service.words}")
    numbers = {str(number): service for number, service in enumerate(several, start=1)}
    while (said := typer.prompt("Which one is yours? Its number", err=True).strip()) not in numbers:
        say(f"A number from 1 to {len(several)}, please.")
    return numbers[said].port, numbers[said].pid


def _taken(path: Path) -> StudyError:
    return StudyError(f"{path} is there already", remedy="Name another file with --output, or remove it.")
