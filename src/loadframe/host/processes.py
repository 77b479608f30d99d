"""Start a process under an allowance: resource limits, CPUs, user; it never outlives its parent."""

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO

from loadframe.errors import CageError, MissingTool
from loadframe.formats.named_files import read_up_to
from loadframe.formats.plain_numbers import whole
from loadframe.host import mounts
from loadframe.host.environment import NO_FOLDER, environment, is_own, located, own_environment
from loadframe.host.privilege import (
    CAP_SYS_ADMIN,
    CAP_SYS_RESOURCE,
    US,
    Ids,
    Privilege,
    holds,
    ids_of,
    of_uid,
    rights_of,
)
from loadframe.host.to_its_end import Process
from loadframe.system.files import Folder, Whose
from loadframe.system.kernel import kernel_text, process_status

LAUNCHER = Path(__file__).with_name("launch.py")
NR_OPEN = Path("/proc/sys/fs/nr_open")
CPUS_ONLINE = Path("/sys/devices/system/cpu/online")

Stream = int | IO[bytes] | None


@dataclass(frozen=True, kw_only=True)
class Resources:
    """limits: by their names in setrlimit(2), soft and hard alike. cpus: None for all. groups: the folders of the
    control groups to join (cages.Cage.folders)."""

    limits: Mapping[str, int] = field(default_factory=dict)
    cpus: frozenset[int] | None = None
    groups: tuple[Path, ...] = ()

    def run_by(self, user: Privilege) -> "Allowance":
        return Allowance(user, limits=self.limits, cpus=self.cpus, groups=self.groups)


@dataclass(frozen=True, kw_only=True)
class Allowance(Resources):
    """shared_group: of a folder that the user must be able to pass through. temporary: its folder for temporary files,
    in the lease's; /tmp and /var/tmp are then private (mounts.py), if we may mount, except for what `visible` names of
    them."""

    user: Privilege = field(kw_only=False)
    shared_group: int | None = None
    temporary: Path | None = None
    visible: str = ""


def stated(resources: Resources) -> Allowance:
    assert isinstance(resources, Allowance), "it is said who runs this component"
    return resources


MARK = "LOADFRAME_LEASE"
"""The variable that marks what is started with its lease. Descendants inherit it."""
held_leases: list[str] = []
"""The last one marks what is started."""


def marked(env: Mapping[str, str]) -> dict[str, str]:
    return {**env, **({MARK: held_leases[-1]} if held_leases else {})}


MOST_SHOWN = 200


def parse_cpus(text: str) -> frozenset[int]:
    """CPUs in the kernel's list format, "0-1,3" (cpuset(7)). CageError."""
    cpus: set[int] = set()
    shown = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."
    for part in text.split(","):
        first, dash, last = (word.strip() for word in part.partition("-"))
        low, high = whole(first), whole(last if dash else first)
        wrong = ""
        if low is None or high is None or not 0 <= low <= high:
            wrong = f"{part.strip()[:MOST_SHOWN]!r} is not a CPU or a range"
        elif high >= 8192:  # the largest NR_CPUS a kernel is built with (x86 CONFIG_MAXSMP)
            wrong = f"no machine has CPU {high}"
        else:
            cpus.update(range(low, high + 1))
        if wrong:
            raise CageError(f"cpus = {shown!r}: {wrong}", remedy='Write e.g. "0-1,3".')
    return frozenset(cpus)


def cpu_list(cpus: Iterable[int]) -> str:
    return ",".join(map(str, sorted(cpus)))


def online_cpus() -> frozenset[int]:
    return parse_cpus(kernel_text(CPUS_ONLINE).strip())


def may_raise_limits() -> bool:
    """CAP_SYS_RESOURCE: root in a container often does not have it."""
    return holds(CAP_SYS_RESOURCE)


def may_have_mounts() -> bool:
    """With CAP_SYS_ADMIN, and if the root folder is a mount: after chroot(2) it is not, and mounts could not be kept
    from the machine (mount_namespaces(7))."""
    rows = kernel_text(Path("/proc/self/mountinfo")).splitlines()
    return holds(CAP_SYS_ADMIN) and any(row.split()[4] == "/" for row in rows)


