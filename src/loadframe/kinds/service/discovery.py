"""What a process of this machine is; which services listen at which port, by the process that started them; and the
processes of a running service, by pid, port, or the control group of its unit or container."""

import importlib
import importlib.util
import mmap
import os
import pwd
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

from loadframe.cages import groups
from loadframe.connections import address
from loadframe.connections.address import joined, parted
from loadframe.errors import RecordingError, TargetError
from loadframe.formats.said import words
from loadframe.host import identity, listening
from loadframe.host.identity import Identity
from loadframe.host.listening import Listening
from loadframe.host.processes import threads
from loadframe.kinds.behind import comm_of, family_of, listeners, parents
from loadframe.kinds.service.command_line import Given, framework_of, knobs_of, runtime_of
from loadframe.recording.procfs import parse_limits
from loadframe.study.declaration import TargetTable
from loadframe.system.files import regular_file
from loadframe.system.trust import weak_point

PROC = Path("/proc")
GO_MARK = b"\xff Go buildinf:"
"""How the build information of a Go program begins (Go's debug/buildinfo)."""
MOST_SEARCHED_BYTES = 256 << 20
_CONTAINER = re.compile(r"(?:^|[/:-])([0-9a-f]{64})(?:\.scope)?(?:/|$)")
_UNIT = re.compile(r"/([^/\n]+\.service)(?=/|$)", re.M)
MOST_OF_A_LINE = 256
LOOPBACK = ("127.0.0.1", "0.0.0.0", "::", "::ffff:127.0.0.1")
CONTAINER = re.compile(r"(docker-|libpod-|cri-containerd-|crio-)?(?P<name>[^/]+?)(\.scope)?")
FULL_ID = re.compile(r"[0-9a-f]{12,64}")
MOST_GROUPS = 50_000


@dataclass(frozen=True, slots=True)
class Discovered:
    """words: runtime, pid and user, for people. unit, container: by its control group, "" for none. processes, threads:
    with its descendants. open_files: number and limit; None where not visible."""

    pid: int
    command: tuple[str, ...]
    words: str
    unit: str
    container: str
    processes: int
    threads: int
    knobs: tuple[Given, ...]
    open_files: tuple[int, int] | None


def discover(pid: int) -> Discovered:
    """TargetError where the process does not exist."""
    place = PROC / str(pid)
    try:
        command = tuple(os.fsdecode(word) for word in (place / "cmdline").read_bytes().split(b"\0")[:-1])
        status = (place / "status").read_text(encoding="utf-8", errors="replace")
        groups = (place / "cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise TargetError(
            f"Process {pid} cannot be read: {error.strerror}", remedy="ps -e lists those that run."
        ) from error
    executable, environ, open_files = "", "", None
    with suppress(OSError, RecordingError):  # another user's, or it is ending
        environ = os.fsdecode((place / "environ").read_bytes())
        use = len(os.listdir(place / "fd"))  # noqa: PTH208 - only how many
        open_files = use, int(parse_limits((place / "limits").read_bytes())["Max open files"].soft)
        executable = str((place / "exe").readlink()).removesuffix(" (deleted)")
    entries = (entry.partition("=") for entry in environ.split("\0"))
    environment = {name: value for name, _, value in entries if name}
    user = next((int(line.split()[1]) for line in status.splitlines() if line.startswith("Uid:")), 0)
    named = f"user {user}"
    with suppress(KeyError):
        named = pwd.getpwuid(user).pw_name
    runtime = runtime_of(executable or next(iter(command), ""), go=is_go(place / "exe"))
    framework = framework_of(command)
    by, of = (runtime.words, "") if framework is None else (f"{framework.words} ({runtime.words})", framework.id)
    retitled = len(command) == 1 and " " in command[0]  # it has set its own title, as gunicorn does
    family = identity.family(pid)
    units, container = _UNIT.findall(groups), _CONTAINER.search(groups)
    return Discovered(
        pid=pid,
        command=command,
        words=f"{by}, pid {pid}, run by {named}",
        unit=units[-1] if units else "",
        container=container[1] if container is not None else "",
        processes=max(1, len(family)),
        threads=sum(len(threads(process.pid)) for process in family),
        knobs=() if retitled else knobs_of(runtime.id, of, command, environment),
        open_files=open_files,
    )


