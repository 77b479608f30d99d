"""A disk that has requests and ends none: virtual disks and those of the network stand still for seconds now and then.
What is measured meanwhile says nothing of the server."""

from __future__ import annotations

from itertools import pairwise

from loadframe.errors import RecordingError
from loadframe.recording import procfs
from loadframe.recording.derivation import Metrics, growth
from loadframe.recording.procfs import DiskCounters
from loadframe.recording.windows import Window

SOURCE = "system:/proc/diskstats"
BUSY = 0.9
"""Of a stretch: the kernel counts the time with a request outstanding in steps of a clock tick, 1 to 10 ms."""
FAR_BEYOND = 100.0
"""A stall is this many times as long as a request keeps the disk busy at other times: a slow disk is none."""


def disk_stall(window: Window) -> Metrics:
    """The longest stretch of the window in which the disk that ended most requests had some and ended none; 0 where
    that is not far beyond what a request takes otherwise, around the window, too. A flush alone that does not end is
    not seen: the kernel does not count it as outstanding. RecordingError where no disk was recorded twice."""
    read = [
        (tick.monotonic_s, procfs.parse_diskstats(tick.entries[SOURCE]))
        for tick in window.around
        if SOURCE in tick.entries
    ]
    if len(read) < 2:
        raise RecordingError("No disk was recorded twice.")
    first, last = read[0][1], read[-1][1]
    names = [name for name in last if all(name in disks for _, disks in read)]
    if not names:
        raise RecordingError("No disk was recorded all the time.")
    name = max(names, key=lambda each: _ended(last[each]) - _ended(first[each]))
    stalls, stretch_s, calm_ms = [0.0], 0.0, 0.0
    for (before_s, before), (after_s, after) in pairwise((at_s, disks[name]) for at_s, disks in read):
        busy_ms = growth(before.busy_ms, after.busy_ms)
        if _ended(after) > _ended(before) or busy_ms < BUSY * 1000 * (after_s - before_s):
            calm_ms, stretch_s = calm_ms + busy_ms, 0.0
            continue
        stretch_s += max(0.0, min(after_s, window.end_s) - max(before_s, window.start_s))
        stalls.append(stretch_s)
    requests, longest_ms = _ended(last[name]) - _ended(first[name]), 1000 * max(stalls)
    far_beyond = longest_ms * requests > FAR_BEYOND * calm_ms and requests > 0
    return {"system.disk.stall_ms": longest_ms if far_beyond else 0.0}


def _ended(disk: DiskCounters) -> int:
    return disk.reads + disk.writes + (disk.flushes or 0)
