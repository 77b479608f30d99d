"""What /proc says of processes, and which programs use the CPUs. Readers take its folder, for recorded trees."""

import os
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
LONGEST_STAT = 4096
"""Bytes of /proc/PID/stat: 52 fields of at most 20 digits, and a name; one read(2)."""


def kernel_text(path: Path) -> str:
    """What is not UTF-8, as in names of processes, is replaced. OSError."""
    return path.read_text(encoding="utf-8", errors="replace")


def pids(proc: Path = PROC) -> list[int]:
    return [int(folder.name) for folder in proc.iterdir() if folder.name.isdigit()]


def process_stat(pid: int, proc: Path = PROC) -> tuple[str, list[str]] | None:
    """proc_pid_stat(5): the name, which may contain blanks and brackets, and the fields from the third on. None if the
    process has ended."""
    try:
        descriptor = os.open(f"{proc}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError):
        return None
    try:
        text = os.read(descriptor, LONGEST_STAT).decode("utf-8", "replace")
    except ProcessLookupError:
        return None
    finally:
        os.close(descriptor)
    name, _, fields = text.partition("(")[2].rpartition(")")
    return (name, fields.split()) if fields else None


def process_status(pid: int | str, *names: str, proc: Path = PROC) -> list[str]:
    """The words of these lines of proc_pid_status(5). OSError if the process has ended."""
    lines = kernel_text(proc / str(pid) / "status").splitlines()
    return [word for line in lines if line.partition(":")[0] in names for word in line.split()[1:]]


INIT = 1
"""The process that has the time of all orphans that it ever reaped."""
PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Spent:
    """program: of a kernel thread up to the slash. ticks: CPU time, with that of ended children."""

    program: str
    parent: int
    ticks: int


def spent(root: Path = PROC) -> dict[tuple[int, int], Spent]:
    """CPU time of every visible process, by pid and start time. Takes 20 us for each process."""
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
    """CPUs (s/s) by program, the busiest first. but: not counted, with all their descendants."""
    parents = {pid: spent.parent for (pid, _), spent in last.items()}
    used: Counter[str] = Counter()
    for key, spent in last.items():
        above = key[0]
        while above and above not in but:
            above = parents.get(above, 0)
        if key[0] != INIT and not above:
            used[spent.program] += spent.ticks - (first[key].ticks if key in first else 0)
    return {name: ticks / PER_SECOND / seconds for name, ticks in used.most_common() if ticks > 0}
