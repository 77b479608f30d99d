"""Files that stay open to be read repeatedly."""

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

from loadframe.recording.frame_writer import FrameWriter

READ_ONLY = os.O_RDONLY | os.O_CLOEXEC
MOST_HELD = 8192
"""Files of threads: each costs the kernel one to two kilobytes. As many descriptors again are for all other files."""

SECOND_S = 0.95  # ticks of 0.1 s must not make it 1.1

Held = list[tuple[int, int]]
"""Source id and descriptor."""


class Descriptors:
    """How many files of threads may be held; beyond that they are opened and closed at each reading."""

    def __init__(self) -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        allowed = 2 * MOST_HELD if hard == resource.RLIM_INFINITY else min(hard, 2 * MOST_HELD)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        self.free = allowed // 2

    def hold(self, path: str, directory: int | None = None) -> int | None:
        """A descriptor to keep; None if enough are held. OSError if the file will not open."""
        if self.free <= 0:
            return None
        try:
            descriptor = os.open(path, READ_ONLY, dir_fd=directory)
        except OSError as error:
            if not used_up(error):
                raise
            return None
        self.free -= 1
        return descriptor

    def release(self, descriptor: int) -> None:
        os.close(descriptor)
        self.free += 1


class HeldFiles:
    """Missing or forbidden ones are left out. Closing ends the sources that `source` named."""

    def __init__(self, writer: FrameWriter) -> None:
        self._writer = writer
        self._names: list[str] = []
        self._next_half_s = self._next_second_s = 0.0
        self.each_tick: Held = []
        self.each_half: Held = []
        self.each_second: Held = []

    def source(self, name: str) -> int:
        self._names.append(name)
        return self._writer.source(name)

    def open(self, held: Held, source: str, path: str, directory: int | None = None) -> None:
        """Hold a file, once per source. OSError if descriptors are used up."""
        if source in self._names:
            return
        try:
            descriptor = os.open(path, READ_ONLY, dir_fd=directory)
        except OSError as error:
            if used_up(error):
                raise
            return
        held.append((self.source(source), descriptor))

    def hasten(self) -> None:
        """What is read once per second is due at the next tick."""
        self._next_second_s = 0.0

    def is_second(self, now_s: float) -> bool:
        """Whether what is read once per second is due; then it is not for a second."""
        if due := now_s >= self._next_second_s:
            self._next_second_s = now_s + SECOND_S
        return due

    def sample(self, now_s: float) -> bool:
        if self.each_half and now_s >= self._next_half_s:
            self._next_half_s = now_s + SECOND_S / 2
            self.read(self.each_half)
        self.read(self.each_tick)
        if self.is_second(now_s):
            self.read(self.each_second)
        return True

    def read(self, held: Held) -> None:
        """Add an entry for each file that answers (/proc/pressure does not if it is switched off)."""
        read = self._writer.read
        for source, descriptor in held:
            try:
                read(source, descriptor)
            except OSError:
                continue

    def close(self) -> None:
        for _, descriptor in (*self.each_tick, *self.each_half, *self.each_second):
            os.close(descriptor)
        for name in self._names:
            self._writer.retire(name)


def used_up(error: OSError) -> bool:
    return error.errno in (errno.EMFILE, errno.ENFILE)


@contextmanager
def opened(path: str, directory: int | None = None, flags: int = READ_ONLY) -> Iterator[int]:
    descriptor = os.open(path, flags, dir_fd=directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
