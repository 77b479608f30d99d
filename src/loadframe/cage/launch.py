"""Become the command under its allowance: the last thing that runs before a server's own `main`.

    python -I -S launch.py --report FD --group DIR --rlimit NOFILE=1024:1024 --cpus 0,1 --uid U --gid G
        --parent PID --death-signal 9 -- command ...

A script of its own, on the standard library alone, because `preexec_fn` is unsafe in a process with threads. The order
matters: control groups and limits while still root, then affinity, then the user, then the death signal (changing the
user clears it), and only then the check that the parent still lives, which closes the race between fork and prctl.
What fails is written to the report descriptor as one line of kind and text; the descriptor closes by itself when the
command takes over, so silence means success.
"""

from __future__ import annotations

import ctypes
import getopt
import os
import resource
import signal
import sys
import warnings  # noqa: F401  os.execvp imports it when called, which is too late: the new user may not reach it
from collections.abc import Sequence

PR_SET_PDEATHSIG = 1  # linux/prctl.h


class LaunchError(Exception):
    """kind: "cage" where the machine does not grant something, "command" where the command cannot be run."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def join(folder: str) -> None:
    """Move into a control group; what this process starts from then on is in it too."""
    try:
        descriptor = os.open(f"{folder}/cgroup.procs", os.O_WRONLY)
        try:
            os.write(descriptor, b"0")
        finally:
            os.close(descriptor)
    except OSError as error:
        raise LaunchError("cage", f"the control group {folder} was refused by the kernel: {error.strerror}") from error


def set_limit(text: str) -> None:
    """Set one resource limit from NAME=SOFT:HARD."""
    name, _, values = text.partition("=")
    soft, _, hard = values.partition(":")
    try:
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (int(soft), int(hard)))
    except (OSError, ValueError) as error:
        raise LaunchError("cage", f"RLIMIT_{name} = {soft} was refused by the kernel: {error}") from error


def set_cpus(text: str) -> None:
    """Bind to these CPUs; refused where the kernel gives fewer (it silently leaves out what a cpuset forbids)."""
    wanted = {int(cpu) for cpu in text.split(",")}
    try:
        os.sched_setaffinity(0, wanted)
    except OSError as error:
        raise LaunchError("cage", f"CPUs {text} were refused by the kernel: {error.strerror}") from error
    missing = wanted - os.sched_getaffinity(0)
    if missing:
        raise LaunchError("cage", f"CPUs {','.join(map(str, sorted(missing)))} are not allowed to this process")


def become(uid: int, gid: int) -> None:
    """Give up root for good: the groups first, the user last."""
    try:
        os.setgroups([gid])
        os.setgid(gid)
        os.setuid(uid)
    except OSError as error:
        raise LaunchError("cage", f"cannot become user {uid}, group {gid}: {error.strerror}") from error


def die_with(parent: int, death_signal: int) -> None:
    """Be sent this signal when the parent ends, also when it is killed itself."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0) != 0:
        raise LaunchError("cage", f"prctl(PR_SET_PDEATHSIG): {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:
        raise LaunchError("cage", f"the parent {parent} has ended already")


def run(arguments: Sequence[str]) -> None:
    """Apply every option in the order that works, then become the command. Only returns by an exception."""
    pairs, command = getopt.getopt(
        list(arguments), "", ["report=", "group=", "rlimit=", "cpus=", "uid=", "gid=", "parent=", "death-signal="]
    )
    options = dict(pairs)
    for name, text in pairs:
        if name == "--group":
            join(text)
    for name, text in pairs:
        if name == "--rlimit":
            set_limit(text)
    if "--cpus" in options:
        set_cpus(options["--cpus"])
    if "--uid" in options:
        become(int(options["--uid"]), int(options["--gid"]))
    if "--parent" in options:
        die_with(int(options["--parent"]), int(options.get("--death-signal", signal.SIGKILL)))
    # Python ignores these two at its start, and what is ignored stays ignored across exec.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        raise LaunchError("command", f"{command[0]}: {error.strerror}") from error


def main(arguments: Sequence[str]) -> int:
    """Run, or report why not and leave with 126."""
    report = int(arguments[arguments.index("--report") + 1])
    os.set_inheritable(report, False)
    try:
        run(arguments)
    except LaunchError as refusal:
        os.write(report, f"{refusal.kind}\t{refusal}".encode())
    except Exception as error:
        os.write(report, f"cage\tthe launcher failed: {error!r}".encode())
        raise
    return 126


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
