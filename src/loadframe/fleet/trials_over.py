"""Trials over a fleet: the engine of its hosts around what takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from loadframe.errors import StudyError
from loadframe.experiments.ladder_states import TakesElsewhere
from loadframe.experiments.searching import Beside
from loadframe.experiments.tuning import Searching
from loadframe.fleet.blocks import BlocksOnHosts
from loadframe.fleet.capacities import CapacitiesOnHosts, check_settings_alone
from loadframe.fleet.declaration import Fleet
from loadframe.fleet.engine import DaskEngine
from loadframe.fleet.investigations import InvestigationsOnHosts
from loadframe.fleet.load import secrets_named
from loadframe.fleet.observing import Observing
from loadframe.fleet.over import check_may_change
from loadframe.fleet.searching import SideBySide
from loadframe.kinds import registry as targets
from loadframe.study import Study

Told = Callable[[str], None]


@contextmanager
def searching_over(fleet: Fleet, study: Study, say: Told = lambda _: None) -> Iterator[Searching]:
    """What takes the trials of a search side by side on the fleet's hosts. Raises as `engine_over`."""
    with engine_over(fleet, study, say) as engine, Observing(fleet, say) as observing:
        yield SideBySide(engine, engine.notes, observing)


@contextmanager
def blocks_over(fleet: Fleet, study: Study, say: Told = lambda _: None) -> Iterator[TakesElsewhere]:
    """What takes the blocks of a ladder side by side on the fleet's hosts. Raises as `engine_over`."""
    with engine_over(fleet, study, say) as engine, Observing(fleet, say) as observing:
        yield BlocksOnHosts(engine, engine.notes, observing)


@contextmanager
def capacities_over(fleet: Fleet, study: Study, say: Told = lambda _: None) -> Iterator[Beside]:
    """What searches the capacity with each alternative's settings on the fleet's hosts. StudyError where there is
    none; raises as `engine_over`."""
    check_settings_alone(study)
    with engine_over(fleet, study, say) as engine, Observing(fleet, say) as observing:
        yield CapacitiesOnHosts(engine, engine.notes, observing)


@contextmanager
def investigations_over(
    fleet: Fleet, studies: Sequence[Study], say: Told = lambda _: None
) -> Iterator[InvestigationsOnHosts]:
    """What goes through whole investigations of these studies on the fleet's hosts. Raises as `engine_over`, for any of
    them."""
    for study in studies:
        _check_study(fleet, study)
    named = sorted({name for study in studies for name in secrets_named(study)})
    with DaskEngine(fleet, named, say) as engine, Observing(fleet, say) as observing:
        yield InvestigationsOnHosts(engine, engine.kernels, engine.notes, observing)


@contextmanager
def engine_over(fleet: Fleet, study: Study, say: Told) -> Iterator[DaskEngine]:
    """The hosts for trials. UserError where one is not there, where the study's target is not one that each host can
    start for itself, or where the study changes machines that may not be changed."""
    _check_study(fleet, study)
    with DaskEngine(fleet, sorted(secrets_named(study)), say) as engine:
        yield engine


def _check_study(fleet: Fleet, study: Study) -> None:
    if study.target.is_running or targets.kind_named(study.target.kind).by_address is not None:
        raise StudyError(
            "trials side by side need a target of their own on each host, and this one runs already",
            remedy="Let Loadframe start it (without target.attach), or measure without --fleet.",
        )
    check_may_change(fleet, study, "trial")
