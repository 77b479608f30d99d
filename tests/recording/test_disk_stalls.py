"""A disk that stands still is told from one that is slow, or idle."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from loadframe.recording import procfs
from loadframe.recording.derivation import window_of
from loadframe.recording.frames import Facts, Tick
from loadframe.recording.metrics import window_metrics
from loadframe.recording.system_metrics import disk_stall

FACTS = Facts(0.1, 100, 2, 4096, boottime_offset_s=5.0, started_s=0.0, started_wall_s=1e9)
RECORDED = Path(__file__).parents[1] / "data/recorded/disk-stall.txt"
"""/proc/diskstats of a virtual disk around a window of half a second: seconds from its start, then the disk's line. It
is one that a queue in SQLite was to commit in, of a machine that had been started minutes before."""
STALL = "system.disk.stall_ms"
Line = tuple[str, int, int]
"""A disk, the writes that it has ended, and how long it was busy (ms)."""


def ticked(ticks: Sequence[tuple[float, bytes]]) -> list[Tick]:
    return [Tick(at_s, at_s + 1e9, {"system:/proc/diskstats": text}, FACTS) for at_s, text in ticks]


def stall_ms(ticks: Sequence[tuple[float, bytes]], start_s: float, end_s: float) -> float | None:
    return window_metrics(ticked(ticks), start_s, end_s).get(STALL)


def disks(*lines: Line) -> bytes:
    text = b"8 0 %b 0 0 0 0 %d 0 0 0 0 %d 0 0 0 0 0 0 0\n"
    return b"".join(text % (name.encode(), writes, busy_ms) for name, writes, busy_ms in lines)


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
    ],
)
def test_what_is_no_stall(writes: Sequence[int], busy_ms: Sequence[int], why: str) -> None:
    assert stall_ms(each_tenth(writes, busy_ms), 0.0, len(writes) / 10) == 0, why


def full(writes: int, busy_ms: int, in_flight: int = 0, discards: int = 0) -> bytes:
    return b"254 0 vda 0 0 0 0 %d 0 0 0 %d %d 0 %d 0 0 0 0 0\n" % (writes, in_flight, busy_ms, discards)


def test_a_disk_that_discards_ends_requests() -> None:
    course = [(0, 0, 0), (900, 40, 0), *((900, 40 + 100 * number, 30 * number) for number in range(1, 9))]
    ticks = [(number / 10, full(writes, busy, discards=each)) for number, (writes, busy, each) in enumerate(course)]
    assert stall_ms(ticks, 0.0, 0.9) == 0


def test_a_kernel_that_counts_the_time_when_a_request_ends_says_that_there_is_one() -> None:
    """Linux before 5.18."""
    course = [(0, 0, 0), (900, 40, 1), *[(900, 40, 1)] * 6, (1800, 680, 0), (2700, 720, 0)]
    ticks = [(number / 10, full(*each)) for number, each in enumerate(course)]
    assert stall_ms(ticks, 0.0, 0.9) == pytest.approx(600)


def test_counters_that_begin_anew_hide_no_stall() -> None:
    ticks = each_tenth([900, 0, 0, 900, 900, 900], [40, 100, 100, 40, 40, 40])
    again = [(at_s, disks(("vda", 900, 40 * number))) for number, (at_s, _) in enumerate(ticks) if at_s > 0.35]
    assert stall_ms([*ticks[:4], *again], 0.0, 0.6) == pytest.approx(200)


def test_of_a_long_window_the_lines_of_one_disk_alone_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """All the disks of a large machine at each tick would take seconds."""
    others = b"".join(b"259 0 nvme%dn1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 0 0 0\n" % number for number in range(100))
    ticks = [(number / 10, others + full(900 * number, 40 * number)) for number in range(3000)]
    parsed: list[int] = []
    real = procfs.parse_diskstats

    def counted(text: bytes) -> dict[str, procfs.DiskCounters]:
        parsed.append(text.count(b"\n") or 1)
        return real(text)

    monkeypatch.setattr(procfs, "parse_diskstats", counted)
    made = window_of(ticked(ticks), 0.0, 300.0)
    assert made is not None and disk_stall(made) == {STALL: 0.0}
    assert sum(parsed) == 2 * 101 + 3000


def test_only_the_disk_that_works_counts() -> None:
    ticks = [(0.1 * number, disks(("vda", 900 * number, 40 * number), ("vdb", 3, 100 * number))) for number in range(5)]
    assert stall_ms(ticks, 0.0, 0.4) == 0


def test_of_one_that_ends_nothing_at_other_times_nothing_is_told() -> None:
    assert stall_ms(each_tenth([0, 0, 0, 0], [100, 100, 100, 100]), 0.0, 0.4) is None


def test_of_no_disk_nothing_is_told() -> None:
    assert stall_ms([(0.0, b""), (0.1, b"")], 0.0, 0.1) is None


def test_a_line_that_is_cut_off_is_none_of_its_disk() -> None:
    whole = each_tenth([900, 900, 900], [40, 40, 40])
    cut_off = b" ".join(whole[1][1].split()[:9]) + b"\n"
    assert stall_ms([whole[0], (whole[1][0], cut_off), *whole[2:]], 0.0, 0.3) is None
