"""What targets that are one private server have in common: who runs it, what it may have, its state, and what is told
of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Generic, TypeVar

from loadframe.errors import TargetError
from loadframe.host.leases import filesystem
from loadframe.host.processes import Allowance, unprivileged_user
from loadframe.kinds.private_server import PrivateServer
from loadframe.model import SettingValue, TargetState

NOFILE = "RLIMIT_NOFILE"

Server = TypeVar("Server", bound=PrivateServer)


class PrivateTarget(ABC, Generic[Server]):
    """See targets.base.Target; the rest of it is the subclass's, which sets `_state` once the server is in it."""

    embedded = False

    def __init__(self, server: Server, allowance: Allowance, log: Callable[[str], None], *, data: Path) -> None:
        """allowance: with the user who runs the server (`run_by`). log: is told of starts and changes. data: where it
        keeps what it serves."""
        self._server = server
        self._allowance = allowance
        self._log = log
        self._data = data
        self._state: TargetState | None = None

    def stop(self) -> None:
        """Stop cleanly; the data stay. Does nothing where it does not run."""
        self._left()
        self._server.stop()

    def destroy(self) -> None:
        """End the server at once and remove its folder; the lease stays its owner's."""
        self._server.kill()  # first: whoever asks it something has its end for an answer, and lets go of it
        self._left()
        self._server.destroy()

    def pids(self) -> tuple[int, ...]:
        return () if self._server.pid is None else (self._server.pid,)

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        return {"target": self.pids()}

    def log_tail(self, lines: int = 20) -> str:
        return self._server.log_tail(lines)

    def describe(self) -> Mapping[str, str]:
        return {
            "data": f"{self._data} on {filesystem(self._server.folder)}",
            "user": str(self._allowance.user or "the user who ran Loadframe"),
            "started": " ".join(self._server.command),
        }

    # --- for the subclass -------------------------------------------------------------------------------------------

    @abstractmethod
    def _canonical(self, settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
        """Settings in canonical form. StudyError."""

    @abstractmethod
    def _hang_up(self) -> None:
        """Close what we talk to it with. It may have died, or never have been started."""

    def _left(self) -> None:
        """It is about to end."""
        self._state = None
        self._hang_up()

    def _wanted(self, state: TargetState) -> TargetState:
        """A state as it is compared with others. StudyError."""
        return TargetState(self._canonical(state.settings), dict(state.limits))

    def _to_start(self, state: TargetState) -> TargetState:
        """The same of one to start with. TargetError where the server runs."""
        wanted = self._wanted(state)
        if self._server.started:
            raise TargetError(f"{self._server.name} is running already", remedy="Use apply, or stop it first.")
        return wanted

    def _running(self) -> TargetState:
        """The state it is in. TargetError where it has died."""
        if (died := self._server.died()) is not None:
            raise died
        assert self._state is not None, "a server that runs was started with a state"
        return self._state

    def _allowed(self, state: TargetState) -> Allowance:
        """What the server may have in a state."""
        return replace(self._allowance, limits={**self._allowance.limits, **state.limits})

    def _tell_start(self, state: TargetState) -> None:
        words = " ".join(f"{name}={value}" for name, value in state.settings.items())
        self._log(f"{self._server.name} started with {words or 'its default settings'}")


def run_by(allowance: Allowance, *users: str) -> Allowance:
    """With a user where it names none and we are root: the first of these that there is, else "nobody"."""
    return replace(allowance, user=allowance.user or unprivileged_user(users))
