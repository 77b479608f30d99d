"""Files that the user names: read up to a bound, whatever they are (a device, a pipe); written whole or not at all."""

import errno
import os
import re
import select
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from loadframe.errors import RunError
from loadframe.system.files import Folder, Whose
from loadframe.system.trust import MOST_LINKS, user

PATIENCE_S = 5.0
_PAUSE_S = 0.05
OWN_DESCRIPTOR = re.compile(r"/(?:proc/(?:self|thread-self)|dev)/fd/([0-9]{1,6})")
LARGEST_OPTION_FILE = 1 << 20


def read_up_to(path: Path, most: int) -> bytes:
    """The first bytes, one more than `most` if there are more. OSError if it cannot be read; also for an impossible
    name, a pipe without a writer, and, if we are root, a link of another user, who could have us show a file that only
    root may read."""
    try:
        descriptor = _opened(path)
    except ValueError as error:  # a NUL in the name
        raise OSError(errno.EINVAL, str(error)) from None
    try:
        first = _await_writer(descriptor) if stat.S_ISFIFO(os.fstat(descriptor).st_mode) else b""
        os.set_blocking(descriptor, True)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return first + file.read(most + 1 - len(first))
    finally:
        os.close(descriptor)


def regular(path: Path) -> int:
    """A regular file, reached as by `read_up_to`, open for reading; the caller closes it. OSError."""
    descriptor = _opened(path)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a regular file")


def _opened(path: Path) -> int:
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    if os.geteuid() != 0:
        return os.open(path, flags)
    place = _end_of(path, reading=True)
    if _own_descriptor(place) is not None:
        return os.open(place, flags)
    with _folder_of(place) as folder:
        return folder.any_kind(place.name or ".")


def read_text_up_to(path: Path, most: int) -> str:
    """In UTF-8, with replacement marks. OSError like `read_up_to`, and for more than `most` bytes."""
    data = read_up_to(path, most)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes")
    return data.decode("utf-8", "replace")


def write_whole(path: Path, data: bytes) -> None:
    """When this returns the file is complete on the disk, or as it was before. A link of ours or of root stays one, and
    its target is replaced; a device, a pipe or an open descriptor (/dev/stdout, >(command)) is written to. No link and
    no pipe of another user is used. OSError if it cannot be written, also if no process reads from a pipe."""
    place = _end_of(path)
    if (number := _own_descriptor(place)) is not None:
        _write_to(os.dup(number), data)
        return
    with _folder_of(place) as folder:
        status = folder.status(place.name)
        if status is None or stat.S_ISREG(status.st_mode):
            mode = stat.S_IMODE(status.st_mode) if status is not None and status.st_uid == os.geteuid() else None
            folder.replace(place.name, data, mode=mode)
        else:
            until = time.monotonic() + PATIENCE_S
            while (descriptor := folder.pipe_or_device(place.name)) is None:
                if time.monotonic() > until:
                    raise TimeoutError(errno.ETIMEDOUT, f"no process reads from this pipe (waited {PATIENCE_S:g} s)")
                time.sleep(_PAUSE_S)
            _write_to(descriptor, data)


def append_to(path: Path, data: bytes) -> None:
    """Append to a regular file, made if missing. Links, and errors: as `write_whole`."""
    place = _end_of(path)
    with _folder_of(place) as folder:
        folder.append(place.name, data)


@contextmanager
def _folder_of(place: Path) -> Iterator[Folder]:
    try:
        yield Folder(place.parent, Whose.ANOTHERS)
    except RunError as error:
        raise OSError(errno.EACCES, error.fact) from error


def _end_of(path: Path, *, reading: bool = False) -> Path:
    """Follows links of ours or root's; OSError for others. reading: an open descriptor may have lost its name."""
    for _ in range(MOST_LINKS):
        if (number := _own_descriptor(path)) is not None:
            if reading or not stat.S_ISREG(os.fstat(number).st_mode):
                return path
            path = Path("/proc/self/fd", str(number)).readlink()
            continue
        with _folder_of(path) as folder:
            link = folder.link(path.name)
        if link is None:
            return path
        if link.owner not in (0, os.geteuid()):
            raise OSError(errno.ELOOP, f"it is a link of {user(link.owner)}")
        path = path.parent / link.to
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _own_descriptor(path: Path) -> int | None:
    match = OWN_DESCRIPTOR.fullmatch(str(path))
    return int(match[1]) if match else None


def _write_to(descriptor: int, data: bytes) -> None:
    """A reader is waited for as long as it has the pipe open."""
    poll, left = select.poll(), memoryview(data)
    poll.register(descriptor, select.POLLOUT)
    try:
        while left:
            poll.poll()
            with suppress(BlockingIOError):
                left = left[os.write(descriptor, left) :]
    finally:
        os.close(descriptor)


def _await_writer(descriptor: int) -> bytes:
    """Until a process has the pipe open for writing; returns what finding that out has read."""
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
