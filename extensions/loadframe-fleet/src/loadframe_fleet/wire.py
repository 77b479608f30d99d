"""Messages between the coordinator and an agent: one JSON object per line. Either side may be damaged, old or hostile:
lines are bounded, and everything but objects is refused."""

import os
import select
import threading
import time
from collections.abc import Callable
from typing import Any

from loadframe.formats.json_text import JsonError, parse_json, write_json

Message = dict[str, Any]
Say = Callable[[str], None]
AGENT = "loadframe.agent/2"
"""In the greeting; another one means an incompatible Loadframe."""
LONGEST_LINE = 4 << 20
LEASE_S = 5.0
"""An agent that has not heard from its coordinator for so long ends, with all that it does."""
LOAD_LEASE_S = 4.0
"""The load ends sooner than its agent."""
SILENT_S = 6.0
"""An agent that has been silent to its coordinator for so long has ended its load, or its machine does nothing."""
BEAT_S = 1.0
PIECE_BYTES = 1 << 20
"""Of compressed data in one answer."""


class WireError(Exception):
    """What came is no message."""


class Closed(Exception):  # noqa: N818 - it is an end, not an error
    """The other side has closed the stream."""


class Silent(Exception):  # noqa: N818
    """Nothing came in time."""


class Lines:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._waiting = bytearray()
        self.heard_s = time.monotonic()
        """When anything last came, also a part of a line, which may take longer than any lease."""

    def line(self, within_s: float) -> bytes:
        """The next line without its end. Silent, Closed, WireError for one without an end."""
        until, looked = time.monotonic() + within_s, 0
        while (end := self._waiting.find(b"\n", looked)) < 0:
            looked = len(self._waiting)
            if looked > LONGEST_LINE:
                raise WireError(f"a line has more than {LONGEST_LINE:,} bytes")
            left_s = max(0.0, until - time.monotonic())
            if not _ready(self._descriptor, select.POLLIN, left_s):
                raise Silent
            self.heard_s = time.monotonic()  # before it is read: then whoever sees nothing unread sees this
            if not (more := os.read(self._descriptor, 1 << 16)):
                raise Closed
            self._waiting += more
        line = bytes(self._waiting[:end])
        del self._waiting[: end + 1]
        return line

    def silent_for(self, seconds: float) -> bool:
        return time.monotonic() - self.heard_s >= seconds

    def unread(self) -> bool:
        """Whether something unread has come, or the other side has closed: then we are late."""
        return _ready(self._descriptor, select.POLLIN, 0.0)

    def message(self, within_s: float) -> Message:
        """Silent, Closed, WireError."""
        return read(self.line(within_s))


def send(descriptor: int, data: bytes, within_s: float) -> bool:
    """Send through a pipe, one thread at a time. False where the other side has taken nothing for so long: a part of a
    line may have been sent, so nothing more may be. OSError where it is gone."""
    view = memoryview(data)
    while view:
        if not _ready(descriptor, select.POLLOUT, within_s):
            return False
        view = view[os.write(descriptor, view[: select.PIPE_BUF]) :]  # no more than a pipe that is ready takes at once
    return True


def _ready(descriptor: int, event: int, within_s: float) -> bool:
    """Not select(2), which cannot handle the descriptors of a coordinator of a thousand hosts."""
    waiting = select.poll()
    waiting.register(descriptor, event)
    return bool(waiting.poll(within_s * 1000))


def own_output() -> int:
    """A descriptor for messages alone: what a library prints goes to stderr from now on."""
    sink = os.dup(1)
    os.dup2(2, 1)
    return sink


def read(line: bytes) -> Message:
    """WireError for anything but a message."""
    try:
        message = parse_json(line)
        if not isinstance(message, dict):
            raise JsonError("it is no object")
        if not isinstance(message.get("ask", ""), str) or not isinstance(message.get("id"), int | None):
            raise JsonError("its `ask` is no text, or its `id` no whole number")
    except JsonError as error:
        raise WireError(f"{line[:80]!r} is no message: {error}") from error
    return message


def written(message: Message) -> bytes:
    """WireError for one that is too long."""
    line = write_json(message).encode() + b"\n"
    if len(line) > LONGEST_LINE:
        raise WireError(f"the answer has {len(line):,} bytes, more than {LONGEST_LINE:,}")
    return line


FIRST_BYTES, LAST_BYTES = 1000, 2000
LOOK_EVERY_S = 1.0
AT_ONCE = 1 << 16


class LastWords:
    """The beginning and end of a process's output, read all the time: a file would fill the disk, a full pipe stop the
    process. Its children may hold the pipe open after its end."""

    def __init__(self) -> None:
        self._source, self.sink = os.pipe()
        self._first = self._last = b""
        self._bytes = 0
        self._closed = threading.Event()
        self._ended = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def given(self) -> None:
        """The process has the sink now, or there is none; ours is closed."""
        os.close(self.sink)

    def close(self) -> None:
        self._closed.set()

    def text(self, within_s: float) -> str:
        self._ended.wait(within_s)
        left_out = self._bytes - len(self._first) - len(self._last)
        middle = f"\n[... {left_out:,} bytes are left out ...]\n" if left_out > 0 else ""
        return f"{self._first.decode(errors='replace')}{middle}{self._last.decode(errors='replace')}"

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
