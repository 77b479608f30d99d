"""progress.jsonl: what a run is doing now. Lines are not fsynced, as that would disturb the disk that is measured;
the last ones may be lost.

The writer holds a lock on the file (files.hold) while its run is in progress. The lock ends with the process, also
after SIGKILL, so whoever reads the file can tell a run in progress from one that was killed."""

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
    """An event. at: wall clock, ISO 8601. phase: `words`, about `steps` steps. say: `words`. step: a step begins, in a
    treatment at a level, for `purpose`; its load lasts about `seconds`. recorder: its cost so far: CPU-seconds per
    second, peak resident memory, late or missed ticks."""

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
    """Writes the events of a run to an open, locked file, which it takes over."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.lost = 0
        """Lines that the disk did not take."""
        self._end = weakref.finalize(self, os.close, descriptor)

    def tell(self, line: Told) -> None:
        """Append a line. Never raises OSError: the measurement reports a full disk."""
        try:
            os.write(self._descriptor, encode(SCHEMA, line) + b"\n")
        except OSError:
            self.lost += 1

    def close(self) -> None:
        self._end()
