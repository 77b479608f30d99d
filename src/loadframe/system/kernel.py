"""What the kernel tells of processes in /proc. Readers take its folder, for recorded trees."""

import os
from pathlib import Path

PROC = Path("/proc")
LONGEST_STAT = 4096
"""Bytes of /proc/PID/stat: 52 fields of at most 20 digits, and a name; one read(2)."""


def kernel_text(path: Path) -> str:
    """A file of the kernel's; what is not UTF-8 in it, as in names of processes, is replaced. Raises OSError."""
    return path.read_text(encoding="utf-8", errors="replace")


def pids(proc: Path = PROC) -> list[int]:
    """All visible processes."""
    return [int(folder.name) for folder in proc.iterdir() if folder.name.isdigit()]


def process_stat(pid: int, proc: Path = PROC) -> tuple[str, list[str]] | None:
    """Of proc_pid_stat(5): the name, which may contain blanks and brackets, and the fields from the third one on. None
    if the process has ended."""
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
    """The words of these lines of proc_pid_status(5), one line after the other. Raises OSError if it has ended."""
    lines = kernel_text(proc / str(pid) / "status").splitlines()
    return [word for line in lines if line.partition(":")[0] in names for word in line.split()[1:]]
