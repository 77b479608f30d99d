"""Become the command under its allowance: the last thing that runs before a server's own `main`.

    python -I -S launch.py --report FD --folder FD --group DIR --own DIR --keep PATH --cover DIR --show PATH
        --rlimit NOFILE=9:9 --cpus 0,1 --uid U --gid G --shared-group G2 --parent PID --death-signal 9 -- command ...

A script of its own, on the standard library alone, because `preexec_fn` is unsafe in a process with threads. The order
matters: control groups, mounts and limits while still root, then affinity, then the user, then the death signal
(changing the user clears it), and only then the check that the parent still lives, which closes the race between fork
and prctl. A failure is written to the report descriptor as one line of kind and text; the descriptor closes by itself
when the command takes over, so silence means success."""

import contextlib
import ctypes
import getopt
import os
import resource
import signal
import stat
import sys
import warnings  # noqa: F401  os.execvp imports it when called, which is too late: the new user may not reach it
from collections.abc import Iterator, Sequence

PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38  # linux/prctl.h
CLONE_NEWNS = 0x00020000  # linux/sched.h
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC, MS_SLAVE = 1, 2, 4, 32, 4096, 16384, 1 << 19
MS_NOEXEC, MS_NOATIME, MS_NODIRATIME, MS_RELATIME = 8, 1024, 2048, 1 << 21  # linux/mount.h
KEPT_FLAGS = {
    os.ST_NOEXEC: MS_NOEXEC,
    os.ST_NOATIME: MS_NOATIME,
    os.ST_NODIRATIME: MS_NODIRATIME,
    os.ST_RELATIME: MS_RELATIME,
}
OWN = "mode=1777,size=512m,nr_inodes=64k"
"""Mount options of its own folder, which is in memory (tmpfs(5)): without a size it may take half of the machine's."""


class LaunchError(Exception):
    """kind: "cage" if the machine does not grant something, "command" if the command cannot be run."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


@contextlib.contextmanager
def granted(refusal: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LaunchError("cage", f"{refusal}: {error.strerror}") from error


def join(folder: str) -> None:
    with granted(f"the control group {folder} was refused by the kernel"):
        descriptor = os.open(f"{folder}/cgroup.procs", os.O_WRONLY)
        try:
            os.write(descriptor, b"0")
        finally:
            os.close(descriptor)


def see(options: Sequence[tuple[str, str]]) -> None:
    """Mount empty folders over others (`--own`, `--cover`), and in these, at its own path, what should remain visible
    (`--keep`, `--show`). An own folder is writable for all, like /tmp; a covered one, and what is shown in it, is
    read-only. If we may not mount, there is no own folder; LaunchError if one should be covered."""
    where = os.getcwd()
    try:
        if _libc().unshare(CLONE_NEWNS) != 0:
            raise LaunchError("cage", f"no mounts of its own: {os.strerror(ctypes.get_errno())}")
        _mount(None, "/", None, MS_REC | MS_SLAVE)
    except LaunchError:
        if any(name == "--cover" for name, _ in options):
            raise
        return
    there = {path: held(path) for name, path in options if name in ("--keep", "--show")}
    mask = os.umask(0o022)
    for name, path in options:
        if name in ("--own", "--cover"):
            os.makedirs(path, exist_ok=True)
            _mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, OWN if name == "--own" else "mode=755")
        elif name in ("--keep", "--show"):
            _place(path, there[path], closed=name == "--show")
    for name, path in options:
        if name == "--cover":
            _mount(None, path, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
    os.umask(mask)
    for descriptor in there.values():
        os.close(descriptor)
    with contextlib.suppress(FileNotFoundError):  # it is covered
        os.fchdir(held(where))


def held(path: str) -> int:
    """An O_PATH descriptor of a path without links: a link put there since raises NotADirectoryError."""
    at = os.open("/", os.O_PATH)
    for name in filter(None, path.split("/")):
        below = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=at)
        os.close(at)
        at = below
    return at


def _place(path: str, descriptor: int, *, closed: bool) -> None:
    """In a folder of ours alone; a link is copied as a link."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    kind = os.fstat(descriptor).st_mode
    if stat.S_ISLNK(kind):
        os.symlink(os.readlink("", dir_fd=descriptor), path)
        return
    if stat.S_ISDIR(kind):
        os.makedirs(path, exist_ok=True)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
    _mount(f"/proc/self/fd/{descriptor}", path, None, MS_BIND | MS_REC)
    if not closed:
        return
    had = os.statvfs(path).f_flag  # a user namespace may not clear these (mount_namespaces(7))
    kept = sum(flag for name, flag in KEPT_FLAGS.items() if had & name)
    _mount(None, path, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | kept)


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind, options)]
    if _libc().mount(*words[:3], ctypes.c_ulong(flags), words[3]) != 0:
        raise LaunchError("cage", f"mount {target}: {os.strerror(ctypes.get_errno())}")


