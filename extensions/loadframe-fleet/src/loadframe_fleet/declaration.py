"""The fleet file: which hosts there are, what each is for, how it is reached, and who has authorised that."""

import ipaddress
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, PrivateAttr, field_validator, model_validator

from loadframe.connections.address import is_here
from loadframe.errors import StudyError
from loadframe.host.environment import located
from loadframe.host.processes import parse_cpus
from loadframe.study.fields import Cpus, Table
from loadframe.study.reading import load_as
from loadframe.system.trust import changeable, others_write

Role = Literal["target", "driver", "observer", "trial"]
Change = Literal["settings", "machine"]
REMEDY = "docs/fleet.md has every key of a fleet file."
ASK = 'Ask, then set authorised = true and owner = "who has said so" in its [[host]].'
MOST_HOSTS = 1000
"""A coordinator keeps a connection and a process for each."""
_SSH = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9._-]*@)?[A-Za-z0-9:\[][A-Za-z0-9.:\[\]_-]*")
"""[USER@]HOST, as ssh takes it, including a name of the user's own configuration. None can be read as an option."""
_ADDRESS = re.compile(r"[A-Za-z0-9:][A-Za-z0-9.:-]*")
_WORKER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SCHEDULER = re.compile(r"(tls|tcp)://(\[[0-9a-fA-F:]+\]|[A-Za-z0-9][A-Za-z0-9.-]*):[0-9]{1,5}")
_LOOPBACK = re.compile(r"tcp://(localhost|127(\.[0-9]{1,3}){3}|\[::1\]):")


class HostTable(Table):
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=40)]
    roles: Annotated[list[Role], Field(min_length=1)]
    here: bool = False
    ssh: str = ""
    by: list[str] = Field([])
    worker: str = ""
    cpus: Cpus = None
    address: str = ""
    loadframe: str = "loadframe"
    may_change: list[Change] = Field([])
    authorised: bool = False
    owner: str = ""
    _folder: Path = PrivateAttr(Path("/"))

    @property
    def folder(self) -> Path:
        """Of the fleet file: its `ssh` or `by` runs there."""
        return self._folder

    @field_validator("ssh")
    @classmethod
    def _is_a_name(cls, ssh: str) -> str:
        if ssh and not _SSH.fullmatch(ssh):
            raise ValueError(f"ssh = {ssh!r} is not [USER@]HOST; options belong into the ssh configuration")
        host = ssh.rpartition("@")[2]
        if host.startswith("["):
            raise ValueError(f"ssh = {ssh!r}: ssh takes the number of a host without brackets")
        if not _is_number_or_name(host):
            raise ValueError(f"ssh = {ssh!r} has a port; ports belong into the ssh configuration")
        return ssh

    @field_validator("address")
    @classmethod
    def _is_an_address(cls, address: str) -> str:
        if address and not (_ADDRESS.fullmatch(address) and _is_number_or_name(address)):
            raise ValueError(f"address = {address!r} is no name or number of a host, without a port")
        if address and not address.strip("0.:"):
            raise ValueError(f"address = {address!r} is every address of a host; give the one that drivers reach")
        return address

    @field_validator("worker")
    @classmethod
    def _is_a_worker(cls, worker: str) -> str:
        if worker and not _WORKER.fullmatch(worker):
            raise ValueError(f"worker = {worker!r} is no name of a worker: letters, digits, dots and dashes")
        return worker

    @field_validator("may_change", mode="before")
    @classmethod
    def _is_something(cls, given: object) -> object:
        """Rejects a word of earlier versions, which allowed nothing."""
        if isinstance(given, list) and "processes" in given:
            raise ValueError('may_change: Loadframe changes no process that it did not start; take "processes" out')
        return given

    @field_validator("cpus")
    @classmethod
    def _are_cpus(cls, cpus: str | None) -> str | None:
        if cpus is not None:
            parse_cpus(cpus)
        return cpus

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        given = {"here": self.here, "ssh": self.ssh, "by": self.by, "worker": self.worker}
        ways = [name for name, value in given.items() if value]
        if len(ways) != 1:
            listed = " and ".join(ways) or "none"
            raise ValueError(f"host {self.name!r} is reached by one of here, ssh, by and worker; given: {listed}")
        if bool(self.worker) != ("trial" in self.roles) or ("trial" in self.roles and len(self.roles) > 1):
            raise ValueError(f'host {self.name!r}: roles = ["trial"] and worker belong together, without other roles')
        if self.cpus is not None and not self.worker:
            raise ValueError(f"host {self.name!r}: cpus are for a host with a worker")
        return self

    @property
    def consented(self) -> bool:
        return self.authorised and bool(self.owner.strip())


def _is_number_or_name(host: str) -> bool:
    """A colon belongs to an IPv6 address; else it begins a port."""
    if ":" not in host:
        return True
    try:
        return ipaddress.ip_address(host).version == 6
    except ValueError:
        return False


