"""What of a target on another host the bench sees: the target itself, where it is private, and settings of its machine
and of a service that runs there.

To the bench they are like those of this machine. Server, cages and what is served are there (part.py); what comes back
are answers, and errors as they are. Settings are changed by the agent there (changing.py), with the journal there: what
was there before is on that host's disk before anything is changed, and is put back also where this command never
returns. What the run folder has is a copy.
"""

from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from loadframe.cages.cage import Cage
from loadframe.changes.durable import DurableJournal
from loadframe.changes.places import ON_HOST, Place
from loadframe.connections.address import joined, look_up, parted
from loadframe.errors import ChangeError, FleetError, StepVoid, StudyError, TargetError
from loadframe.fleet.changing import MACHINE, SERVER
from loadframe.fleet.coordinator import Coordinator
from loadframe.fleet.hosts import Hosts
from loadframe.fleet.part import state_told
from loadframe.kinds.exposed import Exposure
from loadframe.kinds.service.read_back import accepts
from loadframe.model import ChangeRecord, CounterSpec, Endpoint, SettingValue, TargetState
from loadframe.runs.formats import decode
from loadframe.workloads.base import ELSEWHERE, Workload

REFUSED = {each.__name__: each for each in (ChangeError, StudyError, TargetError)}
"""What an agent says of a place that does not take a setting: that is no lost host."""


class FarPlace:
    """See changes.places.Place. All methods raise StepVoid where the host is lost, TargetError where it is not
    known."""

    def __init__(self, hosts: Hosts, place: str, more: Mapping[str, str]) -> None:
        """place: MACHINE or SERVER; more: what its agent finds it by."""
        self._hosts = hosts
        self._asks = {**more, "place": place}

    @cached_property
    def host(self) -> str:
        """Looked up when a setting is read or changed: a study that changes none needs no host that is known."""
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
        done = {outcome.setting for outcome in outcomes if outcome.status != "failed"}
        self._far = {key: None for key in self._far if key[0] != place.words or key[1] not in done}
        return outcomes


ENDED_WITHIN_S = 30.0


class FarTarget:
    """See bench.base.OnBench."""

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
