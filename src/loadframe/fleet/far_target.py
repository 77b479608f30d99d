"""A private target on another host: to the bench one like any other, to its host's agent a list of questions
(serving.py). Server, cages and what is served are there; what comes back are answers, and errors as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from loadframe.cages.cage import Cage
from loadframe.errors import FleetError, StepVoid, TargetError
from loadframe.fleet.coordinator import Coordinator
from loadframe.fleet.part import state_told
from loadframe.kinds.exposed import Exposure
from loadframe.model import ChangeRecord, CounterSpec, Endpoint, SettingValue, TargetState
from loadframe.workloads.base import ELSEWHERE, Workload

ENDED_WITHIN_S = 30.0


class FarTarget:
    """See bench.on_bench.OnBench."""

    private = True
    embedded = False
    cages: tuple[Cage, ...] = ()
    """Of this machine."""

    def __init__(self, coordinator: Coordinator, host: str, kind: str, prefix: str) -> None:
        """host: by its name; its agent has been told to serve the study's targets, of which this is that kind. prefix:
        see Rig."""
        self._prefix = prefix
        self._coordinator = coordinator
        self._host = host
        self.kind = kind
        self.counter_specs: tuple[CounterSpec, ...] = ()
        self.exposure = Exposure()
        self._first: tuple[int, ...] = ()
        self._address = ""

    def __repr__(self) -> str:
        return f"{self.kind} on host {self._host}"

    # --- life -------------------------------------------------------------------------------------------------------

    def create(self) -> None:
        specs = self._ask("create", prefix=self._prefix)["specs"]
        self.counter_specs = tuple(CounterSpec(**each) for each in specs)

    def check(self, state: TargetState) -> None:
        self._ask("check", **state_told(state))

    def found_in(self, state: TargetState) -> TargetState:
        """The state itself: it is private."""
        return state

    def start(self, state: TargetState) -> None:
        self._ask("start", **state_told(state))
        self._address = str(self._ask("endpoint")["address"])

    def apply(self, state: TargetState) -> None:
        self._ask("apply", **state_told(state))

    def install(self, workload: Workload) -> None:
        workload.install(self.endpoint())

    def reset(self) -> None:
        self._ask("reset")

    def forget(self) -> None:
        self._ask("forget")

    def empty(self) -> None:
        self._ask("empty")

    def kill(self) -> None:
        self._ask("kill")

    def stop(self) -> None:
        self._ask("stop")

    def abandon(self) -> list[ChangeRecord]:
        """End it; what was changed of it ends with it."""
        self.stop()
        return []

    def leave(self) -> list[ChangeRecord]:
        """Nothing to put back."""
        return []

    def destroy(self) -> None:
        """End it. Where its host is lost, or this ends amid a step, its agent does that by itself."""
        with suppress(FleetError):
            self._coordinator.ask(self._host, "target", self._said("destroy"), ENDED_WITHIN_S, "agent-lost")

    def follow(self) -> None:
        """From now on it is this one that is recorded there."""
        self._ask("follow")

    # --- what it is and does now ------------------------------------------------------------------------------------

    def effective(self) -> dict[str, SettingValue]:
        return dict(self._ask("effective")["effective"])

    def counters(self) -> dict[str, float]:
        """See OnBench; into the recording of its host, too."""
        found = self._ask("counters", prefix=self._prefix)
        if found["stopped"]:
            raise TargetError(
                f"host {self._host!r}: the server did nothing for a part of the step: {found['stopped']}",
                remedy="Let it go on, and run it again.",
            )
        return {str(name): float(value) for name, value in found["counters"].items()}

    def local(self) -> bool:
        """It is on its host."""
        return False

    def free_bytes(self) -> float:
        """Of the file system there that holds what it stores."""
        return float(self._ask("free")["bytes"])

    def pids(self) -> tuple[int, ...]:
        """None of this machine."""
        return ()

    def first_process(self) -> tuple[int, ...]:
        """See OnBench; of that host."""
        return self._first

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        """None of this machine."""
        return {}

    def stage_files(self) -> Sequence[Path]:
        """None of this machine."""
        return ()

    def endpoint(self) -> Endpoint:
        """By its address, with the host on which what it serves is made."""
        return Endpoint(self.kind, self._address, {ELSEWHERE: self._host})

    def healthy(self) -> bool:
        return bool(self._ask("healthy")["healthy"])

    def version(self) -> str:
        return str(self._ask("version")["version"])

    def log_tail(self, lines: int = 20) -> str:
        return str(self._ask("log", lines=lines)["log"])

    def describe(self) -> Mapping[str, str]:
        return {**self._ask("describe")["words"], "host": self._host}

    def notes(self) -> tuple[str, ...]:
        """See OnBench; what it could tell where its host is gone is not known."""
        with suppress(StepVoid):
            return tuple(str(note) for note in self._ask("notes")["notes"])
        return ()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _said(self, do: str, **values: Any) -> dict[str, Any]:
        return {**values, "kind": self.kind, "do": do}

    def _ask(self, do: str, **values: Any) -> Mapping[str, Any]:
        found = self._coordinator.ask_target(self._host, self._said(do, **values))
        self._first = tuple(int(pid) for pid in found.get("first") or ())
        return found
