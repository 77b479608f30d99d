"""wrk with http.lua as a driver, with one thread per connection, as wrk does not show its script which connection an
answer belongs to. In an open loop all connections take from one queue (arrivals.py)."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Literal

from loadframe.connections.http_words import REPEATABLE
from loadframe.host.environment import located
from loadframe.host.privilege import US
from loadframe.host.processes import spawn
from loadframe.model import Checked, Endpoint, Requirement, Think
from loadframe.workloads import step_files
from loadframe.workloads.arrivals import (
    ARRIVALS,
    HEAD_START_S,
    READY_WITHIN_S,
    Schedule,
    await_ready,
    let_begin,
    longest_s,
)
from loadframe.workloads.asking import host_of
from loadframe.workloads.base import demand, program
from loadframe.workloads.common import Common, Options
from loadframe.workloads.driving import GRACE_S, SILENT_S, ProcessDriver

CHECKED: tuple[Checked, ...] = ("status", "length", "bytes", "size")
HEAD = [("asks", "<u8"), ("sessions", "<u8")]
PIECE = [("offset", "<u8"), ("size", "<u8")]
PIECES = ("head", "body", "wanted", "contains", "fails")
RECORD = [
    ("up_to", "<f8"),
    ("think_s", "<f8"),
    *((f"{piece}_{name}", form) for piece in PIECES for name, form in PIECE),
    ("shortest", "<u8"),
    ("longest", "<u8"),
    ("operation", "<u4"),
    ("lowest", "<u2"),
    ("highest", "<u2"),
    ("checked", "<u4"),
    ("repeatable", "<u4"),
]
"""As in http.lua. up_to: cumulative weight. wanted: in the file of contents. repeatable: may be sent again if the
server has closed the connection meanwhile."""
LONGER = 256
SCRIPT = Path(__file__).with_name("http.lua")
MOST_CONNECTIONS = 1024
OUTCOMES = ("done", "no answer", "wrong status", "wrong length", "wrong bytes", "wrong words")
OWN_BYTES, CONNECTION_BYTES, COPIES = 512 << 20, 24 << 20, 8
"""Memory of wrk itself; of each thread with a stack of 8 MiB; copies of an answer in memory: as read, in Lua, and not
yet collected."""
Order = Literal["draw", "walk", "replay"]
"""How requests follow one another: drawn by weight, in sequence, or by a schedule."""


@dataclass(frozen=True, slots=True)
class Learnt:
    """Of a page. body: kept if it or its length is checked. shortest, longest: seen, in bytes."""

    body: bytes = b""
    shortest: int = 0
    longest: int = 0

    @property
    def least(self) -> int:
        """The fewest bytes of an answer of about this size."""
        return -(-self.shortest // 2)

    @property
    def most(self) -> int:
        """An error answered with 200 seldom has the page's size, while numbers and times in a page may grow."""
        return 2 * self.longest + LONGER


