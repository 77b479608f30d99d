"""The base of all workloads whose load is made by a program that Loadframe did not write. Its output is bounded;
processes that it starts are recorded and ended with it."""

import os
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Generic

from loadframe.connections.address import parted
from loadframe.connections.http_connection import ERRORS, Connection
from loadframe.errors import TargetError, WorkloadError
from loadframe.formats.said import why
from loadframe.host.identity import end_all, identify, marked
from loadframe.host.processes import spawn
from loadframe.model import OPEN_LOOP_AXES, Endpoint, Requirement
from loadframe.workloads import arrivals, asking, command_lines, step_files
from loadframe.workloads.base import demand
from loadframe.workloads.command_lines import LineError, Lines
from loadframe.workloads.command_output import ClockError, Instant, Life, Output, of_lines
from loadframe.workloads.common import Common, Options
from loadframe.workloads.driving import GRACE_S, ProcessDriver
from loadframe.workloads.options import file_at
from loadframe.workloads.request_log import Requests

MOST_OUTPUT_BYTES = 1 << 30
MOST_PRINTED_BYTES = 64 << 20
SHORT_SHARE, SHORT_S, SHORTEST_SHARE = 0.1, 0.25, 0.25
"""How much of its time may be missing: a tenth; of short steps a quarter of a second, or a quarter."""
MOST_PROCESSES = 512
STEP_MARK = "LOADFRAME_STEP"
"""Variable in the environment of a driver, and so of all that it starts: a word unique to the step."""
CONTRACT = "docs/driving-with-a-command.md says what is expected of a driver."
TARGETS = frozenset({"nginx", "nginx-cache", "service", "url", "varnish"})
"""Targets that answer at HOST:PORT. Others name a workload themselves (KindOfTarget.loaded_by)."""
HIGHEST_LEVEL = 10**9
STDOUT, STDERR = "stdout.txt", "stderr.txt"
CONNECT_S = STARTUP_S = 10.0