def most_open_files() -> int:
    """The largest RLIMIT_NOFILE that `spawn` can grant."""
    most = int(kernel_text(NR_OPEN))
    return most if may_raise_limits() else min(most, resource.getrlimit(resource.RLIMIT_NOFILE)[1])


def runnable(program: str, user: Privilege, shared_group: int | None = None) -> str | None:
    for folder in os.get_exec_path():
        path = Path(folder) / program
        if not (folder.startswith("/") and path.is_file() and os.access(path, os.X_OK)):
            continue
        if user == US or all(
            _has_x(place, ids_of(user)) and unreachable(place.parent, user, shared_group) is None
            for place in (path, path.resolve())
        ):
            return str(path)
    return None


def _has_x(path: Path, ids: Ids, shared_group: int | None = None) -> bool:
    status = path.stat()
    groups = {*ids.groups, shared_group}
    bit = stat.S_IXUSR if status.st_uid == ids.uid else stat.S_IXGRP if status.st_gid in groups else stat.S_IXOTH
    return bool(status.st_mode & bit)


def unreachable(path: Path, user: Privilege, shared_group: int | None = None) -> Path | None:
    return None if user == US else next(_closed(path, user, shared_group), None)


def _closed(path: Path, user: Privilege, shared_group: int | None) -> Iterator[Path]:
    ids = ids_of(user)
    way = [*reversed(path.absolute().parents), path.absolute()]
    return (folder for folder in way if not _has_x(folder, ids, shared_group))


def spawn(
    command: Sequence[str | Path],
    allowance: Allowance,
    *,
    stdout: Stream,
    stderr: Stream,
    cwd: Path | None = None,
    stdin: Stream = None,
    env: Mapping[str, str] | None = None,
    death_signal: signal.Signals = signal.SIGKILL,
    pass_fds: Sequence[int] = (),
) -> Process:
    """Start `command` in a session of its own and return once it runs (exec has happened). It is killed when the
    *thread* that called spawn ends (PR_SET_PDEATHSIG): call it from a thread that lives as long as the process should.
    death_signal: what kills it then, for a server whose children would outlive a SIGKILL. stdin: default /dev/null.
    pass_fds: descriptors that stay open, with their numbers. CageError if the machine does not grant the allowance,
    MissingTool."""
    options = [word for folder in allowance.groups for word in ("--group", str(folder))]
    for name, value in allowance.limits.items():
        _check_limit(name, value)
        options += ["--rlimit", f"{name.removeprefix('RLIMIT_')}={value}:{value}"]
    if allowance.cpus is not None:
        _check_cpus(allowance.cpus)
        options += ["--cpus", cpu_list(allowance.cpus)]
    options += _user_options(allowance)
    program = str(command[0])
    if "/" not in program and (program := located(program) or "") == "":
        raise _error(f"command\t{command[0]}: No such file in PATH")
    given = _environment(command, env, allowance)
    options += _mounts([program, *map(str, command[1:])], cwd, given, allowance)
    held = [] if cwd is None or allowance.user == US else [_working_folder(cwd, allowance)]
    options += [word for folder in held for word in ("--folder", str(folder))]
    reading, writing = os.pipe()
    try:
        launcher = [sys.executable, "-I", "-S", str(LAUNCHER), "--report", str(writing), *options]
        launcher += ["--parent", str(os.getpid()), "--death-signal", str(int(death_signal))]
        process = Process(
            [*launcher, "--", program, *map(str, command[1:])],
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=NO_FOLDER if held else cwd,
            env=marked(given),
            start_new_session=True,
            pass_fds=(writing, *held, *pass_fds),
        )
    except BaseException:
        os.close(reading)
        raise
    finally:
        for descriptor in (writing, *held):
            os.close(descriptor)
    try:
        with os.fdopen(reading, "rb") as report:
            refusal = report.read().decode()
    except BaseException:  # Ctrl-C: the caller has no process yet to end
        process.kill()
        process.wait()
        raise
    if refusal:
        with process:  # waits for it and closes its pipes
            raise _barred(program, allowance) or _error(refusal)
    return process


