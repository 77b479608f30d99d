"""A disk that stands still is told from one that is slow, or idle."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from loadframe.recording.frames import Facts, Tick
from loadframe.recording.metrics import window_metrics

FACTS = Facts(0.1, 100, 2, 4096, boottime_offset_s=5.0, started_s=0.0, started_wall_s=1e9)
RECORDED = Path(__file__).parents[1] / "data/recorded/disk-stall.txt"
"""/proc/diskstats of a virtual disk around a window of half a second: seconds from its start, then the disk's line. It
is one that a queue in SQLite was to commit in, of a machine that had been started minutes before."""
STALL = "system.disk.stall_ms"
Line = tuple[str, int, int]
"""A disk, the writes that it has ended, and how long it was busy (ms)."""


def stall_ms(ticks: Sequence[tuple[float, bytes]], start_s: float, end_s: float) -> float | None:
    made = [Tick(at_s, at_s + 1e9, {"system:/proc/diskstats": text}, FACTS) for at_s, text in ticks]
    return window_metrics(made, start_s, end_s).get(STALL)


def disks(*lines: Line) -> bytes:
    return b"".join(b"8 0 %b 0 0 0 0 %d 0 0 0 0 %d 0 0 0 0 0 0 0\n" % (name.encode(), *rest) for name, *rest in lines)


def each_tenth(writes: Sequence[int], busy_ms: Sequence[int]) -> list[tuple[float, bytes]]:
    """A disk that ends so many writes, and is busy for so long, in each tenth of a second."""
    rows = [(sum(writes[:count]), sum(busy_ms[:count])) for count in range(len(writes) + 1)]
    return [(number / 10, disks(("vda", *row))) for number, row in enumerate(rows)]


def test_a_stall_that_was_seen_is_as_long_as_it_was_within_the_window() -> None:
    rows = [line.split(maxsplit=1) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    ticks = [(float(at_s), line.encode() + b"\n") for at_s, line in rows]
    assert stall_ms(ticks, 0.0, 0.5) == pytest.approx(500)
    assert stall_ms(ticks, 0.0, 1.95) == pytest.approx(1600, abs=20)
    assert stall_ms(ticks, -1.0, -0.1) == 0


def test_one_tenth_without_an_end_is_a_stall_of_a_fast_disk() -> None:
    assert stall_ms(each_tenth([900, 0, 0, 900], [40, 100, 100, 40]), 0.0, 0.4) == pytest.approx(200)


@pytest.mark.parametrize(
    ("writes", "busy_ms", "why"),
    [
        ([1, 0, 0, 1, 0, 0], [100] * 6, "a slow one: a request takes as long at other times"),
        ([900, 0, 0, 900], [40, 0, 0, 40], "an idle one"),
        ([900, 1, 1, 900], [40, 100, 100, 40], "one that ends a few"),
        ([0, 0, 0, 0], [100, 100, 100, 100], "not known: it ended nothing at other times"),
    ],
)
def test_what_is_no_stall(writes: Sequence[int], busy_ms: Sequence[int], why: str) -> None:
    assert stall_ms(each_tenth(writes, busy_ms), 0.0, len(writes) / 10) == 0, why


def test_only_the_disk_that_works_counts() -> None:
    ticks = [(0.1 * number, disks(("vda", 900 * number, 40 * number), ("vdb", 3, 100 * number))) for number in range(5)]
    assert stall_ms(ticks, 0.0, 0.4) == 0


def test_of_no_disk_nothing_is_told() -> None:
    assert stall_ms([(0.0, b""), (0.1, b"")], 0.0, 0.1) is None
