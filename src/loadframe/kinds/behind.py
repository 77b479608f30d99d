"""The processes behind an address of this machine: who listens there, and all that come from it, as they come and go.
Nothing is sent to them."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from loadframe.errors import TargetError
from loadframe.host import identity, listening
from loadframe.host.identity import Identity


class Behind:
    """Those behind one address, found again where all of them have ended."""

    def __init__(self, number: str, port: int) -> None:
        """TargetError, which says why, where they are not seen."""
        self._number, self._port = number, port
        self.first: tuple[Identity, ...] = self._found()

    def pids(self) -> tuple[int, ...]:
        """All of them now, those that listen first; none once they have ended."""
        if not any(identity.alive(one) for one in self.first):
            try:
                self.first = self._found()
            except TargetError:
                return ()
        return family_of(self.first)

    def _found(self) -> tuple[Identity, ...]:
        return tuple(filter(None, map(identity.identify, listeners(self._number, self._port))))


def family(first: int) -> tuple[int, ...]:
    """A process and all that come from it now, that one first."""
    return (first, *sorted(each.pid for each in identity.family(first) if each.pid != first))


def family_of(first: Sequence[Identity]) -> tuple[int, ...]:
    """These processes and all that come from them now, these first; not those that have ended."""
    alive = [one for one in first if identity.alive(one)]
    came = (each.pid for one in alive for each in identity.family(one.pid))
    return tuple(dict.fromkeys([*(one.pid for one in alive), *came]))


SOCKET_KEEPER = "systemd"
"""Holds the sockets of services that it starts at their first connection, and is none of these (systemd.socket(5))."""


def parents(pids: Collection[int]) -> tuple[int, ...]:
    """Of processes that hold one port those that the others came from. Where each has a socket of its own
    (SO_REUSEPORT), the process of the same command line that started all of them: it holds none itself."""
    first = listening.first_of([pid for pid in pids if comm_of(pid) != SOCKET_KEEPER] or pids)
    above = {identity.parent_of(pid) for pid in first}
    if len(first) < 2 or len(above) != 1 or not (parent := above.pop()):
        return first
    alike = {command_of(pid) for pid in (parent, *first)}
    return (parent,) if len(alike) == 1 and () not in alike and parent != os.getpid() else first


def command_of(pid: int) -> tuple[bytes, ...]:
    """Its command line; empty where it has ended, or is one of the kernel."""
    try:
        return tuple(Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1])
    except OSError:
        return ()


def comm_of(pid: int) -> str:
    """Its name; "" where it has ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def listeners(number: str, port: int) -> tuple[int, ...]:
    """The processes that listen at an address and that no other process of the service has started. TargetError, which
    says why, where they are not seen."""
    found = listening.at(port, number)
    if not found:
        raise TargetError(
            f"no process of this machine's network namespace listens on port {port} of {number}",
            remedy="Start the service, correct its address, or run Loadframe in the service's network namespace.",
        )
    pids = parents(listening.holders([one.inode for one in found]))
    if os.getpid() in pids:
        raise TargetError(
            f"what listens on port {port} is Loadframe's own process", remedy="Have it served by another process."
        )
    if pids:
        return pids
    others = sorted({one.user for one in found} - {os.geteuid()})
    why = f"it belongs to user {others[0]}" if others and os.geteuid() != 0 else "it is in another PID namespace"
    raise TargetError(
        f"the process that listens on port {port} is not visible: {why}",
        remedy="Run Loadframe as that user or as root, outside of the service's container.",
    )
