"""loadframe fleet check|agent: many machines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loadframe.cli.common import MUST_ACT, PLAIN, Json, command, needing, show
from loadframe.cli.terminal import say

if TYPE_CHECKING:
    from loadframe.experiments.frame import Executor
    from loadframe.study import Study

app = typer.Typer(no_args_is_help=True, **PLAIN)


OverFleet = Annotated[
    Path | None, typer.Option("--fleet", metavar="FILE", help="Let the drivers of this fleet make the load.")
]

SideBySideOver = Annotated[
    Path | None, typer.Option("--fleet", metavar="FILE", help="Measure side by side on the hosts of this fleet.")
]


@contextmanager
def executor_of(
    fleet: Path | None, study: Study, *, drives: bool = False, capacities: bool = False
) -> Iterator[Executor]:
    """Where a verb's work is done: on this machine; or on the hosts of the fleet in this file, which drive the steps of
    one bench (drives), or take whole trials side by side (capacities: searches with the study's alternatives)."""
    from loadframe.experiments.frame import HERE

    if fleet is None:
        yield HERE
        return
    from loadframe.fleet.declaration import load

    declared = load(fleet)
    over: AbstractContextManager[Executor]
    with needing("A fleet", "fleet"):
        if drives:
            from loadframe.fleet.over import drivers_over

            over = drivers_over(declared, study, say)
        else:
            from loadframe.fleet.trials import trials_over

            over = trials_over(declared, study, say, capacities=capacities)
    with over as executor:
        yield executor


@app.command()
def check(fleet: Annotated[Path, typer.Argument(help="A fleet file (TOML).")], as_json: Json = False) -> None:
    """Check a fleet: hosts, versions, clocks, links, and who is loud. It changes nothing and loads no server."""
    with command(as_json):
        from loadframe.fleet.declaration import load
        from loadframe.reporting.fleet_report import fleet_json, render_fleet

        declared = load(fleet)
        with needing("A fleet", "fleet"):
            from loadframe.fleet.check import check as checked
        outcome = checked(declared, told=say)
        show(as_json, fleet_json, render_fleet, outcome)
        if not outcome.fit:
            raise typer.Exit(MUST_ACT)


@app.command()
def agent() -> None:
    """Work for a coordinator through stdin and stdout. It starts this by itself, on each host of a fleet."""
    from loadframe.fleet.agent import main

    main()
