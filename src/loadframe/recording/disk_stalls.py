"""A disk that has requests and ends none: virtual disks and those of the network stand still for seconds now and then.
What is measured meanwhile says nothing of the server."""

from itertools import pairwise

from loadframe.errors import RecordingError
from loadframe.recording import procfs
from loadframe.recording.derivation import Metrics
from loadframe.recording.procfs import DiskCounters
from loadframe.recording.windows import Window

SOURCE = "system:/proc/diskstats"
BUSY = 0.9
"""Of a stretch: the kernel counts the time with a request outstanding in steps of a clock tick, 1 to 10 ms."""
FAR_BEYOND = 100.0
"""A stall is this many times as long as a request keeps the disk busy at other times: a slow disk is none."""

Course = list[tuple[float, DiskCounters]]
"""A disk at each tick."""


def disk_stall(window: Window) -> Metrics:
    """The longest stretch of the window in which the disk that ended most requests had some and ended none; 0 where
    that is not far beyond what a request takes otherwise, around the window, too. A flush alone that does not end is
    not seen: the kernel does not count it as outstanding. RecordingError where no disk was recorded
    twice, or ended a request."""
    stretch_s, longest_s, calm_ms, requests = 0.0, 0.0, 0, 0
    for (before_s, before), (after_s, after) in pairwise(_busiest(window)):
        ended, busy_ms = _ended(after) - _ended(before), after.busy_ms - before.busy_ms
        if ended == 0 and _waits(before, after, after_s - before_s):
            stretch_s += max(0.0, min(after_s, window.end_s) - max(before_s, window.start_s))
            longest_s = max(longest_s, stretch_s)
            continue
        stretch_s = 0.0
        if ended >= 0 and busy_ms >= 0:  # else it was reset: it tells nothing
            calm_ms, requests = calm_ms + busy_ms, requests + ended
    if requests == 0:
        raise RecordingError("No disk ended a request.")
    far_beyond = 1000 * longest_s * requests > FAR_BEYOND * calm_ms
    return {"system.disk.stall_ms": 1000 * longest_s if far_beyond else 0.0}


def _busiest(window: Window) -> Course:
    """The disk that ended most requests around the window, of those that were there all the time. Of all ticks but two
    its own lines alone are read: a long window has thousands."""
    read = [(tick.monotonic_s, tick.entries[SOURCE]) for tick in window.around if SOURCE in tick.entries]
    if len(read) < 2:
        raise RecordingError("No disk was recorded twice.")
    first, last = (procfs.parse_diskstats(text) for _, text in (read[0], read[-1]))
    grown = {name: _ended(last[name]) - _ended(first[name]) for name in last if name in first}
    for name in sorted(grown, key=lambda each: -grown[each]):
        lines = ((at_s, procfs.parse_diskstats(_line(text, name.encode()))) for at_s, text in read)
        course = [(at_s, disks[name]) for at_s, disks in lines if name in disks]
        if len(course) == len(read):
            return course
    raise RecordingError("No disk was recorded all the time.")


def _line(text: bytes, name: bytes) -> bytes:
    """That of a disk; empty where it has none."""
    at = text.find(b" %b " % name)
    return text[text.rfind(b"\n", 0, at) + 1 :].partition(b"\n")[0] if at >= 0 else b""


def _waits(before: DiskCounters, after: DiskCounters, seconds: float) -> bool:
    """Whether a disk that ended none had a request all the time: at both ends, or by the time that it was busy, which
    kernels before 5.18 count where the request ends."""
    busy_ms = after.busy_ms - before.busy_ms
    return min(before.in_flight, after.in_flight) > 0 or busy_ms >= BUSY * 1000 * seconds


def _ended(disk: DiskCounters) -> int:
    return disk.reads + disk.writes + (disk.discards or 0) + (disk.flushes or 0)
