"""loadframe case list|show|run: ready studies with a story and a known answer; demo, the main job on one of them."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import loadframe
from loadframe.cli.common import PLAIN, RUNS, Json, Runs, Sets, command, document, tell
from loadframe.cli.studies import OverFleet, result_of
from loadframe.cli.terminal import answer, emit
from loadframe.errors import StudyError, UsageError

if TYPE_CHECKING:
    from loadframe.model import RunAnswer

app = typer.Typer(no_args_is_help=True, **PLAIN)
Name = Annotated[
    str,
    typer.Argument(
        autocompletion=lambda: [case.name for case in loadframe.cases()],
        help="A case's name; `loadframe case list` shows them.",
    ),
]
CASE = "job-queue"
TIME = "measure.budget=150s"


@app.command("list")
def list_cases(as_json: Json = False) -> None:
    """List every case with its title and what it needs."""
    with command(as_json):
        cases = loadframe.cases()
        if as_json:
            rows = [{"name": case.name, "title": case.title, "needs": case.needs} for case in cases]
            emit({"schema": "loadframe.cases/1", "cases": rows})
            return
        for case in cases:
            answer(f"{case.name:16} {case.title} (needs: {case.needs}; studies: {', '.join(case.studies)})")


@app.command()
def show(name: Name, as_json: Json = False) -> None:
    """Show a case's story and its known answer."""
    with command(as_json):
        case = loadframe.case(name)
        if as_json:
            facts = {"name": case.name, "title": case.title, "story": case.story, "needs": case.needs}
            studies = {which: case.study(which=which).resolved() for which in case.studies}
            emit({"schema": "loadframe.case/1", **facts, "studies": studies, "readme": case.readme()})
        else:
            answer(case.readme())


@app.command()
def run(
    name: Name,
    quick: Annotated[bool, typer.Option("--quick", help="Run in about two minutes.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Run at the scale of the story.")] = False,
    which: Annotated[str | None, typer.Option("--study", help="Another study of the case, for example burst.")] = None,
    overrides: Sets = None,
    runs: Runs = RUNS,
    over: OverFleet = None,
    as_json: Json = False,
) -> None:
    """Run the case on real components."""
    with command(as_json, measures=True) as reached:
        if quick and full:
            raise UsageError("--quick and --full were both given", remedy="Choose one of them, or neither.")
        profile = "quick" if quick else "full" if full else "default"
        run_case(name, profile, which, overrides or [], runs, as_json, reached, over)


def run_case(
    name: str,
    profile: str,
    which: str | None,
    overrides: list[str],
    runs: Path,
    as_json: bool,
    reached: dict[str, Any],
    over: Path | None = None,
) -> None:
    """reached: receives the outcomes of the studies that ended before another one failed."""
    case = loadframe.case(name)
    names = case.main if which is None else (which,)
    if overrides and len(names) > 1:
        raise UsageError(
            f"--set changes one study, and {name} runs {len(names)}",
            remedy=f"Choose one of them with --study: {', '.join(names)}.",
        )
    far = over is not None
    studies = [case.study(profile=profile, which=chosen, overrides=overrides, over_fleet=far) for chosen in names]
    if case.verb == "ladder" and over is not None:
        raise StudyError("this case is a ladder, and a fleet does not climb those", remedy="Run it without --fleet.")
    act: Callable[..., RunAnswer] = loadframe.ladder if case.verb == "ladder" else loadframe.investigate
    shapes: dict[str, Any] = {}
    for chosen, study in zip(names, studies, strict=True):
        if shapes and not as_json:
            answer()
        outcome = result_of(act, study, as_json, over, drives=True, runs=runs)
        if not as_json:
            tell(outcome, as_json=False)
        shape = shapes[chosen] = document(outcome)
        reached["studies"] = shapes
    if as_json and len(shapes) == 1:
        emit(shape, run=shape["run"])
    elif as_json:
        emit({"schema": "loadframe.case-run/1", "case": name, "studies": shapes})


def demo(overrides: Sets = None, runs: Runs = RUNS, as_json: Json = False) -> None:
    """Investigate a job queue in one SQLite file. Needs nothing else installed."""
    with command(as_json, measures=True) as reached:
        run_case(CASE, "quick", None, [TIME, *(overrides or [])], runs, as_json, reached)
