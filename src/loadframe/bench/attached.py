"""A server that runs already and goes on, on the bench: its settings are changed while it runs, and put back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from loadframe.cage.cages import Cage
from loadframe.changes.durable import DurableJournal, Outcome
from loadframe.changes.schema import THERE, OwnSchema
from loadframe.errors import TargetError
from loadframe.model import CounterSpec, Endpoint, SettingValue, TargetState
from loadframe.study import Study
from loadframe.targets.attached import attach
from loadframe.targets.catalogue import differing
from loadframe.targets.registry import setting
from loadframe.workloads.base import Workload


class AttachedTarget:
    """See targets.base.Target; it has no cage. Whoever is done with it calls `leave`."""

    embedded = False
    private = False
    cages: tuple[Cage, ...] = ()

    def __init__(self, study: Study, durable: DurableJournal) -> None:
        """TargetError where the server does not let us in."""
        table = study.target
        option_file = Path(table.option_file) if table.option_file else None
        self._server = attach(f"{table.kind}:{table.attach}", option_file=option_file)
        self._durable = durable
        self._state = TargetState()
        self._schema: OwnSchema | None = None
        self.kind = table.kind
        self.counter_specs: tuple[CounterSpec, ...] = self._server.counter_specs

    def create(self) -> None:
        """Nothing: it is there."""

    def check(self, state: TargetState) -> None:
        """TargetError for all that needs a restart."""
        changed = differing(self._state.settings, state.settings)
        unable = [*state.limits, *(name for name in changed if not is_dynamic(self.kind, name))]
        if unable:
            raise TargetError(
                f"{self._server.words} would have to be restarted to change {', '.join(unable)}, and it is not ours",
                remedy="Change it by hand, or give the study a private server (leave out target.attach).",
            )

    def found_in(self, state: TargetState) -> TargetState:
        """It runs: nothing is changed yet, whatever the state it is to be brought to."""
        return TargetState()

    def start(self, state: TargetState) -> None:
        """See that it answers; the rest as `apply`."""
        self._server.version()
        self.apply(state)

    def install(self, workload: Workload) -> None:
        """The workload's schema, which is noted before it is made. TargetError where there is one that is not ours."""
        self._schema = OwnSchema(self.endpoint(), self._server, lambda: workload.remove(self.endpoint()))
        self._schema.make_room()
        self._durable.intend(self._schema, self._schema.name, THERE)
        workload.install(self.endpoint())

    def apply(self, state: TargetState) -> None:
        """Only what changes without a restart. TargetError, before anything is changed, for all else."""
        self.check(state)
        changed = differing(self._state.settings, state.settings)
        self._durable.back(self._server, [name for name in changed if name not in state.settings])
        for name in changed:
            if name in state.settings:
                self._durable.set(self._server, name, state.settings[name])
        self._state = replace(state, host={})

    def abandon(self) -> list[Outcome]:
        """Whatever has become of it: its settings as they were; what has become of each."""
        self._state = TargetState()
        return self._durable.back(self._server)

    def leave(self) -> list[Outcome]:
        """The same, and the workload's schema gone."""
        dropped = self._durable.back(self._schema) if self._schema is not None else []
        return [*dropped, *self.abandon()]

    def reset(self) -> None:
        """Nothing: its high-water marks and caches are its owner's."""

    def forget(self) -> None:
        """Nothing, for the same reason."""

    def empty(self) -> None:
        """Nothing, for the same reason."""

    def stop(self) -> None:
        """Nothing: it goes on."""

    def destroy(self) -> None:
        """Let go of it, as it was before."""
        self.leave()
        self._server.close()

    def effective(self) -> dict[str, SettingValue]:
        return self._server.effective()

    def counters(self) -> dict[str, float]:
        return self._server.counters()

    def pids(self) -> tuple[int, ...]:
        return self._server.pids()

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        return {"target": self.pids()}

    def endpoint(self) -> Endpoint:
        return self._server.endpoint()

    def healthy(self) -> bool:
        try:
            return bool(self._server.effective())
        except TargetError:
            return False

    def version(self) -> str:
        return self._server.version()

    def log_tail(self, lines: int = 20) -> str:
        return ""

    def describe(self) -> Mapping[str, str]:
        return {"data": self._server.describe()}


def is_dynamic(kind: str, name: str) -> bool:
    """Whether a running server accepts a new value."""
    spec = setting(kind, name)
    return spec is not None and spec.dynamic
