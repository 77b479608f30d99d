"""A target on another host as the bench sees it: a private one (part.py), or settings of a machine and a service there,
with their journal (changing.py); the run folder has a copy."""

from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from loadframe.bench.base import OnBench
from loadframe.cages.cage import Cage
from loadframe.changes.durable import DurableJournal
from loadframe.changes.places import ON_HOST, Place
from loadframe.connections.address import accepts, joined, look_up, parted
from loadframe.errors import FleetError, StepVoid, TargetError
from loadframe.kinds.base import Attached
from loadframe.kinds.exposed import Exposure
from loadframe.model import ChangeRecord, CounterSpec, Endpoint, SettingValue, TargetState
from loadframe.runs.formats import decode
from loadframe.workloads.base import ELSEWHERE
from loadframe_fleet.changing import MACHINE, SERVER
from loadframe_fleet.coordinator import Coordinator
from loadframe_fleet.hosts import Hosts
from loadframe_fleet.part import state_message
from loadframe_fleet.wire import Message


class FarPlace:
    """See changes.places.Place. StepVoid where the host is lost, TargetError where it is unknown."""

    def __init__(self, hosts: Hosts, place: str, more: Mapping[str, str]) -> None:
        """place: MACHINE or SERVER; more: by which its agent finds it."""
        self._hosts = hosts
        self._asks = {**more, "place": place}

    @cached_property
    def host(self) -> str:
        """Looked up late: a study that changes no setting needs no known host."""
        return self._hosts.machine()

    @cached_property
    def words(self) -> str:
        return f"host {self.host}"

    @cached_property
    def address(self) -> Mapping[str, str]:
        return {"kind": "host", ON_HOST: self.host}

    def read(self, name: str) -> SettingValue:
        value: SettingValue = self._asked("read", name=name)["value"]
        return value

    def write(self, name: str, value: SettingValue) -> None:
        """Never called: the journal of its host writes."""
        raise TargetError(f"{name} of {self.words} is not written from here", remedy="This is a fault of Loadframe.")

    def set(self, name: str, value: SettingValue) -> SettingValue:
        """Journalled there; returns the value read back. ChangeError, StudyError, TargetError."""
        read_back: SettingValue = self._asked("set", name=name, value=value)["read_back"]
        return read_back

    def back(self, names: Sequence[str]) -> list[ChangeRecord]:
        """The outcomes; unknown where the host is lost: its agent then puts them back by itself."""
        try:
            lines = self._asked("back", names=names)["changes"]
        except StepVoid as error:
            because = f"is put back by the agent of that host, which does not tell it: {error.fact}"
            outcomes = [ChangeRecord(", ".join(names), None, None, status="failed", because=because)]
        else:
            where = f"the answer of host {self.host}"
            outcomes = [decode("change", str(line).encode(), ChangeRecord, where=where) for line in lines]
        return [replace(record, place=dict(self.address), words=self.words) for record in outcomes]

    def _asked(self, do: str, **values: Any) -> Message:
        return self._hosts.coordinator.ask_place(self.host, {**self._asks, **values, "do": do})


class FarMachine(FarPlace):
    """See bench.rig.Machine."""

    def __init__(self, hosts: Hosts) -> None:
        super().__init__(hosts, MACHINE, {})

    def moves(self, name: str) -> tuple[str, ...]:
        """Its agent puts them back as well."""
        return ()


class FarServer(FarPlace, Attached):
    """See kinds.base.Attached: a service on the target's host, whose agent records it."""

    counter_specs: tuple[CounterSpec, ...] = ()

    def __init__(self, hosts: Hosts) -> None:
        """TargetError where it is not found there. StepVoid."""
        number = look_up(hosts.address())[0]
        super().__init__(hosts, SERVER, {"address": number})
        server = self._asked("look")
        self.kind = str(server["kind"])
        self.words = f"{server['words']} on host {self.host}"
        self.address = {"kind": self.kind, ON_HOST: self.host}
        self._version = str(server["version"])
        given = server["endpoint"]
        place = joined(number, int(parted(str(given["address"]), "80")[1]))
        options = {str(name): str(value) for name, value in dict(given["options"]).items()}
        self._endpoint = Endpoint(self.kind, place, {**options, "host": place}, attached=True)

    def counters(self) -> dict[str, float]:
        return {}

    def effective(self) -> dict[str, SettingValue]:
        return dict(self._asked("look")["effective"])

    def settle(self) -> None:
        """No-op: a setting is applied before its agent answers."""

    def answers(self) -> bool:
        host, port = parted(self._endpoint.address, "80")
        return accepts(host, int(port))

    def endpoint(self) -> Endpoint:
        return self._endpoint

    def version(self) -> str:
        return self._version

    def describe(self) -> str:
        return self.words

    def close(self) -> None:
        """No-op: its agent holds it."""


