"""A load driver made of processes: the one implementation of base.Driver; and worker processes that begin at one
instant: each says "ready", and reads when to start."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from loadframe.errors import WorkloadError
from loadframe.formats.said import words
from loadframe.host.environment import NO_FOLDER
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance, spawn
from loadframe.host.signals import stopped_by_signal
from loadframe.workloads import arrivals, request_log, step_files
from loadframe.workloads.forking import LOOK_EVERY_S, STOPPED_REMEDY, ForkedWorker, Patience, Worker, fork_server
from loadframe.workloads.request_log import RECORD, Requests

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GRACE_S = 2.0
"""How long a driver may finish its last requests before it is ended; in a closed loop at least as long as its load."""
SILENT_S = 10.0
"""The same if no request has ended yet: the duration of one shows how long a step would have to be."""
PAUSE_S = 0.1
"""A user silent for this long at the load's end has a request in flight: back-offs and log flushes are shorter."""
TAIL_LINES, TAIL_BYTES = 12, 64 << 10
START_AFTER_S, START_EACH_S = 0.005, 0.0005
"""What workers need to take note of the instant of their start, and each of them more: they share CPUs."""


@dataclass(eq=False)
class ProcessDriver:
    """printed: files with what the processes printed. end_s: the CLOCK_MONOTONIC instant at which they should end by
    themselves; GRACE_S later they are ended. None: they run until their work is done. arrivals: when each request
    should begin, ascending (CLOCK_MONOTONIC, s); None for a closed loop. sizes: per log a file with the bytes of each
    answer (uint64, in the order of the log). stages: files with statistics of a pipeline's stages. one_each: each log
    belongs to one user of a closed loop, who does not pause."""

    name: str
    processes: Sequence[subprocess.Popen[bytes] | ForkedWorker]
    _: KW_ONLY
    logs: Sequence[Path]
    printed: Sequence[Path]
    end_s: float | None
    arrivals: NDArray[np.float64] | None = None
    sizes: Sequence[Path] = ()
    stages: Sequence[Path] = ()
    duration_s: float | None = None
    one_each: bool = False
    _killed: bool = field(default=False, init=False)
    _killed_s: float = field(default=0.0, init=False)
    _failed: subprocess.Popen[bytes] | ForkedWorker | None = field(default=None, init=False)
    _stopped: str = field(default="", init=False)

    def pids(self) -> tuple[int, ...]:
        return tuple(process.pid for process in self.processes if process.poll() is None)

    def stage_files(self) -> Sequence[Path]:
        return self.stages

    def running(self) -> bool:
        """A driver that lost one of its processes, or is overdue, is ended here."""
        self._note_failure()
        if self._failed is not None:
            self._end()
        elif self.end_s is not None and time.monotonic() > self.end_s + GRACE_S and self.pids() and self._late():
            servers = {process.server.process.pid for process in self.processes if isinstance(process, ForkedWorker)}
            self._stopped = stopped_by_signal((*self.pids(), *servers))
            self.kill()
        return bool(self.pids())

    def _late(self) -> bool:
        if self.arrivals is not None or self.duration_s is None or self.end_s is None:
            return True
        silent = self.one_each and not any(step_files.size(log) for log in self.logs)
        return time.monotonic() > self.end_s + max(self.duration_s, SILENT_S if silent else 0.0)

    def wait(self, timeout_s: float) -> bool:
        until = time.monotonic() + timeout_s
        while self.running():
            left = until - time.monotonic()
            if left <= 0:
                return False
            process = next((process for process in self.processes if process.poll() is None), None)
            with suppress(subprocess.TimeoutExpired):
                if process is not None:
                    process.wait(min(left, 0.1))
        return True

    def waiting(self) -> int:
        begun = self.offered(0.0, time.monotonic())
        if begun is None:
            return 0
        return max(begun - sum(step_files.size(log) // RECORD.size for log in self.logs), 0)

    def offered(self, start_s: float, end_s: float) -> int | None:
        if self.arrivals is None:
            return None
        first, last = self.arrivals.searchsorted([start_s, end_s], side="right")
        return int(last - first)

    def moved_bytes(self, start_s: float, end_s: float) -> int | None:
        if not self.sizes:
            return None
        pairs = zip(self.logs, self.sizes, strict=True)
        return sum(request_log.moved_bytes(log, sizes, start_s, end_s) for log, sizes in pairs)

    def requests(self) -> Requests:
        """WorkloadError if a process failed or was stopped, without requests, or if all failed with a reason."""
        if self.running():
            raise WorkloadError(
                f"The driver {self.name} is still running.", remedy="Wait for its end or kill it first."
            )
        if self._failed is not None:
            code = self._failed.returncode
            how = f"ended with {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"
            raise self._failure(f"The driver {self.name} failed: process {self._failed.pid} {how}.")
        if self._stopped:
            raise WorkloadError(
                f"The driver {self.name} did not end in time: {self._stopped}.",
                remedy=f"What it did until then does not count as a measurement. {STOPPED_REMEDY}",
            )
        requests = self._read()
        if self._killed and len(requests):
            requests = requests.with_unfinished(self._unfinished_since(requests), self._killed_s)
        in_vain = not (requests.outcome == 0).any() and any("FATAL" in line for line in self._said())
        if (in_vain or not len(requests)) and not self._killed:
            raise self._failure(f"The driver {self.name} ended without a single successful request.")
        return requests

    def _read(self) -> Requests:
        return request_log.read(self.logs)

    def _unfinished_since(self, requests: Requests) -> NDArray[np.float64]:
        """When the requests in flight at the kill had begun, as far as known."""
        import numpy as np

        begun_s = requests.end_s - requests.latency_ms / 1000.0
        if self.arrivals is not None:
            # A latency of an hour is known to a millisecond; arrivals lie apart as they were drawn.
            due = self.arrivals[self.arrivals <= self._killed_s]
            if len(due) <= len(begun_s):
                return due[:0]
            after = np.searchsorted(due, begun_s).clip(1, len(due) - 1)
            nearer = begun_s - due[after - 1] < due[after] - begun_s
            return np.delete(due, np.where(nearer, after - 1, after))
        if not self.one_each or self.duration_s is None:
            return np.empty(0)
        first_s = float(begun_s.min())
        ends = (request_log.read([log]).end_s for log in self.logs)
        last_s = np.array([of_log[-1] if len(of_log) else first_s for of_log in ends])
        return last_s[last_s < min(first_s + self.duration_s, self._killed_s) - PAUSE_S]

    def kill(self) -> None:
        self._note_failure()
        if not self._killed and self.pids():
            self._killed, self._killed_s = True, time.monotonic()
        self._end()

    def _end(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                _kill_group(process)
        for process in self.processes:
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()

    def _note_failure(self) -> None:
        """Before we end the other processes, which then fail by our hand."""
        if self._failed is None and not self._killed:
            self._failed = next((process for process in self.processes if process.poll() not in (None, 0)), None)

    def _said(self) -> list[str]:
        return [line for path in self.printed for line in last_lines(path)]

    def _failure(self, fact: str) -> WorkloadError:
        return WorkloadError(fact, remedy="The end of what it printed is below.", details="\n".join(self._said()))


def run_to_end(
    command: Sequence[str], environment: Mapping[str, str], allowance: Allowance, *, pass_fds: Sequence[int] = ()
) -> str | None:
    """None if a program that prepares a target succeeded, else the end of its output. It has no resource limits, and
    ends with us."""
    with tempfile.NamedTemporaryFile() as output:
        process = spawn(
            command,
            replace(allowance, limits={}, cpus=None, groups=()),
            stdout=output.file,
            stderr=output.file,
            cwd=NO_FOLDER,
            env=environment,
            pass_fds=pass_fds,
        )
        try:
            code = _wait_unless_stopped(process, Path(command[0]).name)
        except BaseException:
            _kill_group(process)
            process.wait()
            raise
        return "\n".join(last_lines(Path(output.name))) if code else None


def _wait_unless_stopped(process: subprocess.Popen[bytes], name: str) -> int:
    """For a program that may take as long as it needs. WorkloadError if it was stopped."""
    while True:
        try:
            return process.wait(LOOK_EVERY_S)
        except subprocess.TimeoutExpired:
            if why := stopped_by_signal([process.pid]):
                raise WorkloadError(f"{name} makes no progress: {why}.", remedy=STOPPED_REMEDY) from None


def last_lines(path: Path) -> list[str]:
    """The last lines of a driver's output, as printable text, each once; earlier fatal ones come first."""
    if (file := step_files.opened(path)) is None:
        return []
    with file:
        file.seek(max(file.seek(0, os.SEEK_END) - TAIL_BYTES, 0))
        said = file.read(TAIL_BYTES).decode("utf-8", "replace").splitlines()
    lines = list(dict.fromkeys(words(line) for line in said if line.strip()))
    fatal = [line for line in lines[:-TAIL_LINES] if "FATAL" in line][-2:]
    return fatal + lines[-TAIL_LINES:]


def _kill_group(process: subprocess.Popen[bytes] | ForkedWorker) -> None:
    # Each process leads its own session, so its group holds it and its children, and no other process.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def start_together(
    name: str,
    workers: Sequence[Worker],
    allowance: Allowance,
    duration_s: float | None,
    *,
    once_ready: Callable[[], object] = lambda: None,
    one_each: bool = False,
) -> ProcessDriver:
    """duration_s: None if workers end when their work is done. once_ready: called when all are ready, before they
    begin. one_each: see ProcessDriver. WorkloadError if one ends first or takes too long. The processes that they are
    forked from stay until `end_fork_servers`."""

    def failed(worker: Worker, fact: str) -> WorkloadError:
        details = "\n".join(last_lines(worker.printed))
        return WorkloadError(fact, remedy="What it printed is below.", details=details)

    logs, printed = [worker.log for worker in workers], [worker.printed for worker in workers]
    for log in logs:
        log.unlink(missing_ok=True)
    processes: list[ForkedWorker] = []
    try:
        patience = Patience(name, len(workers))
        for worker in workers:
            with step_files.create(worker.printed, US) as stderr:
                server = fork_server(worker, allowance, stderr)
                processes.append(server.start(worker, stderr, patience))
            if not server.runs():
                ended = f"what forks them ended with {server.process.returncode}"
                raise failed(worker, f"The workers of {name} could not start: {ended}.")
        for worker, process in zip(workers, processes, strict=True):
            patience.await_words(process.stdout, process.pid)
            if process.stdout.readline() != b"ready\n":
                process.wait()
                ended = f"process {process.pid}, exit {process.returncode}"
                raise failed(worker, f"A worker of {name} could not start ({ended}).")
            process.stdout.close()
        once_ready()
        start_s = arrivals.instant_s(START_AFTER_S + START_EACH_S * len(processes))
        for process in processes:
            # The driver reports a worker that died between "ready" and now, with the worker's own words.
            with suppress(BrokenPipeError):
                process.stdin.write(f"{start_s!r}\n".encode())
                process.stdin.close()
    except BaseException:
        ProcessDriver(name, processes, logs=logs, printed=printed, end_s=None).kill()
        raise
    end_s = None if duration_s is None else start_s + duration_s
    asked_s = duration_s if one_each else None
    return ProcessDriver(
        name, processes, logs=logs, printed=printed, end_s=end_s, duration_s=asked_s, one_each=one_each
    )  # fmt: skip
