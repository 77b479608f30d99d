"""The processes behind an address of this machine: who listens there, and all that come from it, as they come and go.
Nothing is sent to them."""

from __future__ import annotations

import os
from collections.abc import Sequence

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


def listeners(number: str, port: int) -> tuple[int, ...]:
    """The processes that listen at an address and that no other such process has started. TargetError, which says why,
    where they are not seen."""
    found = listening.at(port, number)
    if not found:
        raise TargetError(
            f"no process of this machine's network namespace listens on port {port} of {number}",
            remedy="Start the service, correct its address, or run Loadframe in the service's network namespace.",
        )
    pids = listening.first_of(listening.holders([one.inode for one in found]))
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
