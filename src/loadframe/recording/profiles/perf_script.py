"""Reading what `perf script -F comm,pid,tid,time,ip,sym,dso` prints: text in, samples out.

A sample is a head line (`mariadbd  4831/5283  14812.969706: `), one line per frame from the innermost on (a tab, the
address, the symbol, the file in brackets), and an empty line. Lines that are neither are counted, never guessed at.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

HEAD = re.compile(r"^\s{0,16}(\S.{0,63}?)\s{1,24}(-?\d{1,10})/(-?\d{1,10})\s{1,8}(\d{1,12}\.\d{1,9}):")
FRAME = re.compile(r"^\s+([0-9a-f]{1,16}) (.*) \(([^()]*(?: \(deleted\))?)\)$")
LOST = re.compile(r"\bPERF_RECORD_LOST(?:_SAMPLES)? lost (\d{1,18})")
KERNEL_FROM = 1 << 63
"""The upper half of the address space is the kernel's (x86-64, arm64)."""
NO_CALLER = 0xFFFF_FFFF_FFFF_FFFF
"""The address that perf prints where a stack goes on beyond what was copied of it."""
TRUNCATED = "[truncated]"
UNKNOWN = "[unknown]"
KERNEL_SUFFIX = "_[k]"
APPENDED = re.compile(r"\.(isra|part|constprop|cold|llvm)(\.\d{1,20})?$")
LONGEST_APPENDED = 31
"""Characters of what APPENDED finds: a name with thousands of them is searched once for each, and no further back."""
LONGEST_SYMBOL = 4096
"""A name has no end of its own: whoever runs a program beside ours chooses those in its file."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample: CLOCK_MONOTONIC seconds, the process and its thread's name, frames from the outermost on."""

    time_s: float
    pid: int
    thread: int
    command: str
    frames: tuple[str, ...]


@dataclass(slots=True)
class Reading:
    """What reading has met besides samples. lost: samples that the kernel could not deliver."""

    lost: int = 0
    damaged: int = 0
    _open: list[str] = field(default_factory=list)


def read_samples(lines: Iterable[str], reading: Reading) -> Iterator[Sample]:
    """The samples in the order in which they are printed. Never raises for what the lines say."""
    head: re.Match[str] | None = None
    frames: list[str] = []
    for line in lines:
        line = line.rstrip("\r\n")
        if head is not None and (frame := FRAME.match(line)):
            frames.append(_frame(int(frame[1], 16), frame[2], frame[3]))
            continue
        if lost := LOST.search(line):
            reading.lost += int(lost[1])
            continue
        if head is not None:
            yield _sample(head, frames)
            head, frames = None, []
        if not line.strip() or line.startswith("#"):
            continue
        head = HEAD.match(line)
        reading.damaged += head is None
    if head is not None:
        yield _sample(head, frames)


def _sample(head: re.Match[str], frames: list[str]) -> Sample:
    command, pid, thread, time_s = head.groups()
    return Sample(float(time_s), int(pid), int(thread), command.strip(), tuple(reversed(frames)) or (UNKNOWN,))


def _frame(address: int, symbol: str, file: str) -> str:
    if address == NO_CALLER:
        return TRUNCATED
    in_kernel = address >= KERNEL_FROM
    if symbol == UNKNOWN or not symbol.strip():
        name = file.removesuffix(" (deleted)").rpartition("/")[2].strip("[]")
        return f"[{name or 'unknown'}]" + (KERNEL_SUFFIX if in_kernel else "")
    return function_name(symbol) + (KERNEL_SUFFIX if in_kernel else "")


def function_name(symbol: str) -> str:
    """A symbol as people call it: without the arguments of a C++ function, the version of a library's
    (`pthread_mutex_lock@@GLIBC_2.2.5`) and what the compiler appended (`finish_task_switch.isra.0`)."""
    symbol = symbol[:LONGEST_SYMBOL]
    name = re.sub(r"@@?[A-Za-z][\w.]*$", "", symbol)
    while appended := APPENDED.search(name, max(0, len(name) - LONGEST_APPENDED)):
        name = name[: appended.start()]
    opening = name.find("(", 1)
    while opening > 0 and (name.startswith("(anonymous namespace)", opening) or name[:opening].endswith("operator")):
        opening = name.find("(", opening + 2)
    return (name[:opening] if opening > 0 else name).strip() or symbol
