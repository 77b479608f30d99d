"""Files that the user names: read up to a bound, whatever they are - a device without an end, a pipe, a folder."""

from __future__ import annotations

import errno
import os
import select
import stat
import time
from pathlib import Path

PATIENCE_S = 5.0
"""A pipe that no process has open for writing by then is given up."""
_PAUSE_S = 0.05
LARGEST_OPTION_FILE = 1 << 20
"""Bytes of a server's option file; one of thousands of lines has a tenth of it."""


def read_up_to(path: Path, most: int) -> bytes:
    """The file's first bytes, one more than `most` where it has more. OSError where it cannot be read, also for a name
    that no file can have, and for a pipe into which no process writes."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except ValueError as error:  # a NUL in the name
        raise OSError(errno.EINVAL, str(error)) from None
    try:
        first = _await_writer(descriptor) if stat.S_ISFIFO(os.fstat(descriptor).st_mode) else b""
        os.set_blocking(descriptor, True)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return first + file.read(most + 1 - len(first))
    finally:
        os.close(descriptor)


def read_text_up_to(path: Path, most: int) -> str:
    """The whole file as text in UTF-8, where it is none with marks in its place. OSError as `read_up_to`, and where it
    has more than `most` bytes."""
    data = read_up_to(path, most)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes")
    return data.decode("utf-8", "replace")


def _await_writer(descriptor: int) -> bytes:
    """Until a process has the pipe open for writing: what finding that out has read."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    until = time.monotonic() + PATIENCE_S
    while not poll.poll(0):  # neither data, nor a writer that has gone
        try:
            first = os.read(descriptor, 1)
        except BlockingIOError:  # a writer that has written nothing yet
            return b""
        if first:
            return first
        if time.monotonic() > until:
            raise TimeoutError(f"no process writes into this pipe (waited {PATIENCE_S:g} s)")
        time.sleep(_PAUSE_S)
    return b""
