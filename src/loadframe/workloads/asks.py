"""Requests as wrk sends them: each written out before the load, in one block of memory that http.lua maps.

A block has a head (HEAD), a record for each request (RECORD), a record for each connection with the headers of its
session (PIECE), and the bytes that these refer to. It is handed over as a descriptor without a name in any folder, as
it may hold secrets.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from loadframe.model import Checked

CHECKED: tuple[Checked, ...] = ("status", "length", "bytes", "size")
"""By the number in a record."""
HEAD = [("asks", "<u8"), ("sessions", "<u8")]
PIECE = [("offset", "<u8"), ("size", "<u8")]
RECORD = [
    ("up_to", "<f8"),
    ("think_s", "<f8"),
    ("head_offset", "<u8"),
    ("head_size", "<u8"),
    ("body_offset", "<u8"),
    ("body_size", "<u8"),
    ("wanted_offset", "<u8"),
    ("wanted_size", "<u8"),
    ("contains_offset", "<u8"),
    ("contains_size", "<u8"),
    ("fails_offset", "<u8"),
    ("fails_size", "<u8"),
    ("shortest", "<u8"),
    ("longest", "<u8"),
    ("operation", "<u4"),
    ("lowest", "<u2"),
    ("highest", "<u2"),
    ("checked", "<u4"),
    ("repeatable", "<u4"),
]
"""As in http.lua. up_to: the weights of this request and all before it, added up. wanted: of the file of contents."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One request. head: its line and headers, each with its end, without the empty line. lowest, highest: the statuses
    of a right answer. wanted: its body, where that or its length is checked. contains, fails: words that its body has,
    and has not; b"": none. shortest, longest: of it in bytes, where its size is checked. repeatable: may be sent again
    where the server has closed the connection meanwhile. think_s: the pause of a user before it, in a sequence."""

    operation: int
    head: bytes
    body: bytes = b""
    weight: float = 1.0
    lowest: int = 200
    highest: int = 200
    checked: Checked = "status"
    wanted: bytes = b""
    repeatable: bool = True
    think_s: float = 0.0
    contains: bytes = b""
    fails: bytes = b""
    shortest: int = 0
    longest: int = 0

    @property
    def size(self) -> int:
        """Bytes that are sent, without those of a session."""
        return len(self.head) + len(b"\r\n") + len(self.body)


def head(method: str, path: str, host: str, headers: Sequence[tuple[str, str]] = (), *, close: bool = False) -> bytes:
    """The line and the headers of a request; what stands in them has been looked at (connections/http_words.py)."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *(f"{name}: {value}" for name, value in headers)]
    return "".join(f"{line}\r\n" for line in [*lines, *(["Connection: close"] if close else [])]).encode("latin-1")


def sized(head: bytes, method: str, body: bytes) -> bytes:
    """A head with the length of the body, where one may be expected."""
    return head if method == "GET" and not body else head + f"Content-Length: {len(body)}\r\n".encode()


def block(asks: Sequence[Ask], sessions: Sequence[bytes]) -> bytes:
    """As http.lua reads it. sessions: further headers of each connection, each with its end."""
    import numpy as np

    places = np.zeros(len(sessions), dtype=PIECE)
    records = np.zeros(len(asks), dtype=RECORD)
    begin = np.dtype(HEAD).itemsize + records.nbytes + places.nbytes
    pieces = [piece for ask in asks for piece in (ask.head, ask.body, ask.contains, ask.fails)] + list(sessions)
    sizes = np.array([len(piece) for piece in pieces], dtype=np.uint64)
    offsets = begin + np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.uint64)
    each = ("head", "body", "contains", "fails")
    of_asks = len(each) * len(asks)
    for at, name in enumerate(each):
        records[f"{name}_offset"] = offsets[at : of_asks : len(each)]
        records[f"{name}_size"] = sizes[at : of_asks : len(each)]
    places["offset"], places["size"] = offsets[of_asks:], sizes[of_asks:]
    wanted = np.array([len(ask.wanted) for ask in asks], dtype=np.uint64)
    records["wanted_offset"], records["wanted_size"] = np.concatenate([[0], np.cumsum(wanted)[:-1]]), wanted
    records["up_to"] = np.cumsum([ask.weight for ask in asks])
    records["checked"] = [CHECKED.index(ask.checked) for ask in asks]
    for name in ("think_s", "operation", "lowest", "highest", "repeatable", "shortest", "longest"):
        records[name] = [getattr(ask, name) for ask in asks]
    first = np.array([(len(asks), len(sessions))], dtype=HEAD)
    return b"".join([first.tobytes(), records.tobytes(), places.tobytes(), *pieces])


def handed_over(content: bytes) -> int:
    """A descriptor of memory with this content, for a process that inherits it; the caller closes it."""
    descriptor = os.memfd_create("loadframe-requests", os.MFD_CLOEXEC)
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(content)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
