"""The rules of the limits that a study's cage sets; those of any control group are in process_rules."""

from __future__ import annotations

from loadframe.ledger.form import LimitRule

CAGE: tuple[LimitRule, ...] = (
    LimitRule(
        id="cage.cpu_quota",
        title="the CPU time that the cage allows",
        layer="process",
        use="target.cage.cpu",
        ceiling="target.cage.cpu.limit",
        unit="cores",
        loud=False,
        source="Linux, Documentation/scheduler/sched-bwc.rst: quota, nr_throttled, throttled_time",
        chain=("cpu.saturated",),
    ),
    LimitRule(
        id="cage.memory",
        title="the memory that the cage allows",
        layer="process",
        use="target.cage.memory.usage",
        ceiling="target.cage.memory.limit",
        unit="bytes",
        loud=False,
        source="Linux, Documentation/admin-guide/cgroup-v2.rst: memory.max, memory.events, workingset_refault_file",
        configured="memory.max",
        thrash="target.cage.memory.refaults",
        chain=("system.memory",),
    ),
    LimitRule(
        id="cage.pids",
        title="the processes and threads that the cage allows",
        layer="process",
        use="target.cage.pids",
        ceiling="target.cage.pids.limit",
        unit="count",
        loud=True,
        source="Linux, Documentation/admin-guide/cgroup-v2.rst: pids.max, pids.events",
        configured="pids.max",
        errors="target.cage.pids.refused",
    ),
    *(
        LimitRule(
            id=f"cage.{metric}",
            title=title,
            layer="process",
            use=f"target.cage.{metric}",
            ceiling=f"target.cage.{metric}.limit",
            unit="bytes/s" if metric.endswith("bytes") else "1/s",
            loud=False,
            source="Linux, Documentation/admin-guide/cgroup-v2.rst: io.max, io.stat; cgroup-v1/blkio-controller.rst",
            configured=configured,
            chain=("disk.busy",),
        )
        for metric, configured, title in (
            ("read_bytes", "io.rbps", "the bytes per second that the cage lets the target read"),
            ("write_bytes", "io.wbps", "the bytes per second that the cage lets the target write"),
            ("reads", "io.riops", "the disk reads per second that the cage allows"),
            ("writes", "io.wiops", "the disk writes per second that the cage allows"),
        )
    ),
)
"""What the cage allows. Shares of time and rates are judged by signatures, not by a counter of harm."""
