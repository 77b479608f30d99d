"""The bulk loader: listens for clients and has a process load each file into the shards.

Run as `python -P -m loadframe_bulk.server SOCKET SHARDS BATCH_BYTES POOL STAGES`: SHARDS is a file with a JSON list of
connection strings, STAGES one to which statistics of the stages are appended (docs/pipelines.md). POOL 0 starts a
process for each file, as the loader of the story does; else POOL is the number of processes that stay, keep their
connections and take one file after the other.

The key of each row decides its shard; rows go there in batches by COPY. A file is loaded whole or not
at all (store.py).
"""

import json
import mmap
import os
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack, suppress
from hashlib import blake2b
from pathlib import Path

import psycopg

from loadframe.host.launch import die_with
from loadframe_bulk import protocol
from loadframe_bulk.protocol import HungUpError, OutOfStepError, Stream
from loadframe_bulk.store import COPY, LOADING, NOTE_FILE, Content, transaction_of
from loadframe_bulk.turns import COMMIT, LOADER, OPEN, SPLIT, WORD, WRITE, Turn, lines, own_turn, write_regularly

BACKLOG = 512
POLL_S = 0.2
"""How soon a pool that has lost a process is ended."""
MOST_AT_ONCE = 512
"""Processes whose stages are reported."""


class _Part:
    """size: bytes that wait to be sent."""

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix
        self._waiting: list[bytes] = []
        self.size = self.rows = self.amount = 0

    def add(self, row: bytes) -> None:
        """row: key, stamp, amount, note; separated by tabs."""
        self._waiting.append(self._prefix + row)
        self.size += len(row)
        self.rows += 1
        self.amount += int(row.split(b"\t", 3)[2])

    def take(self) -> bytes:
        rows = b"".join(self._waiting)
        self._waiting.clear()
        self.size = 0
        return rows


class Loader:
    def __init__(self, shards: list[str], batch_bytes: int, turn: Turn) -> None:
        self._shards = shards
        self._batch_bytes = batch_bytes
        self.turn = turn
        self._connections: list[psycopg.Connection] = []
        self._blocks = self._unwritten = 0

    def load(self, client: Stream) -> None:
        """Nothing of a file stays where the client hangs up or is out of step, or a shard refuses."""
        (file,) = protocol.FILE_BODY.unpack(client.expect(protocol.FILE))
        try:
            self._begin(file)
            self._blocks = self._unwritten = 0
            parts = self._copy(client, file)
            self.turn.to(COMMIT)
            if client.hung_up():
                raise HungUpError  # another client may be settling the shards already
            self._commit(file, parts)
        except BaseException:
            self.close()  # what is not prepared is rolled back with its connection
            raise
        self.turn.count(OPEN, self._blocks)
        self.turn.count(COMMIT, self._blocks)
        client.send(protocol.LOADED)

    def _begin(self, file: int) -> None:
        if not self._connections:
            self._connections = [psycopg.connect(shard, application_name="loadframe-loader") for shard in self._shards]
        for connection in self._connections:
            connection.execute("SELECT pg_advisory_lock_shared(%s)", (LOADING,))
            connection.commit()
            connection.tpc_begin(transaction_of(file))

    def _copy(self, client: Stream, file: int) -> list[Content]:
        parts = [_Part(b"%d\t" % file) for _ in self._connections]
        with ExitStack() as stack:
            copies = [stack.enter_context(connection.cursor().copy(COPY)) for connection in self._connections]
            pairs = list(zip(parts, copies, strict=True))
            while True:
                self.turn.to(LOADER.waiting)
                kind, body = client.receive()
                self.turn.to(SPLIT)
                if kind != protocol.BLOCK:
                    break
                for row in body.splitlines(keepends=True):
                    key = blake2b(row[: row.index(b"\t")], digest_size=8)
                    parts[int.from_bytes(key.digest(), "little") % len(parts)].add(row)
                self._blocks += 1
                self._unwritten += 1
                self.turn.count(SPLIT, 1)
                self._write([(part, copy) for part, copy in pairs if part.size >= self._batch_bytes])
                client.send(protocol.TAKEN)
            self._write(pairs)
        got = Content(sum(part.rows for part in parts), sum(part.amount for part in parts))
        if kind != protocol.END or Content(*protocol.END_BODY.unpack(body)) != got:
            raise OutOfStepError(f"the file does not end with what it held: {got.rows} rows arrived")
        return [Content(part.rows, part.amount) for part in parts]

    def _write(self, full: list[tuple[_Part, psycopg.Copy]]) -> None:
        if not full:
            return
        self.turn.to(WRITE)
        for part, copy in full:
            copy.write(part.take())
        self.turn.count(WRITE, self._unwritten)
        self._unwritten = 0

    def _commit(self, file: int, parts: list[Content]) -> None:
        for connection, part in zip(self._connections, parts, strict=True):
            connection.execute(NOTE_FILE, (file, part.rows, part.amount))
            connection.tpc_prepare()
        for connection in self._connections:
            connection.tpc_commit()
        for connection in self._connections:
            connection.execute("SELECT pg_advisory_unlock_shared(%s)", (LOADING,))
            connection.commit()

    def close(self) -> None:
        for connection in self._connections:
            connection.close()
        self._connections = []


def serve(loader: Loader, connection: socket.socket) -> None:
    """Errors are sent to the client and written to standard error."""
    client = Stream(connection)
    try:
        loader.load(client)
    except HungUpError:
        return
    except (OutOfStepError, psycopg.Error, ValueError, struct.error) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        refuse(connection, str(error))
    finally:
        client.close()


def refuse(connection: socket.socket, because: str) -> None:
    """Nothing is sent where the client has hung up."""
    text = because.encode()
    with suppress(OSError):
        connection.sendall(protocol.HEAD.pack(protocol.REFUSED, len(text)) + text)


class Server:
    """loader: makes the Loader of a process."""

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
        self._end_lines = write_regularly(stages, lambda: lines(LOADER, self._turns, os.getpid()))

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
        """In a copy of this process, which has no threads; it ends with us at the latest."""
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
        self._end_lines()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._reap()
        for pid in tuple(self._children):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def main(arguments: list[str]) -> int:
    """Run until SIGTERM, whose default action is kept: an exception raised by a handler could be lost where it happens
    to rise. The kernel ends the loading processes, too. 1 where a process of the pool ended."""
    path, shards, batch_bytes, pool, stages = arguments
    server = Server(
        Path(path), lambda turn: Loader(json.loads(Path(shards).read_bytes()), int(batch_bytes), turn), stages
    )
    try:
        if int(pool):
            server.a_pool(int(pool))
        server.a_process_for_each_file()
    finally:
        server.end()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
