"""A search over a fleet: the engine of its hosts around what takes the trials."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from loadframe.errors import StudyError
from loadframe.experiments.tuning import Searching
from loadframe.fleet.declaration import Fleet
from loadframe.fleet.engine import DaskEngine
from loadframe.fleet.load import secrets_named
from loadframe.fleet.searching import SideBySide
from loadframe.kinds import registry as targets
from loadframe.study import Study


@contextmanager
def searching_over(fleet: Fleet, study: Study, say: Callable[[str], None] = lambda _: None) -> Iterator[Searching]:
    """What takes the trials of a search side by side on the fleet's hosts. UserError where a host is not there, or
    where the study's target is not one that each host can start for itself."""
    if study.target.is_running or targets.kind_named(study.target.kind).by_address is not None:
        raise StudyError(
            "trials side by side need a target of their own on each host, and this one runs already",
            remedy="Let Loadframe start it (without target.attach), or search without --fleet.",
        )
    with DaskEngine(fleet, sorted(secrets_named(study)), say) as engine:
        yield SideBySide(engine, engine.notes)
