"""What targets that are one private server have in common."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from loadframe.errors import TargetError
from loadframe.host.leases import Lease, filesystem
from loadframe.host.processes import Allowance
from loadframe.kinds.catalogue import Catalogue, differing
from loadframe.kinds.private_server import PrivateServer, soft_nofile
from loadframe.masking import masked
from loadframe.model import CounterSpec, SettingValue, TargetState

NOFILE = "RLIMIT_NOFILE"


class PrivateTarget(PrivateServer, ABC):
    """A server that the subclass begins in a state, and changes while it runs where that gives the same effective
    values as a restart. data: where it keeps what it serves."""

    kind: str
    embedded = False
    counter_specs: tuple[CounterSpec, ...]
    catalogue: Catalogue
    data: Path
    _state: TargetState | None = None
    _effective: Mapping[str, SettingValue] = MappingProxyType({})

    def __init__(self, lease: Lease, folder: str, allowance: Allowance, port: int | None = None) -> None:
        super().__init__(lease, folder, allowance.user, port)
        self._allowance = allowance
        self.data = self.folder

    def check_settings(self, settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
        return self.catalogue.check(settings)

    def check(self, state: TargetState) -> None:
        self._wanted(state)

    def start(self, state: TargetState) -> None:
        wanted = self._wanted(state)
        if self.started:
            raise TargetError(f"{self.name} is running already", remedy="Use apply, or stop it first.")
        self._begin(wanted, self._allowed(wanted))
        self._entered(wanted)

    def apply(self, state: TargetState) -> None:
        current, wanted = self._running(), self._wanted(state)
        changed = differing(self._complete(current.settings), self._complete(wanted.settings))
        if wanted.limits != current.limits or any(self.catalogue.needs_restart(name) for name in changed):
            PrivateTarget.stop(self)  # the server alone, not the origin behind it
            self.start(wanted)
        elif changed:
            self._change(wanted, changed)

    def reset(self) -> None:
        """Nothing to reset by default: what stays is part of what is measured."""
        self._running()

    def stop(self) -> None:
        self._left()
        super().stop()

    def destroy(self) -> None:
        self.kill()  # first: whoever is asking it something gets its end as the answer, and lets go of it
        self._left()
        super().destroy()

    def effective(self) -> dict[str, SettingValue]:
        self._running()
        return {**self._effective, NOFILE: soft_nofile(self.pid)}

    def pids(self) -> tuple[int, ...]:
        return () if self.pid is None else (self.pid,)

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        return {"target": self.pids()}

    def healthy(self) -> bool:
        return self.pid is not None and self._answers()

    def describe(self) -> Mapping[str, str]:
        return {
            "data": f"{self.data} on {filesystem(self.folder)}",
            "user": str(self._allowance.user),
            "started": masked(" ".join(self.command)),
        }

    def listen_on(self, number: str) -> None:
        self.host = number

    @abstractmethod
    def _begin(self, wanted: TargetState, allowance: Allowance) -> None:
        """Return once it answers. TargetError."""

    @abstractmethod
    def _answers(self) -> bool:
        """Never raises."""

    def _change(self, wanted: TargetState, changed: Sequence[str]) -> None:
        """Also call `_entered`. changed: what differs, all dynamic."""
        raise NotImplementedError

    def _entered(self, state: TargetState) -> None:
        self._state = state

    def _complete(self, settings: Mapping[str, SettingValue]) -> Mapping[str, SettingValue]:
        """As they are compared: with defaults, for a server whose defaults are written too."""
        return settings

    def _left(self) -> None:
        """Close our connection to it, too. The server may have died, or never have been started."""
        self._state = None

    def _wanted(self, state: TargetState) -> TargetState:
        return TargetState(self.check_settings(state.settings), dict(state.limits))

    def _running(self) -> TargetState:
        if (died := self.died()) is not None:
            raise died
        assert self._state is not None, "a server that runs was started with a state"
        return self._state

    def _allowed(self, state: TargetState) -> Allowance:
        return replace(self._allowance, limits={**self._allowance.limits, **state.limits})
