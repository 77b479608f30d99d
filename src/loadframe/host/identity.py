"""Which process is which: a pid together with its start time, because pids are reused, and its namespaces."""

import os
import select
import signal
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

from loadframe.errors import CageError, TargetError
from loadframe.system.kernel import PROC, kernel_text, pids, process_stat, process_status

BOOT_ID = PROC / "sys/kernel/random/boot_id"
MACHINE_ID = Path("/etc/machine-id")
AT_ONCE = 128
"""Each takes a descriptor, and RLIMIT_NOFILE is often 1,024."""


@dataclass(frozen=True, slots=True)
class Identity:
    """started_ticks: clock ticks after boot (proc_pid_stat(5)). namespace: see own_namespace; "" in older records."""

    pid: int
    started_ticks: int
    namespace: str = ""


def identify(pid: int) -> Identity | None:
    """None if there is none, or a zombie."""
    fields = _fields(pid)
    return None if not fields or fields[0] in "ZX" else Identity(pid, int(fields[19]), own_namespace())


def running(pid: int) -> Identity:
    """TargetError where there is none."""
    if pid <= 0 or (process := identify(pid)) is None:
        raise TargetError(f"There is no process {pid}", remedy="ps -e lists those that run.")
    return process


def _fields(pid: int) -> list[str]:
    """Of its /proc/PID/stat, from the third on; empty if it has ended."""
    return stat[1] if (stat := process_stat(pid)) else []


def identified(pids: Iterable[int]) -> tuple[Identity, ...]:
    return tuple(process for pid in pids if (process := identify(pid)) is not None)


def own() -> Identity:
    """This process. CageError if /proc shows the processes of another PID namespace."""
    try:
        shown = (PROC / "self").readlink().name
    except OSError as error:
        raise _unreadable(error) from error
    this_process = identify(os.getpid()) if shown == str(os.getpid()) else None
    if this_process is None:
        raise CageError(
            f"This process has the pid {os.getpid()}, but /proc shows the processes of another PID namespace, in which "
            f"it has {shown}",
            remedy="Mount its own /proc: `unshare --pid --fork --mount-proc`, or `mount -t proc proc /proc`.",
        )
    return this_process


def here(process: Identity) -> bool:
    """Whether its pid and its start mean this very process here, as far as was recorded."""
    return process.namespace in ("", own_namespace())


def alive(process: Identity) -> bool:
    now = identify(process.pid)
    return now is not None and now.started_ticks == process.started_ticks and here(process)


def own_namespace() -> str:
    """The inodes of our PID and time namespaces, "4026531836.4026531834". Start times are relative to the latter."""
    return f"{namespace('pid')}.{namespace('time')}"


@cache
def namespace(kind: str) -> str:
    try:
        return str((PROC / "self/ns" / kind).stat().st_ino)
    except FileNotFoundError:
        return ""


def boot_id() -> str:
    """Start times of different boots cannot be compared. CageError."""
    try:
        return kernel_text(BOOT_ID).strip()
    except OSError as error:
        raise _unreadable(error) from error


def _unreadable(error: OSError) -> CageError:
    if (PROC / "self").is_symlink():
        return CageError(
            f"{error.filename} cannot be read: {error.strerror}",
            remedy="Let Loadframe read it, or start Loadframe outside of this container.",
        )
    return CageError(
        f"/proc is not mounted ({error.filename}: {error.strerror})",
        remedy="Mount it: `mount -t proc proc /proc`, or start Loadframe outside of this container.",
    )


def machine() -> str:
    """Outlives reboots: machine-id(5), else the host name."""
    try:
        text = kernel_text(MACHINE_ID).strip()
    except (OSError, UnicodeDecodeError):
        text = ""
    return text if len(text) == 32 and text.isalnum() else host_name()


def host_name() -> str:
    """For people; it may be changed."""
    return socket.gethostname()


def end_all(processes: Iterable[Identity], grace_s: float) -> dict[Identity, bool | None]:
    """SIGTERM, `grace_s` to leave, then SIGKILL. True for a process that has ended; False if it does not go within 10 s
    of SIGKILL (stuck in the kernel); None if it is another user's."""
    left, ended = iter(dict.fromkeys(processes)), dict[Identity, bool | None]()
    while together := list(islice(left, AT_ONCE)):
        ended |= _end_together(together, grace_s)
    return ended


