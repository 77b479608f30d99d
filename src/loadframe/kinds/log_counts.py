"""Counting messages in a server's log, where it keeps no counter of them."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

PART = 1 << 20
"""Bytes read at once: a log may have grown by any size."""


class LogCounts:
    """How often each of some words occurs in the complete lines of a growing log. Reads only what is new."""

    def __init__(self, log: Path, words: Iterable[bytes]) -> None:
        self._log = log
        self._read_to = 0
        self._counts = dict.fromkeys(words, 0)

    def read(self) -> dict[bytes, int]:
        """Counts up to now, by the words; all 0 where there is no log."""
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
