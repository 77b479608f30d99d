"""Finding the service again: by its pid, its port, its control group, or its command line. Once a minute at most its
workers are looked for, which come and go; a walk over all processes is made only where nothing else tells them. Light:
the lasting process imports it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from loadframe.host import identity, listening

MOST_PIDS = 256
MOST_LIST = 4096
MOST_THREADS = 64
"""Of a service, whose children are asked for one by one; of one that has more, a walk over all processes costs less."""


def children_are_told() -> bool:
    """Whether this kernel keeps a list of the children of each thread (CONFIG_PROC_CHILDREN, proc(5))."""
    return Path(f"/proc/self/task/{os.getpid()}/children").exists()


class Finder:
    """find: of a WatchPlan. told_pid: what else knows the pid, such as the socket of a database. by_thread: whether the
    kernel tells the children of each thread."""

    def __init__(self, find: Mapping[str, Any], *, by_thread: bool | None = None) -> None:
        self._find = find
        self._by_thread = children_are_told() if by_thread is None else by_thread
        self._family: tuple[int, ...] = ()

    def pids(self, told_pid: int | None = None) -> tuple[int, ...]:
        """All processes of the service now, the first one first; none where it is not there."""
        first = self._first(told_pid)
        if first is None:
            return ()
        members = self._members()
        if members:
            return tuple(sorted(members, key=lambda pid: (pid != first, pid)))[:MOST_PIDS]
        found = self._of_threads(first) if self._by_thread else None
        family = found if found is not None else tuple(one.pid for one in identity.family(first))
        self._family = family[:MOST_PIDS]
        return self._family

    def _of_threads(self, first: int) -> tuple[int, ...] | None:
        """The family of a process, at a cost that grows with the service and not with the machine; None where it has
        too many threads for that. One that ends while a list is read may hide another (proc(5)): those of the last time
        are asked for their parent."""
        found, threads = [first], 0
        for pid in found:  # grows meanwhile
            try:
                tasks = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - one call, no objects
            except OSError:  # it has ended
                continue
            threads += len(tasks)
            if threads > MOST_THREADS:
                return None
            came = (child for task in tasks for child in _children(pid, task))
            found += [child for child in dict.fromkeys(came) if child not in found]
        found += [pid for pid in self._family if pid not in found and identity.parent_of(pid) in found]
        return (first, *(pid for pid in found[1:] if identity.identify(pid) is not None))

    def _first(self, told_pid: int | None) -> int | None:
        if told_pid is not None and identity.identify(told_pid) is not None:
            return told_pid
        pid, started = self._find.get("pid"), self._find.get("started")
        if pid is not None:
            found = identity.identify(int(pid))
            if found is not None and found.started_ticks == started:
                return int(pid)
        members = self._members()
        if members:
            return min(members, key=lambda each: (identity.parent_of(each) in members, each))
        return self._by_port() or self._by_command()

    def _members(self) -> set[int]:
        found: set[int] = set()
        for group in self._find.get("groups", ()):
            for folder, _, _ in os.walk(group):
                with suppress(OSError, ValueError):
                    text = (Path(folder) / "cgroup.procs").read_text(encoding="ascii", errors="replace")
                    found |= {int(word) for word in text.split()}
        return found

    def _by_port(self) -> int | None:
        listen = self._find.get("listen")
        if not listen:
            return None
        number, port = listen
        there = listening.at(int(port), str(number))
        holders = listening.holders([one.inode for one in there]) if there else ()
        return next(iter(listening.first_of(holders)), None)

    def _by_command(self) -> int | None:
        """The oldest process of the same user with the same command line."""
        wanted, user = self._find.get("command_line"), self._find.get("user")
        if not wanted:
            return None
        found = [one for one in identity.naming(wanted[0]) if command_line(one.pid) == list(wanted)]
        found = [one for one in found if _user(one.pid) == user]
        return min(found, key=lambda one: one.started_ticks).pid if found else None


def _children(pid: int, task: str) -> list[int]:
    try:
        descriptor = os.open(f"/proc/{pid}/task/{task}/children", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        return [int(word) for word in os.read(descriptor, MOST_LIST).split()]
    except OSError:
        return []
    finally:
        os.close(descriptor)


def command_line(pid: int) -> list[str]:
    """The words with which a process was started; none where it has ended."""
    try:
        data = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return []
    return data.decode("utf-8", "surrogateescape").split("\0")[:-1]


def how_to_find(pid: int, ports: Sequence[int] = ()) -> dict[str, Any]:
    """A process that is named by its pid: by what it is found again once it was started again."""
    found = identity.identify(pid)
    words = command_line(pid)
    return {
        "pid": pid,
        "started": None if found is None else found.started_ticks,
        "listen": ["", ports[0]] if len(ports) == 1 else None,
        "command_line": words if words and all(word.isprintable() for word in words) else None,
        "user": _user(pid),
    }


def _user(pid: int) -> int | None:
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return None