class FarJournal(DurableJournal):
    """Changes of a FarPlace are in the journal of its host."""

    def __init__(self, what: str, run: Path) -> None:
        super().__init__(what, run)
        self._far: dict[tuple[str, str], None] = {}
        """By the words of the place, and the setting."""

    @property
    def not_reverted(self) -> tuple[str, ...]:
        return (*super().not_reverted, *(name for _, name in self._far))

    def set(self, place: Place, name: str, value: SettingValue, moves: Sequence[str] = ()) -> SettingValue:
        """StepVoid where the host is lost."""
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
        done = {outcome.setting for outcome in outcomes if outcome.status != "failed"}
        self._far = {key: None for key in self._far if key[0] != place.words or key[1] not in done}
        return outcomes


ENDED_WITHIN_S = 30.0


class FarTarget(OnBench):
    """It has no processes and no files on this machine."""

    private = True
    embedded = False
    cages: tuple[Cage, ...] = ()

    def __init__(self, coordinator: Coordinator, host: str, kind: str, prefix: str) -> None:
        """host: its agent serves the study's targets. prefix: see Rig."""
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

    def create(self) -> None:
        specs = self._ask("create", prefix=self._prefix)["specs"]
        self.counter_specs = tuple(CounterSpec(**spec) for spec in specs)

    def check(self, state: TargetState) -> None:
        self._ask("check", **state_message(state))

    def start(self, state: TargetState) -> None:
        self._ask("start", **state_message(state))
        self._address = str(self._value("endpoint"))

    def apply(self, state: TargetState) -> None:
        self._ask("apply", **state_message(state))

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

    def destroy(self) -> None:
        """Where its host is lost, or this ends amid a step, its agent does that by itself."""
        with suppress(FleetError):
            said = {"kind": self.kind, "do": "destroy"}
            self._coordinator.ask(self._host, "target", said, ENDED_WITHIN_S, "agent-lost")

    def follow(self) -> None:
        self._ask("follow")

    def effective(self) -> dict[str, SettingValue]:
        return dict(self._value("effective"))

    def counters(self) -> dict[str, float]:
        """They also go into the recording of its host."""
        answer = self._ask("counters", prefix=self._prefix)
        if answer["stopped"]:
            raise TargetError(
                f"host {self._host!r}: the server did nothing for a part of the step: {answer['stopped']}",
                remedy="Let it go on, and run it again.",
            )
        return {str(name): float(value) for name, value in answer["counters"].items()}

    def local(self) -> bool:
        return False

    def free_bytes(self) -> float:
        """Of the file system there that holds its data."""
        return float(self._value("free"))

    def pids(self) -> tuple[int, ...]:
        return ()

    def first_process(self) -> tuple[int, ...]:
        """Process ids of that host."""
        return self._first

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        return {}

    def stage_files(self) -> Sequence[Path]:
        return ()

    def endpoint(self) -> Endpoint:
        """The endpoint, with the host on which the served data are made."""
        return Endpoint(self.kind, self._address, {ELSEWHERE: self._host})

    def healthy(self) -> bool:
        return bool(self._value("healthy"))

    def version(self) -> str:
        return str(self._value("version"))

    def log_tail(self, lines: int = 20) -> str:
        return str(self._value("log", lines=lines))

    def describe(self) -> Mapping[str, str]:
        return {**self._value("describe"), "host": self._host}

    def notes(self) -> tuple[str, ...]:
        """None where its host is gone."""
        with suppress(StepVoid):
            return tuple(map(str, self._value("notes")))
        return ()

    def _value(self, do: str, **values: Any) -> Any:
        return self._ask(do, **values)["value"]

    def _ask(self, do: str, **values: Any) -> Message:
        answer = self._coordinator.ask_target(self._host, {**values, "kind": self.kind, "do": do})
        self._first = tuple(int(pid) for pid in answer.get("first") or ())
        return answer
