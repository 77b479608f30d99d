"""Counting what a server says in its log, where it keeps no counter of it."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

PART = 1 << 20
"""Read at once: a log may have grown by any size."""


class LogCounts:
    """How many times the whole lines of a log that grows have said each of some words. Reads only what is new."""

    def __init__(self, log: Path, words: Iterable[bytes]) -> None:
        self._log = log
        self._read_to = 0
        self._counts = dict.fromkeys(words, 0)

    def read(self) -> dict[bytes, int]:
        """By the words, up to now; nothing yet where there is no log."""
        with suppress(FileNotFoundError), self._log.open("rb") as log:
            if log.seek(0, os.SEEK_END) < self._read_to:  # its beginning was dropped
                self._read_to = 0
            log.seek(self._read_to)
            while text := log.read(PART):
                whole = text[: text.rfind(b"\n") + 1] or (text if len(text) == PART else b"")
                if not whole:  # the rest of a line is still to come
                    break
                self._read_to += len(whole)
                log.seek(self._read_to)
                for words in self._counts:
                    self._counts[words] += whole.count(words)
        return dict(self._counts)
