"""What the verbs share: options, output, and the one place where errors become messages and exit codes."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer

import loadframe
from loadframe.cli import faults, terminal
from loadframe.cli.terminal import answer, emit, say
from loadframe.errors import CageError, Interrupted, MissingTool, SampleError, UsageError, extra
from loadframe.formats.said import words

if TYPE_CHECKING:  # a press of the tab key only needs the options
    from loadframe.model import Observations, Observed, ObservedMapping, RunAnswer
    from loadframe.progress import Progress
    from loadframe.runs.folder import RunFolder

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout; everything else goes to stderr.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the study, for example measure.budget=2m."),
]
Details = Annotated[bool, typer.Option("--details", help="Print all of the report, not a screen of it.")]
Live = Annotated[bool, typer.Option("--live", help="Draw the curve, the limits and the log in the terminal meanwhile.")]
Runs = Annotated[Path, typer.Option("--runs", metavar="DIR", help="The folder for run folders.")]
RUNS = Path("runs")

Found = TypeVar("Found")

PLAIN: Mapping[str, Any] = {"add_completion": False, "rich_markup_mode": None, "pretty_exceptions_enable": False}
"""Options of a group of verbs: all its output goes through terminal.py."""

DONE, MUST_ACT, USAGE, INTERRUPTED = 0, 1, 2, 130
REFUSED: type[Exception] = typer.BadParameter.__mro__[2]
"""What typer raises for a command line that it refuses: click's ClickException, or its own of that name."""
PASSED_ON = (typer.Exit, typer.Abort, REFUSED)


@contextmanager
def command(json_wanted: bool, *, measures: bool = False, tells: bool = True) -> Iterator[dict[str, Any]]:
    """Frame of every verb: leftovers of killed commands are ended first; UserError, and unforeseen errors (see
    faults.py), becomes a message and exit 1 (a UsageError 2), Ctrl-C and SIGTERM exit 130 after everything was
    reverted. What could not be put back ends it with exit 1, whatever the answer. measures: changes of killed commands
    are put back first; other verbs report what is not reverted, and go on, also without a state directory. tells: False
    for a verb that does either itself. Yields a dictionary for results before an error: with --json they are added to
    it."""
    reached: dict[str, Any] = {}
    terminal.begin()
    try:
        if measures or not tells:
            _clean_up(measures, tells)
        else:
            try:
                _clean_up(measures, tells)
            except CageError as error:
                say(f"Leftovers of killed commands were not checked: {error.fact}. {error.remedy}")
        with _putting_back():
            yield reached
    except (Interrupted, KeyboardInterrupt) as error:
        code = MUST_ACT if _still_changed() else INTERRUPTED
        message = str(error) or "Stopped."
        _fail({"kind": "interrupted", "message": message, "remedy": "", **reached}, json_wanted, code)
    except PASSED_ON:
        raise
    except Exception as error:  # noqa: BLE001 - unforeseen errors become a message here
        failure = faults.in_words(error)
        kind, code = ("usage", USAGE) if isinstance(failure, UsageError) else (type(failure).__name__, MUST_ACT)
        _fail({"kind": kind, "message": str(failure), "remedy": failure.remedy, **reached}, json_wanted, code)


def _clean_up(measures: bool, tells: bool) -> None:
    """After killed commands; reports what was done and what is not reverted."""
    for swept in loadframe.sweep_leftovers():
        say(f"An earlier command was killed; cleaned up after it: {swept}")
    for outcome in loadframe.revert_changes(again=False, before=say) if measures else ():
        if outcome.status != "failed":
            say(f"An earlier command was killed; its changes: {outcome}")
    for standing in loadframe.unreverted_changes() if tells else ():
        say(standing)


@contextmanager
def _putting_back() -> Iterator[None]:
    """Exit 1, after the answer, where a change of this command is not reverted."""
    try:
        yield
    except typer.Exit:
        _check_put_back()
        raise
    _check_put_back()


def _check_put_back() -> None:
    if _still_changed():
        raise typer.Exit(MUST_ACT)


def _still_changed() -> bool:
    """Whether a change of this command is not reverted; reports it. Without a state directory nothing was changed."""
    from loadframe.changes import places

    there = places.left()
    try:
        left = [change.setting for record in loadframe.own_changes() for change in record.changes]
    except CageError:
        left = []
    if left:
        say(f"Not reverted: {', '.join(left)}. `loadframe changes revert` tries again.")
    for host, settings in there.items():
        say(f"Not reverted: {', '.join(settings)} on host {host}. `loadframe changes revert` there tries again.")
    return bool(left or there)


def _fail(error: dict[str, Any], json_wanted: bool, code: int) -> NoReturn:
    say(error["message"])
    if json_wanted:
        terminal.emit_error(error)
    raise typer.Exit(code)


