"""The bulk loader: listens for clients and has a process load each file.

Run as `python -P -m loadframe.kinds.bulk_loader.server SOCKET SHARDS BATCH_BYTES POOL`: SHARDS is a JSON list of
connection strings. POOL 0 starts a process for each file, as the loader of the story does; else POOL is the number of
processes that stay, keep their connections and take one file after the other.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from loadframe.host.launch import die_with
from loadframe.kinds.bulk_loader.worker import Loader, refuse, serve

BACKLOG = 512
POLL_S = 0.2
"""How soon a pool that has lost a process is ended."""


class Server:
    """The listening socket and the processes that load. loader: makes what a process loads with."""

    def __init__(self, path: Path, loader: Callable[[], Loader]) -> None:
        self._loader = loader
        self._children: set[int] = set()
        path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        path.chmod(0o600)
        self._socket.listen(BACKLOG)
        signal.signal(signal.SIGCHLD, lambda *_: self._reap())

    def a_process_for_each_file(self) -> None:
        """Until we are told to end. A client for which no process can be started is told so."""
        while True:
            connection, _ = self._socket.accept()
            with connection:
                try:
                    self._fork(lambda: serve(self._loader(), connection))  # noqa: B023 - the child runs it at once
                except OSError as error:
                    refuse(connection, f"no process can be started for the file: {error.strerror}")

    def a_pool(self, size: int) -> None:
        """Until one of its processes ends, which none should."""
        for _ in range(size):
            self._fork(self._serve_all)
        while len(self._children) == size:
            time.sleep(POLL_S)
        raise SystemExit("a process of the pool has ended")

    def _serve_all(self) -> None:
        loader = self._loader()
        while True:
            serve(loader, self._socket.accept()[0])

    def _fork(self, work: Callable[[], None]) -> None:
        """A copy of this process, which has no threads, does the work and ends; at the latest with us."""
        parent = os.getpid()
        pid = os.fork()
        if pid:
            self._children.add(pid)
            self._reap()
            return
        status = 1
        try:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            die_with(parent, signal.SIGKILL)
            work()
            status = 0
        except Exception:  # noqa: BLE001 - the end of this process: whatever it was goes into the log
            traceback.print_exc()
        finally:
            os._exit(status)

    def _reap(self) -> None:
        """Wait for those that have ended. A signal may run this in the midst of itself: then the signal was faster."""
        for pid in tuple(self._children):
            try:
                ended = os.waitpid(pid, os.WNOHANG)[0]
            except ChildProcessError:
                ended = pid
            if ended:
                self._children.discard(pid)

    def end(self) -> None:
        """End every process that loads."""
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._reap()
        for pid in tuple(self._children):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def main(arguments: list[str]) -> int:
    """Ends by SIGTERM, which is left to the kernel: an exception in its place may be lost where it happens to rise. The
    kernel ends those that load, too. 1 where a process of the pool ended."""
    path, shards, batch_bytes, pool = arguments
    server = Server(Path(path), lambda: Loader(json.loads(shards), int(batch_bytes)))
    try:
        if int(pool):
            server.a_pool(int(pool))
        server.a_process_for_each_file()
    finally:
        server.end()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
