"""progress.jsonl: what a run is doing at this moment, for whoever watches it. It is no measurement: a line is not
fsynced, because an fsync between two steps would disturb the disk that is measured, and a line that the disk does not
take is lost.

The writer holds a lock on the file (files.hold) for as long as its run is in progress. The lock ends with the process,
also after SIGKILL, so whoever may read the file can tell a run in progress from one that was killed, and cannot make
one look like the other.
"""

import os
import weakref
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from loadframe.runs.formats import encode

PROGRESS = "progress.jsonl"
SCHEMA = "progress"

Event = Literal["phase", "say", "step", "recorder"]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True, slots=True)
class Told:
    """One line. at: the wall clock, in ISO 8601.

    phase: `words`, of about `steps` steps. say: `words`. step: one begins, in a treatment at a level, for `purpose`;
    its load lasts for about `seconds`. recorder: what recording has cost since it began: CPU-seconds per second, peak
    resident memory, ticks that were late or missed.
    """

    event: Event
    words: str = ""
    steps: int = 0
    treatment: str = ""
    level: float | None = None
    seconds: float | None = None
    purpose: str = ""
    cpu_share: float | None = None
    rss_bytes: float | None = None
    late_ticks: int | None = None
    at: str = field(default_factory=_now)


class ProgressLog:
    """Writes the lines of one run. Takes over an open file, which is held until it is closed or the process ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.lost = 0
        """Lines that the disk did not take."""
        self._end = weakref.finalize(self, os.close, descriptor)

    def tell(self, line: Told) -> None:
        """Append a line. Never raises OSError: a full disk is told by what is measured."""
        try:
            os.write(self._descriptor, encode(SCHEMA, line) + b"\n")
        except OSError:
            self.lost += 1

    def close(self) -> None:
        """The run is no longer in progress. Idempotent."""
        self._end()
