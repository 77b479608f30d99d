"""Requests as wrk sends them, written out before the load into one block of memory that http.lua maps: HEAD, a RECORD
for each request, a PIECE for each connection with the headers of its session, and the bytes that these refer to. It is
handed over as a descriptor without a name in any folder, as it may hold secrets."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from loadframe.connections.http_words import REPEATABLE
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
"""As in http.lua. up_to: the weights of this request and all before it, added up. wanted: of the file of contents.
repeatable: may be sent again where the server has closed the connection meanwhile."""


LONGER = 256


@dataclass(frozen=True, slots=True)
class Learnt:
    """What a page was like. body: where all of it or its length is checked. shortest, longest: seen, in bytes."""

    body: bytes = b""
    shortest: int = 0
    longest: int = 0

    @property
    def least(self) -> int:
        """Bytes that an answer of about this size has at least."""
        return -(-self.shortest // 2)

    @property
    def most(self) -> int:
        """Bytes that it has at most: an error that is answered with 200 is seldom of the size of the page, while a
        number, a time or a name in it may be longer than before."""
        return 2 * self.longest + LONGER


@dataclass(frozen=True, slots=True)
class Ask:
    """One request, with its secrets; what stands in it has been looked at (connections/http_words.py). operation: its
    number. lowest, highest: the statuses of a right answer. checked, known: what is compared of its body, and with
    what. contains, fails: words that it has, and has not; b"": none. think_s: the pause of a user before it, in a
    sequence."""

    method: str
    path: str
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    operation: int = 0
    weight: float = 1.0
    lowest: int = 200
    highest: int = 200
    checked: Checked = "status"
    known: Learnt = Learnt()
    contains: bytes = b""
    fails: bytes = b""
    think_s: float = 0.0

    def head(self, host: str, *, close: bool) -> bytes:
        """Its line and headers, each with its end, without the empty line."""
        lines = [f"{self.method} {self.path} HTTP/1.1", f"Host: {host}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        lines += ["Connection: close"] if close else []
        lines += [f"Content-Length: {len(self.body)}"] if self.method != "GET" or self.body else []
        return "".join(f"{line}\r\n" for line in lines).encode("latin-1")


def block(asks: Sequence[Ask], sessions: Sequence[bytes], host: str, *, close: bool) -> bytes:
    """As http.lua reads it. sessions: further headers of each connection. close: one connection for each request."""
    import numpy as np

    places = np.zeros(len(sessions), dtype=PIECE)
    records = np.zeros(len(asks), dtype=RECORD)
    begin = np.dtype(HEAD).itemsize + records.nbytes + places.nbytes
    pieces = [piece for ask in asks for piece in (ask.head(host, close=close), ask.body, ask.contains, ask.fails)]
    pieces += sessions
    sizes = np.array([len(piece) for piece in pieces], dtype=np.uint64)
    offsets = begin + np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.uint64)
    each = ("head", "body", "contains", "fails")
    of_asks = len(each) * len(asks)
    for at, name in enumerate(each):
        records[f"{name}_offset"] = offsets[at : of_asks : len(each)]
        records[f"{name}_size"] = sizes[at : of_asks : len(each)]
    places["offset"], places["size"] = offsets[of_asks:], sizes[of_asks:]
    wanted = np.array([len(ask.known.body) for ask in asks], dtype=np.uint64)
    records["wanted_offset"], records["wanted_size"] = np.concatenate([[0], np.cumsum(wanted)[:-1]]), wanted
    records["up_to"] = np.cumsum([ask.weight for ask in asks])
    records["checked"] = [CHECKED.index(ask.checked) for ask in asks]
    records["repeatable"] = [ask.method in REPEATABLE for ask in asks]
    records["shortest"], records["longest"] = zip(*((ask.known.least, ask.known.most) for ask in asks), strict=True)
    for name in ("think_s", "operation", "lowest", "highest"):
        records[name] = [getattr(ask, name) for ask in asks]
    first = np.array([(len(asks), len(sessions))], dtype=HEAD)
    return b"".join([first.tobytes(), records.tobytes(), places.tobytes(), *pieces])


def contents(asks: Sequence[Ask]) -> bytes:
    """The bodies of right answers, as the records of a block refer to them."""
    return b"".join(ask.known.body for ask in asks) + b"\0"  # of nothing there is no mapping


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