def _end_together(processes: Sequence[Identity], grace_s: float) -> dict[Identity, bool | None]:
    """A pidfd is held of each: no other process can take the pid between check and signal. Stopped processes are
    continued: they would see no signal."""
    ended: dict[Identity, bool | None] = dict.fromkeys(processes, True)
    with ExitStack() as stack:
        left: dict[int, Identity] = {}
        for process in processes:
            with suppress(ProcessLookupError):
                descriptor = os.pidfd_open(process.pid)
                stack.callback(os.close, descriptor)
                if alive(process):
                    left[descriptor] = process
        for number, patience_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 10.0)):
            for descriptor in list(left):
                try:
                    signal.pidfd_send_signal(descriptor, number)
                    signal.pidfd_send_signal(descriptor, signal.SIGCONT)
                except ProcessLookupError:
                    continue
                except PermissionError:
                    ended[left.pop(descriptor)] = None
            _wait_for(left, patience_s)
        return ended | dict.fromkeys(left.values(), False)


def _wait_for(descriptors: dict[int, Identity], patience_s: float) -> None:
    waiting = select.poll()
    for descriptor in descriptors:
        waiting.register(descriptor, select.POLLIN)
    until = time.monotonic() + patience_s
    while descriptors:
        ended = waiting.poll(max(0.0, until - time.monotonic()) * 1000)
        if not ended:
            return
        for descriptor, _ in ended:
            waiting.unregister(descriptor)
            del descriptors[descriptor]


def naming(word: str) -> tuple[Identity, ...]:
    """Processes whose command line contains `word`, without ourselves and our ancestors. Any process, such as an
    editor, may name a file: this is no reason to end it."""
    return _having("cmdline", lambda text: word.encode() in text)


def marked(mark: str) -> tuple[Identity, ...]:
    """Processes started with this in their environment ("NAME=value"), or by such a process, without ourselves and our
    ancestors; of other users only if we are root."""
    return _having("environ", lambda text: mark.encode() in text.split(b"\0"))


def of_session(leader: Identity, folder: Path) -> tuple[Identity, ...]:
    """Processes of the session that a process began, even if it has ended, with their working folder or an open file in
    `folder`. A session keeps its leader's pid from being reused."""
    if not here(leader):
        return ()
    if leader.namespace and identify(leader.pid) not in (None, leader):
        return ()  # another process has the pid: the session has ended
    members = (pid for pid in pids() if (fields := _fields(pid)) and int(fields[3]) == leader.pid)
    return identified(pid for pid in members if _works_in(pid, folder))


def of_group(group: int, folder: Path) -> tuple[Identity, ...]:
    """As of_session, of a group whose members alone may pass through the folder: PostgreSQL's write their titles over
    their environment, and begin sessions of their own."""
    members = []
    for pid in pids():
        with suppress(OSError):  # it has ended
            members += [pid] if str(group) in process_status(pid, "Groups") else []
    return identified(pid for pid in members if _works_in(pid, folder))


def runs(group: int) -> bool:
    return any(fields[0] not in "ZX" and int(fields[2]) == group for pid in pids() if (fields := _fields(pid)))


def _works_in(pid: int, folder: Path) -> bool:
    try:
        links = [PROC / str(pid) / "cwd", *(PROC / str(pid) / "fd").iterdir()]
    except OSError:  # it has ended, or belongs to another user
        return False
    for link in links:
        with suppress(OSError):
            if link.readlink().is_relative_to(folder):
                return True
    return False


def _having(file: str, matches: Callable[[bytes], bool]) -> tuple[Identity, ...]:
    own, having = ancestors(os.getpid()), []
    for pid in pids():
        with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            if pid not in own and matches((PROC / str(pid) / file).read_bytes()):
                having.append(pid)
    return identified(having)


def parent_of(pid: int) -> int | None:
    return int(fields[1]) if (fields := _fields(pid)) else None


def command_of(pid: int) -> tuple[str, ...]:
    try:
        return tuple(map(os.fsdecode, (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")[:-1]))
    except OSError:
        return ()


def children(pid: int) -> tuple[int, ...]:
    """Not from /proc/PID/task/TID/children, which some kernels lack, and which may miss a child (proc(5))."""
    return tuple(sorted(child for child in pids() if parent_of(child) == pid))


def family(pid: int) -> tuple[Identity, ...]:
    parents = {pid: parent_of(pid) for pid in pids()}
    known = [pid]
    for ancestor in known:  # grows meanwhile
        known += [child for child, parent in parents.items() if parent == ancestor]
    return identified(known)


def ancestors(pid: int) -> tuple[int, ...]:
    chain: dict[int, None] = {}
    while pid > 0 and pid not in chain:
        chain[pid] = None
        pid = parent_of(pid) or 0
    return tuple(chain)
