"""Every column of every entry of a tree in the database beside what find(1) prints, for benchmarks and tests."""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path

from loadframe.model import AnswerCompared
from loadframe_index.beneath import shown
from loadframe_index.entries import id_of, in_64_bits
from loadframe_index.store import Store, as_signed
from loadframe_index.verifying import MOST_NAMED, listed, only

ALL = ("path", "device", "inode", "type", "size", "blocks", "links", "uid", "gid", "mode", "mtime_ns", "ctime_ns")
"""What `everything` compares: all but atime_ns, which changes when a directory is read."""
_PRINTED = "".join(rf"%{letter}\0" for letter in ("P", "D", "i", "y", "s", "b", "n", "U", "G", "m", "T@", "C@"))
_DIGEST_BYTES = 8


def everything(store: Store, root: Path) -> AnswerCompared:
    """Every column of ALL, of every entry of the tree. MissingTool, WorkloadError, StoreError."""
    ours = {row[0]: _digest((*row[2:3], *row[4:13], *row[14:16])) for row in store.rows()}
    count, entries = len(ours), 0
    other: list[bytes] = []
    only_theirs: list[bytes] = []
    listing = listed(os.fsencode(root.absolute()), [], _PRINTED, len(ALL))
    for path, device, inode, type_, *numbers, mtime, ctime in listing:
        entries += 1
        links_to_gid, mode = [int(number) for number in numbers[:-1]], int(numbers[-1], 8)
        told = (path, int(device), as_signed(int(inode)), type_.decode(), *links_to_gid, mode, _ns(mtime), _ns(ctime))
        known = ours.pop(id_of(path), None)
        if known != _digest(told):
            (only_theirs if known is None else other).append(path)
    only_ours = [row[2] for row in store.rows() if row[0] in ours][:MOST_NAMED] if ours else []
    differences = only("find", only_theirs[:MOST_NAMED]) + only("the database", only_ours)
    differences += tuple(
        f"find and the database differ in what they tell of {shown(path)}" for path in other[:MOST_NAMED]
    )
    return AnswerCompared("entries with all their columns", count, entries, differences)


def _digest(told: tuple[object, ...]) -> bytes:
    return blake2b(repr(told).encode(), digest_size=_DIGEST_BYTES).digest()


def _ns(seconds: bytes) -> int:
    """As find prints a time, with a fraction of ten digits, of which the last is 0; as the database keeps it."""
    whole, _, fraction = seconds.partition(b".")
    return in_64_bits(int(whole) * 1_000_000_000 + int((fraction + bytes(9).replace(b"\0", b"0"))[:9]))
