"""The one workload behind all whose load is made by a program that Loadframe did not write. Each of them says what is
run, and how a line of its output is read."""

import os
import secrets
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Generic

from loadframe.connections.host_port import parted
from loadframe.connections.http_connection import ERRORS, Connection
from loadframe.errors import TargetError, WorkloadError
from loadframe.formats.said import words
from loadframe.host.processes import Allowance, spawn
from loadframe.model import OPEN_LOOP_AXES, Endpoint, Requirement, SettingValue
from loadframe.workloads import beginning, command_lines, recovering, step_files
from loadframe.workloads.command_lines import Lines
from loadframe.workloads.command_output import Output, of_lines
from loadframe.workloads.common import Common, Options
from loadframe.workloads.driver_clock import Instant, Life
from loadframe.workloads.kind import demand
from loadframe.workloads.options import file_at
from loadframe.workloads.own_output import (
    MOST_OUTPUT_BYTES,
    MOST_PRINTED_BYTES,
    STEP_MARK,
    OutputDriver,
)

TARGETS = frozenset({"nginx", "nginx-cache", "service", "squid", "url", "varnish"})
"""They answer at HOST:PORT. Others name a workload themselves (KindOfTarget.loaded_by)."""
HIGHEST_LEVEL = 10**9
STDOUT, STDERR = "stdout.txt", "stderr.txt"
CONNECT_S = STARTUP_S = 10.0
"""STARTUP_S: from its start to its first request, where it has no option for it."""