def _working_folder(path: Path, allowance: Allowance) -> int:
    """With the user's rights, or with ours if the user may not enter, but by no link of another user. OSError,
    CageError."""
    try:
        with rights_of(allowance.user, allowance.shared_group):
            return os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        return Folder(path, Whose.ANOTHERS, CageError, what="working folder").any_kind(".")


def _barred(program: str, allowance: Allowance) -> MissingTool | None:
    steps = [path := Path(program)]
    while path.is_symlink() and (path := path.parent / path.readlink()) not in steps:
        steps.append(path)
    for step in (*steps, Path(os.path.realpath(path))):
        try:
            folder = unreachable(step.parent, allowance.user, allowance.shared_group)
        except OSError:  # it is not there, or we lack permission
            return None
        if folder is not None:
            link = "" if step == Path(program) else f", a link to {step}"
            return MissingTool(
                f"Cannot run {program}{link}: the user {allowance.user} may not enter {folder}",
                remedy=f"Install it where {allowance.user} can read it, or have a service run by a user who can "
                "(target.user).",
            )
    return None


def _environment(
    command: Sequence[str | Path], given: Mapping[str, str] | None, allowance: Allowance
) -> dict[str, str]:
    """Another user may not look into our home: libpq fails on that (fe-secure-openssl.c)."""
    variables = own_environment(given) if is_own(command) else environment(given)
    if allowance.temporary is not None and variables.get("TMPDIR") == os.environ.get("TMPDIR"):
        variables["TMPDIR"] = str(allowance.temporary)
    ours = variables.get("HOME") == os.environ.get("HOME")
    if allowance.user == US or not ours:
        return variables
    return {**mounts.user_packages(), **variables, "HOME": str(NO_FOLDER)}


def _error(refusal: str) -> CageError | MissingTool:
    kind, _, text = refusal.partition("\t")
    if kind == "command":
        return MissingTool(
            f"Cannot run {text}",
            remedy="Install it where the user that runs it can read it; `loadframe doctor` says what is needed.",
        )
    return CageError(text, remedy="Request less, or run Loadframe as root outside the container that forbids it.")


def _check_limit(name: str, value: int) -> None:
    known = sorted(entry for entry in dir(resource) if entry.startswith("RLIMIT_"))
    if name not in known:
        raise CageError(f"{name} is not a resource limit of this machine", remedy=f"Known: {', '.join(known)}.")
    if value < 0:
        raise CageError(f"{name} = {value} is not a limit", remedy="Give a number from 0.")
    if name == "RLIMIT_NOFILE" and value > (most := int(kernel_text(NR_OPEN))):
        raise CageError(
            f"{name} = {value} is above the kernel's fs.nr_open = {most}",
            remedy=f"Request at most {most}, or raise it: sysctl fs.nr_open={value}",
        )
    hard = resource.getrlimit(getattr(resource, name))[1]
    if not may_raise_limits() and hard != resource.RLIM_INFINITY and value > hard:
        raise CageError(
            f"{name} = {value} is above the hard limit {hard}, and this process may not raise it",
            remedy=f"Request at most {hard}, or start Loadframe with a higher one: as root `ulimit -Hn {value}`, "
            f"/etc/security/limits.conf, or `--ulimit` of the container.",
        )


def available_cpus(text: str) -> frozenset[int]:
    """As parse_cpus, all of them online."""
    cpus = parse_cpus(text)
    _check_cpus(cpus)
    return cpus


