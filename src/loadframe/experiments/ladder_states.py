"""The states of a ladder: what a change makes of a state, when the target restarts, whether it would start in all."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from loadframe.analysis.ladder import State
from loadframe.bench.base import Bench
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.bench.surroundings import host_settings
from loadframe.changes.journal import differences
from loadframe.errors import UserError
from loadframe.experiments.side_by_side import START, changed, state_of
from loadframe.kinds import registry as targets
from loadframe.model import Change, SettingValue, TargetState


@dataclass
class LadderStates:
    """The states of a study's ladder as treatments of its bench; each is declared when it is first asked for. Made
    before anything is changed: what a change sets of the machine is held against what is there."""

    book: Bookkeeping
    _names: dict[State, str] = field(default_factory=dict)
    _host: dict[str, dict[str, SettingValue]] = field(init=False)

    def __post_init__(self) -> None:
        self._host = {change.name: host_settings(change.host) for change in self.book.bench.study.change}

    def of(self, state: State) -> TargetState:
        """What the target is set to."""
        study = self.book.bench.study
        found = self.book.bench.start_state
        for change in study.change:
            if change.name in state:
                found = changed(found, change, self._host[change.name])
        return found

    def name(self, state: State) -> str:
        """Its treatment."""
        if state not in self._names:
            title = " + ".join(state)
            self._names[state] = self.book.next_treatment(title, self.of(state)) if state else START
        return self._names[state]

    def titled(self, name: str) -> tuple[str, TargetState]:
        """Of a treatment that was declared: what it is called, and its state."""
        state = next(state for state, known in self._names.items() if known == name)
        return " + ".join(state), self.of(state)

    def changes(self, before: State, after: State) -> tuple[Change, ...]:
        """What differs between two states."""
        return tuple(differences(self.of(before), self.of(after)))

    def groups(self, states: Sequence[State]) -> list[list[str]]:
        """Their treatments, those together between which the target need not restart."""
        found: dict[Hashable, list[str]] = {}
        for state in states:
            found.setdefault(self._restart_part(self.of(state)), []).append(self.name(state))
        return list(found.values())

    def _restart_part(self, state: TargetState) -> Hashable:
        """What of a state a running target cannot be brought to."""
        row = targets.of_study(self.book.bench.study)
        specs = {name: row.setting(name) for name in state.settings}
        at_start = [name for name, spec in specs.items() if not (spec and spec.dynamic and not spec.sized_at_start)]
        return (
            frozenset((name, state.settings[name]) for name in at_start),
            frozenset(state.limits.items()),
        )


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
