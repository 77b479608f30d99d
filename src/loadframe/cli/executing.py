"""Where a verb's work is done: on this machine, or on the hosts of a fleet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loadframe.cli.terminal import say
from loadframe.entry_points import EXECUTORS_GROUP, not_installed, registered
from loadframe.errors import MissingTool

if TYPE_CHECKING:
    from loadframe.experiments.frame import Executor
    from loadframe.study import Study

FLEET = "fleet"
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
    """On this machine; or on the hosts of the fleet in this file, which drive the steps of one bench (drives), or take
    whole trials side by side (capacities: searches with the study's alternatives). MissingTool, StudyError."""
    from loadframe.experiments.frame import HERE

    if fleet is None:
        yield HERE
        return
    if (over := registered(EXECUTORS_GROUP, FLEET)) is None:
        fact, remedy = not_installed(EXECUTORS_GROUP, FLEET, "--fleet")
        raise MissingTool(fact, remedy=remedy)
    with over(fleet, study, say, drives=drives, capacities=capacities) as executor:
        yield executor
