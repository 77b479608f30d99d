"""Names of OpenTelemetry's semantic conventions."""

from __future__ import annotations

_ROWS = """
system.cpu.utilization            | system.cpu.utilization
system.cpu.user                   | system.cpu.utilization{cpu.mode="user"}
system.cpu.system                 | system.cpu.utilization{cpu.mode="system"}
system.cpu.iowait                 | system.cpu.utilization{cpu.mode="iowait"}
system.cpu.steal                  | system.cpu.utilization{cpu.mode="steal"}
system.cpu.count                  | system.cpu.logical.count
system.cpu.frequency              | system.cpu.frequency
system.processes.created          | system.process.created
system.memory.available           | system.memory.linux.available
system.memory.limit               | system.memory.limit
system.memory.utilization         | system.memory.utilization
system.memory.used                | system.memory.usage{system.memory.state="used"}
system.paging.major_faults        | system.paging.faults{system.paging.fault.type="major"}
system.paging.swap_in             | system.paging.operations{system.paging.direction="in"}
system.paging.swap_out            | system.paging.operations{system.paging.direction="out"}
system.disk.busy                  | system.disk.io_time
system.disk.reads                 | system.disk.operations{disk.io.direction="read"}
system.disk.writes                | system.disk.operations{disk.io.direction="write"}
system.disk.read_bytes            | system.disk.io{disk.io.direction="read"}
system.disk.write_bytes           | system.disk.io{disk.io.direction="write"}
COMPONENT.cpu.cores               | process.cpu.time
COMPONENT.cpu.user_cores          | process.cpu.time{cpu.mode="user"}
COMPONENT.cpu.system_cores        | process.cpu.time{cpu.mode="system"}
COMPONENT.cpu.utilization         | process.cpu.utilization
COMPONENT.threads.count           | process.thread.count
COMPONENT.open_files              | process.unix.file_descriptor.count
COMPONENT.memory.rss              | process.memory.usage
COMPONENT.io.read_bytes           | process.disk.io{disk.io.direction="read"}
COMPONENT.io.write_bytes          | process.disk.io{disk.io.direction="write"}
COMPONENT.paging.major_faults     | process.paging.faults{system.paging.fault.type="major"}
COMPONENT.paging.minor_faults     | process.paging.faults{system.paging.fault.type="minor"}
COMPONENT.context_switches.voluntary   | process.context_switches{process.context_switch.type="voluntary"}
COMPONENT.context_switches.involuntary | process.context_switches{process.context_switch.type="involuntary"}
COMPONENT.cage.cpu                | container.cpu.usage
COMPONENT.cage.memory.usage       | container.memory.usage
COMPONENT.cage.read_bytes         | container.disk.io{disk.io.direction="read"}
COMPONENT.cage.write_bytes        | container.disk.io{disk.io.direction="write"}
"""

CONVENTIONS = {ours.strip(): theirs.strip() for ours, theirs in (row.split("|") for row in _ROWS.strip().splitlines())}
"""Our name -> the name and attributes of OpenTelemetry's semantic conventions for the same thing. Ours are flat,
because a metric's name alone has to say what it is; COMPONENT is target, driver or a piece of the target, which they
have as a resource. Where theirs is a counter (cpu.time, io, operations, faults), ours is its growth per second."""
