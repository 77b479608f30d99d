"""The reading of a tree alone, without a database: every entry is listed and looked up, by threads and processes. What
benchmarks/metadata.py measures beside find: the bound of what a pipeline on this machine can reach.

    python -P benchmarks/tree_scanning.py TREE [--scanners N] [--threads N]

Prints one JSON object. Processes
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
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from stat import S_IFDIR

from loadframe.errors import MachineError
from loadframe_index.beneath import ENCODING, ERRORS, Beneath
from loadframe_index.board import DONE, ENTRIES, SCAN, STOP, Board, Directory, Frontier, Meter, Shape
from loadframe_index.entries import FORMAT

LOOK_EVERY_S = 0.002
MOST_OPEN = 4
"""Directories of a way. A thread has as many, and a process often no more than 1,024 descriptors."""
_WAY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
SHARE_EVERY = 8
"""Directories, after which a thread looks whether another one has none."""
DEVICE_SHIFT = 64
Looked = tuple[bytes, os.stat_result]
"""A name, and its status."""
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


class Descent:
    """Opens directories to list them, each from the one above it, and keeps the last ones of a way open: children that
    come after their parent, and siblings one after the other, take one call each."""

    def __init__(self, tree: Beneath) -> None:
        """tree: stays the caller's."""
        self._root = tree.root
        self._open: deque[tuple[bytes, int]] = deque()

    def listing(self, path: bytes) -> int:
        """A descriptor to list the directory with, open until the next question. OSError: FileNotFoundError,
        NotADirectoryError (also for a symbolic link), PermissionError."""
        kept = self._open
        while kept and not path.startswith(kept[-1][0]):
            os.close(kept.pop()[1])
        at, begin = (kept[-1][1], len(kept[-1][0])) if kept else (self._root, 0)
        *way, last = path[begin:].split(b"/")
        for name in way:
            at = self._keep(path[: begin + len(name) + 1], os.open(name, _WAY, dir_fd=at))
            begin += len(name) + 1
        return self._keep(path + b"/" if path else b"", os.open(last or b".", _LIST, dir_fd=at))

    def _keep(self, prefix: bytes, opened: int) -> int:
        """prefix: of the paths of all that is below it."""
        if len(self._open) == MOST_OPEN:
            os.close(self._open.popleft()[1])
        self._open.append((prefix, opened))
        return opened

    def close(self) -> None:
        """Idempotent."""
        while self._open:
            os.close(self._open.pop()[1])


class Shared(Frontier):
    """wanted: how many threads ask for a directory."""

    wanted = 0

    def take(self) -> Directory | None:
        self.wanted += 1
        try:
            return super().take()
        finally:
            self.wanted -= 1


class Scanner:
    """One thread of a scan. Of a directory its `above` has itself, too, as the last one."""

    def __init__(self, tree: Beneath, frontier: Shared, board: Board, meter: Meter, take: Take) -> None:
        self._frontier, self._board, self._meter, self._take = frontier, board, meter, take
        self._device, self._descent = tree.status.st_dev, Descent(tree)
        self._left: list[Directory] = []
        """Directories that this thread has found: the last one comes next."""

    def work(self) -> None:
        """List directories until the frontier is closed."""
        listed = 0
        while not self._frontier.closed:
            if (directory := self._frontier.take()) is None:
                continue
            self._left.append(directory)
            while self._left and not self._frontier.closed:
                self._directory(self._left.pop())
                listed += 1
                if self._frontier.wanted or listed % SHARE_EVERY == 0:
                    self._share()
            self._frontier.done()
        self._descent.close()

    def _directory(self, directory: Directory) -> None:
        try:
            self._look(self._descent.listing(directory.path), directory)
        except OSError as error:
            self._board.count_passed(error)
        self._meter.add(DONE)

    def _look(self, listing: int, directory: Directory) -> None:
        """The loop that a scan spends its time in."""
        path, looked = directory.path, list[Looked]()
        add, kind, is_directory = looked.append, FORMAT, S_IFDIR
        with os.scandir(listing) as found:
            for each in found:
                try:
                    status = each.stat(follow_symlinks=False)
                except OSError as error:
                    self._board.count_passed(error)
                    continue
                name = each.name.encode(ENCODING, ERRORS)
                add((name, status))
                if status[0] & kind == is_directory:  # st_mode
                    self._found(path + b"/" + name if path else name, status, directory.above)
        self._meter.add(ENTRIES, len(looked))
        self._take(path, looked)

    def _found(self, path: bytes, status: os.stat_result, above: tuple[int, ...]) -> None:
        """A directory: whether it is entered follows from what it is."""
        here = identity(status)
        if status.st_dev != self._device:
            self._board.count("elsewhere")
        elif here in above:
            self._board.count("loops")
        else:
            self._left.append(Directory(path, (*above, here)))

    def _share(self) -> None:
        """Give half of what is left, what came first, to a thread or a process that has nothing."""
        half = len(self._left) // 2
        if half and self._frontier.wanted:
            self._frontier.push(self._left[:half])
            del self._left[:half]
        elif half and (asking := self._board.asks()) is not None:
            del self._left[: self._board.give(asking, self._left[:half])]


def identity(status: os.stat_result) -> int:
    """Device and inode as one number."""
    return status.st_dev << DEVICE_SHIFT | status.st_ino


def nothing(path: bytes, looked: Sequence[Looked]) -> None:
    """Take and forget."""


def scan(tree: Path, scanners: int = 1, threads: int = 1, take: Take = nothing) -> Scanned:
    """The whole tree. take: called in the process and thread that looked. MachineError where the root cannot be read,
    or a process fails."""
    shape = Shape(scanners, (threads, 0, 0, 0))
    Beneath(tree).close()  # refused here, and not by each process
    with tempfile.TemporaryDirectory(prefix="loadframe-scan-") as folder:
        path = Path(folder) / "board"
        path.write_bytes(bytes(shape.bytes))
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
    frontier, failures = Shared(board), list[BaseException]()
    threads = []
    with ExitStack() as stack:
        for number in range(board.shape.workers[SCAN]):
            root, meter = stack.enter_context(Beneath(tree)), Meter(board, board.of_worker(board.process, SCAN, number))
            scanner = Scanner(root, frontier, board, meter, take)
            threads.append(threading.Thread(target=_guarded, args=(scanner, failures), daemon=True))
        if board.process == 0:
            take(b"", [(b"", root.status)])
            board.words[board.of_worker(0, SCAN, 0) + ENTRIES] += 1
            frontier.push([Directory(b"", (identity(root.status),))])
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
    parser = argparse.ArgumentParser(prog="tree_scanning.py")
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
