"""The bulk loader: listens for clients and has a process load each file.

Run as `python -P -m loadframe.kinds.bulk_loader.server SOCKET SHARDS BATCH_BYTES POOL STAGES`: SHARDS is a JSON list of
connection strings, STAGES a file to which statistics of the stages are appended (docs/pipelines.md). POOL 0 starts a
process for each file, as the loader of the story does; else POOL is the number of processes that stay, keep their
connections and take one file after the other.
"""

import json
import mmap
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from loadframe.host.launch import die_with
from loadframe.ingest.turns import LOADER, OPEN, WORD, Turn, lines, own_turn, tell_regularly
from loadframe.kinds.bulk_loader.worker import Loader, refuse, serve

BACKLOG = 512
POLL_S = 0.2
"""How soon a pool that has lost a process is ended."""


MOST_AT_ONCE = 512
"""Processes whose stages are reported."""


class Server:
    """The listening socket and the loading processes. loader: makes the Loader of a process."""

    def __init__(self, path: Path, loader: Callable[[Turn], Loader], stages: str) -> None:
        self._loader = loader
        self._words = memoryview(mmap.mmap(-1, WORD * LOADER.words * MOST_AT_ONCE)).cast("d")  # all processes have it
        self._turns: list[Turn] = []
        self._free: list[Turn] = []
        self._children: dict[int, Turn] = {}
        path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        path.chmod(0o600)
        self._socket.listen(BACKLOG)
        signal.signal(signal.SIGCHLD, lambda *_: self._reap())
        self._end_telling = tell_regularly(stages, lambda: lines(LOADER, self._turns, os.getpid()))

    def a_process_for_each_file(self) -> None:
        """Serve until we are asked to end. A client for which no process can be started gets an error."""
        while True:
            connection, _ = self._socket.accept()
            began_s = time.monotonic()
            with connection:
                try:
                    self._fork(lambda turn: self._serve(turn, connection, began_s))  # noqa: B023 - the child runs it at once
                except OSError as error:
                    refuse(connection, f"no process can be started for the file: {error.strerror}")

    def a_pool(self, size: int) -> None:
        """Serve until one of its processes ends, which none should."""
        for _ in range(size):
            self._fork(self._serve_all)
        while len(self._children) == size:
            time.sleep(POLL_S)
        raise SystemExit("a process of the pool has ended")

    def _serve(self, turn: Turn, connection: socket.socket, began_s: float) -> None:
        turn.begin(OPEN, began_s)
        serve(self._loader(turn), connection)

    def _serve_all(self, turn: Turn) -> None:
        turn.begin(LOADER.waiting)
        loader = self._loader(turn)
        while True:
            connection, _ = self._socket.accept()
            turn.to(OPEN)
            serve(loader, connection)
            turn.to(LOADER.waiting)

    def _fork(self, work: Callable[[Turn], None]) -> None:
        """Run the work in a copy of this process, which has no threads; it ends with us at the latest."""
        parent = os.getpid()
        turn = self._turn()
        pid = os.fork()
        if pid:
            self._children[pid] = turn
            self._reap()
            return
        status = 1
        try:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            die_with(parent, signal.SIGKILL)
            work(turn)
            status = 0
        except Exception:  # noqa: BLE001 - the end of this process: whatever it was goes into the log
            traceback.print_exc()
        finally:
            os._exit(status)

    def _turn(self) -> Turn:
        """A turn that no process uses; beyond MOST_AT_ONCE one that is not reported."""
        if self._free:
            return self._free.pop()
        if len(self._turns) == MOST_AT_ONCE:
            return own_turn(LOADER)
        at = LOADER.words * len(self._turns)
        turn = Turn(LOADER, self._words[at : at + LOADER.words])
        turn.begin(LOADER.away)
        self._turns.append(turn)
        return turn

    def _reap(self) -> None:
        """Wait for those that have ended. A signal may run this inside itself: the inner call was faster then."""
        for pid in tuple(self._children):
            try:
                ended = os.waitpid(pid, os.WNOHANG)[0]
            except ChildProcessError:
                ended = pid
            turn = self._children.pop(pid, None) if ended else None
            if turn is not None and turn in self._turns:
                turn.to(LOADER.away)
                self._free.append(turn)

    def end(self) -> None:
        self._end_telling()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._reap()
        for pid in tuple(self._children):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def main(arguments: list[str]) -> int:
    """Run until SIGTERM, whose default action is kept: an exception raised by a handler could be lost where it happens
    to rise. The kernel ends the loading processes, too. 1 where a process of the pool ended."""
    path, shards, batch_bytes, pool, stages = arguments
    server = Server(Path(path), lambda turn: Loader(json.loads(shards), int(batch_bytes), turn), stages)
    try:
        if int(pool):
            server.a_pool(int(pool))
        server.a_process_for_each_file()
    finally:
        server.end()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
