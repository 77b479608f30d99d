"""The program of the pipeline: scans a tree into a database with several processes, each with all stages.

`python -P -m loadframe_index.pipeline CONFIG.json PROCESS` prints "ready" once it is connected, and reads the instant
of the common start (CLOCK_MONOTONIC, s) from stdin. Process 0 begins and ends scans and prints the statistics lines.
Each entry is one record of the request log. Imports the standard library and the database's client alone."""

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from loadframe.errors import MachineError
from loadframe.workloads.request_log import RECORD
from loadframe_index.beneath import Beneath
from loadframe_index.board import GET_INFO_DB, GET_INFO_FS, OFFSET_NS, SCAN, STOP, Board, Frontier, Meter, Queue
from loadframe_index.config import BOARD, Config, exit_status
from loadframe_index.coordinator import LOOK_EVERY_S, Coordinator
from loadframe_index.stages import Asker, Lister, Work, apply, ask_database, hand_on, serve
from loadframe_index.store import Store, StoreError, connect

SCANNED, DONE = 0, 0


class Process:
    def __init__(self, config: Config, number: int, stack: ExitStack) -> None:
        """The stack closes everything. MachineError, StoreError, OSError."""
        self.config, self.number, self._stack = config, number, stack
        self.board = Board(config.path(BOARD), config.shape, number)
        stack.callback(self.board.close)
        self.frontier = Frontier(self.board)
        self._queues: list[Queue[Work]] = [Queue(config.waiting) for _ in range(3)]
        self._log = self._file(config.requests(number))
        self._applied = self._file(config.applied(number))
        self._failures: list[BaseException] = []
        self._offset_ns = 0
        self._workers = [
            self._worker(stage, worker) for stage in range(4) for worker in range(config.shape.workers[stage])
        ]

    def _file(self, path: Path) -> int:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._stack.callback(os.close, file)
        return file

    def coordinator(self) -> Coordinator:
        """Every look from now on is later than those in the database."""
        store = self._store()
        last_ns = max(time.time_ns(), store.last_seen_ns() + 1)
        self.board.words[OFFSET_NS] = last_ns - time.monotonic_ns()
        return Coordinator(self.config, self.board, self.frontier, store, self.now_ns)

    def _store(self) -> Store:
        store = connect(self.config.database)
        self._stack.callback(store.close)
        return store

    def _tree(self) -> Beneath:
        return self._stack.enter_context(Beneath(Path(self.config.tree)))

    def _worker(self, stage: int, number: int) -> threading.Thread:
        work = self._work(stage, Meter(self.board, self.board.of_worker(self.number, stage, number)))
        return threading.Thread(target=self._guarded, args=(work,), name=f"{stage}-{number}", daemon=True)

    def _work(self, stage: int, meter: Meter) -> Callable[[], None]:
        names, known, looked_up = self._queues
        if stage == SCAN:
            return Lister(self._tree(), self.frontier, self.board, meter, names, self.config.batch).work
        if stage == GET_INFO_DB:
            store = self._store()
            store.refuse_to_wait()  # ask_database waits, and reports for how long
            return lambda: serve(names, meter, lambda work: ask_database(store, work, meter), known)
        if stage == GET_INFO_FS:
            give = partial(hand_on, looked_up, meter=meter)
            asker = Asker(self._tree(), self.board, self.now_ns, self.config.rewrite, give)
            return lambda: serve(known, meter, asker.act, None)
        store = self._store()
        return lambda: serve(looked_up, meter, lambda work: apply(store, work, meter, self._acknowledge), None)

    def now_ns(self) -> int:
        """The time of a look: it grows from process to process and from run to run, even if the clock was set back."""
        return time.monotonic_ns() + self._offset_ns

    def _acknowledge(self, work: Work) -> None:
        """Records in the order of the pieces; only of entries that are in the database."""
        now_s, left = time.monotonic(), len(work.entries) + len(work.touched)
        records = bytearray()
        for piece in work.pieces:
            count = min(left, len(piece.names))
            records += RECORD.pack(now_s, 1e3 * (now_s - piece.found_s), 0.0, SCANNED, DONE) * count
            left -= count
        os.write(self._applied, b"".join(work.found_ids) + b"".join(work.touched))
        os.write(self._log, records)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._failures.append(error)
            self.end(drop=True)
            if not isinstance(error, StoreError | MachineError | OSError):
                raise

    def run(self, start_s: float, coordinator: Coordinator | None) -> None:
        """Until the time is up or all is done. Raises the first failure of a worker."""
        self._offset_ns = int(self.board.words[OFFSET_NS])
        until_s = start_s + self.config.seconds if self.config.seconds else float("inf")
        time.sleep(max(0.0, start_s - time.monotonic()))
        for worker in self._workers:
            worker.start()
        while not self._failures and not self.board.words[STOP] and time.monotonic() < until_s:
            time.sleep(LOOK_EVERY_S if coordinator is None else coordinator.look())
        self.end(drop=time.monotonic() >= until_s)
        for worker in self._workers:
            worker.join()
        if coordinator is not None:
            coordinator.end()
        if self._failures:
            raise self._failures[0]

    def end(self, *, drop: bool) -> None:
        """List no more. drop: also drop what waits between the stages."""
        self.frontier.close()
        for queue in self._queues:
            queue.close(drop=drop)


def work(config: Config, number: int) -> None:
    """One process from "ready" on. StoreError, MachineError, OSError."""
    # On two CPUs, threads wait for each other at every release of the interpreter lock (GIL).
    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpus[number % len(cpus)]})
    with ExitStack() as stack:
        process = Process(config, number, stack)
        coordinator = process.coordinator() if number == 0 else None
        print("ready", flush=True)
        process.run(float(sys.stdin.readline()), coordinator)


def main(arguments: list[str]) -> int:
    path, number = arguments
    return exit_status(lambda: work(Config.read(Path(path)), int(number)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
