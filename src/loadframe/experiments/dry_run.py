"""Before anything is loaded: would the target start in every state that the study names?"""

from __future__ import annotations

from loadframe.bench.base import Bench
from loadframe.errors import UserError
from loadframe.experiments.ladder_states import LadderStates
from loadframe.experiments.side_by_side import state_of
from loadframe.model import TargetState


def check_alternatives(bench: Bench) -> None:
    """Raises as Target.check does, and says of which alternative. The study's own state is not looked at: the target
    starts in it before it is loaded anyway."""
    for alternative in bench.study.alternative:
        state, kind = state_of(bench, alternative)
        _check(bench, f"alternative {alternative.name!r}", state, kind)


def check_changes(bench: Bench, states: LadderStates) -> None:
    """The same for each change of a ladder, on top of all before it."""
    names = tuple(change.name for change in bench.study.change)
    for number, name in enumerate(names, start=1):
        _check(bench, f"change {name!r}", states.of(names[:number]))


def _check(bench: Bench, what: str, state: TargetState, kind: str | None = None) -> None:
    try:
        bench.check(state, kind)
    except UserError as error:
        raise type(error)(f"{what}: {error.fact}", remedy=error.remedy, details=error.details) from error
