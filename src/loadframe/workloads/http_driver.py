"""wrk as a driver: starts http.lua with a thread for each connection. wrk tells its script no connection, so an answer
is always that to the thread's last request. In an open loop all connections take from one queue (arrivals.py)."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from loadframe.host.environment import located
from loadframe.host.privilege import US, Privilege
from loadframe.host.processes import Allowance, spawn
from loadframe.model import Endpoint, Requirement, Think
from loadframe.workloads import asks, beginning, step_files
from loadframe.workloads.arrivals import (
    ARRIVALS,
    HEAD_START_S,
    READY_WITHIN_S,
    Schedule,
    await_ready,
    let_begin,
)
from loadframe.workloads.asking import host_of
from loadframe.workloads.asks import Ask
from loadframe.workloads.driving import GRACE_S, SILENT_S, ProcessDriver
from loadframe.workloads.kind import program

SCRIPT = Path(__file__).with_name("http.lua")
MOST_CONNECTIONS = 1024
"""wrk has a thread for each of them."""
OUTCOMES = ("done", "no answer", "wrong status", "wrong length", "wrong bytes", "wrong words")
"""The outcome of a request, by the number in the request log."""


Order = Literal["draw", "walk", "replay"]
"""How requests follow one another: by their weights, one after the other, or as a schedule says."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What wrk is to ask for. address: host and port, as a number. host: of the header Host. text: the file with the
    contents of answers. compared: of this many answers one is compared with its content. table: of objects, a file
    (objects.py), with checked: what of an answer (asks.CHECKED); None where there are requests: the block of asks.py.
    order: in which they are sent. think: the pause of a user before each. secret: variables of the environment that wrk
    is not to have. largest_bytes: of an answer as it should be, or of a request."""

    address: str
    host: str
    text: Path
    compared: int
    keep_alive: bool
    table: Path | None = None
    checked: str = "status"
    block: bytes = b""
    order: Order = "draw"
    think: Think | None = None
    secret: frozenset[str] = frozenset()
    largest_bytes: int = 0


def plan(
    asked: Sequence[Ask],
    endpoint: Endpoint,
    folder: Path,
    owner: Privilege,
    *,
    sessions: Sequence[bytes],
    keep_alive: bool,
    compared: int = 1,
    order: Order = "draw",
    think: Think | None = None,
    secret: frozenset[str] = frozenset(),
) -> Plan:
    """Of requests; what wrk reads is written into the folder. sessions: see asks.block."""
    text, host, close = folder / "pages.bin", host_of(endpoint), not keep_alive
    step_files.write(text, asks.contents(asked), owner)
    largest = (max(len(one.head(host, close=close)) + len(one.body), one.known.most) for one in asked)
    return Plan(
        address=endpoint.address,
        host=host,
        text=text,
        compared=compared,
        keep_alive=keep_alive,
        block=asks.block(asked, sessions, host, close=close),
        order=order,
        think=think,
        secret=secret,
        largest_bytes=max(largest),
    )


OWN_BYTES, CONNECTION_BYTES, COPIES = 512 << 20, 24 << 20, 8
"""Memory of wrk itself; of each thread with its stack of 8 MiB; how often an answer may be in it: as read, its copy
in Lua, and those that Lua has not collected yet."""


def _bounded(allowance: Allowance, connections: int, plan: Plan) -> Allowance:
    """wrk keeps an answer in memory as long as it comes: a page that becomes one without an end ends wrk, and nothing
    else on the machine (setrlimit(2), RLIMIT_DATA)."""
    most = OWN_BYTES + connections * (CONNECTION_BYTES + COPIES * plan.largest_bytes)
    return replace(allowance, limits={"RLIMIT_DATA": most, **allowance.limits})


def open_files(connections: int) -> int:
    """The most that the driver has open at this number of connections: of each thread a connection, a log of requests
    and one of bytes, and what it waits on (260 were counted at 64 connections); and what a process has besides."""
    return 4 * connections + 32


def requirements(kind: str) -> tuple[Requirement, ...]:
    """What it needs whatever the target."""
    return (program(kind, "wrk", "wrk"),)


def trials() -> tuple[tuple[str, ...], ...]:
    return (("test", "-x", located("wrk") or "wrk"), ("cat", str(SCRIPT), str(SCRIPT.with_name("driver.lua"))))


def start(
    name: str,
    plan: Plan,
    *,
    allowance: Allowance,
    connections: int,
    folder: Path,
    duration_s: float,
    rate: float | Schedule | None = None,
) -> ProcessDriver:
    """Each thread writes `requests-N.log` and `bytes-N.log`. rate: per second, or when; None: a closed loop."""
    folder = folder.resolve()
    logs, sizes = ([folder / f"{what}-{thread}.log" for thread in range(connections)] for what in ("requests", "bytes"))
    for path in (*logs, *sizes, folder / "ended"):
        path.unlink(missing_ok=True)
    # All seconds are the script's business; wrk's own are the end of one that hangs.
    grace_s = max(GRACE_S, SILENT_S, duration_s)
    most_s = math.ceil(READY_WITHIN_S + HEAD_START_S + beginning.longest_s() + duration_s + grace_s)
    # wrk has room for three descriptors per connection (ae.c; events of others are lost without a word), and a thread
    # of ours has four. It makes connections / threads in each thread, rounded down: one, with room for nearly two.
    room = 2 * connections - 1
    command = ["wrk", "--threads", str(connections), "--connections", str(room), "--duration", f"{most_s}s"]
    command += ["--header", f"Host: {plan.host}", "--script", str(SCRIPT), f"http://{plan.address}/", "--"]
    printed, schedule = folder / "wrk.txt", folder / ARRIVALS
    with ExitStack() as files:
        output = files.enter_context(step_files.create(printed, US))
        to_come = files.enter_context(step_files.create(schedule, US))
        # Opened a second time by its descriptor: in this folder the driver's user may put another file in its place.
        waiting = files.enter_context(Path(f"/proc/self/fd/{to_come.fileno()}").open("rb", buffering=0))
        block = None if plan.table is not None else asks.handed_over(plan.block)
        if block is not None:
            files.callback(os.close, block)
        process = spawn(
            [*command, *_arguments(plan, folder, connections, closed=rate is None, block=block)],
            _bounded(allowance, connections, plan),
            stdin=waiting,
            stdout=output,
            stderr=output,
            cwd=folder,
            env={name: value for name, value in os.environ.items() if name not in plan.secret},
            pass_fds=[] if block is None else [block],
        )
        try:
            await_ready(process, logs)
            arrivals, end_s = let_begin(to_come, rate, duration_s, connections)
        except BaseException:  # it waits for its requests, and would for ever
            ProcessDriver(name, [process], logs=logs, printed=[printed], end_s=None).kill()
            raise
    return ProcessDriver(
        name, [process], logs=logs, printed=[printed], end_s=end_s, arrivals=arrivals, sizes=sizes,
        duration_s=duration_s, one_each=rate is None and plan.think is None and plan.order != "walk",
    )  # fmt: skip


def _arguments(plan: Plan, folder: Path, connections: int, *, closed: bool, block: int | None) -> list[str]:
    think = plan.think or Think(0.0, "fixed")
    return [
        str(folder),
        str(connections),
        "-" if plan.table is None else str(plan.table),
        str(plan.text),
        "closed" if closed else "open",
        plan.checked,
        str(plan.compared),
        "keep-alive" if plan.keep_alive else "close",
        "-" if block is None else str(block),
        plan.order,
        f"{think.mean_s:.9f}",
        think.spread,
    ]
