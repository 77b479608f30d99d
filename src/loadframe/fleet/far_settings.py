"""Settings of a running service on another host: its agent changes them there, with the journal there.

To the bench it is a service like one of this machine, and a journal like its own. What was there before is on that
host's disk before anything is changed, and its agent puts it back also where this command never returns
(running_there.py). What the run folder has is a copy.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from loadframe.changes.durable import DurableJournal
from loadframe.changes.places import ON_HOST, Place
from loadframe.connections.address import look_up
from loadframe.connections.host_port import joined, parted
from loadframe.errors import ChangeError, StepVoid, TargetError
from loadframe.fleet.hosts import Hosts
from loadframe.kinds.service.readiness import accepts
from loadframe.model import ChangeRecord, CounterSpec, Endpoint, SettingValue
from loadframe.runs.formats import decode

REFUSED = {"ChangeError": ChangeError, "TargetError": TargetError}
"""What an agent says of a server that does not take a setting: that is no lost host."""


class FarServer:
    """See kinds.base.Attached: a service that runs on the target's host."""

    counter_specs: tuple[CounterSpec, ...] = ()

    def __init__(self, hosts: Hosts) -> None:
        """TargetError where it is not found there. StepVoid."""
        self._hosts = hosts
        told = self._asked("running", {})
        self.kind = str(told["kind"])
        self.words = f"{told['words']} on host {hosts.machine()}"
        self.address: Mapping[str, str] = {"kind": self.kind, ON_HOST: hosts.machine()}
        self._version = str(told["version"])
        given = told["endpoint"]
        _, port = parted(str(given["address"]), "80")
        number = look_up(hosts.address())[0]
        options = {str(name): str(value) for name, value in dict(given["options"]).items()}
        self._endpoint = Endpoint(
            self.kind, joined(number, int(port)), {**options, "host": joined(number, int(port))}, attached=True
        )

    def counters(self) -> dict[str, float]:
        """None: its agent records it."""
        return {}

    def effective(self) -> dict[str, SettingValue]:
        return dict(self._asked("running", {})["effective"])

    def read(self, name: str) -> SettingValue:
        value: SettingValue = self._asked("running_read", {"name": name})["value"]
        return value

    def write(self, name: str, value: SettingValue) -> None:
        """Never so: it is the journal of its host that writes."""
        raise TargetError(f"{name} of {self.words} is not written from here", remedy="This is a fault of Loadframe.")

    def set(self, name: str, value: SettingValue) -> SettingValue:
        """Change it there, noted there; what is read back. ChangeError, TargetError, StepVoid."""
        found: SettingValue = self._asked("running_set", {"name": name, "value": value})["read_back"]
        return found

    def back(self, names: Sequence[str] | None) -> list[ChangeRecord]:
        """These, or all, as they were; what has become of each. Where the host is lost its agent does that by itself,
        and it is not known here."""
        try:
            told = {"names": None if names is None else list(names)}
            lines = self._asked("running_back", told, back=True)["changes"]
        except StepVoid as error:
            because = f"is put back by the agent of that host, which does not tell it: {error.fact}"
            lost = ChangeRecord(", ".join(names or ["all settings"]), None, None, status="failed", because=because)
            return [replace(lost, place=dict(self.address), words=self.words)]
        where = f"the answer of host {self._hosts.machine()}"
        found = [decode("change", str(line).encode(), ChangeRecord, where=where) for line in lines]
        return [replace(each, place=dict(self.address), words=self.words) for each in found]

    def settle(self) -> None:
        """Nothing: what applies a setting has ended when its agent answers."""

    def configured(self) -> dict[str, SettingValue]:
        """Nothing is known of what was asked for."""
        return {}

    def answers(self) -> bool:
        host, port = parted(self._endpoint.address, "80")
        return accepts(host, int(port))

    def pid(self) -> int | None:
        """None of this machine."""
        return None

    def listener(self) -> int | None:
        """None of this machine."""
        return None

    def pids(self) -> tuple[int, ...]:
        """None of this machine: its agent follows them."""
        return ()

    def helpers(self) -> Mapping[str, tuple[int, ...]]:
        """None of this machine."""
        return {}

    def local(self) -> bool:
        return False

    def endpoint(self) -> Endpoint:
        """By the address of its host in the fleet file."""
        return self._endpoint

    def version(self) -> str:
        return self._version

    def describe(self) -> str:
        return self.words

    def close(self) -> None:
        """Its agent holds it."""

    def _asked(self, question: str, values: Mapping[str, Any], *, back: bool = False) -> Mapping[str, Any]:
        answer = self._hosts.ask_target(question, values, back=back)
        if (refused := answer.get("refused")) is not None:
            kind = REFUSED.get(str(refused.get("kind")), TargetError)
            raise kind(str(refused["fact"]), remedy=str(refused.get("remedy", "")) or "See the server there.")
        return answer


class FarJournal(DurableJournal):
    """See DurableJournal. What is changed of a FarServer is in the journal of its host."""

    def __init__(self, what: str, run: Path) -> None:
        super().__init__(what, run)
        self._far: dict[str, None] = {}

    @property
    def not_reverted(self) -> tuple[str, ...]:
        return (*super().not_reverted, *self._far)

    def set(self, place: Place, name: str, value: SettingValue, moves: Sequence[str] = ()) -> SettingValue:
        """See DurableJournal. StepVoid where the host is lost."""
        if not isinstance(place, FarServer):
            return super().set(place, name, value, moves)
        self._far[name] = None
        return place.set(name, value)

    def back(self, place: Place, names: Container[str] | None = None) -> list[ChangeRecord]:
        if not isinstance(place, FarServer):
            return super().back(place, names)
        chosen = [name for name in self._far if names is None or name in names]
        if not chosen:
            return []
        outcomes = place.back(chosen)
        self._far = {name: None for name in self._far if name not in chosen}
        return outcomes
