"""One pipeline of the bulk-ingest workload: reads files from the disk, parses them, sends the valid rows to the loader.

Run as `python -P -m loadframe_bulk.client SOCKET LOG LOADED SECONDS WAIT SHARE STAGES FIRST STRIDE
FILE...`. It prints "ready", reads the instant of the common start (CLOCK_MONOTONIC, s) from standard input, and loads
one file after the other, numbered FIRST, FIRST + STRIDE, ... . WAIT: seconds before a block can be read. SHARE: the
part of the first file that is sent before it is rolled back, so that pipelines are at different places of their files;
what is being loaded when the time is up is rolled back too. STAGES: a file to which all clients append statistics of
their stages (docs/pipelines.md). LOADED gets the numbers of committed files, one a line.

Each block of a file is one request, from its read until the loader has taken it (the last one: until the file is
committed), and so is each file. Standard library only."""

import os
import socket
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from itertools import count, cycle

from loadframe.workloads.request_log import RECORD
from loadframe_bulk import protocol
from loadframe_bulk.protocol import TAKEN, HungUpError, OutOfStepError, Stream
from loadframe_bulk.turns import CLIENT, PARSE, READ, Turn, lines, own_turn, write_regularly

BLOCK_BYTES = 1 << 16
FIELDS = 4
AHEAD = 1
"""Blocks on their way: reading and parsing one overlaps with loading the one before."""
BLOCK_LOADED, FILE_LOADED = range(2)
DONE, FAILED = 0, 1


def blocks_of(path: str) -> Iterator[bytes]:
    """Pieces of whole lines of about BLOCK_BYTES, read from the disk rather than the page cache."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)  # nothing is read ahead that may not be wanted
        rest = b""
        while piece := os.read(descriptor, BLOCK_BYTES):
            lines, newline, tail = piece.rpartition(b"\n")
            if newline:
                yield rest + lines + newline
                rest = tail
            else:
                rest += piece
        if rest:
            yield rest + b"\n"
    finally:
        os.close(descriptor)


def valid_rows(block: bytes) -> tuple[bytes, int, int]:
    """The lines of a block that are rows (key, stamp, amount, note; comma-separated), in COPY's text format; their
    number and the sum of their amounts."""
    rows, total = [], 0
    for line in block.splitlines():
        fields = line.split(b",")
        if len(fields) != FIELDS or not fields[0] or b"\t" in line or b"\\" in line:
            continue
        try:
            int(fields[1])
            total += int(fields[2])
        except ValueError:
            continue
        rows.append(b"\t".join(fields))
    return b"\n".join([*rows, b""]) if rows else b"", len(rows), total


class Pipeline:
    def __init__(self, address: str, log: str, loaded: str, wait_s: float, end_s: float, turn: Turn) -> None:
        self._address, self._turn, self._wait_s, self._end_s = address, turn, wait_s, end_s
        self._log = open(log, "wb", buffering=0)  # noqa: PTH123, SIM115 - pathlib costs start-up time; closed with us
        self._loaded = open(loaded, "w", buffering=1, encoding="utf-8")  # noqa: PTH123, SIM115

    def load(self, path: str, number: int, share: float = 1.0) -> None:
        """Load this share of a file. Raises HungUpError or OutOfStepError."""
        most = share * os.path.getsize(path)  # noqa: PTH202 - as above
        began_s = time.monotonic()
        self._turn.to(CLIENT.handing_on)
        rows = amount = size = 0
        on_the_way: deque[float] = deque()
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self._address)
        with closing(Stream(connection)) as loader:
            loader.send(protocol.FILE, protocol.FILE_BODY.pack(number))
            blocks = blocks_of(path)
            begin_s = self._wait()
            for block in blocks:
                self._turn.to(PARSE)
                text, count, total = valid_rows(block)
                self._turn.count(READ, 1)
                self._turn.count(PARSE, 1)
                self._turn.to(CLIENT.handing_on)
                rows, amount, size = rows + count, amount + total, size + len(block)
                loader.send(protocol.BLOCK, text)
                on_the_way.append(begin_s)
                if len(on_the_way) > AHEAD:
                    self._taken(loader, on_the_way)
                begin_s = self._wait()
                if begin_s >= self._end_s or (share < 1 and size >= most):
                    return  # hanging up takes the file back
            self._turn.to(CLIENT.handing_on)
            while len(on_the_way) > 1:
                self._taken(loader, on_the_way)
            loader.send(protocol.END, protocol.END_BODY.pack(rows, amount))
            if on_the_way:
                loader.expect(TAKEN)
            loader.expect(protocol.LOADED)
        self._loaded.write(f"{number}\n")
        now_s = time.monotonic()
        for begin_s in on_the_way:
            self._note(now_s, now_s - begin_s, BLOCK_LOADED, DONE)
        self._note(now_s, now_s - began_s, FILE_LOADED, DONE)

    def _wait(self) -> float:
        self._turn.to(READ)
        if self._wait_s:
            time.sleep(self._wait_s)
        return time.monotonic()

    def _taken(self, loader: Stream, on_the_way: deque[float]) -> None:
        loader.expect(TAKEN)
        now_s = time.monotonic()
        self._note(now_s, now_s - on_the_way.popleft(), BLOCK_LOADED, DONE)

    def failed(self) -> None:
        self._note(time.monotonic(), 0.0, FILE_LOADED, FAILED)

    def _note(self, end_s: float, latency_s: float, operation: int, outcome: int) -> None:
        self._log.write(RECORD.pack(end_s, 1e3 * latency_s, 0.0, operation, outcome))


def main(arguments: list[str]) -> int:
    """Exit 0 when the time was up; 1 with a line on standard error if the loader refused a file."""
    address, log, loaded, seconds, wait, share, stages, first, stride, *paths = arguments
    print("ready", flush=True)
    start_s = float(sys.stdin.readline())
    end_s = start_s + float(seconds)
    turn = own_turn(CLIENT)
    turn.begin(CLIENT.waiting)
    pipeline = Pipeline(address, log, loaded, float(wait), end_s, turn)
    time.sleep(max(0.0, start_s - time.monotonic()))
    end_lines = write_regularly(stages, lambda: lines(CLIENT, [turn], os.getpid()))
    part = float(share)
    try:
        for path, number in zip(cycle(paths), count(int(first), int(stride))):
            if time.monotonic() >= end_s:
                return 0
            try:
                pipeline.load(path, number, part)
            except (HungUpError, OutOfStepError, OSError) as error:
                pipeline.failed()
                print(f"FATAL {type(error).__name__}: {error} (loading {path} through {address})", file=sys.stderr)
                return 1
            part = 1.0
        return 0
    finally:
        end_lines()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
