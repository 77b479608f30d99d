"""The day files of a watch as they are written (docs/watching.md): one line at a time, so that a kill loses at most the
line in progress. One watcher per folder, by a lock. Light: the lasting process imports it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from loadframe.errors import MachineError, RunError
from loadframe.formats.json_text import JsonError, parse_json, write_json, write_numbers
from loadframe.formats.watch_days import DAY, SCHEMA, TODAY, parse_line, read_day

LOCK, STATE = "watch.lock", "state.json"
TAIL_BYTES = 1 << 17
DAY_S = 86400
SYNC_EVERY_S = 300.0
"""A kill of the process loses nothing that was written; what a power failure may lose is this much."""
LARGEST_STATE = 16 << 20
MOST_LINES = 1 << 53
"""A number of a line from which on it was never one."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)


class Clocks(Protocol):
    """The clocks of a watch, and its sleep; tests and simulated days have their own."""

    def wall(self) -> float:
        """Seconds since 1970; it may be set."""

    def boot(self) -> float:
        """CLOCK_BOOTTIME: goes on while the machine is suspended."""

    def monotonic(self) -> float:
        """CLOCK_MONOTONIC: stands still meanwhile."""


@dataclass(frozen=True, slots=True)
class RealClocks:
    """Those of this machine."""

    def wall(self) -> float:
        return time.time()

    def boot(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def monotonic(self) -> float:
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
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise MachineError(
                f"The watch folder {folder} cannot be written: {error.strerror}", remedy="Name another with --folder."
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise RunError(
                f"Another watcher writes to {folder}", remedy=f"`fuser -v {folder / LOCK}` shows it; or use --folder."
            ) from error
        self.last = self._last_line()

    def write(
        self,
        kind: str,
        fields: Mapping[str, Any],
        numbers: Mapping[str, Mapping[str, float]] | None = None,
        *,
        durable: bool = False,
    ) -> bool:
        """Append a line; False where the disk does not take it: it is lost, and counted. numbers: fields that are
        tables of numbers, of which six digits are kept."""
        at_s = self._clocks.wall()
        self._turn_to(at_s)
        self.n += 1
        known = {"n": self.n, "kind": kind, "at_s": round(at_s, 3), "up_s": round(self._clocks.boot(), 3)}
        line = write_json({**known, **fields})[:-1]
        for name, values in (numbers or {}).items():
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
            with suppress(OSError):  # the next write says what is wrong with the disk
                os.fdatasync(self._descriptor)
        return True

    def new_day(self) -> bool:
        """Whether the next line begins another file than the last one."""
        return self._clocks.wall() // DAY_S != self._day_number

    def ended_days(self) -> list[Path]:
        """Files of days that are over and not compacted yet."""
        with suppress(OSError):
            names = sorted(entry.name for entry in self.folder.iterdir())
            return [self.folder / n for n in names if DAY.fullmatch(n) and n.endswith(TODAY) and n[:10] != self._day]
        return []

    def forget(self, keep_days: int, keep_bytes: int) -> tuple[list[str], int]:
        """Remove the oldest days until no more than these are left; (the days, their bytes). Days are counted by what
        is there and not by the clock: one that is set to another year removes nothing. The day in progress stays."""
        files: dict[str, list[tuple[Path, int]]] = {}
        removed, freed = list[str](), 0
        with suppress(OSError):  # a folder that cannot be read is said by the next line that it does not take
            for entry in os.scandir(self.folder):
                if DAY.fullmatch(entry.name):
                    files.setdefault(entry.name[:10], []).append((Path(entry.path), entry.stat().st_size))
            left = sum(size for one in files.values() for _, size in one)
            for day in sorted(files):
                if day == self._day or (len(files) - len(removed) <= keep_days and left <= keep_bytes):
                    continue
                for path, size in files[day]:
                    path.unlink()
                    left, freed = left - size, freed + size
                removed.append(day)
        return removed, freed

    # --- what was learned ---

    def keep(self, state: Mapping[str, Any]) -> bool:
        """Write what was learned, whole or not at all; False where the disk does not take it."""
        aside = self.folder / f"{STATE}.tmp"
        try:
            aside.unlink(missing_ok=True)
            descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(write_json({"schema": SCHEMA, "n": self.n, **state}).encode())
                stream.flush()
                os.fsync(stream.fileno())
            aside.replace(self.folder / STATE)
        except OSError:
            with suppress(OSError):
                aside.unlink(missing_ok=True)
            return False
        return True

    def kept(self) -> tuple[dict[str, Any] | None, str]:
        """What was learned before, None where nothing was or it cannot be used; and what is wrong with it, in words."""
        try:
            descriptor = os.open(self.folder / STATE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as stream:
                data = parse_json(stream.read(LARGEST_STATE + 1))
        except FileNotFoundError:
            return None, ""
        except (OSError, JsonError) as error:
            return None, str(getattr(error, "strerror", None) or error)[:100]
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            return None, f"it is not a state of {SCHEMA}"
        return data, ""

    def close(self) -> None:
        """Let go of the folder."""
        self._close_day()
        os.close(self._lock)

    # --- inside ---

    def _turn_to(self, at_s: float) -> None:
        number = int(at_s // DAY_S)
        if number != self._day_number or self._descriptor is None:
            self._close_day()
            self._day, self._day_number = day_of(at_s), number
            self._open_day()

    def _open_day(self) -> None:
        path = self.folder / f"{self._day}{TODAY}"
        for _ in range(2):
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
                fcntl.flock(descriptor, fcntl.LOCK_SH)  # who compacts days leaves this one alone
                status = os.fstat(descriptor)
                if status.st_nlink == 0:  # it was compacted in this moment
                    os.close(descriptor)
                    continue
                self._torn = status.st_size > 0 and os.pread(descriptor, 1, status.st_size - 1) != b"\n"
            except OSError:
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
        """(n, at_s, up_s) of the last line that was written; None in a new folder. Sets n."""
        found: list[tuple[int, float, float]] = []
        names = sorted(entry.name for entry in self.folder.iterdir() if DAY.fullmatch(entry.name))
        for name in [each for each in names if each.endswith(TODAY)] or names[-1:]:
            path = self.folder / name
            lines = read_day(path) if not name.endswith(TODAY) else map(parse_line, _tail(path))
            found += [(line.n, line.at_s, line.up_s) for line in lines if line is not None]
        last = max(found, default=None)
        kept, _ = self.kept()
        told = kept.get("n") if kept is not None else None
        self.n = max(last[0] if last else 0, told if type(told) is int and told < MOST_LINES else 0)
        return last


def _tail(path: Path) -> list[bytes]:
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - TAIL_BYTES))
        return stream.read().splitlines(keepends=True)


def day_of(at_s: float) -> str:
    """The day in UTC, as files are named by it."""
    year, month, day, *_ = time.gmtime(at_s)
    return f"{year:04d}-{month:02d}-{day:02d}"