def is_go(file: Path) -> bool:
    with suppress(OSError, ValueError), os.fdopen(regular_file(file, links=True), "rb") as program:
        size = min(os.fstat(program.fileno()).st_size, MOST_SEARCHED_BYTES)
        with mmap.mmap(program.fileno(), size, access=mmap.ACCESS_READ) as text:
            return text[:4] == b"\x7fELF" and text.find(GO_MARK) >= 0
    return False


def interpreter_of(file: Path) -> str:
    """The program that a script names in its first line, also behind env(1); "" for none."""
    try:
        with os.fdopen(regular_file(file, links=True), "rb") as script:
            line = script.read(MOST_OF_A_LINE).partition(b"\n")[0]
    except OSError:
        return ""
    if not line.startswith(b"#!"):
        return ""
    words = [os.fsdecode(word) for word in line[2:].split()]
    if words and PurePath(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return words[0] if words else ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """first: the processes that started all others of the service; several where they share the port and have no parent
    with their command line. holders: its processes that hold the port."""

    port: int
    number: str
    first: tuple[int, ...]
    holders: tuple[int, ...]

    @property
    def pid(self) -> int:
        return self.first[0]

    @property
    def listen(self) -> int | str:
        return self.port if self.number in LOOPBACK else joined(self.number, self.port)


def candidates(port: int | None = None) -> tuple[Candidate, ...]:
    """The services at this port, or at any, without this process and what is not visible."""
    held = listening.held()
    ports: dict[int, list[Listening]] = {}
    for socket in listening.sockets():
        if port in (None, socket.port):
            ports.setdefault(socket.port, []).append(socket)
    return tuple(candidate for _, sockets in sorted(ports.items()) for candidate in _of_port(sockets, held))


def _of_port(sockets: list[Listening], held: dict[int, tuple[int, ...]]) -> Iterator[Candidate]:
    pids = sorted({pid for socket in sockets for pid in held.get(socket.inode, ())})
    groups: dict[tuple[object, tuple[str, ...]], list[tuple[int, tuple[int, ...]]]] = {}
    for first in parents(pids):
        holders = tuple(pid for pid in pids if first in identity.ancestors(pid))
        numbers = tuple(sorted({socket.number for socket in sockets if set(held.get(socket.inode, ())) & set(holders)}))
        groups.setdefault((identity.command_of(first) or first, numbers), []).append((first, holders))
    for (_, numbers), members in groups.items():
        firsts = tuple(first for first, _ in members)
        if os.getpid() not in firsts:
            number = min(numbers, key=lambda address: (address not in LOOPBACK, address))
            holders = tuple(pid for _, several in members for pid in several)
            yield Candidate(sockets[0].port, number, firsts, holders)


def of_process(pid: int, all_of_them: Collection[Candidate]) -> tuple[int, tuple[Candidate, ...]]:
    """The first process of the service to which this one belongs, and where that listens: this one where it or a
    descendant listens; else the one from which it inherited a port, or that listens with the same command line."""
    family = {process.pid for process in identity.family(pid)}
    own = tuple(candidate for candidate in all_of_them if family.issuperset(candidate.first))
    if own:
        return pid, own
    above = identity.ancestors(pid)[1:]
    for candidate in all_of_them:
        came_from = next((ancestor for ancestor in candidate.first if ancestor in above), None)
        if came_from is not None and (
            pid in candidate.holders or identity.command_of(came_from) == identity.command_of(pid)
        ):
            return came_from, tuple(other for other in all_of_them if came_from in other.first)
    # one of several that a process of the same command line has started, which listens nowhere itself
    return pid, tuple(candidate for candidate in all_of_them if pid in candidate.first)


@dataclass(frozen=True, slots=True)
class Found:
    """first: the processes that started the others. group: the control group with all of them; None where they are
    known by themselves. address: HOST:PORT at which it is reached. words: for people."""

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
    """TargetError where there is no such service, or it is not visible."""
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
    """Host and port of `target.listen`, which may be a port alone. StudyError."""
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
    """Of the groups of one name, the one that has processes. TargetError where another user could have made each of
    them: below user@UID.service that user gives groups any name."""
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
