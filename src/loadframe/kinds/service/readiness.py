"""Whether a service that was started is ready, as its study says how that is seen, and what is missing where it is not.

All that stands in braces has its value of this start: the port, the folder of its data, its settings, its helpers'
ports.
"""

import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from loadframe.connections.host_port import parted
from loadframe.connections.http_connection import ERRORS
from loadframe.formats.said import words
from loadframe.kinds.log_counts import LogCounts
from loadframe.kinds.service.read_back import get, here
from loadframe.kinds.service.words import filled
from loadframe.study.service_tables import ReadyTable

TOO_HIGH = 500
"""A status from here on is an error of the server's own (RFC 9110, 15.6)."""
LOOK_S = 2.0
"""For one answer: a service that is busy starting may keep a request waiting."""

Run = Callable[[Sequence[str]], int]
"""Runs a command as the service's user; its exit status, below 0 where it had to be ended."""


class Readiness:
    """What one start waits for. missing: what there was not at the last look, in words that follow a colon."""

    def __init__(self, table: ReadyTable, values: Mapping[str, str], log: Path, run: Run) -> None:
        """values: what stands in braces. log: its output, of which only what follows counts."""
        self._port = int(values["port"])
        self._http, self._tcp, said = (filled(text, values) for text in (table.http, table.tcp, table.log))
        self._command = [filled(word, values) for word in table.command]
        self._said, self._run = said, run
        self._log = LogCounts(log, (said.encode(),)) if said else None
        self._before = self._log.read() if self._log is not None else {}
        self.missing = ""

    def look(self) -> bool:
        """Whether it is ready now. StudyError where another machine is to be asked."""
        self.missing = self._look()
        return not self.missing

    def _look(self) -> str:
        if self._log is not None and self._log.read() == self._before:
            return f"no line of its output has the words {self._said!r}"
        missing = _unanswered(self._http) if self._http else ""
        if not missing and self._tcp:
            host, port = parted(self._tcp, "80")
            missing = "" if accepts(here(host, int(port)).number, int(port)) else f"{self._tcp} accepts no connection"
        missing = missing or (self._failed() if self._command else "")
        return missing or ("" if accepts("127.0.0.1", self._port) else f"port {self._port} accepts no connection")

    def _failed(self) -> str:
        status, said = self._run(self._command), f"`{words(' '.join(self._command), 200)}`"
        if status < 0:  # our time is over; how it ended before says more
            return self.missing or f"{said} has not ended with 0"
        return f"{said} ended with exit status {status}" if status else ""


def _unanswered(url: str) -> str:
    try:
        status, _ = get(url, within_s=LOOK_S)
    except TimeoutError:
        return f"{url} gave no answer within {LOOK_S:g} s"
    except ERRORS as error:
        return f"{url} gave no answer ({words(error) or type(error).__name__})"
    return f"{url} answers with status {status}" if status >= TOO_HIGH else ""


def accepts(host: str, port: int) -> bool:
    """Whether a connection to this address is accepted."""
    try:
        socket.create_connection((host, port), timeout=1.0).close()
    except OSError:
        return False
    return True
