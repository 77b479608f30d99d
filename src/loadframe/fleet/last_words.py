"""What a host's agent prints as errors, or ssh for it: the beginning and the end of it, however much it is."""

from __future__ import annotations

import os
import select
import threading

FIRST_BYTES, LAST_BYTES = 1000, 2000
LOOK_EVERY_S = 1.0
AT_ONCE = 1 << 16


class LastWords:
    """Of one process. What it prints is read all the time: a file would fill the disk, and a pipe that is full stops
    it. Those that it has started may hold the pipe open when it has ended."""

    def __init__(self) -> None:
        self._source, self.sink = os.pipe()
        self._first = self._last = b""
        self._bytes = 0
        self._closed = threading.Event()
        self._ended = threading.Event()

    def begin(self) -> None:
        """The process has the sink now; ours is closed."""
        os.close(self.sink)
        threading.Thread(target=self._read, daemon=True).start()

    def give_up(self) -> None:
        """There is no process."""
        os.close(self.sink)
        os.close(self._source)

    def close(self) -> None:
        """It is read no more, soon."""
        self._closed.set()

    def text(self, within_s: float) -> str:
        """Waits for the end of it at most so long."""
        self._ended.wait(within_s)
        left_out = self._bytes - len(self._first) - len(self._last)
        middle = f"\n[... {left_out:,} bytes are left out ...]\n" if left_out > 0 else ""
        parts = self._first.decode(errors="replace"), middle, self._last.decode(errors="replace")
        return "".join(parts)

    def _read(self) -> None:
        looking = select.poll()
        looking.register(self._source, select.POLLIN)
        while not self._closed.is_set():
            if not looking.poll(LOOK_EVERY_S * 1000):
                continue
            if not (more := os.read(self._source, AT_ONCE)):
                break
            self._bytes += len(more)
            room = FIRST_BYTES - len(self._first)
            self._first += more[:room]
            self._last = (self._last + more[room:])[-LAST_BYTES:]
        os.close(self._source)
        self._ended.set()
