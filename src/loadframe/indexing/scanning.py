"""The reading of a tree alone, without a database: every entry is listed and looked up, by threads and processes.

Run as `python -P -m loadframe.indexing.scanning TREE [--scanners N] [--threads N]`; prints one JSON object. Processes
read at the same time. Threads of one process take turns in Python and overlap only while the kernel works: they help on
a disk that is slow to answer, and cost where the tree is in memory.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path
from stat import S_IFDIR

from loadframe.errors import MachineError
from loadframe.indexing.beneath import ENCODING, ERRORS, Beneath
from loadframe.indexing.board import DONE, ENTRIES, SCAN, STOP, Board, Meter, Shape
from loadframe.indexing.entries import FORMAT
from loadframe.indexing.frontier import Directory, Frontier

LOOK_EVERY_S = 0.002
STATUS = attrgetter(
    *("st_dev", "st_ino", "st_mode", "st_size", "st_blocks", "st_nlink", "st_uid", "st_gid"),
    *("st_atime_ns", "st_mtime_ns", "st_ctime_ns"),
)
Looked = tuple[bytes, tuple[int, ...]]
"""A name, and of its status what STATUS takes."""
Take = Callable[[bytes, Sequence[Looked]], None]
"""Called with each directory and what was looked up in it."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """What a scan did. directories: that were listed. vanished, unreadable: entries that could not be looked up, or
    directories that could not be listed."""

    entries: int
    directories: int
    vanished: int
    unreadable: int
    loops: int
    elsewhere: int
    seconds: float


@dataclass(slots=True)
class Scanner:
    """One thread of a scan."""

    tree: Beneath
    frontier: Frontier
    board: Board
    meter: Meter
    take: Take

    def work(self) -> None:
        """List directories until the frontier is closed."""
        while not self.frontier.closed:
            if (directory := self.frontier.take()) is not None:
                try:
                    self._directory(directory)
                except (FileNotFoundError, NotADirectoryError):
                    self.board.count("vanished")
                except OSError:
                    self.board.count("unreadable")
                self.meter.add(DONE)
                self.frontier.done()

    def _directory(self, directory: Directory) -> None:
        listing = self.tree.listing(directory.path)
        try:
            status = os.fstat(listing)
            here = status.st_dev << 64 | status.st_ino
            if here in directory.above:
                self.board.count("loops")
            elif status.st_dev != self.tree.status.st_dev:
                self.board.count("elsewhere")
            else:
                self._look(listing, directory.path, (*directory.above, here))
        finally:
            os.close(listing)

    def _look(self, listing: int, path: bytes, above: tuple[int, ...]) -> None:
        """The loop that a scan spends its time in."""
        looked: list[Looked] = [] if path else [(b"", STATUS(self.tree.status))]
        below: list[Directory] = []
        add, status_of, kind, directory = looked.append, STATUS, FORMAT, S_IFDIR
        prefix = path + b"/" if path else b""
        with os.scandir(listing) as found:
            for each in found:
                try:
                    status = status_of(each.stat(follow_symlinks=False))
                except OSError as error:
                    self.board.count("vanished" if isinstance(error, FileNotFoundError) else "unreadable")
                    continue
                name = each.name.encode(ENCODING, ERRORS)
                add((name, status))
                if status[2] & kind == directory:
                    below.append(Directory(prefix + name, above))
        self.meter.add(ENTRIES, len(looked))
        self.take(path, looked)
        self.frontier.hand_over(self.board, below)


def nothing(path: bytes, looked: Sequence[Looked]) -> None:
    """Take and forget."""


def scan(tree: Path, scanners: int = 1, threads: int = 1, take: Take = nothing) -> Scanned:
    """The whole tree. take: called in the process and thread that looked. MachineError where the root cannot be read,
    or a process fails."""
    shape = Shape(scanners, (threads, 0, 0, 0))
    Beneath(tree).close()  # refused here, and not by each process
    with tempfile.TemporaryDirectory(prefix="loadframe-scan-") as folder:
        path = Path(folder) / "board"
        Board.make(path, shape)
        began_s = time.monotonic()
        children: list[int] = []
        try:
            children.extend(_fork(tree, path, shape, number, take) for number in range(1, scanners))
            board = Board(path, shape, 0)
            _process(tree, board, take)
            failed = [child for child in children if os.waitpid(child, 0)[1]]
        except BaseException:
            _end(children)
            raise
        try:
            if failed:
                raise MachineError(f"{len(failed)} processes of the scan of {tree} failed.", remedy="They said why.")
            return _result(board, time.monotonic() - began_s)
        finally:
            board.close()


def _result(board: Board, seconds: float) -> Scanned:
    counted = board.counted()
    counts = {name: counted[name] for name in ("vanished", "unreadable", "loops", "elsewhere")}
    return Scanned(int(board.sum(SCAN, ENTRIES)), int(board.sum(SCAN, DONE)), seconds=seconds, **counts)


def _fork(tree: Path, path: Path, shape: Shape, number: int, take: Take) -> int:
    """A process of the scan. It ends with us: its parent is asked for at every look."""
    parent, child = os.getpid(), os.fork()
    if child:
        return child
    code = 1
    try:
        board = Board(path, shape, number)
        _process(tree, board, take, lambda: os.getppid() == parent)
        code = 0
    except (MachineError, OSError) as error:
        print(error, file=sys.stderr)
    finally:
        os._exit(code)


def _process(tree: Path, board: Board, take: Take, goes_on: Callable[[], bool] = lambda: True) -> None:
    """The threads of one process, until all processes have nothing to list."""
    frontier, failures = Frontier(board.received), list[BaseException]()
    threads = []
    with ExitStack() as stack:
        for number in range(board.shape.workers[SCAN]):
            root, meter = stack.enter_context(Beneath(tree)), Meter(board, board.of_worker(board.process, SCAN, number))
            scanner = Scanner(root, frontier, board, meter, take)
            threads.append(threading.Thread(target=_guarded, args=(scanner, failures), daemon=True))
        if board.process == 0:
            frontier.push([Directory(b"", ())])
        for thread in threads:
            thread.start()
        while not board.words[STOP] and not failures and goes_on():
            if board.process == 0 and board.all_listed():
                board.words[STOP] = 1
            time.sleep(LOOK_EVERY_S)
        frontier.close()
        for thread in threads:
            thread.join()
    if failures:
        board.words[STOP] = 1
        raise failures[0]


def _guarded(scanner: Scanner, failures: list[BaseException]) -> None:
    try:
        scanner.work()
    except BaseException as error:  # noqa: BLE001 - raised by who joins
        failures.append(error)


def _end(children: Sequence[int]) -> None:
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def main(arguments: list[str]) -> int:
    """Exit 1 with one line on standard error where the tree cannot be read."""
    parser = argparse.ArgumentParser(prog="loadframe.indexing.scanning")
    parser.add_argument("tree", type=Path)
    parser.add_argument("--scanners", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args(arguments)
    try:
        found = scan(given.tree, given.scanners, given.threads)
    except MachineError as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(asdict(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
