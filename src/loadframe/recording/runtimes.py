"""What the name of a program, and the names of its threads, tell of how it runs: tables of names with sources."""

import re

_ONE_AT_A_TIME: tuple[tuple[str, str], ...] = (
    (r"python[23](\.\d+)?|python", "CPython, the global interpreter lock; a free-threaded build ends with t (PEP 703)"),
    (r"pypy[23]?(\.\d+)?", "PyPy has a global interpreter lock, too"),
    (r"ruby(\d+(\.\d+)*)?", "CRuby, the global VM lock: of the threads of one Ractor one runs"),
)
"""Name of the program | source: its threads run one at a time, but for what they do outside of the interpreter."""

_COLLECTORS: tuple[tuple[str, str], ...] = (
    (r"GC Thread#\d+|ParGC.*|GC task thread.*", "HotSpot, gc/shared/workerThread.cpp: parallel collections"),
    (r"G1 .*", "HotSpot, gc/g1: G1 Main Marker, G1 Conc#, G1 Refine#, G1 Service"),
    (r"CMS .*|Concurrent Mark.*", "HotSpot up to 13, gc/cms"),
    (r"ZWorker.*|ZDriver.*|ZDirector|ZStat|ZUncommitter|XWorker.*|XDriver", "HotSpot, gc/z and gc/x"),
    (r"Shenandoah.*", "HotSpot, gc/shenandoah"),
    (r"VM Thread", "HotSpot, runtime/vmThread.cpp: the serial collector runs in it, and other work at safepoints"),
)
"""Name of a thread, as far as the kernel keeps it (15 bytes) | source. Threads of Go have no names, and those of V8
compile, too: of these a profile tells what the collector takes (experiments/profiling.py)."""

_PROGRAMS = tuple(re.compile(pattern) for pattern, _ in _ONE_AT_A_TIME)
_THREADS = tuple(re.compile(pattern) for pattern, _ in _COLLECTORS)
_DELETED = " (deleted)"


def runs_one_at_a_time(program: str) -> bool:
    """Whether the threads of this program run one at a time. program: as /proc/PID/exe leads to it."""
    name = program.removesuffix(_DELETED).rpartition("/")[2]
    return any(pattern.fullmatch(name) for pattern in _PROGRAMS)


def is_collector(thread: str) -> bool:
    """Whether a thread of this name collects garbage."""
    return any(pattern.fullmatch(thread) for pattern in _THREADS)
