"""What the verbs share: options, output, and the one place where errors become messages and exit codes."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

import loadframe
from loadframe.cli import faults, terminal
from loadframe.cli.terminal import answer, emit, say
from loadframe.errors import CageError, Interrupted, UsageError, UserError
from loadframe.formats.said import words

if TYPE_CHECKING:  # a press of the tab key only needs the options
    from loadframe.model import RunAnswer
    from loadframe.progress import Progress
    from loadframe.runs.folder import RunFolder

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout; everything else goes to stderr.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the study, for example measure.budget=2m."),
]
Details = Annotated[bool, typer.Option("--details", help="Print all of the report, not a screen of it.")]
Live = Annotated[bool, typer.Option("--live", help="Draw the curve, the limits and the log in the terminal meanwhile.")]
Runs = Annotated[Path, typer.Option(metavar="DIR", help="The folder for run folders.")]
RUNS = Path("runs")

PLAIN: Mapping[str, Any] = {"add_completion": False, "rich_markup_mode": None, "pretty_exceptions_enable": False}

MUST_ACT, USAGE, INTERRUPTED = 1, 2, 130
REFUSED: type[Exception] = typer.BadParameter.__mro__[2]
"""click's ClickException, or typer's own of that name."""
PASSED_ON = (typer.Exit, typer.Abort, REFUSED)


@contextmanager
def command(json_wanted: bool, *, measures: bool = False, reports: bool = True) -> Iterator[dict[str, Any]]:
    """Leftovers of killed commands are ended first; errors (faults.py) become a message and exit 1 (a UsageError 2),
    Ctrl-C and SIGTERM 130 after everything was reverted; 1 for what could not be. measures: changes of killed commands
    are put back first; others report them. reports: False for a verb that does either itself. Yields a dictionary for
    results before an error, added to it with --json."""
    reached: dict[str, Any] = {}
    terminal.begin()
    try:
        try:
            _clean_up(measures, reports)
        except CageError as error:
            if measures or not reports:
                raise
            say(f"Leftovers of killed commands were not checked: {error.fact}. {error.remedy}")
        ended: typer.Exit | None = None
        try:
            yield reached
        except typer.Exit as end:
            ended = end
        if _still_changed():  # after the answer
            raise typer.Exit(MUST_ACT)
        if ended is not None:
            raise ended
    except PASSED_ON:
        raise
    except (KeyboardInterrupt, Exception) as error:  # noqa: BLE001 - unforeseen errors become a message here
        if isinstance(error, Interrupted | KeyboardInterrupt) or faults.is_of_stop(error):
            code = MUST_ACT if _still_changed() else INTERRUPTED
            message = str(error) if isinstance(error, Interrupted) else "Stopped."
            _fail({"kind": "interrupted", "message": message, "remedy": "", **reached}, json_wanted, code)
        failure = faults.in_words(error)
        kind, code = ("usage", USAGE) if isinstance(failure, UsageError) else (type(failure).__name__, MUST_ACT)
        _fail({"kind": kind, "message": str(failure), "remedy": failure.remedy, **reached}, json_wanted, code)


def _clean_up(measures: bool, reports: bool) -> None:
    for swept in loadframe.sweep_leftovers():
        say(f"An earlier command was killed; cleaned up after it: {swept}")
    for outcome in loadframe.revert_changes(again=False, before=say) if measures else ():
        if outcome.status != "failed":
            say(f"An earlier command was killed; its changes: {outcome}")
    for standing in loadframe.unreverted_changes() if reports else ():
        say(standing)


def _still_changed() -> bool:
    from loadframe.changes import places

    here: list[str] = []
    with suppress(CageError):
        here = [change.setting for record in loadframe.own_changes() for change in record.changes]
    if here:
        say(f"Not reverted: {', '.join(here)}. `loadframe changes revert` tries again.")
    for host, settings in places.left().items():
        say(f"Not reverted: {', '.join(settings)} on host {host}. `loadframe changes revert` there tries again.")
    return bool(here or places.left())


def _fail(error: dict[str, Any], json_wanted: bool, code: int) -> NoReturn:
    say(error["message"])
    if json_wanted:
        terminal.emit_error(error)
    raise typer.Exit(code)


def is_folder(name: str) -> bool:
    """Anything but a run is read as a file, and reading it reports what is wrong."""
    try:
        return Path(name).is_dir()
    except OSError:  # too long a name, or no permission to search a folder
        return False


def opened(run: Path) -> "RunFolder":
    """Reports on stderr what it was measured with and is not available here."""
    folder = loadframe.open_run(run)
    for missing in loadframe.absent(folder):
        say(missing)
    return folder


def show(as_json: bool, to_json: Callable[..., dict[str, Any]], to_text: Callable[..., str], *results: object) -> None:
    if as_json:
        emit(to_json(*results))
    else:
        answer(to_text(*results))


def duration_of(option: str, text: str, example: str) -> float:
    """In seconds. UsageError."""
    from loadframe.study.fields import duration_s

    with _option(option, example):
        return duration_s(text)


def size_of(option: str, text: str, example: str) -> int:
    """In bytes. UsageError."""
    from loadframe.study.fields import size_bytes

    with _option(option, example):
        return size_bytes(text)


@contextmanager
def _option(option: str, example: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise UsageError(f"{option}: {words(str(error))}", remedy=f"For example {option} {example}.") from error


@contextmanager
def writing(path: object, refusal: type[UserError], remedy: str) -> Iterator[None]:
    """Raises `refusal` where the file cannot be written."""
    try:
        yield
    except OSError as error:
        raise refusal(f"{path} cannot be written: {error.strerror}", remedy=remedy) from error


def progress_of(as_json: bool, *, live: bool = False) -> "AbstractContextManager[Progress]":
    """Shown to people. live: drawn in the terminal. UsageError where that is none, MissingTool without a view."""
    from loadframe.cli.progress import check, drawn, shown

    if live:
        check(as_json)
    return drawn() if live else shown(quiet=as_json)


def tell(result: "RunAnswer", as_json: bool, *, details: bool = False) -> None:
    if as_json:
        emit(document(result), run=result.run)
    else:
        answer(loadframe.render_text(result, details=details), run=result.run)


def document(result: "RunAnswer") -> dict[str, Any]:
    from loadframe.reporting.reports import form_of

    return form_of(result).shape(result)
