"""The program that keeps a database current: it follows the change log of a tree, or records that are injected.

`python -P -m loadframe_index.keeping CONFIG.json` prints "ready" once the log is open and the tree is scanned, and
reads the instant of the start (CLOCK_MONOTONIC, s; an empty line: now) from stdin. Each applied change is a record of
the request log, until its commit. Two stages take turns in one thread; lines are those of docs/pipelines.md."""

import json
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from loadframe.errors import MachineError
from loadframe.model import Requirement
from loadframe.workloads.request_log import RECORD
from loadframe_index.applying import Following
from loadframe_index.config import STATISTICS, InFolder, exit_status
from loadframe_index.entries import Change
from loadframe_index.fanotify import Fanotify
from loadframe_index.inotify import Inotify
from loadframe_index.log_readers import Reader, Records, shown_limit
from loadframe_index.recorded import Injected, Recorded
from loadframe_index.store import Store, connect

APPLIED, DONE = 0, 0
LINE_EVERY_S = 0.2
WAIT_S = 0.05
MOST_PATHS = 100_000
"""Paths over which records are injected."""
INJECTED = "injected"


@dataclass(frozen=True)
class Keeping(InFolder):
    """log: auto, fanotify, inotify, injected, or recorded: in the file `records`. change_rate: injected records per
    second. batch: records in a transaction. drain: afterwards, all that was read is applied. scan: the tree first."""

    log: str = "auto"
    change_rate: float = 0.0
    batch: int = 1000
    seconds: float = 1.0
    seed: int = 0
    drain: bool = False
    scan: bool = True
    records: str = ""


KERNEL: Mapping[str, Callable[[Path], Reader]] = {"fanotify": Fanotify, "inotify": Inotify}
"""The kernel's logs, the preferred first: that needs one mark for a file system, the second a watch for each
directory."""
OTHERWISE = "Records can be injected instead: they load the pipeline and say nothing of the tree."


@dataclass(frozen=True, slots=True)
class Chosen:
    """refused: why those before it were not taken, in words, by name."""

    reader: Reader
    refused: Mapping[str, str]


def choose(root: Path, wanted: str = "auto") -> Chosen:
    """Open a change log. wanted: of KERNEL, or auto: the first permitted one. MachineError."""
    refused: dict[str, str] = {}
    for name, opened in KERNEL.items():
        if wanted in (name, "auto"):
            try:
                return Chosen(opened(root), refused)
            except MachineError as error:
                refused[name] = str(error)
    if not refused:
        raise MachineError(
            f"{wanted!r} is no change log of the kernel", remedy=f"Use one of auto, {', '.join(KERNEL)}."
        )
    raise MachineError(f"The changes of {root} cannot be followed. {' '.join(refused.values())}", remedy=OTHERWISE)


def permitted(place: Path) -> list[Requirement]:
    """The change logs for `loadframe doctor`, tried on a directory without subdirectories."""
    details = {
        "fanotify": f"{shown_limit('fanotify/max_queued_events')} records may wait",
        "inotify": f"{shown_limit('inotify/max_user_watches')} directories",
    }
    requirements = []
    for name, opened in KERNEL.items():
        refused = ""
        try:
            opened(place).close()
        except MachineError as error:
            refused = str(error)
        except OSError as error:
            refused = f"{name} is refused: {os.strerror(error.errno or 0)}"
        requirements.append(Requirement("index", f"change log: {name}", None if refused else details[name], refused))
    return requirements


def opened(keeping: Keeping, store: Store) -> Chosen:
    """The requested change log. MachineError where it is not permitted, StoreError."""
    if keeping.log == INJECTED:
        rows = store.ask(f"SELECT path FROM entries WHERE type = 'f' ORDER BY id LIMIT {MOST_PATHS}")
        paths, rate = [path for (path,) in rows], keeping.change_rate
        first, count = store.acknowledged(INJECTED) + 1, int(rate * keeping.seconds)
        return Chosen(Injected(paths, rate, seed=keeping.seed, first=first, count=count), {})
    if keeping.log == Recorded.name:
        return Chosen(Buffered(Recorded(Path(keeping.records), after=store.acknowledged(Recorded.name))), {})
    chosen = choose(Path(keeping.tree), keeping.log)
    return replace(chosen, reader=Buffered(chosen.reader))


