"""Write the day files of a watch (docs/watching.md), line by line: a kill loses at most one. One watcher per folder, by
a lock. Also gaps in the recording, from three clocks."""

import errno
import fcntl
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadframe.errors import MachineError, RunError
from loadframe.formats.json_text import JsonError, parse_json, write_json, write_numbers
from loadframe.progress import counted
from loadframe.system.files import PART, Folder, Whose, hold
from loadframe_watch.days import DAY, SCHEMA, TODAY, Budget, DayText, by_day, parse_line

LOCK, STATE = "watch.lock", "state.json"
TAIL_BYTES = 1 << 17
DAY_S = 86400
SYNC_EVERY_S = 300.0
"""A kill of the process loses nothing that was written; a power failure may lose this many seconds."""
LARGEST_STATE = 16 << 20
PRIVATE, MOST_NAMES = 0o600, 10_000
MOST_LINES = 1 << 53
"""A line number from here on is invalid."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
Numbers = Mapping[str, Mapping[str, float]]
NONE: Numbers = {}


class Clocks:
    """Tests and simulated days have their own."""

    def wall(self) -> float:
        """Seconds since 1970; may be set back or forth."""
        return time.time()

    def boot(self) -> float:
        """CLOCK_BOOTTIME: runs on while the machine is suspended."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def monotonic(self) -> float:
        """CLOCK_MONOTONIC: stands still while it is suspended."""
        return time.monotonic()


class Journal:
    """The folder, open for writing. RunError where another watcher has it, MachineError where it cannot be written."""

    def __init__(self, folder: Path, clocks: Clocks) -> None:
        self.folder, self._clocks = folder, clocks
        self.n = 0
        self.written_bytes = 0
        self.lost_lines, self.lost_since_s = 0, 0.0
        self._day, self._day_number = "", -1
        self._descriptor: int | None = None
        self._torn = False
        self._synced_s = clocks.monotonic()
        self.files = Folder(folder, Whose.OURS, what="watch folder")
        try:
            self.files.make_private(
                lambda name: name in (LOCK, STATE) or any(row.fullmatch(name) for row in (DAY, PART))
            )
            self.files.remove_torn()
            self._lock = self.files.appending(LOCK, PRIVATE)
        except OSError as error:
            raise MachineError(
                f"The watch folder {folder} cannot be written: {error.strerror}", remedy="Name another with --folder."
            ) from error
        try:
            hold(self._lock)
        except OSError as error:
            os.close(self._lock)
            raise RunError(
                f"Another watcher writes to {folder}", remedy=f"`fuser -v {folder / LOCK}` shows it; or use --folder."
            ) from error
        self.last = self._last_line()

    def write(self, kind: str, fields: Mapping[str, Any], numbers: Numbers = NONE, *, durable: bool = False) -> bool:
        """False if the disk does not take the line: it is counted as lost. numbers: tables, in six digits."""
        at_s = self._clocks.wall()
        number = int(at_s // DAY_S)
        if number != self._day_number or self._descriptor is None:
            self._close_day()
            self._day, self._day_number = time.strftime("%Y-%m-%d", time.gmtime(at_s)), number
            self._open_day()
        self.n += 1
        known = {"n": self.n, "kind": kind, "at_s": round(at_s, 3), "up_s": round(self._clocks.boot(), 3)}
        line = write_json({**known, **fields})[:-1]
        for name, values in numbers.items():
            line += f', "{name}": {write_numbers(values)}'
        text = f"{line}}}\n".encode()
        if not self._append(text):
            self.n -= 1
            self.lost_since_s = self.lost_since_s if self.lost_lines else at_s
            self.lost_lines += 1
            return False
        self.written_bytes += len(text)
        now_s = self._clocks.monotonic()
        if self._descriptor is not None and (durable or now_s - self._synced_s >= SYNC_EVERY_S):
            self._synced_s = now_s
            with suppress(OSError):  # the next write reports what is wrong with the disk
                os.fdatasync(self._descriptor)
        return True

    def new_day(self) -> bool:
        return self._clocks.wall() // DAY_S != self._day_number

    def days(self) -> list[str]:
        with suppress(OSError):  # an unreadable folder shows at the next write
            return [name for name in self.files.names(MOST_NAMES) if DAY.fullmatch(name)]
        return []

    def ended_days(self) -> list[Path]:
        return [self.folder / name for name in self.days() if name.endswith(TODAY) and name[:10] != self._day]

    def forget(self, keep_days: int, keep_bytes: int) -> tuple[list[str], int]:
        """Remove the oldest days beyond these bounds; returns them and their bytes. Days are counted by files and not
        by the clock: setting it to another year removes nothing."""
        removed, freed, files = list[str](), 0, by_day(self.days())
        sizes = {name: self.files.state_of(name)[0] for names in files.values() for name in names}
        left = sum(sizes.values())
        with suppress(OSError):
            for day, names in files.items():
                if day == self._day or (len(files) - len(removed) <= keep_days and left <= keep_bytes):
                    continue
                for name in names:
                    self.files.remove(name)
                    left, freed = left - sizes[name], freed + sizes[name]
                removed.append(day)
        return removed, freed

    def keep(self, state: Mapping[str, Any]) -> bool:
        """Write what was learned, atomically; False where the disk does not take it."""
        try:
            self.files.replace(STATE, write_json({"schema": SCHEMA, "n": self.n, **state}).encode(), mode=PRIVATE)
        except OSError:
            return False
        return True

    def kept(self) -> tuple[dict[str, Any] | None, str]:
        """What was learned before, None where there is none or it is unusable; and what is wrong with it, in words."""
        try:
            data = parse_json(self.files.read(STATE, LARGEST_STATE))
        except FileNotFoundError:
            return None, ""
        except RunError as error:
            return None, error.fact
        except (OSError, JsonError) as error:
            return None, str(getattr(error, "strerror", None) or error)[:100]
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            return None, f"it is not a state of {SCHEMA}"
        return data, ""

    def close(self) -> None:
        self._close_day()
        os.close(self._lock)

    def _open_day(self) -> None:
        for _ in range(2):
            try:
                descriptor = self.files.appending(f"{self._day}{TODAY}", PRIVATE)
                fcntl.flock(descriptor, fcntl.LOCK_SH)  # so that it is not compacted
                status = os.fstat(descriptor)
                if status.st_nlink == 0:  # it has just been compacted
                    os.close(descriptor)
                    continue
                self._torn = status.st_size > 0 and os.pread(descriptor, 1, status.st_size - 1) != b"\n"
            except (OSError, RunError):  # the line is lost, and counted
                return
            self._descriptor = descriptor
            return

    def _close_day(self) -> None:
        if self._descriptor is not None:
            with suppress(OSError):
                os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def _append(self, text: bytes) -> bool:
        if self._descriptor is None:
            return False
        whole = b"\n" + text if self._torn else text
        try:
            done = os.write(self._descriptor, whole)
        except OSError as error:
            if error.errno not in FULL:
                raise
            return False
        if done == len(whole):
            self._torn = False
            return True
        try:
            os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - done)
        except OSError:
            self._torn = True
        return False

    def _last_line(self) -> tuple[int, float, float] | None:
        """(n, at_s, up_s); None in a new folder. Sets n."""
        lines: list[tuple[int, float, float]] = []
        names = self.days()
        for name in [name for name in names if name.endswith(TODAY)] or names[-1:]:
            if name.endswith(TODAY):
                start = max(0, self.files.state_of(name)[0] - TAIL_BYTES)
                text: Iterable[bytes] = self.files.read_from(name, start, TAIL_BYTES).splitlines(keepends=True)
            else:
                text = DayText(self.files, name, Budget(self.folder))
            lines += [(line.n, line.at_s, line.up_s) for line in map(parse_line, text) if line is not None]
        last = max(lines, default=None)
        kept, _ = self.kept()
        number = kept.get("n") if kept is not None else None
        self.n = max(last[0] if last else 0, number if type(number) is int and number < MOST_LINES else 0)
        return last


