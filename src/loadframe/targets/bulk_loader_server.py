"""The bulk loader: listens for clients and has a process load each file.

Run as `python -m loadframe.targets.bulk_loader_server SOCKET SHARDS BATCH_BYTES POOL`: SHARDS is a JSON list of
connection strings. POOL 0 starts a process for each file, as the loader of the story does; else so many processes stay,
keep their connections and take one file after the other.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from loadframe.targets.bulk_loader_worker import Loader, serve

BACKLOG = 512


class Server:
    """The listening socket and the processes that load. loader: makes what a process loads with."""

    def __init__(self, path: Path, loader: Callable[[], Loader]) -> None:
        self._loader = loader
        self._children: set[int] = set()
        path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        path.chmod(0o666)
        self._socket.listen(BACKLOG)

    def a_process_for_each_file(self) -> None:
        """Until we are told to end."""
        while True:
            connection, _ = self._socket.accept()
            with connection:
                self._fork(lambda: serve(self._loader(), connection))  # noqa: B023 - the child runs it at once
            self._reap()

    def a_pool(self, size: int) -> None:
        """Until one of its processes ends, which none should."""
        for _ in range(size):
            self._fork(self._serve_all)
        os.wait()
        raise SystemExit("a process of the pool has ended")

    def _serve_all(self) -> None:
        loader = self._loader()
        while True:
            serve(loader, self._socket.accept()[0])

    def _fork(self, work: Callable[[], None]) -> None:
        """A copy of this process, which has no threads, does the work and ends."""
        pid = os.fork()
        if pid:
            self._children.add(pid)
            return
        status = 1
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            work()
            status = 0
        finally:
            os._exit(status)

    def _reap(self) -> None:
        self._children -= {pid for pid in self._children if os.waitpid(pid, os.WNOHANG)[0]}

    def end(self) -> None:
        for pid in self._children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def main(arguments: list[str]) -> int:
    """Ends by SIGTERM; 1 where a process of the pool ended."""
    path, shards, batch_bytes, pool = arguments
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
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
