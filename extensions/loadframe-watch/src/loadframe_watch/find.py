"""Find the service again, by its pid, port, control group or command line: another user's process in its place is not
it. All processes are walked only where nothing else finds it."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from loadframe.cages import groups
from loadframe.errors import RecordingError
from loadframe.formats.said import words
from loadframe.host import identity, listening
from loadframe.host.privilege import US, Privilege, of_uid
from loadframe.kinds.behind import comm_of, parents
from loadframe.recording.socket_rows import Asking, users_of
from loadframe.system.kernel import process_status
from loadframe.system.trust import user

MOST_PIDS = 256
MOST_THREADS = 64
"""With more, a walk over all processes costs less than looking up the children thread by thread."""
CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children")
"""Not on every kernel (CONFIG_PROC_CHILDREN, proc(5))."""


class Finder:
    """find: of a WatchPlan. words: what stands in the service's place and is not it, or that it runs another program
    now; else ""."""

    def __init__(self, find: Mapping[str, Any], *, by_thread: bool | None = None) -> None:
        self._find = find
        self._uids = tuple(find.get("uids", ()))
        self.words = ""
        self._by_thread = CHILDREN.exists() if by_thread is None else by_thread
        self._family: tuple[int, ...] = ()

    def pids(self, reported_pid: int | None = None) -> tuple[int, ...]:
        """The main one first; empty while it is not running. reported_pid: as its server reported it."""
        self.words = ""
        first = self._first(reported_pid)
        if first is None:
            return ()
        program, before = program_of(first), self._find.get("program")
        if program and before and program != before:
            self.words = f"The service is process {first} of {program} now, before of {before}."
        members = self._members()
        if members:
            return tuple(sorted(members, key=lambda pid: (pid != first, pid)))[:MOST_PIDS]
        of_threads = self._of_threads(first) if self._by_thread else None
        family = of_threads if of_threads is not None else tuple(member.pid for member in identity.family(first))
        self._family = family[:MOST_PIDS]
        return self._family

    def _of_threads(self, first: int) -> tuple[int, ...] | None:
        """At a cost that does not grow with the machine; None for too many threads. One that ends while a list is read
        may hide another (proc(5)), so the last known ones are checked by their parent."""
        family, threads = [first], 0
        for pid in family:  # grows in the loop
            try:
                tasks = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - one call, no objects
            except OSError:
                continue
            threads += len(tasks)
            if threads > MOST_THREADS:
                return None
            for task in tasks:
                with suppress(OSError):  # it has ended
                    came = map(int, Path(f"/proc/{pid}/task/{task}/children").read_bytes().split())
                    family += [child for child in came if child not in family]
        family += [pid for pid in self._family if pid not in family and identity.parent_of(pid) in family]
        return (first, *(pid for pid in family[1:] if identity.identify(pid) is not None))

    def _first(self, reported_pid: int | None) -> int | None:
        if reported_pid is not None and self._is_its(reported_pid, "its address"):
            return reported_pid
        pid, started = self._find.get("pid"), self._find.get("started")
        if pid is not None:
            process = identity.identify(int(pid))
            if process is not None and process.started_ticks == started:
                return int(pid)
        members = self._members()
        if members:
            return min(members, key=lambda member: (identity.parent_of(member) in members, member))
        if self._find.get("listen"):
            number, port = self._find["listen"]
            there = listening.at(int(port), str(number))
            holders = listening.holders([socket.inode for socket in there]) if there else ()
            if pid := next((pid for pid in parents(holders) if self._is_its(pid, f"port {port}")), None):
                return pid
        return self._by_command()

    def _members(self) -> set[int]:
        folders = (Path(folder) for group in self._find.get("groups", ()) for folder, _, _ in os.walk(group))
        return {pid for folder in folders for pid in groups.members(folder)}

    def _is_its(self, pid: int, place: str) -> bool:
        """Whether a process that stands in the service's place has its user; else `words` say so."""
        now, self.words = uids_of(pid), ""
        if self._uids and now and now != self._uids:
            holder = f"process {pid} ({words(comm_of(pid))}) of {_users(now)}"
            service = f"the service is that of {_users(self._uids)}: this process is not read"
            self.words = f"{place} is held by {holder}, and {service}"
        return not self.words and identity.identify(pid) is not None

    def _by_command(self) -> int | None:
        wanted = self._find.get("command_line")
        if not wanted or not self._uids:
            return None
        processes = [
            process for process in identity.naming(wanted[0]) if identity.command_of(process.pid) == tuple(wanted)
        ]
        processes = [process for process in processes if uids_of(process.pid) == self._uids]
        return min(processes, key=lambda process: process.started_ticks).pid if processes else None


def how_to_find(pid: int, ports: Sequence[int] = ()) -> dict[str, Any]:
    process = identity.identify(pid)
    line = identity.command_of(pid)
    return {
        "pid": pid,
        "started": None if process is None else process.started_ticks,
        "listen": ["", ports[0]] if len(ports) == 1 else None,
        "command_line": line if line and all(word.isprintable() for word in line) else None,
        **whose(pid),
    }


def whose(pid: int) -> dict[str, Any]:
    return {"uids": uids_of(pid), "program": program_of(pid)}


def uids_of(pid: int) -> tuple[int, ...]:
    """Real, effective and saved (proc_pid_status(5)); empty where it has ended."""
    try:
        return tuple(map(int, process_status(pid, "Uid")[:3]))
    except OSError:
        return ()


def program_of(pid: int) -> str:
    """The program's file; "" where that is not readable or not printable."""
    try:
        path = os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")  # noqa: PTH115 - any bytes
    except OSError:
        return ""
    return path if path.isprintable() else ""


def run_by(find: Mapping[str, Any]) -> Privilege | None:
    """The user to run programs as: the service's at the start, or ours where not root; None unless it has one."""
    users = set(find.get("uids", ()))
    return US if os.geteuid() != 0 else of_uid(users.pop()) if len(users) == 1 else None


class Ports:
    """Who may answer at this machine's ports that a watch asks: who did when it began, the service's user, root."""

    def __init__(self, port_users: Mapping[str, Iterable[int]], find: Mapping[str, Any]) -> None:
        self._port_users, self.uids = port_users, tuple(find.get("uids", ()))
        self._asking = Asking()

    def taken(self, port: int) -> str:
        """A sentence that another user has taken the port; else ""."""
        allowed = frozenset(self.uids).union(self._port_users.get(str(port), ()))
        others = listening_users(port, self._asking) - allowed - {0} if allowed else frozenset()
        if not others:
            return ""
        return f"port {port} is held by {_users(others)} now, before by {_users(allowed)}: no request is sent to it"

    def another_user(self, uid: int, place: str) -> str:
        """A sentence that what answers at a place is not the service's; "" where it is, and where that is unknown."""
        if not self.uids or uid in (0, *self.uids):
            return ""
        return f"{place} is held by {user(uid)}, and the service is that of {_users(self.uids)}: nothing is asked there"

    def close(self) -> None:
        self._asking.close()


def listening_users(port: int, asking: Asking | None = None) -> frozenset[int]:
    try:
        return users_of(port, asking=asking)
    except RecordingError:  # a kernel without sock_diag
        return frozenset(socket.user for socket in listening.at(port))


def _users(uids: Iterable[int]) -> str:
    return " and ".join(user(uid) for uid in sorted(set(uids)))
