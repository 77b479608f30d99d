"""Asking nginx's stub_status on a Unix socket, over one connection that is kept."""

import re
import threading
import time
from pathlib import Path

from loadframe.connections.http_connection import ERRORS, Connection, body

TIMEOUT_S = 5.0
"""A worker that is busy for longer will not tell in time."""
TRIES = 5
PAUSE_S = 0.01
"""Where all connections are taken one soon becomes free."""
PATTERN = re.compile(
    r"Active connections: (\d+)\s+server accepts handled requests\s+(\d+) (\d+) (\d+)\s+"
    r"Reading: (\d+) Writing: (\d+) Waiting: (\d+)"
)
NAMES = ("connections", "accepts", "handled", "requests", "reading", "writing", "waiting")


class Status:
    """The status of one nginx; safe to use from several threads, one at a time."""

    def __init__(self, socket: Path) -> None:
        self._connection = Connection(socket, within_s=TIMEOUT_S, silent_s=TIMEOUT_S)
        self._lock = threading.Lock()

    def read(self) -> dict[str, float]:
        """The counters by NAMES. NoRoom where nginx closes the connection each time; empty where it does not answer."""
        with self._lock:
            for attempt in range(TRIES):
                if attempt:
                    time.sleep(PAUSE_S)
                try:
                    return self._ask()
                except (FileNotFoundError, ConnectionRefusedError, TimeoutError):  # it is gone, or busy
                    self._connection.close()
                    return {}
                except ERRORS:  # the kept one may have been closed for a client
                    self._connection.close()
        raise NoRoom

    def answers(self) -> bool:
        try:
            return bool(self.read())
        except NoRoom:
            return False

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _ask(self) -> dict[str, float]:
        return parse(body(self._connection.get("/")).decode(errors="replace"))


class NoRoom(Exception):  # noqa: N818 - it is a state of nginx
    """nginx accepts connections and closes them at once: none of a worker's is free."""


def parse(text: str) -> dict[str, float]:
    """The counters of a page of stub_status; empty where it is none."""
    found = PATTERN.search(text)
    return dict(zip(NAMES, map(float, found.groups()), strict=True)) if found else {}
