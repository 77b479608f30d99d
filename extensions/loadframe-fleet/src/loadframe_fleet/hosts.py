"""The hosts of a fleet while a study runs over them: agents connected, versions alike, each with its part set up."""

import ipaddress
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from loadframe.connections.address import look_up, parted
from loadframe.errors import FleetError, StudyError, TargetError
from loadframe.progress import counted
from loadframe.recording.frames import Tick
from loadframe.recording.readers import RecordingReader
from loadframe.runs.folder import RunFolder
from loadframe.study import Study
from loadframe_fleet.check import different, links_between, tried_all
from loadframe_fleet.connection import Agent
from loadframe_fleet.coordinator import Coordinator
from loadframe_fleet.declaration import ASK, Fleet, HostTable
from loadframe_fleet.load import secrets_named
from loadframe_fleet.looking import facts, route
from loadframe_fleet.part import is_private
from loadframe_fleet.records import FleetLink, recording_of
from loadframe_fleet.transport import OverAgents, checked
from loadframe_fleet.wire import Message, Say

SET_UP_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True)
class Way:
    """A host's interface to the target. network: differs between hosts that do not share it."""

    interface: str
    network: str


class Hosts:
    """Enter it before the bench; after leaving it, every agent has ended with all that it did."""

    def __init__(self, fleet: Fleet, study: Study, say: Say = lambda _: None) -> None:
        """FleetError where no host drives."""
        self._fleet = fleet
        self._study = study
        self._say = say
        self._stack = ExitStack()
        self._agents: dict[str, Agent] = {}
        self._drivers, self._targets = fleet.with_role("driver"), fleet.with_role("target")
        self._observers = fleet.observers
        if not self._drivers:
            raise FleetError(f"no host of the fleet {fleet.fleet.name!r} drives", remedy='Give one roles = ["driver"].')
        self.target: str | None = None
        self.serving: str | None = None
        """The host on which the study's own targets are started; None where they run already."""
        self._watching = self._machine = ""
        self._ways: dict[str, Way] = {}
        self.coordinator: Coordinator

    def __enter__(self) -> Self:
        targets = [host for host in self._targets if host not in self._drivers]
        wanted = [*self._drivers, *targets, *self._observers]
        with ExitStack() as stack:
            self._say(f"Reaching {counted(len(wanted), 'host')}")
            self._agents = reached(wanted, self._fleet.fleet.ssh_config, self._say, stack)
            self._say("Setting up each host")
            drivers = [host.name for host in self._drivers]
            self.coordinator = set_up(self._agents, self._study, drivers, str(Path.cwd()))
            if is_private(self._study):
                host = serving_host(self._fleet)
                asked = {"address": host.address}
                checked(self.coordinator.ask(host.name, "serve", asked, SET_UP_WITHIN_S, "not-ready"))
                self.serving = self.target = host.name
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def notes(self) -> tuple[str, ...]:
        names, watching = (", ".join(host.name for host in hosts) for hosts in (self._drivers, self._observers))
        notes = [
            f"The load came from the hosts {names} of the fleet {self._fleet.fleet.name}.",
            "The target is on no host of the fleet, so nothing of its machine is recorded."
            if self.target is None
            else f"What is said of the target and its machine was recorded on the host {self.target}.",
        ]
        if watching:
            notes.append(f"Recorded along with the load: {watching}.")
        if len(set(map(self.boot, self._agents))) < len(self._agents):
            notes.append("Some hosts of the fleet run on one kernel and share its CPUs.")
        return tuple(notes)

    def ways(self) -> Mapping[str, Way]:
        """Each host's way, asked once. Empty where the target is on none, or its host has no address. StepVoid."""
        if not self._ways and (at := self._address_of(self.target)):
            # An observer's traffic is not part of the load.
            in_load = self._agents.keys() - {host.name for host in self._observers}
            asked = {name: ("route", {"address": look_up(at)[0]}) for name in self._agents if name in in_load}
            routes = self.coordinator.ask_all(asked, SET_UP_WITHIN_S, "agent-lost")
            for name, route_ in routes.items():
                network = f"{self.boot(name)} {route_['network']}" if route_["network"] else name
                self._ways[name] = Way(str(route_["interface"]), network)
        return self._ways

    def boot(self, name: str) -> str:
        return str(self._agents[name].facts.get("boot") or "")

    def _address_of(self, name: str | None) -> str:
        return next((host.address for host in self._targets if host.name == name), "")

    def _check_is_one(self, host: str) -> None:
        """TargetError for a loopback address, which would be another server on a driver's host."""
        if "/" in host or not all(ipaddress.ip_address(number).is_loopback for number in look_up(host)):
            return
        asked = {driver.name: ("route", {"address": "127.0.0.1"}) for driver in self._drivers}
        routes = self.coordinator.ask_all(asked, SET_UP_WITHIN_S, "agent-lost")
        ours = f"{facts()['boot']} {route('127.0.0.1')['network']}"
        for name in asked:
            if f"{self.boot(name)} {routes[name]['network']}" != ours:
                raise TargetError(
                    f"the study loads {host}, which on host {name} of the fleet is that host itself",
                    remedy="Name the target by an address at which every driver reaches it.",
                )

    def watch(self, address: str) -> None:
        """Find the host with the target's address, and record what listens there. StepVoid where that is not seen."""
        if address == self._watching or self.serving is not None:
            return
        self._watching = address
        host, port = parted(address, "80")
        self._check_is_one(host)
        chosen = next((target for target in self._targets if target.address and host in look_up(target.address)), None)
        if chosen is None:
            self.target = None
            return
        if self._machine not in ("", chosen.name):
            raise TargetError(
                f"the target is on host {chosen.name}, and the machine of host {self._machine} was changed for it",
                remedy="Give one host the role target, with the address that the study loads.",
            )
        self.target = chosen.name
        self.coordinator.ask_all(
            {chosen.name: ("watch", {"number": host, "port": int(port)})}, SET_UP_WITHIN_S, "recorder-failed"
        )

    def machine(self) -> str:
        """The target's host. TargetError where it is ambiguous."""
        if self.serving is not None:
            return self.serving
        if not self._machine:
            named = urlsplit(str(self._study.target.settings.get("url") or "")).hostname
            numbers = set(look_up(named)) if named else set()
            here = [
                target
                for target in self._targets
                if not named or (target.address and numbers.intersection(look_up(target.address)))
            ]
            if len(here) != 1:
                raise TargetError(
                    f"{len(here)} hosts of the fleet may be that of the target, whose machine is to be changed",
                    remedy="Give its host the role target, and the address that the study loads.",
                )
            self._machine = here[0].name
        return self._machine

    def address(self) -> str:
        """Of that host. TargetError."""
        if not (address := self._address_of(self.machine())):
            raise TargetError(f"host {self.machine()} has no address", remedy="Give it one in the fleet file.")
        return address

    def links(self) -> tuple[FleetLink, ...]:
        """The links from the target's host to each driver on another one, measured now."""
        if self.target is None:
            return ()
        target = self._agents[self.target]
        drivers = [self._agents[host.name] for host in self._drivers if host.name != self.target]
        return links_between([(driver, target) for driver in drivers], self._say)


