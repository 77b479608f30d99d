"""Loads files into the shards, one after the other: the work of each process of the bulk loader. The key of each row
decides its shard; rows are sent in batches by COPY. A file is loaded whole or not at all (ingest/store.py)."""

import socket
import struct
import sys
from contextlib import ExitStack, suppress
from hashlib import blake2b

import psycopg

from loadframe.ingest.frames import (
    BLOCK,
    END,
    END_BODY,
    FILE,
    FILE_BODY,
    HEAD,
    LOADED,
    REFUSED,
    TAKEN,
    HungUpError,
    OutOfStepError,
    Stream,
)
from loadframe.ingest.store import COPY, LOADING, NOTE_FILE, Content, transaction_of
from loadframe.ingest.turns import COMMIT, LOADER, OPEN, SPLIT, WRITE, Turn

APPLICATION = "loadframe-loader"


def shard_of(key: bytes, shards: int) -> int:
    """The index of the shard that has the row with this key."""
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "little") % shards


class _Part:
    def __init__(self, prefix: bytes, batch_bytes: int) -> None:
        self._prefix = prefix
        self._batch_bytes = batch_bytes
        self._waiting: list[bytes] = []
        self._size = self.rows = self.amount = 0

    def add(self, row: bytes) -> None:
        """row: key, stamp, amount, note; separated by tabs."""
        self._waiting.append(self._prefix + row)
        self._size += len(row)
        self.rows += 1
        self.amount += int(row.split(b"\t", 3)[2])

    @property
    def full(self) -> bool:
        return self._size >= self._batch_bytes

    def take(self) -> bytes:
        rows = b"".join(self._waiting)
        self._waiting.clear()
        self._size = 0
        return rows


class Loader:
    def __init__(self, shards: list[str], batch_bytes: int, turn: Turn) -> None:
        """turn: records the stage of this process."""
        self._shards = shards
        self._batch_bytes = batch_bytes
        self.turn = turn
        self._connections: list[psycopg.Connection] = []
        self._blocks = self._unwritten = 0

    def load(self, client: Stream) -> None:
        """Load one file. Nothing of it stays where the client hangs up or is out of step, or a shard refuses."""
        (file,) = FILE_BODY.unpack(client.expect(FILE))
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
        client.send(LOADED)

    def _begin(self, file: int) -> None:
        if not self._connections:
            self._connections = [psycopg.connect(shard, application_name=APPLICATION) for shard in self._shards]
        for connection in self._connections:
            connection.execute("SELECT pg_advisory_lock_shared(%s)", (LOADING,))
            connection.commit()
            connection.tpc_begin(transaction_of(file))

    def _copy(self, client: Stream, file: int) -> list[Content]:
        parts = [_Part(b"%d\t" % file, self._batch_bytes) for _ in self._connections]
        with ExitStack() as stack:
            copies = [stack.enter_context(connection.cursor().copy(COPY)) for connection in self._connections]
            while (frame := self._received(client))[0] == BLOCK:
                for row in frame[1].splitlines(keepends=True):
                    parts[shard_of(row[: row.index(b"\t")], len(parts))].add(row)
                self._blocks += 1
                self._unwritten += 1
                self.turn.count(SPLIT, 1)
                self._write([(part, copy) for part, copy in zip(parts, copies, strict=True) if part.full])
                client.send(TAKEN)
            self._write(list(zip(parts, copies, strict=True)))
        got = Content(sum(part.rows for part in parts), sum(part.amount for part in parts))
        if frame[0] != END or Content(*END_BODY.unpack(frame[1])) != got:
            raise OutOfStepError(f"the file does not end with what it held: {got.rows} rows arrived")
        return [Content(part.rows, part.amount) for part in parts]

    def _received(self, client: Stream) -> tuple[bytes, bytes]:
        self.turn.to(LOADER.waiting)
        frame = client.receive()
        self.turn.to(SPLIT)
        return frame

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
    """Load the file of one connection; errors are sent to the client and written to standard error."""
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
    """Send a client why its file is not loaded; nothing where it has hung up."""
    text = because.encode()
    with suppress(OSError):
        connection.sendall(HEAD.pack(REFUSED, len(text)) + text)
