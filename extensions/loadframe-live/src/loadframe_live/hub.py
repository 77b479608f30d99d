"""One writer, many readers: every event is encoded once, kept for reconnecting clients, and handed to each subscriber,
as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Any

from loadframe.formats.json_text import write_json

MOST_SUBSCRIBERS = 64
MOST_KEPT = 2000
"""Events for reconnecting clients; one that has missed more reads everything again."""
MOST_KEPT_BYTES = 8 << 20
MOST_WAITING = 256
"""Events that a subscriber may be behind; a slower one is disconnected, and may reconnect."""
SILENCE_S = 15.0
"""A comment is sent after so long without an event: proxies and sleeping machines are noticed."""


class TooManySubscribers(Exception):  # noqa: N818 - it is an answer, no fault
    """There are MOST_SUBSCRIBERS already."""


class Hub:
    def __init__(self) -> None:
        self._epoch = secrets.token_hex(4)
        self._number = 0
        self._kept: deque[tuple[int, bytes]] = deque()
        self._kept_bytes = 0
        self._queues: set[asyncio.Queue[bytes | None]] = set()
        self._closed = False

    @property
    def subscribers(self) -> int:
        return len(self._queues)

    @property
    def last_id(self) -> str:
        return f"{self._epoch}-{self._number}"

    def publish(self, kind: str, data: Mapping[str, Any]) -> None:
        self._number += 1
        event = f"id: {self.last_id}\nevent: {kind}\ndata: {write_json(dict(data))}\n\n".encode()
        self._kept.append((self._number, event))
        self._kept_bytes += len(event)
        while len(self._kept) > MOST_KEPT or self._kept_bytes > MOST_KEPT_BYTES:
            self._kept_bytes -= len(self._kept.popleft()[1])
        for queue in tuple(self._queues):
            if queue.qsize() >= MOST_WAITING:
                self._queues.discard(queue)
                queue.put_nowait(None)
            else:
                queue.put_nowait(event)

    def subscribe(self, after: str) -> AsyncIterator[bytes]:
        """The events after that of an id, then those to come. An unknown id yields one event `reset`: read everything
        again. TooManySubscribers."""
        if self._closed or len(self._queues) >= MOST_SUBSCRIBERS:
            raise TooManySubscribers
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        epoch, _, number = after.partition("-")
        oldest = self._kept[0][0] if self._kept else self._number + 1
        known = epoch == self._epoch and number.isascii() and number.isdigit() and len(number) < 20
        missed = [f"id: {self.last_id}\nevent: reset\ndata: {{}}\n\n".encode()]
        if known and oldest - 1 <= int(number) <= self._number:
            missed = [event for event_number, event in self._kept if event_number > int(number)]
        for event in missed:
            queue.put_nowait(event)
        self._queues.add(queue)
        return self._read(queue)

    async def _read(self, queue: asyncio.Queue[bytes | None]) -> AsyncIterator[bytes]:
        try:
            yield b"retry: 1000\n\n"
            while True:
                try:
                    event = await asyncio.wait_for(queue.get(), SILENCE_S)
                except TimeoutError:
                    event = b":\n\n"
                if event is None:
                    return
                yield event
        finally:
            self._queues.discard(queue)

    def close(self) -> None:
        self._closed = True
        for queue in tuple(self._queues):
            queue.put_nowait(None)