def set_up(agents: Mapping[str, Agent], study: Study, drivers: Sequence[str], folder: str) -> Coordinator:
    """Only drivers get the secrets that the study names. folder: below which it names files. StepVoid."""
    coordinator = Coordinator(OverAgents(agents), drivers, list(agents))
    common = {"study": study.resolved(), "folder": folder}
    secrets = {name: os.environ[name] for name in secrets_named(study) if name in os.environ}
    asked = {}
    for name in agents:
        own = {"drives": True, "environment": secrets} if name in drivers else {}
        asked[name] = "set_up", {**common, "name": name, **own}
    coordinator.ask_all(asked, SET_UP_WITHIN_S, "not-ready")
    return coordinator


class HostRecordings:
    def __init__(self, coordinator: Coordinator, run: RunFolder) -> None:
        self._coordinator = coordinator
        self._run = run
        self._descriptors: dict[str, int] = {}
        self._readers: dict[str, RecordingReader] = {}
        self._offsets: dict[str, int] = {}

    def fetch(self, hosts: Iterable[str]) -> None:
        """Append what these have recorded since the last call. StepVoid."""
        for host, piece in self._coordinator.recorded(hosts, dict(self._offsets)):
            if host not in self._descriptors:
                self._descriptors[host] = self._run.new_recording(recording_of(host))
            view = memoryview(piece)
            while view:
                view = view[os.write(self._descriptors[host], view) :]
            self._offsets[host] = self._offsets.get(host, 0) + len(piece)

    def ticks(self, host: str, from_s: float, to_s: float) -> Sequence[Tick]:
        """from_s, to_s: by the host's clock. No ticks where nothing was recorded."""
        if host not in self._descriptors:
            return ()
        if host not in self._readers:
            name = recording_of(host)
            self._readers[host] = RecordingReader(self._run.place(name), descriptor=self._run.recording(name))
        return self._readers[host].ticks_between(from_s, to_s)

    def close(self) -> None:
        """Idempotent."""
        for reader in self._readers.values():
            reader.close()
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._readers, self._descriptors = {}, {}


def serving_host(fleet: Fleet) -> HostTable:
    """StudyError where the fleet file does not state which, or its address, or that its owner has authorised an open
    port."""
    hosts = fleet.with_role("target")
    if len(hosts) != 1:
        raise StudyError(
            f"{len(hosts)} hosts of the fleet have the role target, and one is to start the study's server",
            remedy='Give one host roles = ["target"].',
        )
    (host,) = hosts
    if not host.address:
        raise StudyError(
            f"host {host.name!r} is to start the study's server, and the fleet file does not say on which address",
            remedy="Give its [[host]] an address by which the drivers reach it.",
        )
    if not host.consented:
        raise StudyError(
            f"the study's server would listen on {host.address}, where whoever reaches it is served, and the fleet "
            f"file does not say that the owner of host {host.name!r} has authorised that",
            remedy=ASK,
        )
    return host


def reached(hosts: Sequence[HostTable], ssh_config: Path | None, say: Say, stack: ExitStack) -> dict[str, Agent]:
    """The hosts' agents; the stack ends them. FleetError for the first host that is not reached, or has another
    version."""
    tried = tried_all(hosts, ssh_config)
    agents = {agent.host.name: stack.enter_context(agent) for agent in tried if isinstance(agent, Agent)}
    for agent in tried:
        if isinstance(agent, FleetError):
            raise agent
        agent.say = say
    check_alike({name: agent.facts for name, agent in agents.items()})
    return agents


def check_alike(known: Mapping[str, Message]) -> None:
    """FleetError for other versions or code than this program's: they would influence the result."""
    for problem in different(known, facts()):
        raise FleetError(f"host {problem.about!r}: {problem.fact}", remedy=problem.remedy)
