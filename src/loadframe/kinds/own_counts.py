"""What a server does not count itself: messages in its log, and the time that its connections or workers wait."""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

PART = 1 << 20
LONGEST_LOOK_S = 5.0


class LogCounts:
    """How often each of some words occurs in the complete lines of a growing log; reads only what is new."""

    def __init__(self, log: Path, words: Iterable[bytes]) -> None:
        self._log = log
        self._read_to = 0
        self._counts = dict.fromkeys(words, 0)

    def read(self) -> dict[bytes, int]:
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


class Waited:
    """Seconds of waiting that add up: at each look, the number that wait times the time since the look before. clock:
    CLOCK_MONOTONIC."""

    def __init__(self, names: Iterable[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at_s: float | None = None
        self._waited_s = dict.fromkeys(names, 0.0)

    def look(self, waiting: Mapping[str, float]) -> dict[str, float]:
        """The seconds up to now, by name. waiting: how many wait at this look, by name."""
        now_s = self._clock()
        since_s = 0.0 if self._at_s is None else now_s - self._at_s
        self._at_s = now_s
        if since_s <= LONGEST_LOOK_S:
            for name in self._waited_s:
                self._waited_s[name] += waiting.get(name, 0.0) * since_s
        return dict(self._waited_s)
