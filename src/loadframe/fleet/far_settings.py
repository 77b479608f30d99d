"""Settings on the host of the target: of its machine, and of a service that runs there. Its agent changes them, with
the journal there (changing.py).

To the bench they are places like those of this machine, and a journal like its own. What was there before is on that
host's disk before anything is changed, and is put back there also where this command never returns. What the run folder
has is a copy.
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
from loadframe.errors import ChangeError, StepVoid, StudyError, TargetError
from loadframe.fleet.changing import MACHINE, SERVER
from loadframe.fleet.hosts import Hosts
from loadframe.kinds.service.readiness import accepts
from loadframe.model import ChangeRecord, CounterSpec, Endpoint, SettingValue
from loadframe.runs.formats import decode

REFUSED = {each.__name__: each for each in (ChangeError, StudyError, TargetError)}
"""What an agent says of a place that does not take a setting: that is no lost host."""


class FarPlace:
    """See changes.places.Place. All methods raise StepVoid where the host is lost."""

    def __init__(self, hosts: Hosts, place: str, more: Mapping[str, str]) -> None:
        """place: MACHINE or SERVER; more: what its agent finds it by. TargetError where its host is not known."""
        self._hosts = hosts
        self._asks = {**more, "place": place}
        self.host = hosts.machine()
        self.words = f"host {self.host}"
        self.address: Mapping[str, str] = {"kind": "host", ON_HOST: self.host}

    def read(self, name: str) -> SettingValue:
        value: SettingValue = self._asked("read", name=name)["value"]
        return value

    def write(self, name: str, value: SettingValue) -> None:
        """Never so: it is the journal of its host that writes."""
        raise TargetError(f"{name} of {self.words} is not written from here", remedy="This is a fault of Loadframe.")

    def set(self, name: str, value: SettingValue) -> SettingValue:
        """Change it there, noted there; what is read back. ChangeError, StudyError, TargetError."""
        read_back: SettingValue = self._asked("set", name=name, value=value)["read_back"]
        return read_back

    def back(self, names: Sequence[str]) -> list[ChangeRecord]:
        """These as they were; what has become of each. Where the host is lost its agent does that by itself, and it is
        not known here."""
        try:
            lines = self._asked("back", names=names)["changes"]
        except StepVoid as error:
            because = f"is put back by the agent of that host, which does not tell it: {error.fact}"
            outcomes = [ChangeRecord(", ".join(names), None, None, status="failed", because=because)]
        else:
            where = f"the answer of host {self.host}"
            outcomes = [decode("change", str(line).encode(), ChangeRecord, where=where) for line in lines]
        return [replace(each, place=dict(self.address), words=self.words) for each in outcomes]

    def _asked(self, do: str, **values: Any) -> Mapping[str, Any]:
        answer = self._hosts.ask_machine({**self._asks, **values, "do": do})
        if (refused := answer.get("refused")) is not None:
            kind = REFUSED.get(str(refused.get("kind")), TargetError)
            raise kind(str(refused["fact"]), remedy=str(refused.get("remedy", "")) or "See what is wrong there.")
        return answer


class FarMachine(FarPlace):
    """See bench.surroundings.Machine."""

    def __init__(self, hosts: Hosts) -> None:
        super().__init__(hosts, MACHINE, {})

    def moves(self, name: str) -> tuple[str, ...]:
        """Known to its agent, which puts them back as well."""
        return ()


class FarServer(FarPlace):
    """See kinds.base.Attached: a service that runs on the target's host."""

    counter_specs: tuple[CounterSpec, ...] = ()

    def __init__(self, hosts: Hosts) -> None:
        """TargetError where it is not found there. StepVoid."""
        number = look_up(hosts.address())[0]
        super().__init__(hosts, SERVER, {"address": number})
        told = self._asked("look")
        self.kind = str(told["kind"])
        self.words = f"{told['words']} on host {self.host}"
        self.address = {"kind": self.kind, ON_HOST: self.host}
        self._version = str(told["version"])
        given = told["endpoint"]
        _, port = parted(str(given["address"]), "80")
        options = {str(name): str(value) for name, value in dict(given["options"]).items()}
        self._endpoint = Endpoint(
            self.kind, joined(number, int(port)), {**options, "host": joined(number, int(port))}, attached=True
        )

    def counters(self) -> dict[str, float]:
        """None: its agent records it."""
        return {}

    def effective(self) -> dict[str, SettingValue]:
        return dict(self._asked("look")["effective"])

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


class FarJournal(DurableJournal):
    """See DurableJournal. What is changed of a FarPlace is in the journal of its host."""

    def __init__(self, what: str, run: Path) -> None:
        super().__init__(what, run)
        self._far: dict[tuple[str, str], None] = {}
        """By the words of the place, and the setting."""

    @property
    def not_reverted(self) -> tuple[str, ...]:
        return (*super().not_reverted, *(name for _, name in self._far))

    def set(self, place: Place, name: str, value: SettingValue, moves: Sequence[str] = ()) -> SettingValue:
        """As there. StepVoid where the host is lost."""
        if not isinstance(place, FarPlace):
            return super().set(place, name, value, moves)
        self._far[place.words, name] = None
        return place.set(name, value)

    def back(self, place: Place, names: Container[str] | None = None) -> list[ChangeRecord]:
        if not isinstance(place, FarPlace):
            return super().back(place, names)
        chosen = [name for words, name in self._far if words == place.words and (names is None or name in names)]
        if not chosen:
            return []
        outcomes = place.back(chosen)
        self._far = {key: None for key in self._far if key[0] != place.words or key[1] not in chosen}
        return outcomes
