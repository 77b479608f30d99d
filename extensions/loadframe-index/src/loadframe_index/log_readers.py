"""The interface of the readers of change logs, and what those of the kernel have in common."""

import abc
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from loadframe.errors import MachineError
from loadframe_index.beneath import Beneath
from loadframe_index.entries import Change


@dataclass(frozen=True, slots=True)
class Records:
    """lost: why records are missing, in words; then the whole tree has to be scanned again. drained: nothing more was
    waiting."""

    changes: Sequence[Change] = ()
    lost: str = ""
    drained: bool = True


class Reader(abc.ABC):
    name: str
    """Its name in a study: fanotify, inotify, injected, recorded."""
    resumes: bool = False
    """Whether the log outlives its reader, and is read on from the last acknowledged record."""

    @property
    def waiting(self) -> int:
        """Records to be read, as far as known."""
        return 0

    @abc.abstractmethod
    def read(self, timeout_s: float) -> Records:
        """The records that are there, after this time at the latest; none is no error. MachineError."""

    def inode_of(self, file: bytes) -> int | None:
        """The inode of a record's file (Change.file); None where it has no name, or is unknown. Thread-safe."""
        return int(file)

    def close(self) -> None:  # noqa: B027 - most have nothing open
        """Idempotent."""


# The same in <sys/inotify.h> and <linux/fanotify.h>
ATTRIB, CLOSE_WRITE, MOVED_FROM, MOVED_TO, CREATE, DELETE, OVERFLOW = 0x4, 0x8, 0x40, 0x80, 0x100, 0x200, 0x4000
READ_BYTES = 1 << 18


class OfKernel(Reader):
    """One of the kernel's, for a tree on one file system: what is mounted within it is not followed."""

    def __init__(self, root: Path) -> None:
        self._tree, self._queue = Beneath(root), -1
        self._changes: list[Change] = []
        self._number = 1

    @contextmanager
    def _opening(self, root: Path, remedy: Callable[[int], str]) -> Iterator[None]:
        """MachineError where the kernel refuses; it is closed then. remedy: for the error's number."""
        try:
            yield
        except OSError as error:
            self.close()
            fact = f"{self.name} does not follow {root}: {error.strerror}"
            raise MachineError(fact, remedy=remedy(error.errno or 0)) from error

    def _record(self, kind: str, path: bytes, to: bytes = b"", file: bytes = b"") -> None:
        self._changes.append(Change(kind, path, to, self._number, time.time(), file))
        self._number += 1

    def _overflowed(self) -> str:
        return f"the queue of {self.name} was full ({shown_limit(f'{self.name}/max_queued_events')} records)"

    def _taken(self) -> list[Change]:
        changes, self._changes = self._changes, []
        return changes

    def close(self) -> None:
        self._tree.close()
        if self._queue >= 0:
            os.close(self._queue)
        self._queue = -1


class UnreadableEventError(ValueError):
    """Bytes that are no events of a kernel interface."""


LIMITS = Path("/proc/sys/fs")


def shown_limit(name: str) -> str:
    """A limit of the kernel's on change logs (below LIMITS), for messages."""
    try:
        return f"{int((LIMITS / name).read_text(encoding='ascii', errors='replace')):,}"
    except (OSError, ValueError):
        return "an unknown number of"
