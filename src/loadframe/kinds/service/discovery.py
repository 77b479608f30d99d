"""What a process on this machine is: its command, what it is written with, who runs it and where. It is only read."""

import mmap
import os
import pwd
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

from loadframe.errors import TargetError
from loadframe.host import identity
from loadframe.kinds.service.runtimes import Given, Runtime, framework_of, knobs_of, runtime_of
from loadframe.system.files import regular_file

PROC = Path("/proc")
GO_MARK = b"\xff Go buildinf:"
"""How the build information of a Go program begins (Go's debug/buildinfo)."""
MOST_SEARCHED_BYTES = 256 << 20
_CONTAINER = re.compile(r"(?:^|[/:-])([0-9a-f]{64})(?:\.scope)?(?:/|$)")
_UNIT = re.compile(r"/([^/\n]+\.service)(?=/|$)", re.M)
"""The last one of a path is its own: a user's units are below user@UID.service."""


@dataclass(frozen=True, slots=True)
class Discovered:
    """A process, and what comes from it. executable: its program's file, "" where that may not be seen. user: who runs
    it. unit, container: by its control group, "" for none. processes, threads: of it and all that it has started.
    knobs: of its runtime and its framework. open_files: how many it has, and may have; None where that may not be
    seen."""

    pid: int
    command: tuple[str, ...]
    executable: str
    runtime: Runtime
    framework: Runtime | None
    user: str
    folder: str
    unit: str
    container: str
    processes: int
    threads: int
    knobs: tuple[Given, ...]
    open_files: tuple[int, int] | None

    @property
    def words(self) -> str:
        """What it is, in words."""
        by = f"{self.framework.words} ({self.runtime.words})" if self.framework is not None else self.runtime.words
        return f"{by}, pid {self.pid}, run by {self.user}"


def discover(pid: int, *, proc: Path = PROC) -> Discovered:
    """What this process is. TargetError where it is not there."""
    place = proc / str(pid)
    try:
        command = tuple(os.fsdecode(word) for word in (place / "cmdline").read_bytes().split(b"\0")[:-1])
        status = (place / "status").read_text(encoding="utf-8", errors="replace")
        groups = (place / "cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise TargetError(
            f"Process {pid} cannot be read: {error.strerror}", remedy="ps -e lists those that run."
        ) from error
    executable = _link(place / "exe")
    runtime = runtime_of(executable or next(iter(command), ""), go=is_go(place / "exe"))
    framework = framework_of(command)
    of = framework.id if framework is not None else ""
    retitled = len(command) == 1 and " " in command[0]  # other words are in its place, as gunicorn does it
    family = identity.family(pid)
    units, container = _UNIT.findall(groups), _CONTAINER.search(groups)
    return Discovered(
        pid=pid,
        command=command,
        executable=executable,
        runtime=runtime,
        framework=framework,
        user=_user(status),
        folder=_link(place / "cwd"),
        unit=units[-1] if units else "",
        container=container[1] if container is not None else "",
        processes=max(1, len(family)),
        threads=sum(_threads(proc / str(one.pid)) for one in family),
        knobs=() if retitled else knobs_of(runtime.id, of, command, _environment(place)),
        open_files=_open_files(place),
    )


def is_go(file: Path) -> bool:
    """Whether a program was linked by Go."""
    with suppress(OSError, ValueError), os.fdopen(regular_file(file, links=True), "rb") as program:
        size = min(os.fstat(program.fileno()).st_size, MOST_SEARCHED_BYTES)
        with mmap.mmap(program.fileno(), size, access=mmap.ACCESS_READ) as text:
            return text[:4] == b"\x7fELF" and text.find(GO_MARK) >= 0
    return False


MOST_OF_A_LINE = 256
"""How much of a script's first line the kernel reads, in bytes (BINPRM_BUF_SIZE)."""


def interpreter_of(file: Path) -> str:
    """The program that a script names in its first line, behind env(1) too; "" for what is no script, or may not be
    read."""
    try:
        with os.fdopen(regular_file(file, links=True), "rb") as script:
            line = script.read(MOST_OF_A_LINE).partition(b"\n")[0]
    except OSError:
        return ""
    if not line.startswith(b"#!"):
        return ""
    words = [os.fsdecode(word) for word in line[2:].split()]
    if words and PurePath(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return words[0] if words else ""


def _environment(place: Path) -> dict[str, str]:
    try:
        text = os.fsdecode((place / "environ").read_bytes())
    except OSError:  # another user's
        return {}
    return {name: value for name, _, value in (entry.partition("=") for entry in text.split("\0")) if name}


def _link(path: Path) -> str:
    try:
        return str(path.readlink()).removesuffix(" (deleted)")
    except OSError:  # another user's
        return ""


def _user(status: str) -> str:
    number = next((int(line.split()[1]) for line in status.splitlines() if line.startswith("Uid:")), 0)
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def _threads(place: Path) -> int:
    try:
        return len(os.listdir(place / "task"))  # noqa: PTH208 - only how many
    except OSError:  # it has ended
        return 0


def _open_files(place: Path) -> tuple[int, int] | None:
    try:
        use = len(os.listdir(place / "fd"))  # noqa: PTH208 - only how many
        lines = (place / "limits").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # another user's
        return None
    soft = next((line.split()[3] for line in lines if line.startswith("Max open files")), "")
    return (use, int(soft)) if soft.isdigit() else None
