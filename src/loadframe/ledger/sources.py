"""All that a look at limits may read, of the machine, a process and its control group."""

from loadframe.recording import snapshot_cgroup, snapshot_kernel, snapshot_machine, snapshot_process
from loadframe.recording.snapshot import Source

SOURCES: tuple[Source, ...] = (
    *snapshot_machine.SOURCES,
    *snapshot_kernel.SOURCES,
    *snapshot_process.SOURCES,
    *snapshot_cgroup.SOURCES,
)
