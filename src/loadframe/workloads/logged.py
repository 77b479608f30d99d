"""A stretch of an access log as it is replayed: which requests, and when, in memory of a bounded size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from loadframe.errors import StudyError
from loadframe.formats.access_log import Logged, lines, parse_line
from loadframe.workloads.arrivals import Schedule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_REQUESTS = 300_000
"""Of a stretch: 16 bytes each, beside the distinct ones."""
MOST_DISTINCT_BYTES = 32 << 20
"""Of the paths of a stretch, each counted once."""
SHORTEST_S = 1.0
"""No stretch is shorter: of a single request no rate is known."""
LATE_S = 60.0
"""A server logs a request when it ends: so much later than others that began with it a line may stand."""
Key = tuple[str, str, int]
"""Method, path and status."""


@dataclass(frozen=True)
class Stretch:
    """distinct: the requests, each once. offsets_s: from the first of them on, in rising order; numbers: of the
    requests among the distinct ones. span_s: how long it is, with the mean gap after the last one. lines: how many were
    read; unread: how many of them have no request. left_out: requests that are not replayed, by why. cut: why it is
    shorter than was asked for, "" where it is not."""

    distinct: tuple[Key, ...]
    offsets_s: NDArray[np.float64]
    numbers: NDArray[np.int64]
    span_s: float
    lines: int
    unread: int
    left_out: dict[str, int]
    cut: str

    def at_speed(self, speed: float, duration_s: float) -> Schedule:
        """When requests arrive, and which: the recording at this multiple of its speed, repeated once it is over."""
        import numpy as np

        once = self.span_s / speed
        times = max(1, int(np.ceil(duration_s / once)))
        offsets = (np.arange(times)[:, None] * once + self.offsets_s[None, :] / speed).ravel()
        inside = offsets < duration_s
        return Schedule(offsets[inside], np.tile(self.numbers, times)[inside])


@dataclass
class _Reading:
    """A log while it is read. begin_s: of the first line; until_s: what is later is not of the stretch."""

    skip_s: float
    span_s: float
    leave_out: Callable[[str], str]
    begin_s: float | None = None
    lines: int = 0
    unread: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    known: dict[Key, int] = field(default_factory=dict)
    known_bytes: int = 0
    moments: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    cut: str = ""

    def take(self, line: str | None) -> bool:
        """One line; False where no later one can be of the stretch."""
        self.lines += 1
        found = None if line is None else parse_line(line)
        if found is None:
            self.unread += bool(line is None or line.strip())
            return True
        if self.begin_s is None:
            self.begin_s = found.at_s
        since_s = found.at_s - self.begin_s - self.skip_s
        if not 0 <= since_s < self.span_s:
            return since_s < self.span_s + LATE_S
        if why := self.leave_out(found.method):
            self.left_out[why] = self.left_out.get(why, 0) + 1
            return True
        return self._keep(found, since_s)

    def _keep(self, found: Logged, since_s: float) -> bool:
        key = (found.method, found.path, found.status)
        more = 0 if key in self.known else len(found.path)
        if len(self.moments) == MOST_REQUESTS:
            self.cut = f"{MOST_REQUESTS:,} requests"
        elif self.known_bytes + more > MOST_DISTINCT_BYTES:
            self.cut = f"{MOST_DISTINCT_BYTES >> 20} MiB of distinct paths"
        if self.cut:
            return False
        self.known_bytes += more
        self.moments.append(since_s)
        self.whole.append(found.whole)
        self.numbers.append(self.known.setdefault(key, len(self.known)))
        return True


def read_stretch(path: Path, skip_s: float, span_s: float, seed: int, leave_out: Callable[[str], str]) -> Stretch:
    """The requests of a log from skip_s after its first line on, for span_s. Where the log has whole seconds alone,
    each is somewhere within its second, by the seed. leave_out: why a method is not replayed, "" where it is.
    StudyError where the log cannot be read, or has no request there."""
    import numpy as np

    reading = _Reading(skip_s, span_s, leave_out)
    try:
        for line in lines(path):
            if not reading.take(line):
                break
    except (OSError, ValueError) as error:
        raise StudyError(
            f"The access log {str(path)!r} cannot be read: {getattr(error, 'strerror', None) or error}.",
            remedy="Give a log of nginx or Apache, as it is or packed by gzip (workload.options.file).",
        ) from error
    if not reading.moments:
        left = "; ".join(f"{count:,} {why}" for why, count in reading.left_out.items())
        raise StudyError(
            f"The access log {str(path)!r} has no request to replay: {reading.unread:,} of {reading.lines:,} lines "
            f"have none that can be read{f'; left out: {left}' if left else ''}.",
            remedy="Give a log in the common or combined format, or one with $msec, and another skip_minutes.",
        )
    moments, whole = np.array(reading.moments), np.array(reading.whole)
    moments = moments + np.where(whole, np.random.default_rng(seed).random(len(moments)), 0.0)
    order = np.argsort(moments, kind="stable")
    moments = moments[order]
    return Stretch(
        distinct=tuple(reading.known),
        offsets_s=moments - moments[0],
        numbers=np.array(reading.numbers, dtype=np.int64)[order],
        span_s=max(SHORTEST_S, float(moments[-1] - moments[0]) * (1 + 1 / len(moments))),
        lines=reading.lines,
        unread=reading.unread,
        left_out=dict(reading.left_out),
        cut=reading.cut,
    )
