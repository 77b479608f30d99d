"""The threads of a data node that runs, by what they do: main, ldm, tc, recv, send, ... , from its log and the kernel.

All of its threads have one name in the kernel. As it starts each, it writes its number into its log, and its kind
(mt.cpp and mt_thr_config.cpp of MySQL Cluster): `thr: 1 tid: 4711 (ldm) cpubind: 3 OK DBTC(1) ...`.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from loadframe.errors import RecordingError
from loadframe.kinds.ndb.threads import MOST
from loadframe.model import NdbThreads
from loadframe.recording.procfs import parse_schedstat

STARTING = re.compile(r"\bthr: \d+ tid: (\d+) \((\w+)\) ")
NS = 1e9


@dataclass(frozen=True, slots=True)
class NodeThread:
    """thread: its number in the kernel. cpus: those that it may use. cpu_s: the CPU time that it has used."""

    kind: str
    thread: int
    cpus: frozenset[int]
    cpu_s: float


def told_threads(log: Iterable[str]) -> dict[int, str]:
    """By the number of each thread, its kind; also those of earlier starts. log: its lines."""
    starts = (start for line in log if (start := STARTING.search(line)) is not None)
    return {int(start[1]): start[2] for start in starts if start[2] in MOST}


def read_threads(pid: int, kinds: Mapping[int, str], proc: Path = Path("/proc")) -> tuple[NodeThread, ...]:
    """Those of these threads that the process has now. Empty where it has ended."""
    found = []
    for thread, kind in kinds.items():
        try:
            spent = parse_schedstat((proc / str(pid) / "task" / str(thread) / "schedstat").read_bytes())
            cpus = frozenset(os.sched_getaffinity(thread))
        except (OSError, RecordingError):  # of an earlier start, or it has just ended
            continue
        found.append(NodeThread(kind, thread, cpus, spent.run_ns / NS))
    return tuple(found)


def grouped(threads: Iterable[NodeThread], free: frozenset[int]) -> tuple[NdbThreads, ...]:
    """The same as they are configured: how many of each kind, and the CPUs that they are bound to. free: what a thread
    that is bound to none may use."""
    groups, each = [], list(threads)
    for kind in MOST:
        alike = [thread for thread in each if thread.kind == kind]
        bound = [thread.cpus for thread in alike if thread.cpus != free]
        cpus = frozenset().union(*bound) if bound else None
        if alike:
            groups.append(NdbThreads(kind, len(alike), cpus, shared=cpus is not None and len(cpus) < len(alike)))
    return tuple(groups)