SUSPENDED_S = 1.0
"""CLOCK_BOOTTIME ahead of CLOCK_MONOTONIC by this: the machine slept. They are read one after the other."""
SET_S = 2.0
"""The wall clock ahead of or behind CLOCK_BOOTTIME: NTP slews by 500 ppm, which is 0.15 s in five minutes."""
LATE = 2.0
"""There is a gap where more than this many intervals are missing."""


@dataclass(frozen=True, slots=True)
class Gap:
    """from_s, to_s: wall clock; seconds: of CLOCK_BOOTTIME, or by how much a clock was set."""

    from_s: float
    to_s: float
    seconds: float
    reason: str
    words: str

    def as_record(self) -> dict[str, Any]:
        return {"from_s": round(self.from_s, 3), "to_s": round(self.to_s, 3), "seconds": round(self.seconds, 3),
                "reason": self.reason, "words": self.words}  # fmt: skip


class Gaps:
    def __init__(self, clocks: Clocks, interval_s: float) -> None:
        self._clocks, self._interval_s = clocks, interval_s
        self._last = self._read()

    def look(self) -> list[Gap]:
        last, now = self._last, self._read()
        self._last = now
        wall, boot, monotonic = now[0] - last[0], now[1] - last[1], now[2] - last[2]
        gaps = []
        if boot - monotonic > SUSPENDED_S:
            slept = boot - monotonic
            gaps.append(Gap(now[0] - boot, now[0], boot, "suspended", f"the machine was suspended for {slept:.0f} s"))
        elif boot > (1 + LATE) * self._interval_s:
            words = f"the watcher got no CPU, or was stopped, for {boot:.0f} s"
            gaps.append(Gap(now[0] - boot, now[0], boot, "late", words))
        if abs(wall - boot) > SET_S:
            by = wall - boot
            words = f"the wall clock was set {'forward' if by > 0 else 'back'} by {abs(by):.0f} s"
            gaps.append(Gap(last[0], now[0], by, "clock set", words))
        return gaps

    def _read(self) -> tuple[float, float, float]:
        return self._clocks.wall(), self._clocks.boot(), self._clocks.monotonic()


def since_last(last: tuple[int, float, float] | None, same_boot: bool, clocks: Clocks) -> Gap | None:
    """The gap when a watch begins again in its folder."""
    if last is None:
        return None
    _, at_s, up_s = last
    now_s, boot_s = clocks.wall(), clocks.boot()
    seconds = boot_s - up_s if same_boot and boot_s >= up_s else max(0.0, now_s - at_s)
    why = "the watcher did not run" if same_boot else "the machine, or the watcher, did not run"
    return Gap(at_s, now_s, seconds, "stopped", f"{why} for {seconds:.0f} s")


def lost_lines(lines: int, since_s: float, now_s: float) -> Gap:
    """since_s, now_s: wall clock."""
    words = f"{counted(lines, 'line')} could not be written: the disk is full, or fails"
    return Gap(since_s, now_s, now_s - since_s, "disk full", words)