@dataclass(eq=False, kw_only=True)
class OutputDriver(ProcessDriver):
    """folder: of the step. bounds: file -> the most bytes that it may write. duration_s: of the load, from its first
    request on. mark: the value of STEP_MARK in its environment."""

    program: "OwnProgram[Any]"
    folder: Path
    bounds: Mapping[Path, int]
    duration_s: float
    mark: str
    address: str
    started: Instant = field(default_factory=Instant.now)
    _ended: Instant | None = field(default=None, init=False)
    _flooded: str = field(default="", init=False)
    _overdue: bool = field(default=False, init=False)
    _output: Output | None = field(default=None, init=False)

    def pids(self) -> tuple[int, ...]:
        """The living processes, with those that they started."""
        return tuple(dict.fromkeys(member for pid in super().pids() for member in family(pid)))

    def running(self) -> bool:
        """Also ends a driver that prints without end."""
        for path, most in self.bounds.items():
            if not self._flooded and step_files.size(path) > most:
                self._flooded = f"it wrote more than {most >> 20} MiB into {path.name}"
                self.kill()
        self._overdue = self._overdue or (
            self.end_s is not None and time.monotonic() > self.end_s + GRACE_S and bool(super().pids())
        )
        running = super().running()
        if not running and self._ended is None:
            self._ended = Instant.now()
        return running

    def waiting(self) -> int:
        """Unknown while it runs: its output is read at its end."""
        return 0

    def offered(self, start_s: float, end_s: float) -> int | None:
        """The requests that it reports, successful or not."""
        if not self.program.open_loop:
            return None
        requests = self._read()
        begin_s = requests.end_s - requests.latency_ms / 1000.0
        return int(((begin_s > start_s) & (begin_s <= end_s)).sum())

    def moved_bytes(self, start_s: float, end_s: float) -> int | None:
        output = self._printed_output()
        if output.moved_bytes is None:
            return None
        ends_s = output.requests.end_s
        return int(output.moved_bytes[(ends_s > start_s) & (ends_s <= end_s)].sum())

    @property
    def marks(self) -> tuple[str, ...]:
        return self._printed_output().marks

    def requests(self) -> Requests:
        """WorkloadError also if its output cannot be what it did."""
        if not self.running() and self._failed is None:
            if self._flooded:
                raise self._failure(f"The driver {self.name} was ended: {self._flooded}.", "Let it print less.")
            if not self._stopped:
                self._check(self._read())
        return super().requests()

    def kill(self) -> None:
        """Also ends what has left its process group."""
        started = [process for pid in self.pids() if (process := identify(pid)) is not None]
        super().kill()
        # A process in the midst of execve shows no environment; one that has left its parent has no parent here.
        end_all([*started, *marked(f"{STEP_MARK}={self.mark}")], 0.0)
        self._ended = self._ended or Instant.now()

    def _read(self) -> Requests:
        return self._printed_output().requests

    def _printed_output(self) -> Output:
        if self._output is None:
            life = Life(self.started, self._ended or Instant.now())
            try:
                self._output = self.program.written(self.folder, life, cut_off=self._killed or self._overdue)
            except LineError as error:
                raise self._failure(f"The driver {self.name} printed what Loadframe cannot read: {error}.") from None
            except ClockError as error:
                raise self._failure(f"The driver {self.name} has another clock: {error}.") from None
        return self._output

    def _check(self, requests: Requests) -> None:
        driver, step_s = f"The driver {self.name}", self.duration_s
        if not len(requests):
            if self._killed and not self._overdue:
                return
            planned_s = (self.end_s or self.started.monotonic_s) - self.started.monotonic_s
            late = f" within {GRACE_S + planned_s:.3g} s, and did not end" if self._overdue else ""
            raise self._failure(f"{driver} reported no request{late}.")
        errors = self._printed_output().errors
        if not (requests.outcome == 0).any() and errors and not self._killed:
            raise self._failure(
                f"All {len(requests):,} requests of the driver {self.name} failed: {'; '.join(errors)}."
            )
        begun_s = float((requests.end_s - requests.latency_ms / 1000.0).min())
        lasted_s = float(requests.end_s[-1]) - begun_s
        of_step = f"a step has {step_s:.3g} s (LOADFRAME_DURATION_S)."
        if self._overdue and lasted_s > step_s + self.program.late_s + GRACE_S / 2:
            raise self._failure(f"{driver} did not end: it went on for {lasted_s:.3g} s, and {of_step}")
        longest_s = float(requests.latency_ms.max()) / 1000.0
        # The last of its requests may have taken as long as the longest before.
        missing_s = max(SHORT_SHARE * step_s, min(SHORT_S, SHORTEST_SHARE * step_s), 2 * longest_s)
        if not self._killed and lasted_s < step_s - missing_s:
            raise self._failure(
                f"{driver} ended early: {lasted_s:.3g} s lie between its first request and its last, and {of_step}"
            )

    def _failure(self, fact: str, remedy: str = CONTRACT) -> WorkloadError:
        said = self._said()
        return WorkloadError(
            fact,
            remedy=f"{remedy} The end of what it printed is below." if said else f"{remedy} It printed nothing else.",
            details="\n".join([f"(the target: {self.address})", *said]),
        )


def family(pid: int) -> list[int]:
    """A process with its descendants, at most MOST_PROCESSES (proc(5), task/[tid]/children)."""
    pids: list[int] = []
    waiting = [pid]
    while waiting and len(pids) < MOST_PROCESSES:
        process = waiting.pop(0)
        pids.append(process)
        with suppress(OSError):  # it has ended meanwhile
            for task in Path(f"/proc/{process}/task").iterdir():
                waiting += map(int, (task / "children").read_text(encoding="ascii", errors="replace").split())
    return pids