@dataclass(frozen=True, slots=True)
class Ask:
    """One request, with its secrets. lowest, highest: statuses of a right answer. checked, known: what of its body is
    compared, and with what. contains, fails: words that it must and must not have. think_s: a user's pause before
    it."""

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
        """The request line and headers, without the empty line."""
        lines = [f"{self.method} {self.path} HTTP/1.1", f"Host: {host}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        lines += ["Connection: close"] if close else []
        lines += [f"Content-Length: {len(self.body)}"] if self.method != "GET" or self.body else []
        return "".join(f"{line}\r\n" for line in lines).encode("latin-1")


def block(asks: Sequence[Ask], sessions: Sequence[bytes], host: str, *, close: bool) -> bytes:
    """What http.lua reads. sessions: further headers of each connection. close: one connection per request."""
    import numpy as np

    pieces, wanted, up_to = bytearray(), 0, 0.0
    begin = np.dtype(HEAD).itemsize + len(asks) * np.dtype(RECORD).itemsize + len(sessions) * np.dtype(PIECE).itemsize

    def place(piece: bytes) -> tuple[int, int]:
        pieces.extend(piece)
        return begin + len(pieces) - len(piece), len(piece)

    records = []
    for ask in asks:
        known, up_to = ask.known, up_to + ask.weight
        head, body = place(ask.head(host, close=close)), place(ask.body)
        page = (wanted, len(known.body), *place(ask.contains), *place(ask.fails), known.least, known.most)
        right = (ask.operation, ask.lowest, ask.highest, CHECKED.index(ask.checked), ask.method in REPEATABLE)
        records.append((up_to, ask.think_s, *head, *body, *page, *right))
        wanted += len(known.body)
    places = [place(session) for session in sessions]
    tables = (([(len(asks), len(sessions))], HEAD), (records, RECORD), (places, PIECE))
    return b"".join([*(np.array(rows, dtype=form).tobytes() for rows, form in tables), pieces])


@dataclass(frozen=True, slots=True)
class Plan:
    """What wrk sends: requests, or objects by a table (objects.py). sessions: see `block`. text: the file with the
    contents of objects, whose largest has largest_bytes; what of them is `checked`. compared: one in this many answers
    is compared with its content. think: the pause before each. secret: environment variables withheld from wrk."""

    asks: Sequence[Ask] = ()
    sessions: Sequence[bytes] = ()
    _: KW_ONLY
    table: Path | None = None
    text: Path = Path()
    checked: Checked = "status"
    largest_bytes: int = 0
    compared: int = 1
    order: Order = "draw"
    think: Think | None = None
    secret: frozenset[str] = frozenset()


def open_files(connections: int) -> int:
    """Descriptors. Per thread: a connection, two logs, and what it waits on (260 were counted at 64 connections)."""
    return 4 * connections + 32


def requirements(kind: str) -> tuple[Requirement, ...]:
    return (program(kind, "wrk", "wrk"),)


def trials() -> tuple[tuple[str, ...], ...]:
    return (("test", "-x", located("wrk") or "wrk"), ("cat", str(SCRIPT), str(SCRIPT.with_name("driver.lua"))))


class ByWrk(Common[Options]):
    """Its options have `keep_alive`."""

    trials = staticmethod(trials)
    levels = (1, MOST_CONNECTIONS)

    def plan(self, endpoint: Endpoint, level: int, folder: Path) -> Plan:
        """What wrk reads for it is written into the folder."""
        raise NotImplementedError

    def schedule(self, level: int, duration_s: float) -> float | Schedule | None:
        """None: a closed loop."""
        return self.rate(level)

    def start(self, endpoint: Endpoint, level: float, folder: Path, duration_s: float) -> ProcessDriver:
        demand(requirements(self.kind))
        level, folder = self.check_level(level), folder.resolve()
        close: bool = not self.options.keep_alive  # type: ignore[attr-defined]
        plan, host = self.plan(endpoint, level, folder), host_of(endpoint)
        connections, rate = self.clients(level), self.schedule(level, duration_s)
        logs, sizes = (
            [folder / f"{what}-{thread}.log" for thread in range(connections)] for what in ("requests", "bytes")
        )
        for path in (*logs, *sizes, folder / "ended"):
            path.unlink(missing_ok=True)
        text, largest_bytes = plan.text, plan.largest_bytes
        if plan.asks:
            text = folder / "pages.bin"
            bodies = [ask.known.body for ask in plan.asks]
            step_files.write(text, b"".join(bodies) + b"\0", self.allowance.user)  # an empty file cannot be mapped
            largest_bytes = max(
                max(len(ask.head(host, close=close)) + len(ask.body), ask.known.most) for ask in plan.asks
            )
        # The script keeps the time; wrk's own limit ends one that hangs.
        grace_s = max(GRACE_S, SILENT_S, duration_s)
        most_s = math.ceil(READY_WITHIN_S + HEAD_START_S + longest_s() + duration_s + grace_s)
        # wrk has room for three descriptors per connection (ae.c; events of others are lost silently), and a thread of
        # ours has four. It makes connections / threads in each thread, rounded down: one, with room for nearly two.
        room = 2 * connections - 1
        command = ["wrk", "--threads", str(connections), "--connections", str(room), "--duration", f"{most_s}s"]
        command += ["--header", f"Host: {host}", "--script", str(SCRIPT), f"http://{endpoint.address}/", "--"]
        # wrk keeps an answer in memory: an endless one must end wrk, and nothing else (setrlimit(2), RLIMIT_DATA).
        most_bytes = OWN_BYTES + connections * (CONNECTION_BYTES + COPIES * largest_bytes)
        think = plan.think or Think(0.0, "fixed")
        printed, schedule = folder / "wrk.txt", folder / ARRIVALS
        with ExitStack() as files:
            output = files.enter_context(step_files.create(printed, US))
            to_come = files.enter_context(step_files.create(schedule, US))
            # Opened a second time by its descriptor: the driver's user may replace files in this folder.
            waiting = files.enter_context(Path(f"/proc/self/fd/{to_come.fileno()}").open("rb", buffering=0))
            descriptors = []
            if plan.asks:
                requests = block(plan.asks, plan.sessions, host, close=close)
                descriptors.append(files.enter_context(step_files.in_memory(requests)))
            command += [str(folder), str(connections), str(plan.table or "-"), str(text)]
            command += ["closed" if rate is None else "open", plan.checked, str(plan.compared)]
            command += ["close" if close else "keep-alive", str(descriptors[0]) if descriptors else "-"]
            command += [plan.order, f"{think.mean_s:.9f}", think.spread]
            process = spawn(
                command,
                replace(self.allowance, limits={"RLIMIT_DATA": most_bytes, **self.allowance.limits}),
                stdin=waiting,
                stdout=output,
                stderr=output,
                cwd=folder,
                env={name: value for name, value in os.environ.items() if name not in plan.secret},
                pass_fds=descriptors,
            )
            try:
                await_ready(process, logs)
                arrivals, end_s = let_begin(to_come, rate, duration_s, connections)
            except BaseException:  # wrk would wait for its requests for ever
                ProcessDriver(self.kind, [process], logs=logs, printed=[printed], end_s=None).kill()
                raise
        return ProcessDriver(
            self.kind, [process], logs=logs, printed=[printed], end_s=end_s, arrivals=arrivals, sizes=sizes,
            duration_s=duration_s, one_each=rate is None and plan.think is None and plan.order != "walk",
        )  # fmt: skip
