"""`perf record` around a step. What is missing for it is reported, never raised. Sampling is by cpu-clock, as virtual
machines often have no hardware counters. User stacks are copied and unwound by the files' own tables (`--call-graph
dwarf`): Debian's programs have no frame pointers. perf-record(1), perf_event_open(2). `perf script` prints a head line
(`mariadbd 4831/5283 14812.969706: `), a line per frame from the innermost on (a tab, the address, the symbol, the file
in brackets), and an empty line."""

import os
import re
import signal
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from loadframe.errors import MissingTool
from loadframe.host.environment import NO_FOLDER, environment, located
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance, marked, spawn
from loadframe.model import Requirement
from loadframe.system.kernel import kernel_text

PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
MOST_HZ, LEAST_HZ = 399, 25
SAMPLES_PER_S = 800
"""Over all CPUs: a two-second window shows shares of 10 % to within 1.5, and 13 MB/s are copied."""
STACK_BYTES = 16384
"""Of each user stack. With 8 KiB half of MariaDB's stacks were cut off, with 16 KiB a tenth."""
AT_ONCE = "--quiet --no-bpf-event"
"""perf's thread for BPF programs ends up to a second later (perf-record(1), tools/perf/util/bpf-event.c)."""
STOP_S = 15.0
PROBE_S = 10.0
INSTALL = "apt-get install linux-perf (Debian), linux-tools-generic (Ubuntu), perf (Fedora)"

Scope = Literal["machine", "processes", "processes in user space"]

HEAD = re.compile(r"^\s{0,16}(\S.{0,63}?)\s{1,24}(-?\d{1,10})/(-?\d{1,10})\s{1,8}(\d{1,12}\.\d{1,9}):")
FRAME = re.compile(r"^\s+([0-9a-f]{1,16}) (.*) \(([^()]*(?: \(deleted\))?)\)$")
LOST = re.compile(r"\bPERF_RECORD_LOST(?:_SAMPLES)? lost (\d{1,18})")
KERNEL_FROM = 1 << 63
"""The upper half of the address space is the kernel's (x86-64, arm64)."""
NO_CALLER = 0xFFFF_FFFF_FFFF_FFFF
"""Printed if a stack goes on beyond what was copied of it."""
TRUNCATED = "[truncated]"
UNKNOWN = "[unknown]"
KERNEL_SUFFIX = "_[k]"
APPENDED = re.compile(r"\.(isra|part|constprop|cold|llvm)(\.\d{1,20})?$")
LONGEST_APPENDED = 31
"""Longest match of APPENDED: a name with thousands of suffixes is searched once for each, so no further back."""
LONGEST_SYMBOL = 4096
"""Whoever runs another program chooses the names in its file."""


@dataclass(frozen=True, slots=True)
class Sample:
    """time_s: CLOCK_MONOTONIC. command: the thread's name. frames: from the outermost on."""

    time_s: float
    pid: int
    thread: int
    command: str
    frames: tuple[str, ...]


@dataclass(slots=True)
class Reading:
    """lost: samples that the kernel could not deliver."""

    lost: int = 0
    damaged: int = 0
    _open: list[str] = field(default_factory=list)


def read_samples(lines: Iterable[str], reading: Reading) -> Iterator[Sample]:
    """In the order in which they are printed. Never raises."""
    head: re.Match[str] | None = None
    frames: list[str] = []
    for line in lines:
        line = line.rstrip("\r\n")
        if head is not None and (frame := FRAME.match(line)):
            frames.append(_frame(int(frame[1], 16), frame[2], frame[3]))
            continue
        if lost := LOST.search(line):
            reading.lost += int(lost[1])
            continue
        if head is not None:
            yield _sample(head, frames)
            head, frames = None, []
        if not line.strip() or line.startswith("#"):
            continue
        head = HEAD.match(line)
        reading.damaged += head is None
    if head is not None:
        yield _sample(head, frames)


def _sample(head: re.Match[str], frames: list[str]) -> Sample:
    command, pid, thread, time_s = head.groups()
    return Sample(float(time_s), int(pid), int(thread), command.strip(), tuple(reversed(frames)) or (UNKNOWN,))


def _frame(address: int, symbol: str, file: str) -> str:
    if address == NO_CALLER:
        return TRUNCATED
    name = function_name(symbol)
    if symbol == UNKNOWN or not symbol.strip():
        name = f"[{file.removesuffix(' (deleted)').rpartition('/')[2].strip('[]') or 'unknown'}]"
    return name + (KERNEL_SUFFIX if address >= KERNEL_FROM else "")


def function_name(symbol: str) -> str:
    """Without a C++ function's arguments, a library's version (`@@GLIBC_2.2.5`) and the compiler's suffixes
    (`.isra.0`)."""
    symbol = symbol[:LONGEST_SYMBOL]
    name = re.sub(r"@@?[A-Za-z][\w.]*$", "", symbol)
    while appended := APPENDED.search(name, max(0, len(name) - LONGEST_APPENDED)):
        name = name[: appended.start()]
    opening = name.find("(", 1)
    while opening > 0 and (name.startswith("(anonymous namespace)", opening) or name[:opening].endswith("operator")):
        opening = name.find("(", opening + 2)
    return (name[:opening] if opening > 0 else name).strip() or symbol


