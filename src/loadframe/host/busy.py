"""Which programs use the CPUs of this machine, by the CPU time of all processes at two moments (proc(5), PID/stat)."""

import os
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from loadframe.system.kernel import PROC, pids, process_stat

INIT = 1
"""It has the time of all orphans that it ever reaped."""
PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Spent:
    """program: of a kernel thread up to the slash. ticks: CPU time, with that of ended children: compilers are
    short-lived."""

    program: str
    parent: int
    ticks: int


def spent(root: Path = PROC) -> dict[tuple[int, int], Spent]:
    """Of every visible process, by its pid and start time. Takes 20 us each."""
    by_process = {}
    for pid in pids(root):
        with suppress(OSError):  # out of our sight
            if (stat := process_stat(pid, root)) is not None:
                program, fields = stat
                ticks = sum(map(int, fields[11:15]))
                by_process[pid, int(fields[19])] = Spent(program.partition("/")[0], int(fields[1]), ticks)
    return by_process


def between(
    first: dict[tuple[int, int], Spent], last: dict[tuple[int, int], Spent], seconds: float, but: Collection[int]
) -> dict[str, float]:
    """CPUs (s/s) by program, the busiest first. but: processes that do not count, with all their descendants."""
    parents = {pid: spent.parent for (pid, _), spent in last.items()}
    used: Counter[str] = Counter()
    for key, spent in last.items():
        above = key[0]
        while above and above not in but:
            above = parents.get(above, 0)
        if key[0] != INIT and not above:
            used[spent.program] += spent.ticks - (first[key].ticks if key in first else 0)
    return {name: ticks / PER_SECOND / seconds for name, ticks in used.most_common() if ticks > 0}
