"""The processes of a running service, by pid, port, or the control group of its unit or container."""

import importlib
import importlib.util
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadframe.cages import groups
from loadframe.connections import address
from loadframe.connections.address import joined, parted
from loadframe.errors import TargetError
from loadframe.formats.said import words
from loadframe.host import identity, listening
from loadframe.host.identity import Identity
from loadframe.kinds.behind import comm_of, family_of, listeners
from loadframe.study.declaration import TargetTable
from loadframe.system.trust import weak_point

CONTAINER = re.compile(r"(docker-|libpod-|cri-containerd-|crio-)?(?P<name>[^/]+?)(\.scope)?")
FULL_ID = re.compile(r"[0-9a-f]{12,64}")
MOST_GROUPS = 50_000


@dataclass(frozen=True, slots=True)
class Found:
    """first: the processes that started all others of it. group: the control group with all of them. address:
    HOST:PORT. words: for people."""

    first: tuple[Identity, ...]
    group: Path | None
    address: str
    words: str

    def pids(self) -> tuple[int, ...]:
        if self.group is not None:
            members = sorted(_members(self.group))
            return tuple(sorted(members, key=lambda pid: identity.parent_of(pid) in members))
        return family_of(self.first)


def find(target: TargetTable) -> Found:
    """TargetError where there is none, or it is not visible."""
    if target.unit:
        return _of_group(target, _unit(target.unit), f"the unit {target.unit}")
    if target.container:
        return _of_group(target, _container(target.container), f"the container {target.container}")
    if target.pid is not None:
        process = identity.identify(target.pid)
        if process is None:
            raise TargetError(f"target.pid: there is no process {target.pid}", remedy="Name one that runs.")
        return Found((process,), None, _address(target, [target.pid]), f"process {target.pid} ({name_of(target.pid)})")
    host, port = where(str(target.listen))
    first = listeners(address.decide(host, port).number, port)
    return Found(
        tuple(filter(None, map(identity.identify, first))),
        None,
        joined(host, port),
        f"process {first[0]} ({name_of(first[0])}), which listens on port {port}",
    )


def where(listen: str) -> tuple[str, int]:
    """Of `target.listen`, which may be a port alone. StudyError."""
    host, port = parted(listen if not listen.isdigit() else f"127.0.0.1:{listen}", "80")
    return host, int(port)


def members_of_unit(unit: str) -> set[int]:
    return _members(_unit(unit))


def name_of(pid: int) -> str:
    return words(comm_of(pid)) or "ended"


def _of_group(target: TargetTable, group: Path, description: str) -> Found:
    pids = sorted(_members(group))
    if not pids:
        raise TargetError(f"{description} has no process (its control group {group} is empty)", remedy="Start it.")
    first = tuple(filter(None, map(identity.identify, listening.first_of(pids))))
    return Found(first, group, _address(target, pids), description)


def _address(target: TargetTable, pids: Iterable[int]) -> str:
    if target.listen is not None:
        return joined(*where(str(target.listen)))
    known = {process.pid for pid in pids for process in identity.family(pid)}
    ports = listening.ports_of(known)
    if len(ports) == 1:
        return f"127.0.0.1:{ports[0]}"
    on_ports = f"on ports {', '.join(map(str, ports))}" if ports else "on no port that is seen from here"
    raise TargetError(
        f"the service listens {on_ports}",
        remedy='Say at which address it is reached: target.listen = "127.0.0.1:8080".',
    )


def _unit(unit: str) -> Path:
    folders = [folder for folder in _groups() if folder.name == unit]
    if not folders:
        raise TargetError(
            f"there is no control group of a unit {unit!r}", remedy="Start the unit, or correct target.unit."
        )
    return _in_use(folders)


def _container(name: str) -> Path:
    wanted = {name, *_engine_ids(name)}
    folders = []
    for folder in _groups():
        last = CONTAINER.fullmatch(folder.name)
        own = last["name"] if last is not None else ""
        if own in wanted or any(FULL_ID.fullmatch(wanted_id) and own.startswith(wanted_id) for wanted_id in wanted):
            folders.append(folder)
    if folders:
        return _in_use(folders)
    raise TargetError(
        f"there is no control group of a container {name!r}",
        remedy="Start it, or give its id; by its name it is found where the Python package `docker` is installed.",
    )


def _in_use(groups: Sequence[Path]) -> Path:
    """Of the groups of one name one that has processes. TargetError where another user could have made each of them:
    below user@UID.service that user gives groups any name."""
    made_by_others = {folder: weak_point(folder.parent) for folder in groups}
    trusted = [folder for folder in groups if made_by_others[folder] is None]
    if not trusted:
        raise TargetError(
            f"another user could have made the control group {groups[0]}: {made_by_others[groups[0]]}",
            remedy="Name the service by target.pid or target.listen, or run this as that user.",
        )
    return next((folder for folder in trusted if _members(folder)), trusted[0])


def _engine_ids(name: str) -> tuple[str, ...]:
    if importlib.util.find_spec("docker") is None:
        return ()
    docker = importlib.import_module("docker")
    try:
        return (str(docker.from_env().containers.get(name).id),)
    except (docker.errors.DockerException, OSError):
        return ()


def _groups() -> Iterator[Path]:
    seen = 0
    for hierarchy in groups.hierarchies():
        for folder, below, _ in os.walk(hierarchy.top):
            below.sort()
            for name in below:
                seen += 1
                if seen > MOST_GROUPS:
                    return
                yield Path(folder) / name


def _members(group: Path) -> set[int]:
    pids: set[int] = set()
    for folder, _, _ in os.walk(group):
        pids |= set(groups.members(Path(folder)))
    return pids
