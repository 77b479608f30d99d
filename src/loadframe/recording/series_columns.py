"""What is read where for the table of a whole recording: adding a row adds a metric."""

from __future__ import annotations

import re
from dataclasses import dataclass

from loadframe.recording import procfs
from loadframe.recording.cage_metrics import IO


@dataclass(frozen=True, slots=True)
class Column:
    """A number in a source's text: a group of a pattern, in the syntax of the regular expressions that polars has.
    counter: its growth per second is the metric, not itself. factor: into the metric's unit. every: the sum over all
    places where the pattern is found, not the first."""

    metric: str
    source: str
    pattern: str
    counter: bool
    factor: float = 1.0
    group: int = 1
    every: bool = False


def _table(rows: str) -> tuple[Column, ...]:
    columns = []
    for row in rows.strip().splitlines():
        metric, source, pattern, kind, factor = (cell.strip() for cell in row.split(" | "))
        columns.append(Column(metric, f"system:/proc/{source}", f"(?m){pattern}", kind == "counter", float(factor)))
    return tuple(columns)


MACHINE = _table(r"""
system.memory.available       | meminfo         | ^MemAvailable:\s+(\d+)             | level   | 1024
system.memory.dirty           | meminfo         | ^Dirty:\s+(\d+)                    | level   | 1024
system.memory.writeback       | meminfo         | ^Writeback:\s+(\d+)                | level   | 1024
system.paging.major_faults    | vmstat          | ^pgmajfault (\d+)                  | counter | 1
system.paging.direct_scan     | vmstat          | ^pgscan_direct (\d+)               | counter | 1
system.paging.refaults        | vmstat          | ^workingset_refault(?:_file)? (\d+) | counter | 1
system.paging.swap_in         | vmstat          | ^pswpin (\d+)                      | counter | 1
system.paging.swap_out        | vmstat          | ^pswpout (\d+)                     | counter | 1
system.context_switches       | stat            | ^ctxt (\d+)                        | counter | 1
system.processes.created      | stat            | ^processes (\d+)                   | counter | 1
system.processes.running      | stat            | ^procs_running (\d+)               | level   | 1
system.processes.blocked      | stat            | ^procs_blocked (\d+)               | level   | 1
system.files.allocated        | sys/fs/file-nr  | ^(\d+)                             | level   | 1
system.pressure.cpu.some      | pressure/cpu    | ^some .*total=(\d+)                | counter | 1e-6
system.pressure.memory.some   | pressure/memory | ^some .*total=(\d+)                | counter | 1e-6
system.pressure.memory.full   | pressure/memory | ^full .*total=(\d+)                | counter | 1e-6
system.pressure.io.some       | pressure/io     | ^some .*total=(\d+)                | counter | 1e-6
system.pressure.io.full       | pressure/io     | ^full .*total=(\d+)                | counter | 1e-6
system.network.time_wait      | net/sockstat    | ^TCP:.* tw (\d+)                   | level   | 1
system.network.tcp_memory     | net/sockstat    | ^TCP:.* mem (\d+)                  | level   | 1
""")

PROTOCOL_LINE = r"(?m)^{protocol}:(?: -?\d+){skipped} (-?\d+)"
"""Of snmp and netstat: a line of names and, below it, a line of numbers in the same order."""

CPU_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
CPU_LINE = "(?m)^cpu +" + " ".join([r"(\d+)"] * len(CPU_FIELDS))
CPU = {field: Column(field, "system:/proc/stat", CPU_LINE, True, group=i) for i, field in enumerate(CPU_FIELDS, 1)}

DISK_LINE = r"(?m)^ *\d+ +\d+ {name}(?: \d+){skipped} (\d+)"
DISK = (
    ("system.disk.reads", 0, 1.0),
    ("system.disk.read_bytes", 2, procfs.SECTOR_BYTES),
    ("system.disk.writes", 4, 1.0),
    ("system.disk.write_bytes", 6, procfs.SECTOR_BYTES),
    ("system.disk.busy", 9, 1e-3),
    ("system.disk.flushes", 15, 1.0),
)
"""Metric, how many numbers stand before it (Documentation/admin-guide/iostats.rst), factor."""
FREQUENCY = re.compile(r"system:/sys/devices/system/cpu/cpu\d+/cpufreq/scaling_cur_freq")
OF_THE_MOST = {"system.disk.busy", "system.cpu.frequency"}
"""Of the busiest disk and of the fastest CPU; others are sums over all disks."""

_AFTER_NAME = r"(?s)^.*\) \S"  # the last bracket closes the name, which may contain anything
PROCESS = (
    Column("cpu.cores", "cpu", r"^(\d+)", True, 1e-9),
    Column("threads.count", "threads", r"^(\d+)", False),
    Column("open_files", "fd", r"^(\d+)", False),
    Column("paging.minor_faults", "stat", _AFTER_NAME + r"(?: -?\d+){6} (\d+)", True),
    Column("paging.major_faults", "stat", _AFTER_NAME + r"(?: -?\d+){8} (\d+)", True),
)
"""Of each followed process; the source is the last word of its name."""
RESIDENT = Column("memory.rss", "stat", _AFTER_NAME + r"(?: -?\d+){20} (\d+)", False)
SHARED = (
    Column("shared", "status", r"(?m)^RssFile:\s+(\d+)", False, 1024),
    Column("shared", "status", r"(?m)^RssShmem:\s+(\d+)", False, 1024),
)
"""What processes may share: of those of a component it counts once."""
CAGE = (
    Column("cage.cpu", "cpuacct.usage", r"^(\d+)", True, 1e-9),
    Column("cage.cpu", "cpu.stat", r"(?m)^usage_usec (\d+)", True, 1e-6),
    Column("cage.cpu.throttled", "cpu.stat", r"(?m)^nr_throttled (\d+)", True),
    Column("cage.memory.usage", "memory.current", r"^(\d+)", False),
    Column("cage.memory.usage", "memory.usage_in_bytes", r"^(\d+)", False),
    *(Column(f"cage.{metric}", "io.stat", rf"\b{key}=(\d+)", True, every=True) for metric, (key, *_) in IO.items()),
    *(
        Column(f"cage.{metric}", file, rf"(?m)^\d+:\d+ {key} (\d+)", True, every=True)
        for metric, (_, _, file, key, _) in IO.items()
    ),
    Column("cage.pids", "pids.current", r"^(\d+)", False),
    Column("cage.pressure.cpu.some", "cpu.pressure", r"(?m)^some .*total=(\d+)", True, 1e-6),
    Column("cage.pressure.memory.some", "memory.pressure", r"(?m)^some .*total=(\d+)", True, 1e-6),
    Column("cage.pressure.io.some", "io.pressure", r"(?m)^some .*total=(\d+)", True, 1e-6),
)
"""Of each component's control groups, of either version; the source is the file. I/O is that of all disks."""

IN_PAGES = {"memory.rss", "system.network.tcp_memory"}
"""Told in pages, whose size the recording knows."""