def is_folder(name: str) -> bool:
    """Whether an argument is a folder, a run; anything else is read as a file, and reading it reports what is wrong."""
    try:
        return Path(name).is_dir()
    except OSError:  # too long a name, or no permission to search a folder
        return False


def run_or_data(
    name: str, treatment: str | None, mapping: "ObservedMapping", also: list[str] | None
) -> "RunFolder | Observations | Observed":
    """A run folder, or a file's contents. SampleError and UsageError for options of the other one."""
    if is_folder(name):
        if mapping.given or also:
            raise SampleError(f"{name} is a folder; a series of it cannot be named", remedy="Give a file.")
        return opened(Path(name))
    if treatment is not None:
        raise UsageError("--treatment is for run folders", remedy="Omit it.")
    return loadframe.read_data(name, mapping, also=also or [])


def opened(run: Path) -> "RunFolder":
    """A run folder; what it was measured with and is not available here is reported on stderr."""
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
    """An option's value in seconds. UsageError for an invalid duration."""
    from loadframe.study.fields import duration_s

    try:
        return duration_s(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}", remedy=f"For example {option} {example}.") from error


def size_of(option: str, text: str, example: str) -> int:
    """An option's value in bytes. UsageError for an invalid size."""
    from loadframe.study.fields import size_bytes

    try:
        return size_bytes(text)
    except ValueError as error:
        raise UsageError(f"{option}: {words(str(error))}", remedy=f"For example {option} {example}.") from None


def missing(what: str, error: ModuleNotFoundError, of: str) -> MissingTool:
    """what: needs a Python package that is not installed; of: the extra of Loadframe's distribution that has it."""
    return MissingTool(
        f"{what} needs the Python package {error.name}, which is not installed",
        remedy=extra(of),
    )


def measured(as_json: bool, measure: "Callable[[Progress], Found]", *, live: bool = False) -> Found:
    """The result of a function of the Python API, with its progress shown to people. live: drawn in the terminal."""
    from loadframe.cli.progress import check, drawn, shown

    if live:
        check(as_json)
    with drawn() if live else shown(quiet=as_json) as progress:
        return measure(progress)


def tell(result: "RunAnswer", as_json: bool, *, details: bool = False) -> None:
    """The result of a run, for people or programs. details: for an investigation, all of it."""
    if as_json:
        emit(document(result), run=result.run)
    else:
        answer(loadframe.render_text(result, details=details), run=result.run)


def document(result: "RunAnswer") -> dict[str, Any]:
    """The result of a run for programs."""
    from loadframe.model import Capacity, Investigation, Ladder, Tuning

    match result:
        case Investigation():
            return loadframe.investigation_json(result)
        case Ladder():
            return loadframe.ladder_json(result)
        case Tuning():
            return loadframe.tuning_json(result)
        case Capacity():
            return loadframe.capacity_json(result)


LoadOf = Annotated[
    str | None,
    typer.Option("--load", metavar="SERIES", help="For production data: which column or series is the load."),
]
ThroughputOf = Annotated[
    str | None,
    typer.Option("--throughput", metavar="SERIES", help="Which is the throughput; counters become rates."),
]
ResponseOf = Annotated[
    str | None,
    typer.Option(
        "--response", metavar="SERIES", help="Which is the response time in seconds, for example A_sum / A_count."
    ),
]
ResponseIs = Annotated[str, typer.Option("--response-is", metavar="mean|p95", help="What of the response times it is.")]
UseOf = Annotated[
    list[str] | None,
    typer.Option("--use", metavar="NAME=SERIES", help="Which is the use of a resource, a share from 0 to 1."),
]
CountersOf = Annotated[
    list[str] | None,
    typer.Option("--counter", metavar="NAME", help="A series that counts up, if its name does not say."),
]
AlsoFrom = Annotated[
    list[str] | None, typer.Option("--also", metavar="FILE", help="A further file, joined by its times.")
]


def mapping_of(
    load: str | None,
    throughput: str | None,
    response: str | None,
    response_is: str,
    use: list[str] | None,
    counters: list[str] | None,
) -> "ObservedMapping":
    """The options as one record. UsageError for a --use without a name, and for another --response-is."""
    from loadframe.formats.observed import named_series
    from loadframe.model import ObservedMapping

    if response_is not in ("mean", "p95"):
        raise UsageError(f"--response-is {words(response_is, 40)!r} is unknown", remedy="It is mean or p95.")
    return ObservedMapping(
        load=load,
        throughput=throughput,
        response=response,
        use=named_series("--use", use or (), "Write it as --use cpu=SERIES."),
        counters=tuple(counters or ()),
        response_is="p95" if response_is == "p95" else "mean",
        axis="load",
    )
