"""100,000 hostile inputs, and no traceback: python benchmarks/fuzz.py [--inputs N] [--surface NAME] [--seed N]

Valid studies, overrides, CSV files, cluster configurations, run folders, recordings, profiles, state files and answers
of servers are damaged - bytes, lines, tokens, keys, values - and given to the command as its console script has them:
in processes that carry out one after the other, and for a share of them in a process of its own. Nothing is loaded: the
verbs are those that read, check and compute. They run without any network but loopback, see no other process, and may
write into one folder; where the kernel does not allow that, the surfaces that could do harm are left out, and the
table says so.

A fault is a traceback (or a warning of Python's), a hang (longer than 20 s; than 50 s where a server is waited for), an
exit status that is not documented (`loadframe man`), and a wrong answer: no valid JSON, a number that is not finite, an
answer that contradicts itself or its exit status, an error without words, an escape sequence in a message, more than 1
GiB of memory. Prints a row for each surface, then each distinct fault with the command that shows it again; ends with 1
where there was one. Ctrl-C ends it with what there is so far.

Before that, files that are made to cost much - compressed ones, and ones of many small things - are read one by one,
each in a process of its own: none may take more than 64 MiB and 20 times its size of memory, nor more than 1 s and 1
s/MiB of CPU time.

Peers that are asked: MariaDB, PostgreSQL, HTTP, and HTTP for counters in Prometheus' format (peers.py).
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzzing import corpus, costs, worker
from fuzzing.surfaces import SURFACES

INPUTS = 100_000
HANG_S = 20.0
START_S = 120.0
"""For a worker to import everything, on a busy machine."""
BATCH = 2000
"""Inputs that a worker carries out before it is replaced by a new one."""
SHARE = 0.002
"""Of the inputs, carried out by a process of its own: it takes a hundred times as long."""
MOST_BYTES = 3 << 30
"""A worker that has more than this is killed; from 1 GiB on it is a fault of what it answers."""
LARGE_MIB = 64
"""In a file that is made to cost much (fuzzing/costs.py)."""
MOST_SHOWN = 60


@dataclass
class Row:
    """What came of a surface."""

    inputs: int = 0
    accepted: int = 0
    skipped: int = 0
    failures: dict[str, int] = field(default_factory=lambda: dict.fromkeys(worker.FAILURES, 0))
    seconds: float = 0.0
    longest_s: float = 0.0
    peak_bytes: int = 0


@dataclass
class Fault:
    """The first input that shows a fault, and how many do."""

    failure: str
    what: str
    surface: str
    seed: int
    count: int = 1


@dataclass
class Tally:
    rows: dict[str, Row] = field(default_factory=dict)
    faults: dict[tuple[str, str, str], Fault] = field(default_factory=dict)

    def add(self, surface: str, seed: int, ended: worker.Ended) -> None:
        row = self.rows.setdefault(surface, Row())
        row.inputs += 1
        row.accepted += ended.accepted
        row.seconds += ended.seconds
        row.longest_s = max(row.longest_s, ended.seconds)
        row.peak_bytes = max(row.peak_bytes, ended.peak_bytes)
        if ended.failure:
            row.failures[ended.failure] += 1
            fault = Fault(ended.failure, ended.what, surface, seed)
            known = self.faults.setdefault((surface, ended.failure, ended.what), fault)
            known.count += known is not fault

    def skip(self, surface: str) -> None:
        self.rows.setdefault(surface, Row()).skipped += 1

    @property
    def failed(self) -> bool:
        return bool(self.faults)


class Worker:
    """A process that carries out a batch; killed where it hangs, and the rest of its batch is left for another one."""

    def __init__(self, order: dict[str, Any], items: Sequence[tuple[str, int]]) -> None:
        self.left = list(items)
        self.folder = tempfile.TemporaryDirectory(prefix="loadframe-fuzz-", dir="/var/tmp", ignore_cleanup_errors=True)
        given = {**order, "folder": self.folder.name, "items": self.left}
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if order["keep"] else subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(given).encode())
        self._process.stdin.close()
        self.out = self._process.stdout
        self._unread = b""
        self._since, self._began = time.monotonic(), False

    def lines(self) -> Iterator[dict[str, Any]]:
        """What it has said since; to be called where there is something to read, or its end."""
        data = os.read(self.out.fileno(), 1 << 16)
        self._unread += data
        *whole, self._unread = self._unread.split(b"\n")
        for line in whole:
            yield json.loads(line)

    def take(self, line: dict[str, Any], tally: Tally) -> None:
        """Count what it said."""
        self._since = time.monotonic()
        self._began = "began" in line
        if "ended" in line:
            surface, seed = line.pop("ended")
            tally.add(surface, seed, worker.Ended(**line))
            self.left.pop(0)
        elif "skipped" in line:
            tally.skip(line["skipped"])
            self.left.pop(0)

    def too_large(self) -> bool:
        """Whether it, or the process that it confined, has taken more memory than any input may."""
        pids = [self._process.pid]
        with suppress(OSError, IndexError, ValueError):
            pids += map(int, Path(f"/proc/{pids[0]}/task/{pids[0]}/children").read_text().split())
            pages = max(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
            return pages * os.sysconf("SC_PAGE_SIZE") > MOST_BYTES
        return False

    def late(self, hang_s: float) -> bool:
        surface = SURFACES.get(self.left[0][0]) if self.left else None
        most_s = hang_s + (surface.waits_s if surface is not None else 0.0)
        return time.monotonic() - self._since > (most_s if self._began else START_S)

    def blame(self, failure: str, what: str, seconds: float, tally: Tally) -> None:
        """What it was at is at fault."""
        surface, seed = self.left.pop(0)
        tally.add(surface, seed, worker.Ended(failure, what, False, seconds, 0))

    def end(self) -> int:
        """Its exit status; killed if need be."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
        status = self._process.wait()
        self.out.close()
        self.folder.cleanup()
        return status