class Program:
    def __init__(self, keeping: Keeping, store: Store, chosen: Chosen, stack: ExitStack) -> None:
        """MachineError, StoreError, OSError."""
        self.keeping, self._chosen = keeping, chosen
        self._log = stack.enter_context(keeping.requests().open("wb", buffering=0))
        self._lines = stack.enter_context(keeping.path(STATISTICS).open("w", encoding="utf-8"))
        tree, batch = Path(keeping.tree), keeping.batch
        self.following = stack.enter_context(
            closing(Following(store, tree, chosen.reader, batch=batch, applied=self._applied))
        )
        self._began_s = self._line_s = 0.0

    def _applied(self, changes: Sequence[Change]) -> None:
        now_s, wall_s = time.monotonic(), time.time()
        packed = (
            RECORD.pack(now_s, max(0.0, 1e3 * (wall_s - change.time_s)), 0.0, APPLIED, DONE) for change in changes
        )
        self._log.write(b"".join(packed))

    def run(self, start_s: float) -> None:
        time.sleep(max(0.0, start_s - time.monotonic()))
        self._began_s = self._line_s = time.monotonic()
        until_s = self._began_s + self.keeping.seconds
        while (now_s := time.monotonic()) < until_s:
            self.following.step(min(WAIT_S, until_s - now_s))
            if now_s - self._line_s >= LINE_EVERY_S:
                self._print(now_s)
        done, chosen, following = self.following.done, self._chosen, self.following
        seconds = time.monotonic() - self._began_s
        log = {"log": chosen.reader.name, "refused": dict(chosen.refused), "seconds": seconds}
        state = {"applied": done.records, "pending": following.pending, "lag_s": following.lag_s()}
        counts = {"questions": done.questions, "moved": done.moved, "lost": done.lost}
        passed = {"vanished": done.passed.vanished, "passed": done.passed.counts}
        self.keeping.write_result({**log, **state, **counts, **passed})
        while self.keeping.drain and (self.following.step(WAIT_S) or not self.following.drained):
            pass
        self._print(time.monotonic())

    def _print(self, now_s: float) -> None:
        self._line_s = now_s
        done, following = self.following.done, self.following
        spent_s = now_s - self._began_s
        idle_s = max(0.0, spent_s - done.fs_s - done.db_s)
        common = {"time": now_s, "workers": 1, "done": done.batches}
        lines = (
            {"stage": "GET_INFO_FS", "order": 0, **common, "waiting": -(-following.pending // self.keeping.batch)}
            | {"entries": done.questions, "busy_s": done.fs_s, "blocked_s": done.db_s, "idle_s": idle_s},
            {"stage": "DB_APPLY", "order": 1, **common, "waiting": 0}
            | {"entries": done.questions, "busy_s": done.db_s, "blocked_s": 0.0, "idle_s": idle_s + done.fs_s},
            {"log": self._chosen.reader.name, "time": now_s, "read": done.records + following.pending}
            | {"applied": done.records, "pending": following.pending, "lag_s": following.lag_s()},
        )
        self._lines.write("".join(f"{json.dumps(line)}\n" for line in lines))
        self._lines.flush()


def work(keeping: Keeping) -> None:
    """All from "ready" on. StoreError, MachineError, OSError."""
    with ExitStack() as stack:
        store = stack.enter_context(closing(connect(keeping.database)))
        chosen = opened(keeping, store)
        stack.callback(chosen.reader.close)
        program = Program(keeping, store, chosen, stack)
        if keeping.scan:
            program.following.start()
        print("ready", flush=True)
        text = sys.stdin.readline().strip()
        try:
            start_s = float(text) if text else time.monotonic()
        except ValueError:
            raise ValueError(
                f"the instant of the start is {text[:40]!r}; seconds of CLOCK_MONOTONIC, or an empty line to start now"
            ) from None
        program.run(start_s)


def main(arguments: list[str]) -> int:
    return exit_status(lambda: work(Keeping.read(Path(arguments[0]))))


MOST_RECORDS = 1_000_000
"""About 300 bytes each."""
AT_ONCE = 10_000
PATIENCE_S = 0.2
"""How long the thread waits for records before it checks whether to end."""


class Buffered(Reader):
    """Reads ahead in a thread, and closes the reader."""

    def __init__(self, reader: Reader, *, most: int = MOST_RECORDS) -> None:
        """most: records in memory; one reading more may come on top."""
        self.name, self.resumes = reader.name, reader.resumes
        self._reader, self._most = reader, most
        self._kept: deque[Change] = deque()
        self._lost: list[str] = []
        self._drained = False
        self._failure: Exception | None = None
        self._ends = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="change-log", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._ends:
                read = self._reader.read(PATIENCE_S)
                with self._changed:
                    self._kept.extend(read.changes)
                    self._lost += [read.lost] if read.lost else []
                    self._drained = read.drained
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self._ends or len(self._kept) < self._most)
        except Exception as error:  # noqa: BLE001 - raised by who reads: else it would wait for ever
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def read(self, timeout_s: float) -> Records:
        """An error of the thread is raised once its records are taken."""
        with self._changed:
            self._changed.wait_for(lambda: self._kept or self._lost or self._failure, timeout_s)
            if self._failure and not self._kept:
                raise self._failure
            changes = list(islice(self._kept, AT_ONCE))
            for _ in changes:
                self._kept.popleft()
            lost, self._lost = "; ".join(self._lost), []
            self._changed.notify_all()
            return Records(changes, lost, self._drained and not self._kept)

    @property
    def waiting(self) -> int:
        """Records, including those waiting in the other reader."""
        with self._changed:
            return len(self._kept) + self._reader.waiting

    def inode_of(self, file: bytes) -> int | None:
        return self._reader.inode_of(file)

    def close(self) -> None:
        with self._changed:
            self._ends = True
            self._changed.notify_all()
        self._thread.join()
        self._reader.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
