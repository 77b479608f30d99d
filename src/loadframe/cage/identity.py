"""Which process is which: a pid together with its start time, because pids are used again."""

from __future__ import annotations

import os
import select
import signal
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
BOOT_ID = PROC / "sys/kernel/random/boot_id"


@dataclass(frozen=True, slots=True)
class Identity:
    """started_ticks: field 22 of /proc/PID/stat, clock ticks after boot (proc_pid_stat(5))."""

    pid: int
    started_ticks: int


def identify(pid: int) -> Identity | None:
    """The process that has this pid now, None where there is none (a zombie has ended: none)."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text[text.rindex(")") + 2 :].split()  # the name before may contain blanks and brackets
    return None if fields[0] in "ZX" else Identity(pid, int(fields[19]))


def alive(process: Identity) -> bool:
    """Whether this very process still runs."""
    return identify(process.pid) == process


def boot_id() -> str:
    """Names this boot of this machine; start times of different boots cannot be compared."""
    return BOOT_ID.read_text().strip()


def end(process: Identity, grace_s: float) -> bool:
    """End this very process: SIGTERM, `grace_s` to leave, then SIGKILL. True once it has ended or was gone before.

    A pidfd is held meanwhile, so that no other process can take the pid between the check and the signal.
    False where it does not go within 10 s of SIGKILL (stuck in the kernel). PermissionError where it is not ours.
    """
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    try:
        if not alive(process):
            return True
        ended = select.poll()
        ended.register(descriptor, select.POLLIN)
        for number, patience_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 10.0)):
            signal.pidfd_send_signal(descriptor, number)
            if ended.poll(patience_s * 1000):
                return True
        return False
    except ProcessLookupError:
        return True
    finally:
        os.close(descriptor)


def naming(word: str) -> tuple[Identity, ...]:
    """Processes whose command line contains `word`, without ourselves and our ancestors. Walks /proc once."""
    own = _ancestors(os.getpid())
    found = []
    for folder in PROC.iterdir():
        if not folder.name.isdigit() or int(folder.name) in own:
            continue
        try:
            command = (folder / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        process = identify(int(folder.name)) if word.encode() in command else None
        if process is not None:
            found.append(process)
    return tuple(found)


def parent_of(pid: int) -> int | None:
    """The process that started this one; None where there is none."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(text[text.rindex(")") + 2 :].split()[1])


def children(pid: int) -> tuple[int, ...]:
    """The processes that it has started and that are there. /proc/PID/task/TID/children would say it, but few kernels
    are built with that."""
    folders = (folder.name for folder in PROC.iterdir() if folder.name.isdigit())
    return tuple(sorted(int(name) for name in folders if parent_of(int(name)) == pid))


def _ancestors(pid: int) -> set[int]:
    chain: set[int] = set()
    while pid > 0 and pid not in chain:
        chain.add(pid)
        pid = parent_of(pid) or 0
    return chain
