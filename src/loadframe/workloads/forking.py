"""The lab's side of a fork server (fork_server.py): the time between steps does not grow by the start of an interpreter
and its imports for each worker."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from loadframe.errors import WorkloadError
from loadframe.host.environment import NO_FOLDER, python
from loadframe.host.processes import Allowance, marked, spawn
from loadframe.host.signals import stopped_by_signal

LOOK_EVERY_S = 2.0
READY_WITHIN_S = 60.0
STOPPED_REMEDY = "Find out what stopped it, and run it again."


@dataclass(frozen=True, slots=True)
class Worker:
    """module: its `main` gets the arguments, prints "ready", reads the instant of the start (CLOCK_MONOTONIC, s) from
    its standard input, and returns the exit status, with all that it wrote flushed. log: its request log. printed: its
    standard error. environment: None for ours. pass_fds: descriptors that stay open in it, with their numbers."""

    module: str
    arguments: Sequence[str]
    log: Path
    printed: Path
    environment: Mapping[str, str] | None = None
    pass_fds: tuple[int, ...] = ()


class ForkedWorker:
    """What a driver uses of subprocess.Popen, for a worker of a ForkServer."""

    stderr = None

    def __init__(self, server: ForkServer, pid: int, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self.server, self.pid, self.stdin, self.stdout = server, pid, stdin, stdout
        self.returncode: int | Any = None

    def poll(self) -> int | Any:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self.returncode = self.server.status_of(self.pid, timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired([str(self.pid)], timeout or 0.0)
        return self.returncode

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.server.process.send_signal(signal.SIGCONT)  # where a signal has stopped it, it reports no end


class ForkServer:
    """Forks workers of one module under one allowance. It ends with the thread that has made this object, and its
    workers end with it."""

    def __init__(self, module: str, allowance: Allowance, environment: Mapping[str, str], stderr: IO[bytes]) -> None:
        """stderr: where the module cannot be imported, it says why."""
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                self.process = spawn(
                    python("loadframe.workloads.fork_server", module, str(theirs.fileno())),
                    allowance,
                    stdout=subprocess.DEVNULL,
                    stderr=stderr,
                    cwd=NO_FOLDER,
                    env=environment,
                    pass_fds=[theirs.fileno()],
                )
        except BaseException:
            self._orders.close()
            raise
        self._started: list[int] = []
        self._statuses: dict[int, int] = {}
        self._status: int | None = None

    def runs(self) -> bool:
        return self.process.poll() is None

    def start(self, worker: Worker, stderr: IO[bytes], patience: Patience) -> ForkedWorker:
        """Where the server fails, this is the server itself, which has ended. WorkloadError as `patience`."""
        (stdin, writing), (reading, stdout) = os.pipe(), os.pipe()
        ours = os.fdopen(writing, "wb", buffering=0), os.fdopen(reading, "rb")
        order = {"arguments": worker.arguments, "descriptors": [0, 1, 2, *worker.pass_fds]}
        theirs = [stdin, stdout, stderr.fileno(), *worker.pass_fds]
        try:
            with suppress(BrokenPipeError):
                socket.send_fds(self._orders, [json.dumps(order).encode()], theirs)
            while not self._started and self._status is None:
                patience.await_words(self._orders, self.process.pid)
                self._hear(0.0)
        except BaseException:  # the answer is not known
            for pipe in ours:
                pipe.close()
            self.end()
            raise
        finally:
            os.close(stdin)
            os.close(stdout)
        if self._status is not None:
            self._statuses[self.process.pid] = self._status
        return ForkedWorker(self, self._started.pop() if self._started else self.process.pid, *ours)

    def status_of(self, pid: int, timeout_s: float | None) -> int | None:
        """None if it runs on after this time."""
        until_s = time.monotonic() + (timeout_s or 0.0)
        while pid not in self._statuses and self._status is None:
            left_s = None if timeout_s is None else max(0.0, until_s - time.monotonic())
            if not self._hear(left_s):
                return None
        return self._statuses.pop(pid, -signal.SIGKILL)

    def _hear(self, timeout_s: float | None) -> bool:
        if not readable(self._orders, timeout_s):
            return False
        words: list[bytes] = []
        with suppress(ConnectionResetError):  # it has ended, with orders unread
            words = self._orders.recv(64).split()
        match [int(word) for word in words]:
            case [pid]:
                self._started.append(pid)
            case [pid, status]:
                self._statuses[pid] = status
            case _:
                self._status = self.process.wait()
        return True

    def end(self) -> None:
        self.process.kill()
        self._status = self.process.wait()
        self._orders.close()


_servers: list[tuple[Allowance, tuple[object, ...], ForkServer]] = []


def fork_server(worker: Worker, allowance: Allowance, stderr: IO[bytes]) -> ForkServer:
    """One for all workers that differ in their arguments alone."""
    environment = marked(os.environ if worker.environment is None else worker.environment)
    others = worker.module, environment, threading.current_thread()
    for *asked, server in _servers:
        if asked == [allowance, others] and server.runs():
            return server
    server = ForkServer(worker.module, allowance, environment, stderr)
    _servers.append((allowance, others, server))
    return server


def end_fork_servers(allowance: Allowance | None = None) -> None:
    """End what later steps under this allowance, or in this thread, would have used."""
    thread = threading.current_thread()
    for row in [row for row in _servers if (row[1][-1] is thread if allowance is None else row[0] == allowance)]:
        _servers.remove(row)
        row[2].end()


@dataclass(frozen=True)
class Patience:
    """How long `count` workers of a load may take to begin: READY_WITHIN_S from now on."""

    name: str
    count: int
    until_s: float = field(default_factory=lambda: time.monotonic() + READY_WITHIN_S)

    def await_words(self, stream: IO[bytes] | socket.socket, pid: int) -> None:
        """Until the process has written something, or ended. WorkloadError if it is stopped, or takes too long."""
        while not readable(stream, max(0.0, min(LOOK_EVERY_S, self.until_s - time.monotonic()))):
            if why := stopped_by_signal([pid]):
                raise WorkloadError(f"A worker of {self.name} does not begin: {why}.", remedy=STOPPED_REMEDY)
            if time.monotonic() >= self.until_s:
                raise WorkloadError(
                    f"Only some of {self.count} workers of {self.name} were ready after {READY_WITHIN_S:.0f} s.",
                    remedy="The machine may be too small for this many; try a lower level.",
                )


def readable(stream: IO[bytes] | socket.socket, timeout_s: float | None) -> bool:
    reading = select.poll()  # select cannot handle descriptors above 1,023
    reading.register(stream, select.POLLIN)
    return bool(reading.poll(None if timeout_s is None else 1000 * timeout_s))
