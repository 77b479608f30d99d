"""Counting what a server says in its log, where it keeps no counter of it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


class LogCounts:
    """How many times the whole lines of a log that grows have said each of some words. Reads only what is new."""

    def __init__(self, log: Path, words: Iterable[bytes]) -> None:
        self._log = log
        self._read_to = 0
        self._counts = dict.fromkeys(words, 0)

    def read(self) -> dict[bytes, int]:
        """By the words, up to now; nothing yet where there is no log."""
        try:
            with self._log.open("rb") as log:
                if log.seek(0, os.SEEK_END) < self._read_to:  # its beginning was dropped
                    self._read_to = 0
                log.seek(self._read_to)
                text = log.read()
        except FileNotFoundError:
            return dict(self._counts)
        whole = text[: text.rfind(b"\n") + 1]
        self._read_to += len(whole)
        for words in self._counts:
            self._counts[words] += whole.count(words)
        return dict(self._counts)
