"""loadframe fleet check|agent: many machines; and where a verb's work is done with --fleet."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loadframe.cli.common import MUST_ACT, PLAIN, Json, command, show
from loadframe.cli.terminal import say

if TYPE_CHECKING:
    from loadframe.experiments.frame import Executor
    from loadframe.study import Study

app = typer.Typer(no_args_is_help=True, **PLAIN)


def executor(
    fleet: Path, study: Study, say: Callable[[str], None], *, drives: bool, capacities: bool
) -> AbstractContextManager[Executor]:
    """See loadframe.cli.studies.result_of. StudyError, MissingTool."""
    from loadframe_fleet.declaration import load

    declared = load(fleet)
    if drives:
        from loadframe_fleet.over import drivers_over

        return drivers_over(declared, study, say)
    from loadframe_fleet.trials import trials_over

    return trials_over(declared, study, say, capacities=capacities)


@app.command()
def check(fleet: Annotated[Path, typer.Argument(help="A fleet file (TOML).")], as_json: Json = False) -> None:
    """Check a fleet: hosts, versions, clocks, links, and who is loud. It changes nothing and loads no server."""
    with command(as_json):
        from loadframe_fleet.check import check as checked
        from loadframe_fleet.check import fleet_json, render_fleet
        from loadframe_fleet.declaration import load

        outcome = checked(load(fleet), say)
        show(as_json, fleet_json, render_fleet, outcome)
        if not outcome.fit:
            raise typer.Exit(MUST_ACT)


@app.command()
def agent() -> None:
    """Work for a coordinator through stdin and stdout. It starts this by itself, on each host of a fleet."""
    from loadframe_fleet.agent import main

    main()
