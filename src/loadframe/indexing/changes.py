"""A change of an entry, as change logs tell it."""

from __future__ import annotations

from dataclasses import dataclass

KINDS = ("create", "unlink", "rename", "setattr", "close_write")


@dataclass(frozen=True, slots=True)
class Change:
    """kind: of KINDS. path: bytes, relative to the root of the tree. to: where a rename leads. number: grows within a
    log. time_s: since the epoch. file: which file it happened to, whatever its names are now, in words of the reader
    (Reader.inode_of); b"" where that is not told."""

    kind: str
    path: bytes
    to: bytes = b""
    number: int = 0
    time_s: float = 0.0
    file: bytes = b""
