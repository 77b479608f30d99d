"""The rules of the limits that a study's cage sets; those of any control group are in process_rules."""

from __future__ import annotations

from functools import partial

from loadframe.knowledge.limit import LimitRule
from loadframe.metrics import IN_FRONT

_process = partial(LimitRule, layer="process")


def _rules(component: str, layer: str, whose: str, setting: str) -> tuple[LimitRule, ...]:
    """layer: what the ids begin with; setting: what the names of its limits begin with in the target's state."""
    return (
        _process(
            id=f"{layer}.cpu_quota",
            title=f"the CPU time that {whose} allows",
            use=f"{component}.cage.cpu",
            ceiling=f"{component}.cage.cpu.limit",
            unit="cores",
            source="Linux, Documentation/scheduler/sched-bwc.rst: quota, nr_throttled, throttled_time",
            chain=("cpu.saturated",),
        ),
        _process(
            id=f"{layer}.memory",
            title=f"the memory that {whose} allows",
            use=f"{component}.cage.memory.usage",
            ceiling=f"{component}.cage.memory.limit",
            unit="bytes",
            source="Linux, Documentation/admin-guide/cgroup-v2.rst: memory.max, memory.events, workingset_refault_file",
            configured=f"{setting}memory.max",
            thrash=f"{component}.cage.memory.refaults",
            chain=("system.memory",),
        ),
        _process(
            id=f"{layer}.pids",
            title=f"the processes and threads that {whose} allows",
            use=f"{component}.cage.pids",
            ceiling=f"{component}.cage.pids.limit",
            unit="count",
            loud=True,
            source="Linux, Documentation/admin-guide/cgroup-v2.rst: pids.max, pids.events",
            configured=f"{setting}pids.max",
            errors=f"{component}.cage.pids.refused",
        ),
        *(
            _process(
                id=f"{layer}.{metric}",
                title=title,
                use=f"{component}.cage.{metric}",
                ceiling=f"{component}.cage.{metric}.limit",
                unit="bytes/s" if metric.endswith("bytes") else "1/s",
                source="Linux, Documentation/admin-guide/cgroup-v2.rst: io.max; cgroup-v1/blkio-controller.rst",
                configured=f"{setting}{configured}",
                chain=("disk.busy",),
            )
            for metric, configured, title in (
                ("read_bytes", "io.rbps", f"the bytes per second that {whose} lets it read"),
                ("write_bytes", "io.wbps", f"the bytes per second that {whose} lets it write"),
                ("reads", "io.riops", f"the disk reads per second that {whose} allows"),
                ("writes", "io.wiops", f"the disk writes per second that {whose} allows"),
            )
        ),
    )


CAGE: tuple[LimitRule, ...] = (
    *_rules("target", "cage", "the cage", ""),
    *(
        rule
        for component in (*IN_FRONT, "driver")
        for rule in _rules(component, f"cage.{component}", f"the cage of the {component}", f"{component}.")
    ),
)
"""What the cages allow. Shares of time and rates are judged by signatures, not by a counter of harm."""