class OwnProgram(Common[Options], Generic[Options]):
    """See base.Workload. late_s: how long it may go on with what it has begun when its time is up."""

    target_kinds = TARGETS
    levels = (1, HIGHEST_LEVEL)
    files: tuple[str, ...] = ("output.jsonl",)
    """What it writes in the folder of a step. The first one is LOADFRAME_OUTPUT."""
    makes_files = True
    """Whether they are there, empty, when it starts. Else it makes them."""
    stages: tuple[str, ...] = ()
    """In which of the files it may print statistics of a pipeline's stages."""
    late_s = 0.0

    def __init__(self, options: Mapping[str, SettingValue], allowance: Allowance | None = None) -> None:
        super().__init__(options, allowance)
        self.names = ["request"]  # of requests that have no name of their own
        self._warmup_s = 0.0

    @property
    def operations(self) -> tuple[str, ...]:
        return tuple(self.names)

    @property
    def judged(self) -> tuple[str, ...]:
        return self.operations

    @property
    def open_loop(self) -> bool:
        """Whether its requests begin when they should, whatever becomes of those before."""
        return not OPEN_LOOP_AXES.isdisjoint(self.axes)

    @staticmethod
    def needs(kind: str) -> tuple[Requirement, ...]:
        """What it needs on this machine."""
        raise NotImplementedError

    def demand(self) -> None:
        """MissingTool where its program is not installed."""
        demand(self.needs(self.kind))

    def command_line(self, endpoint: Endpoint, level: int, folder: Path, duration_s: float) -> list[str]:
        """What is run in a step. Files that it needs are written into the folder."""
        raise NotImplementedError

    def environment(self, folder: Path) -> dict[str, str]:
        """What its environment has beside what all are told."""
        return {}

    def reads(self, folder: Path) -> Path:
        """Which of its files is read at its end."""
        return folder / self.files[0]

    def lines(self, file: IO[bytes], *, cut_off: bool) -> Lines:
        """Its requests, from that file. cut_off: it was killed. LineError."""
        return command_lines.read(file, self.names, cut_off=cut_off)

    def written(self, folder: Path, life: Life, *, cut_off: bool) -> Output:
        """What it has written into the folder of a step. LineError, ClockError."""
        path = self.reads(folder)
        file = step_files.opened(path)
        if file is None and self.makes_files:
            raise WorkloadError(f"The driver has removed {path.name}.", remedy="Let it write into the file as it is.")
        if file is None:
            return of_lines(Lines(self.names), life)
        with file:
            return of_lines(self.lines(file, cut_off=cut_off), life)

    def working_folder(self, folder: Path) -> Path:
        return folder

    def expect(self, warmup_s: float) -> None:
        self._warmup_s = warmup_s

    def install(self, endpoint: Endpoint) -> None:
        """Nothing is made: what the target holds is the program's business."""
        self.demand()
        check_answering(endpoint)

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        """Nothing is changed; the target is asked for a connection."""
        self.check_level(level)
        recovering.met(endpoint, "", lambda: check_answering(endpoint))

    def start(self, endpoint: Endpoint, level: float, folder: Path, duration_s: float) -> OutputDriver:
        level = self.check_level(level)
        self.demand()
        folder, user, mark = folder.resolve(), self.allowance.user, secrets.token_hex(16)
        outputs, printed = [folder / name for name in self.files], (folder / STDERR, folder / STDOUT)
        for path in outputs if self.makes_files else ():
            step_files.write(path, b"", user)
        command = self.command_line(endpoint, level, folder, duration_s)
        told = self._told(endpoint, level, duration_s) | {"LOADFRAME_OUTPUT": str(outputs[0])}
        beginning.wait()
        started = Instant.now()
        with step_files.create(printed[0], user) as stderr, step_files.create(printed[1], user) as stdout:
            process = spawn(
                command,
                self.allowance,
                stdout=stdout,
                stderr=stderr,
                cwd=self.working_folder(folder),
                env={**os.environ, **told, **self.environment(folder), STEP_MARK: mark},
            )
        return OutputDriver(
            self.kind,
            [process],
            logs=(),
            printed=printed,
            stages=[folder / name for name in self.stages],
            end_s=time.monotonic() + getattr(self.options, "startup_s", STARTUP_S) + duration_s + self.late_s,
            late_s=self.late_s,
            read=partial(self.written, folder),
            bounds={printed[0]: MOST_PRINTED_BYTES, **dict.fromkeys((printed[1], *outputs), MOST_OUTPUT_BYTES)},
            duration_s=duration_s,
            open_loop=self.open_loop,
            mark=mark,
            address=endpoint.address,
            started=started,
        )

    def _told(self, endpoint: Endpoint, level: int, duration_s: float) -> dict[str, str]:
        """The environment of docs/driving-with-a-command.md."""
        (axis,) = self.axes
        host, port = parted(endpoint.address, "80")
        named = endpoint.options.get("host")
        times = {
            "LOADFRAME_DURATION_S": duration_s,
            "LOADFRAME_WARMUP_S": min(self._warmup_s, duration_s),
            "LOADFRAME_WINDOW_S": duration_s - min(self._warmup_s, duration_s),
        }
        return {
            "LOADFRAME_LEVEL": str(level),
            "LOADFRAME_AXIS": axis,
            **{name: f"{seconds:.3f}" for name, seconds in times.items()},
            "LOADFRAME_SEED": str(getattr(self.options, "seed", 1)),
            "LOADFRAME_ADDRESS": endpoint.address,  # the number that was checked, not a name
            "LOADFRAME_HOST": host,
            "LOADFRAME_PORT": port,
            "LOADFRAME_URL": f"http://{endpoint.address}",
            **({} if named is None else {"LOADFRAME_HOST_HEADER": named}),
        }


class OwnScript(OwnProgram[Options]):
    """A program that runs a file of the user's, whose axis may be any word that the file follows."""

    def __init__(
        self, options: Mapping[str, SettingValue], allowance: Allowance | None = None, *, axis: str = ""
    ) -> None:
        """StudyError for a file that is none."""
        super().__init__(options, allowance)
        if axis:
            self.axes, self.axis_unit = frozenset({axis}), axis.replace("_", " ")
        self.file = file_at(self.options.file) if self.options.file else None  # type: ignore[attr-defined]

    def trials(self) -> Sequence[Sequence[str]]:
        """Those that end well for a user who can read the file."""
        return () if self.file is None else (("test", "-r", str(self.file)), ("test", "-x", str(self.file.parent)))

    def working_folder(self, folder: Path) -> Path:
        """The file's: it may open others beside it."""
        return folder if self.file is None else self.file.parent


def check_answering(endpoint: Endpoint) -> None:
    """TargetError where nothing takes a connection."""
    connection = Connection(endpoint.address, silent_s=CONNECT_S)
    try:
        connection.connect()
    except ERRORS as error:
        raise TargetError(
            f"No server takes a connection at {endpoint.address}: {words(error) or type(error).__name__}",
            remedy="Look at the server's log, and whether it listens there.",
        ) from error
    finally:
        connection.close()
