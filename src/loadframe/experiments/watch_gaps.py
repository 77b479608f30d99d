"""Where nothing was recorded, and why: told from three clocks (docs/watching.md). Light: the lasting process imports
it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loadframe.experiments.watch_journal import Clocks
from loadframe.progress import counted

SUSPENDED_S = 1.0
"""CLOCK_BOOTTIME ahead of CLOCK_MONOTONIC by this: the machine slept. They are read one after the other."""
SET_S = 2.0
"""The wall clock ahead of or behind CLOCK_BOOTTIME: NTP slews by 500 ppm, which is 0.15 s in five minutes."""
LATE = 2.0
"""Intervals."""


@dataclass(frozen=True, slots=True)
class Gap:
    """from_s, to_s: wall clock; seconds: CLOCK_BOOTTIME, of a clock that was set by how much."""

    from_s: float
    to_s: float
    seconds: float
    reason: str
    words: str

    def as_record(self) -> dict[str, Any]:
        """Of a line `gap`."""
        return {"from_s": round(self.from_s, 3), "to_s": round(self.to_s, 3), "seconds": round(self.seconds, 3),
                "reason": self.reason, "words": self.words}  # fmt: skip


class Gaps:
    """Between one look at the clocks and the next."""

    def __init__(self, clocks: Clocks, interval_s: float) -> None:
        self._clocks, self._interval_s = clocks, interval_s
        self._last = self._read()

    def look(self) -> list[Gap]:
        """What came between this look and the last one."""
        last, now = self._last, self._read()
        self._last = now
        wall, boot, monotonic = now[0] - last[0], now[1] - last[1], now[2] - last[2]
        found = []
        if boot - monotonic > SUSPENDED_S:
            slept = boot - monotonic
            found.append(Gap(now[0] - boot, now[0], boot, "suspended", f"the machine was suspended for {slept:.0f} s"))
        elif boot > (1 + LATE) * self._interval_s:
            words = f"the watcher got no CPU, or was stopped, for {boot:.0f} s"
            found.append(Gap(now[0] - boot, now[0], boot, "late", words))
        if abs(wall - boot) > SET_S:
            by = wall - boot
            words = f"the wall clock was set {'forward' if by > 0 else 'back'} by {abs(by):.0f} s"
            found.append(Gap(last[0], now[0], by, "clock set", words))
        return found

    def _read(self) -> tuple[float, float, float]:
        return self._clocks.wall(), self._clocks.boot(), self._clocks.monotonic()


def since_last(last: tuple[int, float, float] | None, same_boot: bool, clocks: Clocks) -> Gap | None:
    """The gap between the last line of a folder and now, when a watch begins again in it."""
    if last is None:
        return None
    _, at_s, up_s = last
    now_s, boot_s = clocks.wall(), clocks.boot()
    seconds = boot_s - up_s if same_boot and boot_s >= up_s else max(0.0, now_s - at_s)
    why = "the watcher did not run" if same_boot else "the machine, or the watcher, did not run"
    return Gap(at_s, now_s, seconds, "stopped", f"{why} for {seconds:.0f} s")


def lost_lines(lines: int, since_s: float, now_s: float) -> Gap:
    """Of lines that the disk did not take. since_s, now_s: wall clock."""
    words = f"{counted(lines, 'line')} could not be written: the disk is full, or fails"
    return Gap(since_s, now_s, now_s - since_s, "disk full", words)


def absent(since: Mapping[str, float], clocks: Clocks) -> Gap:
    """Of a service that is back. since: wall and boot when it went."""
    seconds = clocks.boot() - since["boot"]
    return Gap(since["wall"], clocks.wall(), seconds, "target absent", f"the service was not there for {seconds:.0f} s")