def fuzz(items: Sequence[tuple[str, int]], order: dict[str, Any], *, workers: int = 2, hang_s: float = HANG_S) -> Tally:
    """Carry out inputs (surface, seed), and count what came of them."""
    tally = Tally()
    batches = [list(items[at : at + BATCH]) for at in range(0, len(items), BATCH)][::-1]
    running: list[Worker] = []
    told = time.monotonic()
    stopped, shown = False, 0
    while (batches or running) and not stopped:
        while batches and len(running) < workers:
            running.append(Worker(order, batches.pop()))
        try:
            readable, _, _ = select.select([one.out for one in running], [], [], 0.5)
        except KeyboardInterrupt:
            stopped, readable = True, []
        for one in [one for one in running if one.out in readable or one.late(hang_s) or one.too_large()]:
            if not _follow(one, one.out in readable, hang_s, tally):
                running.remove(one)
                if one.left:
                    batches.append(one.left)
        if time.monotonic() - told > 60:
            told = time.monotonic()
            done = sum(row.inputs for row in tally.rows.values())
            print(
                f"{done:,} of {len(items):,} inputs, {len(tally.faults)} distinct faults", file=sys.stderr, flush=True
            )
            for fault in list(tally.faults.values())[shown:]:
                print(
                    f"  {fault.failure}: {fault.what} ({fault.surface}, seed {fault.seed})", file=sys.stderr, flush=True
                )
            shown = len(tally.faults)
    for one in running:
        one.end()
    return tally


def _follow(one: Worker, readable: bool, hang_s: float, tally: Tally) -> bool:
    """Whether it goes on."""
    if not readable:
        what = "more than 3 GiB of memory" if one.too_large() else f"longer than {hang_s:g} s"
        one.end()
        one.blame("hang", what, hang_s, tally)
        return False
    said = list(one.lines())
    for line in said:
        one.take(line, tally)
    if said:
        return True
    status = one.end()
    if one.left:
        one.blame("exit", f"the process ended with {status}", 0.0, tally)
    return False


def items_of(inputs: int, seed: int, only: str | None = None) -> list[tuple[str, int]]:
    """The surface and seed of each input: each surface has its share of them, and heavy ones come in between."""
    if only is not None:
        return [(only, seed + at) for at in range(inputs)]
    total = sum(surface.share for surface in SURFACES.values())
    found = []
    for name, surface in SURFACES.items():
        count = max(1, round(inputs * surface.share / total))
        found += [((at + 0.5) / count, name, seed + at) for at in range(count)]
    return [(name, number) for _, name, number in sorted(found)]


def show(tally: Tally, seconds: float) -> None:
    """The table, then the faults."""
    head = ("surface", "inputs", "accepted", "tracebacks", "hangs", "exits", "answers", "peak MiB", "longest s", "1/s")
    print("".join(f"{word:>11}" if at else f"{word:10}" for at, word in enumerate(head)))
    total = Row()
    for name in SURFACES:
        row = tally.rows.get(name)
        if row is None:
            continue
        _line(name, row)
        total.inputs += row.inputs
        total.accepted += row.accepted
        total.seconds += row.seconds
        total.longest_s = max(total.longest_s, row.longest_s)
        total.peak_bytes = max(total.peak_bytes, row.peak_bytes)
        for failure, count in row.failures.items():
            total.failures[failure] += count
    _line("all", total)
    print(f"in {seconds:,.0f} s")
    for fault in sorted(tally.faults.values(), key=lambda each: -each.count)[:MOST_SHOWN]:
        print(f"\n{fault.failure}, {fault.count} times: {fault.what}")
        print(f"    python benchmarks/fuzz.py --surface {fault.surface} --seed {fault.seed}")
    if len(tally.faults) > MOST_SHOWN:
        print(f"\n... and {len(tally.faults) - MOST_SHOWN} more")


def _line(name: str, row: Row) -> None:
    cells = (
        row.inputs, row.accepted, *row.failures.values(), row.peak_bytes >> 20, f"{row.longest_s:.1f}",
        f"{row.inputs / row.seconds:,.0f}" if row.seconds else "",
    )  # fmt: skip
    told = "".join(f"{cell:>11,}" if isinstance(cell, int) else f"{cell:>11}" for cell in cells)
    left_out = f"  ({row.skipped:,} left out: they could do harm here)" if row.skipped else ""
    print(f"{name:10}{told}{left_out}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, help=f"{INPUTS:,}; 1 with --surface")
    parser.add_argument("--seed", type=int, default=1, help="of the first input of each surface")
    parser.add_argument("--surface", choices=SURFACES)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker:
        worker.work(json.load(sys.stdin))
        return 0
    beyond = False if asked.surface else _costs()
    inputs = asked.inputs or (1 if asked.surface else INPUTS)
    order = {"share": SHARE, "confine": True, "keep": inputs == 1}
    began = time.monotonic()
    tally = fuzz(items_of(inputs, asked.seed, asked.surface), order, workers=asked.workers)
    show(tally, time.monotonic() - began)
    return 1 if tally.failed or beyond else 0


def _costs() -> bool:
    """Print what hostile files cost. Whether one is beyond its bound."""
    found = {name: costs.cost_of(bomb, LARGE_MIB) for name, bomb in costs.bombs(corpus.load()).items()}
    costs.show(found)
    return any(cost.excess for cost in found.values())


if __name__ == "__main__":
    sys.exit(main())
