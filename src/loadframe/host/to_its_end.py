"""Processes waited for to their end, and a user's command run to its end. Its output goes to a file without a name, not
through a pipe, which what it has started may hold open."""

import os
import select
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from loadframe.errors import TargetError
from loadframe.host.environment import environment
from loadframe.system.trees import closing

MOST_BYTES = 1 << 20
"""Read from the end of a command's output."""
MOST_PRINTED_BYTES = 64 << 20
"""A command that prints more is ended: it would fill the disk."""
LOOK_EVERY_S = 0.1


class Process(subprocess.Popen[bytes]):
    """A child whose end `wait` notices at once; that of Popen looks every 50 ms."""

    def wait(self, timeout: float | None = None) -> int:
        if timeout is not None and self.poll() is None:
            # another thread has waited for it, or a container's filter forbids pidfd_open
            with suppress(OSError), closing(os.pidfd_open(self.pid)) as descriptor:
                ending = select.poll()
                ending.register(descriptor, select.POLLIN)
                if not ending.poll(1000 * max(0.0, timeout)):
                    raise subprocess.TimeoutExpired(self.args, timeout)
        return super().wait(timeout)


@dataclass(frozen=True, slots=True)
class Ended:
    """said: the end of what it printed, including standard error."""

    status: int
    said: str


def run(command: Sequence[str], within_s: float) -> Ended:
    """Run a command that may start what goes on, such as a restart, as ourselves, in a session of its own: Ctrl-C is
    for us. OSError; subprocess.TimeoutExpired if it does not end in time or prints without end: it is killed, its
    descendants are not."""
    with tempfile.TemporaryFile() as output:
        process = Process(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            env=environment(),
        )  # fmt: skip
        try:
            if not ended(process, output, within_s):
                raise subprocess.TimeoutExpired(list(command), within_s)
        except BaseException:
            process.kill()
            process.wait()
            raise
        return Ended(process.returncode, last_printed(output))


def restart(command: Sequence[str], within_s: float, silent: Callable[[], str | None], words: str, remedy: str) -> None:
    """Return once `silent`, which says why the server does not answer, returns None. TargetError."""
    shown = " ".join(command)
    try:
        done = run(command, within_s)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TargetError(f"`{shown}` failed: {error}", remedy=remedy) from error
    if done.status != 0:
        raise TargetError(f"`{shown}` ended with {done.status}", remedy=remedy, details=done.said.strip())
    until = time.monotonic() + within_s
    while (why := silent()) is not None:
        if time.monotonic() > until:
            raise TargetError(f"{words} does not answer {within_s:.0f} s after `{shown}`: {why}", remedy=remedy)
        time.sleep(LOOK_EVERY_S)


def ended(process: subprocess.Popen[bytes], output: IO[bytes], within_s: float) -> bool:
    until = time.monotonic() + within_s
    while True:
        left_s = until - time.monotonic()
        try:
            process.wait(max(0.0, min(LOOK_EVERY_S, left_s)))
        except subprocess.TimeoutExpired:
            if left_s <= 0 or os.fstat(output.fileno()).st_size > MOST_PRINTED_BYTES:
                return False
        else:
            return True


def last_printed(output: IO[bytes]) -> str:
    """The offset stays: processes that go on share it."""
    size = os.fstat(output.fileno()).st_size
    return os.pread(output.fileno(), MOST_BYTES, max(0, size - MOST_BYTES)).decode("utf-8", "replace")


PIECE = 1 << 16


def until_end(stream: IO[bytes], until_s: float, most_bytes: int) -> bytes:
    """A pipe's content, up to one piece beyond most_bytes. TimeoutExpired at until_s (CLOCK_MONOTONIC)."""
    said = bytearray()
    while len(said) <= most_bytes:
        if not select.select([stream], [], [], max(0.0, until_s - time.monotonic()))[0]:
            raise subprocess.TimeoutExpired("", 0.0)
        piece = os.read(stream.fileno(), PIECE)
        if not piece:
            break
        said += piece
    return bytes(said)