def bind(pids: Iterable[int], cpus: frozenset[int]) -> None:
    """Bind all threads, also those started meanwhile. Processes that have ended are skipped. CageError."""
    for pid in pids:
        bound: set[int] = set()
        while new := threads(pid) - bound:
            for thread in new:
                try:
                    os.sched_setaffinity(thread, cpus)
                except ProcessLookupError:
                    continue
                except OSError as error:
                    raise CageError(
                        f"process {pid} cannot be bound to CPU {cpu_list(cpus)}: {error.strerror}",
                        remedy="Choose CPUs that this process and the container may use.",
                    ) from error
            bound |= new


def bound_to(pid: int) -> str | None:
    """As "0,1"; None if it has ended."""
    try:
        return cpu_list(os.sched_getaffinity(pid))
    except ProcessLookupError:
        return None


def threads(pid: int) -> set[int]:
    """Without the kernel's for io_uring, which cannot be bound; empty if it has ended."""
    numbers = set()
    with suppress(FileNotFoundError, ProcessLookupError):
        for folder in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):  # it has just ended
                if not (folder / "comm").read_bytes().startswith((b"iou-wrk-", b"iou-sqp-")):
                    numbers.add(int(folder.name))
    return numbers


def _check_cpus(cpus: frozenset[int]) -> None:
    missing = cpus - online_cpus()
    if missing or not cpus:
        online = kernel_text(CPUS_ONLINE).strip()
        raise CageError(
            f"The study asks for CPU {cpu_list(missing) or 'none at all'}; online are {online}",
            remedy="Choose from the CPUs that are online.",
        )


def _user_options(allowance: Allowance) -> list[str]:
    if allowance.user == US:
        return []
    ids = ids_of(allowance.user)
    if ids.uid == os.geteuid() != 0:
        return []
    if os.geteuid() != 0:
        raise CageError(
            f"Only root can start a process as {allowance.user}", remedy="Run as root, or leave the user out."
        )
    shared = [] if allowance.shared_group is None else ["--shared-group", str(allowance.shared_group)]
    return ["--uid", str(ids.uid), "--gid", str(ids.gid), *shared]


def _mounts(command: Sequence[str], cwd: Path | None, env: Mapping[str, str], allowance: Allowance) -> list[str]:
    """A /tmp of its own; and our Python, if the user lacks access and the command names a file of it or of
    Loadframe's."""
    user, group = allowance.user, allowance.shared_group
    if user == US or os.geteuid() != 0 or not may_have_mounts():
        return []
    options, places = [], mounts.places()
    if allowance.temporary is not None:
        words = [*command, str(cwd or Path.cwd()), allowance.visible]
        options += mounts.own(words, env, places, lambda path: _closed(path, user, group))
    if any(word.startswith(tuple(map(str, places))) for word in command):
        options += _view(places, user, group)
    return options


@lru_cache
def _view(places: tuple[Path, ...], user: Privilege, shared_group: int | None) -> list[str]:
    return mounts.view(places, lambda path: _closed(path, user, shared_group))


PATIENCE_S = 5.0
"""Reading a pipe waits for its writer."""


def user_of(pid: int) -> int:
    """The effective uid of a process; its folder in /proc may be root's in any case. Raises OSError."""
    return int(process_status(pid, "Uid")[1])


def read_as(user: int, path: Path, most: int) -> bytes:
    """A regular file's first bytes, one more than `most` if it has more, with the rights of `user` if we are root and
    that user is not: the kernel decides. OSError."""
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, f"there is no file {path}")
    if not path.is_file():
        raise OSError(errno.EINVAL, f"{path} is not a regular file")
    if user == 0 or os.geteuid() != 0:
        return read_up_to(path, most)
    command = ["head", "-c", str(most + 1), "--", str(path.absolute())]
    try:
        head = spawn(command, Allowance(of_uid(user)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=NO_FOLDER)
    except (CageError, MissingTool) as error:
        raise OSError(errno.EACCES, error.fact) from error
    with head:
        try:
            data, _ = head.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired as error:
            head.kill()
            raise TimeoutError(errno.ETIMEDOUT, f"{path} was not read within {PATIENCE_S:g} s") from error
    if head.returncode != 0:
        raise OSError(errno.EACCES, f"user {user} cannot read {path}")
    return data
