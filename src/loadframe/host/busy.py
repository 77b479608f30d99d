"""Which programs use the CPUs of this machine, by the CPU time of all processes at two moments (proc(5), PID/stat)."""

import os
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
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
    for folder in root.iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text(encoding="utf-8", errors="replace")
                program, _, rest = text.partition("(")[2].rpartition(")")
                fields = rest.split()
                name = program.partition("/")[0]
                by_process[int(folder.name), int(fields[19])] = Spent(
                    name, int(fields[1]), sum(map(int, fields[11:15]))
                )
            except (OSError, ValueError, IndexError):  # it has ended
                continue
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
