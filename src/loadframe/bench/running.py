"""A running service of the reader's own, on the bench: it is as its study says, and what a study may change of it is
put back."""

from dataclasses import replace
from typing import Protocol, runtime_checkable

from loadframe.bench.attached import AttachedTarget
from loadframe.bench.places import THERE
from loadframe.changes.durable import DurableJournal
from loadframe.errors import TargetError
from loadframe.kinds.base import Attached
from loadframe.kinds.registry import canonical
from loadframe.model import ChangeRecord, Endpoint, SettingValue, TargetState
from loadframe.study import Study
from loadframe.workloads.base import Workload
from loadframe.workloads.redis_keys import DATABASE, OwnKeys


def running(study: Study, durable: DurableJournal) -> AttachedTarget:
    """The server that runs already, as a study names it. TargetError."""
    return RunningTarget(study, durable) if study.target.is_running_service else AttachedTarget(study, durable)


@runtime_checkable
class MakesThings(Protocol):
    """A workload that makes keys in a server, in a place of its own where the server is not ours."""

    def own_place(self, endpoint: Endpoint) -> OwnKeys: ...


class RunningTarget(AttachedTarget):
    """See AttachedTarget. What target.settings say of it is what it has already."""

    def __init__(self, study: Study, durable: DurableJournal, server: Attached | None = None) -> None:
        """server: as found already. TargetError where it is not found."""
        super().__init__(study, durable, server)
        self._keys: OwnKeys | None = None
        self._stated = dict(canonical(study).target.settings)
        self._owned = study.target.owned or bool(study.target.restart)
        self._state = TargetState(self._stated)

    def found_in(self, state: TargetState) -> TargetState:
        return TargetState(self._stated)

    def start(self, state: TargetState) -> None:
        """See that it has what the study says, as far as that is read back."""
        used = self._server.effective()
        if wrong := [name for name, value in self._stated.items() if used.get(name, value) != value]:
            name = wrong[0]
            raise TargetError(
                f"{self._server.words} has {name} = {used[name]}, and target.settings says {self._stated[name]}",
                remedy="Correct target.settings: a running service is taken as it is.",
            )
        super().start(state)

    def install(self, workload: Workload) -> None:
        """It has pages of its own: the workload learns them. Where a workload makes things there, is noted before."""
        if isinstance(workload, MakesThings):
            place = workload.own_place(super().endpoint())
            self._durable.intend(place, place.name, THERE)
            self._made = self._keys = place
        workload.install(self.endpoint())

    def endpoint(self) -> Endpoint:
        """With the database in which the workload has its keys."""
        found = super().endpoint()
        known = {} if self._keys is None else {DATABASE: str(self._keys.database)}
        return replace(found, options={**found.options, **known})

    def check(self, state: TargetState) -> None:
        """Raises as AttachedTarget.check; TargetError for any change of one that is not owned."""
        if state.settings != self._state.settings and not self._owned:
            raise TargetError(
                f"{self._server.words} is not changed: the study does not say that it is yours (target.owned)",
                remedy="If it is, set target.owned = true; or let Loadframe start a service of its own.",
            )
        super().check(state)

    def abandon(self) -> list[ChangeRecord]:
        put_back = super().abandon()
        self._state = TargetState(self._stated)
        return put_back

    def effective(self) -> dict[str, SettingValue]:
        """What is read back; of the others what the study says."""
        return {**self._state.settings, **super().effective()}