class OwnProgram(Common[Options], Generic[Options]):
    """late_s: how long it may continue with what it has begun when its time is up."""

    target_kinds = TARGETS
    levels = (1, HIGHEST_LEVEL)
    files: tuple[str, ...] = ("output.jsonl",)
    """What it writes in the folder of a step. The first one is LOADFRAME_OUTPUT."""
    makes_files = True
    """Whether the files exist, empty, when it starts. Otherwise it makes them."""
    stages: tuple[str, ...] = ()
    """Files that may hold statistics of a pipeline's stages."""
    late_s = 0.0

    def set_up(self) -> None:
        self.names = ["request"]  # of requests that have no name of their own
        self._warmup_s = 0.0

    @property
    def operations(self) -> tuple[str, ...]:
        return tuple(self.names)

    @property
    def open_loop(self) -> bool:
        return not OPEN_LOOP_AXES.isdisjoint(self.axes)

    @staticmethod
    def needs(kind: str) -> tuple[Requirement, ...]:
        raise NotImplementedError

    def demand(self) -> None:
        demand(self.needs(self.kind))

    def command_line(self, endpoint: Endpoint, level: int, folder: Path, duration_s: float) -> list[str]:
        """Files that it needs are written into the folder."""
        raise NotImplementedError

    def environment(self, folder: Path) -> dict[str, str]:
        """In addition to what all get."""
        return {}

    def reads(self, folder: Path) -> Path:
        return folder / self.files[0]

    def lines(self, file: IO[bytes], *, cut_off: bool) -> Lines:
        """cut_off: it was killed. LineError."""
        return command_lines.read(file, self.names, cut_off=cut_off)

    def written(self, folder: Path, life: Life, *, cut_off: bool) -> Output:
        """LineError, ClockError."""
        path = self.reads(folder)
        if (file := step_files.opened(path)) is None:
            if not self.makes_files:
                return of_lines(Lines(self.names), life)
            raise WorkloadError(f"The driver has removed {path.name}.", remedy="Let it write into the file as it is.")
        with file:
            return of_lines(self.lines(file, cut_off=cut_off), life)

    def working_folder(self, folder: Path) -> Path:
        return folder

    def expect(self, warmup_s: float) -> None:
        self._warmup_s = warmup_s

    def install(self, endpoint: Endpoint) -> None:
        self.demand()
        check_answering(endpoint)

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        self.check_level(level)
        asking.met(endpoint, "", lambda: check_answering(endpoint))

    def start(self, endpoint: Endpoint, level: float, folder: Path, duration_s: float) -> OutputDriver:
        level = self.check_level(level)
        self.demand()
        folder, user, mark = folder.resolve(), self.allowance.user, secrets.token_hex(16)
        outputs, printed = [folder / name for name in self.files], (folder / STDERR, folder / STDOUT)
        for path in outputs if self.makes_files else ():
            step_files.write(path, b"", user)
        command = self.command_line(endpoint, level, folder, duration_s)
        variables = self._variables(endpoint, level, duration_s) | {"LOADFRAME_OUTPUT": str(outputs[0])}
        arrivals.wait()
        started = Instant.now()
        with step_files.create(printed[0], user) as stderr, step_files.create(printed[1], user) as stdout:
            process = spawn(
                command,
                self.allowance,
                stdout=stdout,
                stderr=stderr,
                cwd=self.working_folder(folder),
                env={**os.environ, **variables, **self.environment(folder), STEP_MARK: mark},
            )
        return OutputDriver(
            self.kind,
            [process],
            logs=(),
            printed=printed,
            stages=[folder / name for name in self.stages],
            end_s=time.monotonic() + getattr(self.options, "startup_s", STARTUP_S) + duration_s + self.late_s,
            program=self,
            folder=folder,
            bounds={printed[0]: MOST_PRINTED_BYTES, **dict.fromkeys((printed[1], *outputs), MOST_OUTPUT_BYTES)},
            duration_s=duration_s,
            mark=mark,
            address=endpoint.address,
            started=started,
        )

    def _variables(self, endpoint: Endpoint, level: int, duration_s: float) -> dict[str, str]:
        (axis,) = self.axes
        host, port = parted(endpoint.address, "80")
        warmup_s = min(self._warmup_s, duration_s)
        given = {
            "LEVEL": str(level),
            "AXIS": axis,
            "DURATION_S": f"{duration_s:.3f}",
            "WARMUP_S": f"{warmup_s:.3f}",
            "WINDOW_S": f"{duration_s - warmup_s:.3f}",
            "SEED": str(getattr(self.options, "seed", 1)),
            "ADDRESS": endpoint.address,  # the number that was checked, not a name
            "HOST": host,
            "PORT": port,
            "URL": f"http://{endpoint.address}",
            "HOST_HEADER": endpoint.options.get("host"),
        }
        return {f"LOADFRAME_{name}": value for name, value in given.items() if value is not None}


class OwnScript(OwnProgram[Options]):
    """A program that runs a file of the user's, whose axis may be any word that the file follows."""

    def set_up(self) -> None:
        super().set_up()
        self.file = file_at(self.options.file)  # type: ignore[attr-defined]

    def trials(self) -> Sequence[Sequence[str]]:
        return () if self.file is None else (("test", "-r", str(self.file)), ("test", "-x", str(self.file.parent)))

    def working_folder(self, folder: Path) -> Path:
        """The file's own folder: it may open others there."""
        return folder if self.file is None else self.file.parent


def check_answering(endpoint: Endpoint) -> None:
    """TargetError if nothing accepts a connection."""
    try:
        with closing(Connection(endpoint.address, silent_s=CONNECT_S)) as connection:
            connection.connect()
    except ERRORS as error:
        raise TargetError(
            f"No server takes a connection at {endpoint.address}: {why(error)}",
            remedy="Look at the server's log, and whether it listens there.",
        ) from error