@dataclass(frozen=True, slots=True)
class Permission:
    """scope: None for nothing. missing: what more would need."""

    scope: Scope | None
    missing: tuple[Requirement, ...]


def permission() -> Permission:
    """Try it, from the most to the least: perf's files, capabilities and security modules are too many to foresee the
    answer. Takes a tenth of a second."""
    perf = located("perf")
    if perf is None:
        return Permission(None, (lacks("perf", INSTALL),))
    refusal = None
    for scope in get_args(Scope):
        if (refusal := _try(perf, scope)) is None:
            return Permission(scope, _lacking(scope))
    return Permission(None, (lacks("permission to sample with perf", f"{_paranoid(1)}; perf said: {refusal}"),))


def frequency_hz(cpus: int) -> int:
    """Samples per second and CPU; odd, so as not to be in step with anything periodic."""
    return max(LEAST_HZ, min(MOST_HZ, SAMPLES_PER_S // max(cpus, 1))) | 1


class PerfRecord:
    """Made by `start`; `stop` before `samples`."""

    def __init__(self, process: subprocess.Popen[bytes], data: Path, hz: int) -> None:
        self._process = process
        self._data = data
        self.hz = hz
        self.unreadable: str | None = None

    @classmethod
    def start(cls, scope: Scope, pids: Sequence[int], folder: Path) -> "PerfRecord":
        """MissingTool if perf is not installed."""
        perf = located("perf")
        if perf is None:
            raise MissingTool("perf is not installed", remedy=INSTALL)
        hz = frequency_hz(os.cpu_count() or 1)
        data = folder / "perf.data"
        what = ["--all-cpus"] if scope == "machine" else ["--pid", ",".join(map(str, pids))]
        # no cache of build ids is left in the user's home
        quiet = f"{AT_ONCE} --no-buildid --no-buildid-cache --clockid CLOCK_MONOTONIC"
        how = f"{quiet} -e {_event(scope)} -F {hz} --call-graph dwarf,{STACK_BYTES} -o"
        with (folder / "perf.log").open("wb") as log:
            command = [perf, "record", *how.split(), str(data), *what]
            process = spawn(command, Allowance(US), stdout=log, stderr=log)
        return cls(process, data, hz)

    def stop(self) -> str | None:
        """None if its data are complete, else what it printed."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return f"perf record did not end within {STOP_S:.0f} s"
        if self._process.returncode in (0, -signal.SIGINT) and self._data.exists() and self._data.stat().st_size:
            return None
        return _said(kernel_text(self._data.with_name("perf.log"))) or "perf recorded nothing"

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def samples(self, reading: Reading) -> list[Sample]:
        """If `perf script` fails, `unreadable` says why afterwards."""
        perf, data = located("perf") or "perf", str(self._data.absolute())
        fields = "--no-inline --show-lost-events -F comm,pid,tid,time,ip,sym,dso"
        command = [perf, "script", "--input", data, *fields.split()]
        said = self._data.with_name("script.log")
        with (
            said.open("wb") as log,
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                errors="replace",
                cwd=NO_FOLDER,
                env=marked(environment()),
                encoding="utf-8",
            ) as script,
        ):
            assert script.stdout is not None
            samples = list(read_samples(script.stdout, reading))
        if script.returncode != 0:
            self.unreadable = _said(kernel_text(said)) or f"exit code {script.returncode}"
        return samples


def _event(scope: Scope) -> str:
    return "cpu-clock:u" if scope == "processes in user space" else "cpu-clock"


def _try(perf: str, scope: Scope) -> str | None:
    """None if perf may, else its error. Asked for user and kernel it silently drops a forbidden kernel, so the kernel
    is asked for alone."""
    what = ["--all-cpus"] if scope == "machine" else []
    event = "cpu-clock:k" if scope == "processes" else _event(scope)
    command = [perf, "record", *AT_ONCE.split(), "-e", event, *what, "-o", "/dev/null", "--", "true"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_S,
            encoding="utf-8",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else _said(done.stderr) or f"exit code {done.returncode}"


def lacks(what: str, how: str) -> Requirement:
    return Requirement("profiles", what, None, " ".join(how.split()))


def _lacking(scope: Scope) -> tuple[Requirement, ...]:
    if scope == "machine":
        return ()
    rest = lacks("work that the kernel's own threads do for the target", _paranoid(0))
    if scope == "processes":
        return (rest,)
    return (lacks("functions of the kernel", _paranoid(1)), rest)


def _paranoid(wanted: int) -> str:
    try:
        now = f" (it is {kernel_text(PARANOID).strip()})"
    except OSError:
        now = " (this kernel has none: a container or a kernel without CONFIG_PERF_EVENTS)"
    return f"sysctl kernel.perf_event_paranoid={wanted}{now}, or run as root or with CAP_PERFMON"


def _said(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    after = lines[lines.index("Error:") + 1 :] if "Error:" in lines else []
    return (after[:1] or lines[-1:] or [""])[0][:200]
