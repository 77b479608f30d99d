"""wrk as a driver: starts http.lua with a thread for each connection.

wrk tells its script no connection, so with one connection in each thread an answer is always that to the thread's last
request. In an open loop requests arrive at random and all connections take from one queue, as with the other drivers of
this house (arrivals.py).
"""

from __future__ import annotations

import math
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from loadframe.host.environment import located
from loadframe.host.processes import Allowance, spawn
from loadframe.workloads import step_files
from loadframe.workloads.arrivals import ARRIVALS, HEAD_START_S, READY_WITHIN_S, await_ready, closed_loop, open_loop
from loadframe.workloads.driving import GRACE_S, ProcessDriver

SCRIPT = Path(__file__).with_name("http.lua")
OUTCOMES = ("done", "no answer", "wrong status", "wrong length", "wrong bytes")
"""The outcome of a request, by the number in the request log."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What wrk is to ask for. address: host and port, as a number. host: of the header Host. table, text: files of the
    objects (objects.py). checked: what of an answer (pages.CHECKS). compared: of this many answers one is compared
    with its content. paths: of pages that are not ours, one in each line. largest_bytes: of an answer as it should
    be."""

    address: str
    host: str
    table: Path
    text: Path
    checked: str
    compared: int
    keep_alive: bool
    paths: Path | None = None
    largest_bytes: int = 0


OWN_BYTES, CONNECTION_BYTES, COPIES = 512 << 20, 24 << 20, 8
"""Memory of wrk itself; of each thread with its stack of 8 MiB; how often an answer may be in it: as read, its copy
in Lua, and those that Lua has not collected yet."""


def _bounded(allowance: Allowance, connections: int, plan: Plan) -> Allowance:
    """wrk keeps an answer in memory as long as it comes: a page that becomes one without an end ends wrk, and nothing
    else on the machine (setrlimit(2), RLIMIT_DATA)."""
    most = OWN_BYTES + connections * (CONNECTION_BYTES + COPIES * plan.largest_bytes)
    return replace(allowance, limits={"RLIMIT_DATA": most, **allowance.limits})


def trials() -> tuple[tuple[str, ...], ...]:
    """See Workload.trials."""
    return (("test", "-x", located("wrk") or "wrk"), ("cat", str(SCRIPT), str(SCRIPT.with_name("driver.lua"))))


def start(
    name: str,
    plan: Plan,
    *,
    allowance: Allowance,
    connections: int,
    folder: Path,
    duration_s: float,
    rate: float | None = None,
) -> ProcessDriver:
    """Start wrk; each thread writes `requests-N.log` and `bytes-N.log` into `folder`. rate: requests per second in an
    open loop; None: a closed loop."""
    folder = folder.resolve()
    logs, sizes = ([folder / f"{what}-{thread}.log" for thread in range(connections)] for what in ("requests", "bytes"))
    for path in (*logs, *sizes, folder / "ended"):
        path.unlink(missing_ok=True)
    # All seconds are the script's business; wrk's own are the end of one that hangs.
    most_s = math.ceil(READY_WITHIN_S + HEAD_START_S + duration_s + GRACE_S)
    # wrk has room for three descriptors per connection (ae.c; events of others are lost without a word), and a thread
    # of ours has four. It makes connections / threads in each thread, rounded down: one, with room for nearly two.
    room = 2 * connections - 1
    command = ["wrk", "--threads", str(connections), "--connections", str(room), "--duration", f"{most_s}s"]
    command += ["--header", f"Host: {plan.host}"]
    command += ["--script", str(SCRIPT), f"http://{plan.address}/", "--", str(folder), str(connections)]
    command += [str(plan.table), str(plan.text), "closed" if rate is None else "open", plan.checked]
    command += [str(plan.compared), "keep-alive" if plan.keep_alive else "close", str(plan.paths or "-")]
    printed, schedule = folder / "wrk.txt", folder / ARRIVALS
    with ExitStack() as files:
        output = files.enter_context(step_files.create(printed))
        to_come = files.enter_context(step_files.create(schedule))
        waiting = files.enter_context(schedule.open("rb", buffering=0))
        held = _bounded(allowance, connections, plan)
        process = spawn(command, held, stdin=waiting, stdout=output, stderr=output, cwd=folder)
        await_ready(process, logs)
        arrivals = None
        if rate is None:
            end_s = closed_loop(to_come, duration_s, connections)
        else:
            arrivals = open_loop(to_come, rate, duration_s, connections)
            end_s = time.monotonic() + HEAD_START_S + duration_s
    return ProcessDriver(name, [process], logs=logs, printed=[printed], end_s=end_s, arrivals=arrivals, sizes=sizes)
