"""The input files of the bulk-ingest workload: rows of key, stamp, amount and note, separated by commas."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from loadframe.host.privilege import Privilege
from loadframe.ingest.store import NOTHING, Content
from loadframe.workloads import step_files
from loadframe.workloads.bulk_ingest_client import valid_rows

PIECE_BYTES = 1 << 20
PIECES = 4
"""The number of different pieces that files are put together from: random rows cost more to make than to load."""
BROKEN_EVERY = 500
"""Of this many lines one is no row, as real files have some; the client leaves it out."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file, and what of it is to arrive."""

    path: Path
    content: Content


def make_file(path: Path, size_bytes: int, seed: int, owner: Privilege) -> InputFile:
    """A file of this size, less than a row shorter, which its owner alone may read; on the disk when this returns, so
    that it can leave the cache."""
    content, left, turn = NOTHING, size_bytes, seed
    with step_files.create(path, owner) as file:
        while left > 0:
            piece = _piece(turn % PIECES)
            piece = piece if len(piece) <= left else piece[: piece.rfind(b"\n", 0, left) + 1]
            if not piece:
                break
            step_files.write_whole(file, piece)
            content += _content(piece)
            left, turn = left - len(piece), turn + 1
        os.fdatasync(file.fileno())
    return InputFile(path, content)


@cache
def _piece(seed: int) -> bytes:
    """Whole lines, PIECE_BYTES or a little less."""
    numbers = random.Random(seed)
    lines: list[str] = []
    size = 0
    while True:
        line = f"{numbers.getrandbits(64):016x},{numbers.randrange(10**9)},{numbers.randrange(10**6)},"
        line = "broken\n" if not (len(lines) + 1) % BROKEN_EVERY else f"{line}{numbers.getrandbits(200):050x}\n"
        size += len(line)
        if size > PIECE_BYTES:
            return "".join(lines).encode()
        lines.append(line)


@cache
def _content(piece: bytes) -> Content:
    _, rows, amount = valid_rows(piece)
    return Content(rows, amount)
