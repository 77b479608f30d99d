"""Files that stay open to be read again and again: how many may, and how all of them are read.

This module is imported by the recorder process and stays light: the standard library and frames.
"""

from __future__ import annotations

import os
import resource

from loadframe.recording.frame_writer import FrameWriter

READ_ONLY = os.O_RDONLY | os.O_CLOEXEC
MOST_HELD = 8192
"""Files held open at most: each costs the kernel one to two kilobytes. Beyond, they are opened at each reading."""
_SPARE_DESCRIPTORS = 64

Held = list[tuple[int, int]]
"""Source id and descriptor of each file that is read again and again."""


class Descriptors:
    """How many files may be held open; beyond that they are opened and closed at each reading."""

    def __init__(self) -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        allowed = min(hard, MOST_HELD) if hard != resource.RLIM_INFINITY else MOST_HELD
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        self.free = allowed - _SPARE_DESCRIPTORS

    def hold(self, path: str, directory: int | None = None) -> int | None:
        """An open descriptor to keep, or None when there are enough already. OSError if the file will not open."""
        if self.free <= 0:
            return None
        descriptor = os.open(path, READ_ONLY, dir_fd=directory)
        self.free -= 1
        return descriptor

    def release(self, descriptor: int) -> None:
        os.close(descriptor)
        self.free += 1


def read_all(writer: FrameWriter, held: Held) -> None:
    """An entry of each file that answers; the others are absent (/proc/pressure where it is switched off)."""
    read = writer.read
    for source, descriptor in held:
        try:
            read(source, descriptor)
        except OSError:
            continue


def open_if_there(path: str) -> int | None:
    try:
        return os.open(path, READ_ONLY)
    except OSError:
        return None
