"""Which services of this machine listen at which port: the processes that hold a port, put together to the groups that
came from one of them. They are only read."""

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from loadframe.connections.host_port import joined
from loadframe.host import identity, listening
from loadframe.host.listening import Listening
from loadframe.kinds.behind import command_of, parents

LOOPBACK = ("127.0.0.1", "0.0.0.0", "::", "::ffff:127.0.0.1")
"""What takes connections to 127.0.0.1."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A service that listens at a port. number: the address. first: the processes that all others of it came from, one
    but where processes of one command line share the port and no process of that command line started them. holders:
    all of it that hold the port."""

    port: int
    number: str
    first: tuple[int, ...]
    holders: tuple[int, ...]

    @property
    def pid(self) -> int:
        return self.first[0]

    @property
    def listen(self) -> int | str:
        """As `target.listen` names it."""
        return self.port if self.number in LOOPBACK else joined(self.number, self.port)


def candidates(port: int | None = None) -> tuple[Candidate, ...]:
    """All that listen at this port, or at any; by port. Not this process, nor what may not be seen."""
    held = listening.held()
    ports: dict[int, list[Listening]] = {}
    for one in listening.sockets():
        if port in (None, one.port):
            ports.setdefault(one.port, []).append(one)
    return tuple(found for _, sockets in sorted(ports.items()) for found in _of_port(sockets, held))


def _of_port(sockets: list[Listening], held: dict[int, tuple[int, ...]]) -> Iterator[Candidate]:
    pids = sorted({pid for one in sockets for pid in held.get(one.inode, ())})
    groups: dict[tuple[object, tuple[str, ...]], list[tuple[int, tuple[int, ...]]]] = {}
    for first in parents(pids):
        holders = tuple(pid for pid in pids if first in identity.ancestors(pid))
        numbers = tuple(sorted({one.number for one in sockets if set(held.get(one.inode, ())) & set(holders)}))
        groups.setdefault((command_of(first) or first, numbers), []).append((first, holders))
    for (_, numbers), members in groups.items():
        firsts = tuple(first for first, _ in members)
        if os.getpid() not in firsts:
            number = min(numbers, key=lambda each: (each not in LOOPBACK, each))
            holders = tuple(pid for _, several in members for pid in several)
            yield Candidate(sockets[0].port, number, firsts, holders)


def of_process(pid: int, all_of_them: Collection[Candidate]) -> tuple[int, tuple[Candidate, ...]]:
    """The process that began the service to which this one belongs, and where that listens. It is this one where it, or
    what it has started, listens by itself; else the one from which it has inherited a port, or that runs the same
    command line and listens."""
    family = {one.pid for one in identity.family(pid)}
    own = tuple(one for one in all_of_them if family.issuperset(one.first))
    if own:
        return pid, own
    above = identity.ancestors(pid)[1:]
    for one in all_of_them:
        came_from = next((each for each in one.first if each in above), None)
        if came_from is not None and (pid in one.holders or command_of(came_from) == command_of(pid)):
            return came_from, tuple(each for each in all_of_them if came_from in each.first)
    # one of several that a process of the same command line has started, which listens nowhere itself
    return pid, tuple(one for one in all_of_them if pid in one.first)
