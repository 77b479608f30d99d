"""The processes that serve an address of this machine: its listeners and their descendants. Nothing is sent to them."""

import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from loadframe.errors import RecordingError, TargetError
from loadframe.host import identity, listening
from loadframe.host.identity import Identity
from loadframe.recording.socket_rows import unix_sockets

SOCKET_KEEPER = "systemd"
"""The program that holds the sockets of services and starts these at their first connection (systemd.socket(5))."""


class Behind:
    """The processes that serve one address; looked up again once all of them have ended."""

    def __init__(self, number: str, port: int) -> None:
        """TargetError, with the reason, where they are not visible."""
        self._number, self._port = number, port
        self.first: tuple[Identity, ...] = self._found()

    def pids(self) -> tuple[int, ...]:
        """Its processes, the listening ones first; empty once they have ended."""
        if not any(identity.alive(process) for process in self.first):
            try:
                self.first = self._found()
            except TargetError:
                return ()
        return family_of(self.first)

    def _found(self) -> tuple[Identity, ...]:
        return tuple(filter(None, map(identity.identify, listeners(self._number, self._port))))


def family(first: int) -> tuple[int, ...]:
    return (first, *sorted(process.pid for process in identity.family(first) if process.pid != first))


def family_of(first: Sequence[Identity]) -> tuple[int, ...]:
    """The living ones of these, then their current descendants."""
    alive = [process for process in first if identity.alive(process)]
    came = (descendant.pid for process in alive for descendant in identity.family(process.pid))
    return tuple(dict.fromkeys([*(process.pid for process in alive), *came]))


def parents(pids: Collection[int]) -> tuple[int, ...]:
    """Of processes that hold one port, those that started the others; with SO_REUSEPORT what started all of them with
    the same command line, though it holds none."""
    first = listening.first_of([pid for pid in pids if comm_of(pid) != SOCKET_KEEPER] or pids)
    above = {identity.parent_of(pid) for pid in first}
    if len(first) < 2 or len(above) != 1 or not (parent := above.pop()):
        return first
    alike = {identity.command_of(pid) for pid in (parent, *first)}
    return (parent,) if len(alike) == 1 and () not in alike and parent != os.getpid() else first


def comm_of(pid: int) -> str:
    """The name of a process; empty where it has ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def listeners(number: str, port: int) -> tuple[int, ...]:
    """The processes that listen at an address, without descendants. TargetError, with the reason, where they are not
    visible."""
    sockets = listening.at(port, number)
    if not sockets:
        raise TargetError(
            f"no process of this machine's network namespace listens on port {port} of {number}",
            remedy="Start the service, correct its address, or run Loadframe in the service's network namespace.",
        )
    pids = parents(listening.holders([socket.inode for socket in sockets]))
    if os.getpid() in pids:
        raise TargetError(
            f"what listens on port {port} is Loadframe's own process", remedy="Have it served by another process."
        )
    if pids:
        return pids
    others = sorted({socket.user for socket in sockets} - {os.geteuid()})
    why = f"it belongs to user {others[0]}" if others and os.geteuid() != 0 else "it is in another PID namespace"
    raise TargetError(
        f"the process that listens on port {port} is not visible: {why}",
        remedy="Run Loadframe as that user or as root, outside of the service's container.",
    )


class Components:
    """The programs of this machine that a target connects to, not its clients; looked up again at new places."""

    def __init__(self) -> None:
        self._places: frozenset[object] = frozenset()
        self._first: dict[str, list[Identity]] = {}

    def look(self, pids: Collection[int], taken: Collection[str] = ()) -> None:
        """Find those that the target is connected to now. taken: names that get the suffix "-behind"."""
        tcp = [peer for peer in listening.peers(pids) if peer.here]
        unix = _unix_peers(pids)
        places: frozenset[object] = frozenset([*((peer.number, peer.port) for peer in tcp), *unix])
        if not places - self._places:
            return
        self._places |= places
        inodes = {socket.inode for peer in tcp for socket in listening.at(peer.port, peer.number)}
        for pid in parents(listening.holders(inodes.union(unix))):
            process, name = identity.identify(pid), component_of(comm_of(pid), taken)
            known = self._first.get(name, [])
            if process is not None and pid not in (*pids, os.getpid()) and process not in known:
                self._first[name] = [*known, process]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._first)

    def processes(self, but: Collection[int]) -> dict[str, tuple[int, ...]]:
        """The living processes of each program with their descendants, without those in `but`."""
        alone = {name: tuple(pid for pid in family_of(first) if pid not in but) for name, first in self._first.items()}
        return {name: pids for name, pids in alone.items() if pids}


def _unix_peers(pids: Collection[int]) -> tuple[int, ...]:
    """Inodes of the listening Unix sockets that these processes have connected to: a connecting end has no name, the
    accepted end has the listener's. Empty where the kernel does not list the sockets."""
    try:
        known = unix_sockets()
    except RecordingError:
        return ()
    own = {link for pid in pids for link in listening.links_of(pid)}
    ends = [
        socket
        for socket in known.values()
        if not socket.name and socket.peer in known and f"socket:[{socket.inode}]" in own
    ]
    made = {known[end.peer].name for end in ends}
    return tuple(inode for inode, socket in known.items() if socket.listens and socket.name and socket.name in made)


def component_of(program: str, taken: Collection[str] = ()) -> str:
    name = re.sub(r"^[^a-z]+", "", re.sub(r"[^a-z0-9_-]+", "-", program.lower())).rstrip("-_") or "program"
    return f"{name}-behind" if name in taken else name
