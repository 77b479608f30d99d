"""Further work of the first process: beginning and ending scans, and the statistics lines of all processes."""

import json
import os
import time
from collections.abc import Callable

from loadframe_index import board as slot
from loadframe_index.board import DB_APPLY, DONE, ENTRIES, SCAN, TAKEN, Board, Directory, Frontier
from loadframe_index.config import STATISTICS, Config
from loadframe_index.store import Store

ASKING = (slot.GET_INFO_DB, DB_APPLY)
LINE_EVERY_S = 0.2
"""So that even a short window has several lines."""
LOOK_EVERY_S, LOOK_SOONEST_S, LOOK_SHARE = 0.02, 0.001, 0.02
"""Seconds between looks, at most and at least, and their share of the last scan's time: between two scans every stage
is idle, which must not look like a slow source."""


class Coordinator:
    def __init__(
        self, config: Config, board: Board, frontier: Frontier, store: Store, now_ns: Callable[[], int]
    ) -> None:
        self._config, self._board, self._frontier, self._store, self._now_ns = config, board, frontier, store, now_ns
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._lines = os.open(config.path(STATISTICS), flags, 0o600)
        self._began_s = self._scan_began_s = self._line_s = time.monotonic()
        self._scan_began_ns = 0
        self._scanning = False
        self._scans: list[dict[str, float]] = []
        self._forgotten = self._failed = 0

    def look(self) -> float:
        """Seconds until the next look."""
        if self._scanning and self._ended():
            self._end_scan()
        if not self._scanning and not self._board.words[slot.STOP]:
            self._begin()
        if time.monotonic() - self._line_s >= LINE_EVERY_S:
            self._print()
        last_s = self._scans[-1]["seconds"] if self._scans else LOOK_EVERY_S / LOOK_SHARE
        return min(LOOK_EVERY_S, max(LOOK_SOONEST_S, LOOK_SHARE * last_s))

    def end(self) -> None:
        """The last lines and the result. Idempotent."""
        if self._lines >= 0:
            self._print()
            os.close(self._lines)
            self._lines = -1
            counts = {**self._board.counted(), "forgotten": self._forgotten}
            applied = int(self._board.sum(DB_APPLY, ENTRIES))
            result = {"scans": self._scans, "seconds": time.monotonic() - self._began_s, "applied": applied, **counts}
            self._config.write_result(result)

    def _begin(self) -> None:
        self._scan_began_ns, self._scan_began_s = self._now_ns(), time.monotonic()
        self._failed = self._board.counted()["failed"]
        self._board.words[slot.SCANS] += 1
        self._frontier.begin(Directory(b"", ()))
        self._scanning = True

    def _ended(self) -> bool:
        board = self._board
        # from the first stage on: one that has done all that it was given gives no more
        return (
            board.all_listed()
            and not board.sum(SCAN, slot.HELD)
            and all(board.sum(stage, slot.GIVEN) == board.sum(stage + 1, DONE) for stage in range(SCAN, DB_APPLY))
        )

    def _end_scan(self) -> None:
        """What a whole scan did not see is gone, unless the file system failed."""
        if self._board.counted()["failed"] == self._failed:
            self._forgotten += self._store.forget_before(self._scan_began_ns)
        applied = self._board.sum(DB_APPLY, ENTRIES) - sum(scan["entries"] for scan in self._scans)
        self._scans.append({"entries": applied, "seconds": time.monotonic() - self._scan_began_s})
        self._scanning = False
        if not self._config.seconds:
            self._board.words[slot.STOP] = 1

    def _print(self) -> None:
        now = self._line_s = time.monotonic()
        processes = range(self._config.scanners)
        lines = (self._line(stage, process, now) for stage in range(len(slot.STAGES)) for process in processes)
        os.write(self._lines, "".join(f"{json.dumps(line)}\n" for line in lines).encode())

    def _line(self, stage: int, process: int, now: float) -> dict[str, object]:
        """See docs/pipelines.md. One for each process: one may be idle while another is blocked."""
        board, workers = self._board, list(self._board.workers(stage, process))
        spent = [sum(board.words[at + word] for at in workers) for word in (slot.IDLE_S, slot.BUSY_S, slot.BLOCKED_S)]
        for at in workers:
            spent[int(board.words[at + slot.STATE])] += max(0.0, now - board.words[at + slot.SINCE_S])
        taken, done = board.sum(stage, TAKEN, process), board.sum(stage, DONE, process)
        calling = (board.words[at + slot.ASKED_S] for at in workers)
        server_s = board.sum(stage, slot.SERVER_S, process) + sum(max(0.0, now - s) for s in calling if s)
        return {
            "stage": slot.STAGES[stage],
            "time": now,
            "process": process,
            "order": stage,
            "waiting": self._waiting(stage, process, taken),
            "current": int(max(0.0, taken - done)),
            "done": int(done),
            "entries": int(board.sum(stage, ENTRIES, process)),
            "idle": sum(board.words[at + slot.STATE] == slot.IDLE for at in workers),
            "workers": len(workers),
            "queue": self._config.waiting if stage else None,
            "idle_s": round(spent[slot.IDLE], 4),
            "blocked_s": round(spent[slot.BLOCKED], 4),
            "busy_s": round(spent[slot.BUSY], 4),
            "server_s": round(server_s, 4) if stage in ASKING else None,
        }

    def _waiting(self, stage: int, process: int, taken: float) -> int | None:
        """Directories move between processes: only their total number is known."""
        if stage:
            return int(max(0.0, self._board.sum(stage - 1, slot.GIVEN, process) - taken))
        if process:
            return None
        directories = self._board.sum(SCAN, slot.FOUND) + self._board.words[slot.SCANS]
        return int(max(0.0, directories - self._board.sum(SCAN, TAKEN)))