class TlsTable(Table):
    """PEM files by which a scheduler and this machine recognise each other."""

    ca: Path
    certificate: Path
    key: Path


class AboutFleet(Table):
    """ssh_config: of the user's SSH client; scheduler: an existing one of dask, for the workers."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=40)]
    ssh_config: Path | None = None
    scheduler: str = ""
    tls: TlsTable | None = None

    @model_validator(mode="after")
    def _not_open(self) -> Self:
        if self.scheduler and not _SCHEDULER.fullmatch(self.scheduler):
            raise ValueError(f"scheduler = {self.scheduler!r} is no address of one: tls://HOST:PORT")
        if self.scheduler.startswith("tcp:") and not _LOOPBACK.match(self.scheduler):
            raise ValueError(f"scheduler = {self.scheduler!r}: whoever reaches it may run programs; use tls://")
        if self.scheduler.startswith("tls:") != (self.tls is not None):
            raise ValueError("a scheduler at tls://HOST:PORT and tls = { ca, certificate, key } belong together")
        return self


def _twice(names: Iterable[str]) -> str:
    return next((name for name, count in Counter(names).items() if count > 1), "")


class Fleet(Table):
    fleet: AboutFleet
    host: Annotated[list[HostTable], Field(min_length=1, max_length=MOST_HOSTS)]

    @field_validator("host")
    @classmethod
    def _named_once(cls, hosts: list[HostTable]) -> list[HostTable]:
        if name := _twice(host.name for host in hosts):
            raise ValueError(f"two hosts are called {name!r}; each needs a name of its own")
        if worker := _twice(host.worker for host in hosts if host.worker):
            raise ValueError(f"two hosts are the worker {worker!r}; it would be compared with itself")
        targets = [host for host in hosts if "target" in host.roles and host.address]
        if address := _twice(host.address for host in targets):
            first, second = [host.name for host in targets if host.address == address][:2]
            raise ValueError(f"{first!r} and {second!r} have the address {address!r}; only one is reached there")
        if sum(host.here for host in hosts) > 1:
            raise ValueError("two hosts are here; this machine is one host")
        return hosts

    def with_role(self, role: Role) -> tuple[HostTable, ...]:
        return tuple(host for host in self.host if role in host.roles)

    @property
    def observers(self) -> tuple[HostTable, ...]:
        """Hosts that only observe: the others are recorded anyway."""
        return tuple(host for host in self.host if host.roles == ["observer"])


def load(path: Path) -> Fleet:
    """Relative paths begin in its folder. StudyError for an invalid file, a host without its owner's authorisation,
    and, as root, where another user could change the file or what it runs."""
    folder = path.absolute().parent
    fleet = _placed(load_as(Fleet, path, REMEDY), folder)
    _check_consent(fleet)
    if os.geteuid() == 0:
        weak = [(name, why) for name, file in [("it", path), *_named(fleet, folder)] if (why := changeable(file))]
        if any(host.ssh or host.by for host in fleet.host) and others_write(folder.stat(), folder):
            weak.append(("the folder in which that works", f"{folder} can be written by other users"))
        if weak:
            name, why = weak[0]
            raise StudyError(
                f"the fleet file {path} says what root runs, and another user could change {name}: {why}",
                remedy="Keep it, and what it names, where only root may write; or run Loadframe as that user.",
            )
    return fleet


def _placed(fleet: Fleet, folder: Path) -> Fleet:
    about, hosts = fleet.fleet, []
    for host in fleet.host:  # a program without a slash is looked for in PATH
        program = [str(folder / word) if "/" in word else word for word in host.by[:1]]
        hosts.append(host.model_copy(update={"by": program + host.by[1:]}))
        hosts[-1]._folder = folder
    config = about.ssh_config and folder / about.ssh_config
    tls = about.tls and TlsTable(**{name: folder / file for name, file in about.tls})
    placed = about.model_copy(update={"ssh_config": config, "tls": tls})
    return fleet.model_copy(update={"fleet": placed, "host": hosts})


def _named(fleet: Fleet, folder: Path) -> Iterator[tuple[str, Path]]:
    about = fleet.fleet
    if about.ssh_config is not None:
        yield "ssh_config", about.ssh_config
    for name, file in about.tls or ():
        yield f"tls.{name}", file
    for host in fleet.host:
        program = [Path(path) for word in host.by[:1] if (path := located(word))]
        for file in (*program, *(folder / word for word in host.by[1:])):
            if os.path.isfile(file):  # noqa: PTH113 - a word that is no name of a file, of any length, is none
                yield f"`by` of host {host.name!r}", file


def _check_consent(fleet: Fleet) -> None:
    for host in fleet.host:
        begun_here = host.here or bool(host.worker and not fleet.fleet.scheduler)
        away = not begun_here or bool(host.address and not is_here(host.address))
        if away and not host.consented:
            raise StudyError(
                f"host {host.name!r} is not this machine, and the fleet file does not say that its owner has "
                "authorised what is done to it",
                remedy=ASK,
            )
