"""Panics of libraries in other languages, where the machine lacks memory, threads or descriptors: a panic is no
Exception, or an error of the library's own."""

import mmap
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from loadframe.errors import UserError
from loadframe.system.kernel import kernel_text

REMEDY = (
    "The machine lacks memory, threads or open files for it (`ulimit -a`, the container's limits). Finished steps are \
kept: `loadframe report RUN` goes on once there is more."
)
ROOM_BYTES = 256 << 20
"""What polars and V8 may take for the tables and charts of a run; both abort the process without it."""
ROOM_FILES = 16
"""What they may open; V8's threads panic with a message of their own where they cannot."""
PANIC = "PanicException"
"""The panic of every library written with pyo3 (polars, vl-convert): each has its own class."""


@contextmanager
def in_words(what: str, kind: type[UserError], *errors: type[Exception], room_bytes: int = 0) -> Iterator[None]:
    """Raises `kind`, with the first line of the library's message, where it panics, has no memory, or raises one of
    `errors`. what: cannot be done then. room_bytes: address space that it may take; it is not begun without that and
    ROOM_FILES."""
    try:
        if room_bytes:
            _find_room(room_bytes)
        yield
    except BaseException as error:
        if not isinstance(error, (MemoryError, *errors)) and type(error).__name__ != PANIC:
            raise
        said = next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(":")
        raise kind(f"{what}: {said}", remedy=REMEDY) from error


def _find_room(size: int) -> None:
    try:
        mmap.mmap(-1, size).close()
    except OSError as error:
        raise MemoryError(f"{size >> 20} MiB of memory are not available ({error.strerror})") from error
    try:
        with ExitStack() as opened:
            for _ in range(ROOM_FILES):
                opened.callback(os.close, os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        raise MemoryError(f"{ROOM_FILES} more files cannot be opened ({error.strerror})") from error


def reserve(kind: type[UserError]) -> None:
    """Have the libraries take the threads and the memory that they keep, before anything is measured: without memory
    later, OpenBLAS ends the process, and polars panics for good. Raises `kind` where there is none now."""
    import numpy as np
    import polars

    square = np.eye(ENOUGH)
    with in_words("There is not enough memory for a measurement", kind):
        square @ square
        np.linalg.cholesky(square)
        polars.DataFrame({"each": range(ENOUGH)}).group_by("each").agg(polars.len())
    until_s = time.monotonic() + SETTLED_WITHIN_S
    while not _settled() and time.monotonic() < until_s:
        time.sleep(0.01)


def _settled() -> bool:
    """Whether each thread has taken its initial resources: it has waited for work before, and waits now."""
    for task in Path("/proc/self/task").iterdir():
        if int(task.name) == threading.get_native_id():
            continue
        try:
            status = kernel_text(task / "status")
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
        if not re.search(r"^State:\tS", status, re.MULTILINE) or re.search(r"^voluntary\S+\t0$", status, re.MULTILINE):
            return False
    return True


SETTLED_WITHIN_S = 5.0
"""A new thread may get its first turn late, and aborts the process if it then lacks memory."""
ENOUGH = 256
"""Rows: smaller matrices need no memory of the libraries' own."""
