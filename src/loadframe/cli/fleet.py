"""loadframe fleet check|agent: many machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from loadframe.cli.common import MUST_ACT, Json, command
from loadframe.cli.terminal import answer, emit, say
from loadframe.errors import MissingTool

if TYPE_CHECKING:
    from loadframe.experiments.frame import MakeBench
    from loadframe.experiments.ladder_states import TakesElsewhere
    from loadframe.experiments.searching import Beside
    from loadframe.experiments.tuning import Searching
    from loadframe.study import Study

Made = TypeVar("Made")

app = typer.Typer(no_args_is_help=True, help="Many machines: check that they are fit to be loaded together.")


OverFleet = Annotated[
    Path | None, typer.Option("--fleet", metavar="FILE", help="Let the drivers of this fleet make the load.")
]

SideBySideOver = Annotated[
    Path | None, typer.Option("--fleet", metavar="FILE", help="Measure side by side on the hosts of this fleet.")
]


@contextmanager
def bench_of(fleet: Path | None, study: Study) -> Iterator[MakeBench]:
    """The bench on which a verb measures: this machine's, or one that the fleet in this file drives."""
    if fleet is None:
        from loadframe.bench.bench import RealBench

        yield RealBench
        return
    from loadframe.fleet.declaration import load

    declared = load(fleet)
    try:
        from loadframe.fleet.over import benches_over
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    with benches_over(declared, study, say) as made:
        yield made


def searching_of(fleet: Path | None, study: Study) -> AbstractContextManager[Searching]:
    """How a search takes its trials: one by one on this machine, or side by side on the hosts of this fleet."""
    from loadframe.experiments.tuning import one_by_one

    return _on_hosts(fleet, study, one_by_one, lambda over: over.searching_over)


def blocks_of(fleet: Path | None, study: Study) -> AbstractContextManager[TakesElsewhere | None]:
    """Who takes the blocks of a ladder: None for the bench of this machine, or the hosts of this fleet."""
    return _on_hosts(fleet, study, None, lambda over: over.blocks_over)


def capacities_of(fleet: Path | None, study: Study) -> AbstractContextManager[Beside | None]:
    """What searches the capacity with other settings: None without a fleet."""
    return _on_hosts(fleet, study, None, lambda over: over.capacities_over)


@contextmanager
def _on_hosts(fleet: Path | None, study: Study, here: Made, over: Callable[[ModuleType], Any]) -> Iterator[Made]:
    """What takes trials: that of this machine, or that of the fleet in this file, which fleet/trials_over.py makes."""
    if fleet is None:
        yield here
        return
    from loadframe.fleet.declaration import load

    declared = load(fleet)
    try:
        from loadframe.fleet import trials_over
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    with over(trials_over)(declared, study, say) as made:
        yield made


def _missing(error: ModuleNotFoundError) -> MissingTool:
    return MissingTool(
        f"A fleet needs the Python package {error.name}, which is not installed",
        remedy="pip install 'loadframe[fleet]'",
    )


@app.command()
def check(fleet: Annotated[Path, typer.Argument(help="A fleet file (TOML).")], as_json: Json = False) -> None:
    """Check a fleet: hosts, versions, clocks, links, and who is loud. It changes nothing and loads no server."""
    with command(as_json):
        from loadframe.fleet.declaration import load
        from loadframe.reporting.fleet_report import fleet_json, render_fleet

        declared = load(fleet)
        try:
            from loadframe.fleet.check import check as checked
        except ModuleNotFoundError as error:
            raise _missing(error) from error
        found = checked(declared, told=say)
        if as_json:
            emit(fleet_json(found))
        else:
            answer(render_fleet(found))
        if not found.fit:
            raise typer.Exit(MUST_ACT)


@app.command()
def agent() -> None:
    """Work for a coordinator through stdin and stdout. It starts this by itself, on each host of a fleet."""
    from loadframe.fleet.agent import main

    main()
