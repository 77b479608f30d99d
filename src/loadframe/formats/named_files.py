"""Files that the user names: read up to a bound, whatever they are - a device without an end, a pipe, a folder; and
written whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import select
import stat
import time
from contextlib import suppress
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


def write_whole(path: Path, data: bytes) -> None:
    """The file with these bytes: on the disk complete when this returns, or as it was before. A link stays one, and
    what it leads to is replaced; a device or a pipe is written to. OSError where it cannot be written."""
    try:
        found = path.stat()
    except FileNotFoundError:
        found = None
    except ValueError as error:  # a NUL in the name
        raise OSError(errno.EINVAL, str(error)) from None
    if found is not None and not stat.S_ISREG(found.st_mode):
        with path.open("wb") as file:  # a folder is refused here
            file.write(data)
        return
    path = path.resolve()
    part = path.with_name(f".{path.name[:200]}.{secrets.token_hex(8)}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if found is not None:
                os.fchmod(descriptor, stat.S_IMODE(found.st_mode))
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        part.replace(path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


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