def set_limit(text: str) -> None:
    name, _, values = text.partition("=")
    soft, _, hard = values.partition(":")
    try:
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (int(soft), int(hard)))
    except (OSError, ValueError) as error:
        raise LaunchError("cage", f"RLIMIT_{name} = {soft} was refused by the kernel: {error}") from error


def set_cpus(text: str) -> None:
    """LaunchError also if the kernel gives fewer, as a cpuset does silently."""
    wanted = {int(cpu) for cpu in text.split(",")}
    with granted(f"CPUs {text} were refused by the kernel"):
        os.sched_setaffinity(0, wanted)
    missing = wanted - os.sched_getaffinity(0)
    if missing:
        raise LaunchError("cage", f"CPUs {','.join(map(str, sorted(missing)))} are not allowed to this process")


def become(uid: int, gid: int, *shared_groups: int) -> None:
    """For good: no set-user-ID program run from then on gives root back."""
    with granted(f"cannot become user {uid}, group {gid}"):
        os.setgroups([gid, *shared_groups])
        os.setgid(gid)
        os.setuid(uid)
    _prctl("PR_SET_NO_NEW_PRIVS", PR_SET_NO_NEW_PRIVS, 1)


def die_with(parent: int, death_signal: int) -> None:
    _prctl("PR_SET_PDEATHSIG", PR_SET_PDEATHSIG, death_signal)
    if os.getppid() != parent:
        raise LaunchError("cage", f"the parent {parent} has ended already")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _prctl(name: str, option: int, value: int) -> None:
    if _libc().prctl(option, value, 0, 0, 0) != 0:
        raise LaunchError("cage", f"prctl({name}): {os.strerror(ctypes.get_errno())}")


def run(arguments: Sequence[str]) -> None:
    """Returns only by an exception."""
    names = [
        "report", "folder", "group", "own", "keep", "cover", "show", "rlimit", "cpus", "uid", "gid", "shared-group",
        "parent", "death-signal",
    ]  # fmt: skip
    pairs, command = getopt.getopt(list(arguments), "", [f"{name}=" for name in names])
    options = dict(pairs)
    for name, text in pairs:
        if name == "--group":
            join(text)
    if "--folder" in options:
        os.fchdir(int(options["--folder"]))
        os.close(int(options["--folder"]))
    if "--cover" in options or "--own" in options:
        see(pairs)
    set_limit(f"CORE=0:{resource.getrlimit(resource.RLIMIT_CORE)[1]}")  # host/signals.py says why
    for name, text in pairs:
        if name == "--rlimit":
            set_limit(text)
    if "--cpus" in options:
        set_cpus(options["--cpus"])
    if "--uid" in options:
        shared = [int(text) for name, text in pairs if name == "--shared-group"]
        become(int(options["--uid"]), int(options["--gid"]), *shared)
    if "--parent" in options:
        die_with(int(options["--parent"]), int(options.get("--death-signal", signal.SIGKILL)))
    # What is ignored stays ignored across exec. Python ignores SIGPIPE and SIGXFSZ at its start, nohup and a shell's &
    # make us ignore others; a server should behave alike, and end by SIGQUIT, whoever started us.
    for number in signal.valid_signals():
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        raise LaunchError("command", f"{command[0]}: {error.strerror}") from error


def main(arguments: Sequence[str]) -> int:
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
