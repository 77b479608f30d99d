"""Parsing what procfs said: bytes in, numbers out; no files, so that it works on a recording from anywhere.

All functions raise RecordingError where what they must find is missing or is no number; lines that they do not know
are ignored, because kernels add some. Layouts: proc(5), Documentation/admin-guide/iostats.rst,
Documentation/accounting/psi.rst, Documentation/scheduler/sched-stats.rst.
"""

from __future__ import annotations

from loadframe.recording.procfs.cgroups import parse_cgroup_io, parse_flat_keyed, parse_maximum
from loadframe.recording.procfs.machine import (
    SECTOR_BYTES,
    CpuTimes,
    DiskCounters,
    FileNumbers,
    LoadAverage,
    SystemStat,
    parse_diskstats,
    parse_file_numbers,
    parse_interrupts,
    parse_loadavg,
    parse_meminfo,
    parse_pressure,
    parse_protocols,
    parse_sockets,
    parse_stat,
    parse_vmstat,
)
from loadframe.recording.procfs.processes import (
    ProcessStat,
    ProcessStatus,
    ResourceLimit,
    SchedStat,
    TaskTexts,
    parse_cpu_list,
    parse_limits,
    parse_process_io,
    parse_process_stat,
    parse_process_status,
    parse_schedstat,
    parse_tasks,
)
from loadframe.recording.procfs.words import parse_count

__all__ = (
    "SECTOR_BYTES",
    "CpuTimes",
    "DiskCounters",
    "FileNumbers",
    "LoadAverage",
    "ProcessStat",
    "ProcessStatus",
    "ResourceLimit",
    "SchedStat",
    "SystemStat",
    "TaskTexts",
    "parse_cgroup_io",
    "parse_count",
    "parse_cpu_list",
    "parse_diskstats",
    "parse_file_numbers",
    "parse_flat_keyed",
    "parse_interrupts",
    "parse_limits",
    "parse_loadavg",
    "parse_maximum",
    "parse_meminfo",
    "parse_pressure",
    "parse_process_io",
    "parse_process_stat",
    "parse_process_status",
    "parse_protocols",
    "parse_schedstat",
    "parse_sockets",
    "parse_stat",
    "parse_tasks",
    "parse_vmstat",
)
