"""A change log that is read while the database is busy: the kernel keeps few records, and a scan takes minutes.

A thread reads on and keeps the records in memory, up to a bound. Beyond it the thread waits: then the kernel's queue
fills, and says so.
"""

from __future__ import annotations

import threading
from collections import deque
from itertools import islice

from loadframe.indexing.entries import Change
from loadframe.indexing.readers import Reader, Records

MOST_RECORDS = 1_000_000
"""About 300 bytes each."""
AT_ONCE = 10_000
PATIENCE_S = 0.2
"""How long the thread waits for records before it looks whether it shall end."""


class Buffered:
    """A Reader, in front of another one, which it closes."""

    def __init__(self, reader: Reader, *, most: int = MOST_RECORDS) -> None:
        """most: records in memory; one reading more may come on top."""
        self.name, self.resumes = reader.name, reader.resumes
        self._reader, self._most = reader, most
        self._kept: deque[Change] = deque()
        self._lost: list[str] = []
        self._drained = False
        self._failure: Exception | None = None
        self._ends = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="change-log", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._ends:
                read = self._reader.read(PATIENCE_S)
                with self._changed:
                    self._kept.extend(read.changes)
                    self._lost += [read.lost] if read.lost else []
                    self._drained = read.drained
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self._ends or len(self._kept) < self._most)
        except Exception as error:  # noqa: BLE001 - raised by who reads: else it would wait for ever
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def read(self, timeout_s: float) -> Records:
        """See Reader. What the thread could not read on for is raised once its records are taken."""
        with self._changed:
            self._changed.wait_for(lambda: self._kept or self._lost or self._failure, timeout_s)
            if self._failure and not self._kept:
                raise self._failure
            changes = list(islice(self._kept, AT_ONCE))
            for _ in changes:
                self._kept.popleft()
            lost, self._lost = "; ".join(self._lost), []
            self._changed.notify_all()
            return Records(changes, lost, self._drained and not self._kept)

    @property
    def waiting(self) -> int:
        """Records in memory, and what the reader in front of which it is knows of."""
        with self._changed:
            return len(self._kept) + self._reader.waiting

    def inode_of(self, file: bytes) -> int | None:
        """See Reader."""
        return self._reader.inode_of(file)

    def acknowledge(self, number: int) -> None:
        """See Reader."""
        self._reader.acknowledge(number)

    def close(self) -> None:
        """Idempotent."""
        with self._changed:
            self._ends = True
            self._changed.notify_all()
        self._thread.join()
        self._reader.close()
