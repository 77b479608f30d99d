"""Connections to PostgreSQL that wait for an answer for so long and no longer; libpq limits connecting alone."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psycopg import Connection

Waiting = Generator[Any, Any, Any]


@functools.cache
def patient(silence_s: float, clock: Callable[[], float] = time.monotonic) -> type[Connection[Any]]:
    """psycopg's Connection, which raises psycopg.OperationalError and is closed where the server has sent nothing for
    silence_s seconds. No statement_timeout is set for that: it would be a setting of ours in what we read, and a server
    that is stopped does not keep it. clock: seconds."""
    import psycopg

    class Patient(psycopg.Connection[Any]):
        def wait(self, gen: Any, *more: Any, **named: Any) -> Any:
            """psycopg resumes what it waits for at every interval, with 0 where nothing has come."""
            return super().wait(self._limited(gen), *more, **named)

        def _limited(self, waiting: Waiting) -> Waiting:
            heard_s, ready = clock(), None
            while True:
                try:
                    wanted = waiting.send(ready)
                except StopIteration as end:
                    return end.value
                ready = yield wanted
                if ready:
                    heard_s = clock()
                elif clock() - heard_s > silence_s:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"no answer within {silence_s:.0f} s") from TimeoutError()

    return Patient
