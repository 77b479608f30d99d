"""Trials over a fleet: the engine of its hosts around what takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.errors import StudyError
from loadframe.experiments.executor import Executor
from loadframe.experiments.ladder_states import LadderStates
from loadframe.experiments.tuning_trials import Trials
from loadframe.fleet.blocks import BlocksOnHosts
from loadframe.fleet.capacities import CapacitiesOnHosts, check_settings_alone
from loadframe.fleet.declaration import Fleet
from loadframe.fleet.engine import DaskEngine
from loadframe.fleet.load import secrets_named
from loadframe.fleet.observing import Observing
from loadframe.fleet.over import check_may_change
from loadframe.fleet.searching import SideBySide
from loadframe.kinds import registry as targets
from loadframe.model import Capacity
from loadframe.runs.folder import RunFolder
from loadframe.study import Study


class TrialsOver(Executor):
    """Takes the trials, blocks and searches of an experiment side by side on the hosts of an engine."""

    def __init__(self, engine: DaskEngine, observing: Observing) -> None:
        self._hosts = engine, engine.notes, observing

    def trials(self, tuned: Trials, most: int) -> None:
        SideBySide(*self._hosts)(tuned, most)

    def begin_blocks(self, book: Bookkeeping, run: RunFolder, states: LadderStates, notes: list[str]) -> None:
        BlocksOnHosts(*self._hosts).begin(book, run, states, notes)

    def check_capacities(self, study: Study) -> None:
        """StudyError where there is no alternative, or one that differs in more than settings."""
        check_settings_alone(study)

    def capacities(self, book: Bookkeeping, run: RunFolder, study: Study, here: Capacity) -> Capacity:
        return CapacitiesOnHosts(*self._hosts)(book, run, study, here)


@contextmanager
def trials_over(fleet: Fleet, study: Study, say: Callable[[str], None] = lambda _: None) -> Iterator[TrialsOver]:
    """What takes trials on the fleet's hosts. Raises as `engine_over`."""
    with engine_over(fleet, [study], say) as (engine, observing):
        yield TrialsOver(engine, observing)


@contextmanager
def engine_over(
    fleet: Fleet, studies: Sequence[Study], say: Callable[[str], None] = lambda _: None
) -> Iterator[tuple[DaskEngine, Observing]]:
    """The hosts for trials of these studies, and those that are recorded beside them. UserError where one is not there,
    where a study's target is not one that each host can start for itself, or where a study changes machines that may
    not be changed."""
    for study in studies:
        _check_study(fleet, study)
    named = sorted({name for study in studies for name in secrets_named(study)})
    with DaskEngine(fleet, named, say) as engine, Observing(fleet, say) as observing:
        yield engine, observing


def _check_study(fleet: Fleet, study: Study) -> None:
    if study.target.is_running or targets.kind_named(study.target.kind).by_address is not None:
        raise StudyError(
            "trials side by side need a target of their own on each host, and this one runs already",
            remedy="Let Loadframe start it (without target.attach), or measure without --fleet.",
        )
    check_may_change(fleet, study, "trial")
