"""The rules of the ledger, as data: for every limit where its ceiling and its use are read, and what happens there.

`use` and `ceiling` are metrics of units.py; a rule applies where both were measured. `thrash` must rise once a silent
limit is reached; `errors` must be above nothing once a loud one is. `configured` names the setting that asks for the
ceiling, in the layer the limit belongs to. To add a limit, add a row; docs/ledger.md explains the columns.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LimitRule:
    """One finite thing. unit as in units.py. chain: the ids of the limits below it that cap it.

    constant: True where the use is a share of the machine, for which a load at which it runs out makes sense only as
    far as use grows with load.
    """

    id: str
    title: str
    layer: str
    use: str
    ceiling: str
    unit: str
    loud: bool
    source: str
    configured: str | None = None
    thrash: str | None = None
    errors: str | None = None
    chain: tuple[str, ...] = ()


CAGE_RULES: tuple[LimitRule, ...] = (
    LimitRule(
        id="cgroup.cpu_quota",
        title="the CPU time that the cage allows",
        layer="process",
        use="target.cgroup.cpu",
        ceiling="target.cgroup.cpu.limit",
        unit="cores",
        loud=False,
        source="Linux, Documentation/scheduler/sched-bwc.rst: quota, nr_throttled, throttled_time",
        chain=("cpu.saturated",),
    ),
    LimitRule(
        id="cgroup.memory",
        title="the memory that the cage allows",
        layer="process",
        use="target.cgroup.memory.usage",
        ceiling="target.cgroup.memory.limit",
        unit="bytes",
        loud=False,
        source="Linux, Documentation/admin-guide/cgroup-v2.rst: memory.max, memory.events, workingset_refault_file",
        configured="memory.max",
        thrash="target.cgroup.memory.refaults",
        chain=("system.memory",),
    ),
    LimitRule(
        id="cgroup.pids",
        title="the processes and threads that the cage allows",
        layer="process",
        use="target.cgroup.pids",
        ceiling="target.cgroup.pids.limit",
        unit="count",
        loud=True,
        source="Linux, Documentation/admin-guide/cgroup-v2.rst: pids.max, pids.events",
        configured="pids.max",
        errors="target.cgroup.pids.refused",
    ),
    *(
        LimitRule(
            id=f"cgroup.{metric}",
            title=title,
            layer="process",
            use=f"target.cgroup.{metric}",
            ceiling=f"target.cgroup.{metric}.limit",
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

RULES: tuple[LimitRule, ...] = (
    *CAGE_RULES,
    LimitRule(
        id="mariadb.table_open_cache",
        title="the table cache",
        layer="server",
        use="mariadb.open_tables",
        ceiling="mariadb.table_open_cache",
        unit="count",
        loud=False,
        source="MySQL manual, table_open_cache; Open_tables and Opened_tables in SHOW GLOBAL STATUS",
        configured="table_open_cache",
        thrash="mariadb.opened_tables",
        chain=("mariadb.open_files_limit", "process.open_files"),
    ),
    LimitRule(
        id="mariadb.table_definition_cache",
        title="the table definition cache",
        layer="server",
        use="mariadb.open_table_definitions",
        ceiling="mariadb.table_definition_cache",
        unit="count",
        loud=False,
        source="MariaDB documentation, table_definition_cache; Opened_table_definitions in SHOW GLOBAL STATUS",
        configured="table_definition_cache",
        thrash="mariadb.opened_table_definitions",
    ),
    LimitRule(
        id="mariadb.max_connections",
        title="the number of client connections",
        layer="server",
        use="mariadb.max_used_connections",
        ceiling="mariadb.max_connections",
        unit="count",
        loud=True,
        source="MariaDB documentation, max_connections; Max_used_connections and Connection_errors_max_connections",
        configured="max_connections",
        errors="mariadb.connection_errors_max",
        chain=("mariadb.open_files_limit", "process.open_files"),
    ),
    LimitRule(
        id="mariadb.open_files_limit",
        title="the server's own limit on open files",
        layer="server",
        use="mariadb.open_files",
        ceiling="mariadb.open_files_limit",
        unit="count",
        loud=True,
        source="mysqld's start-up arithmetic; Open_files in SHOW GLOBAL STATUS",
        configured="open_files_limit",
        errors="workload.errors",
        chain=("process.open_files",),
    ),
    LimitRule(
        id="process.open_files",
        title="open files of the target's process",
        layer="process",
        use="target.open_files",
        ceiling="target.open_files.limit",
        unit="count",
        loud=True,
        source="getrlimit(2), RLIMIT_NOFILE; /proc/PID/limits and /proc/PID/fd",
        configured="RLIMIT_NOFILE",
        errors="workload.errors",
        chain=("system.files",),
    ),
    LimitRule(
        id="system.files",
        title="open files of the whole machine",
        layer="kernel",
        use="system.files.allocated",
        ceiling="system.files.limit",
        unit="count",
        loud=True,
        source="Linux, Documentation/admin-guide/sysctl/fs.rst: file-nr and file-max",
        errors="workload.errors",
    ),
    LimitRule(
        id="system.memory",
        title="the machine's memory",
        layer="hardware",
        use="system.memory.used",
        ceiling="system.memory.limit",
        unit="bytes",
        loud=True,
        source="proc(5), /proc/meminfo: MemTotal and MemAvailable",
        thrash="system.paging.direct_stalls",
    ),
    LimitRule(
        id="cpu.saturated",
        title="the CPUs",
        layer="hardware",
        use="system.cpu.busy_cores",
        ceiling="system.cpu.count",
        unit="cores",
        loud=False,
        source="Gregg, The USE Method: utilisation of CPUs from /proc/stat",
    ),
    LimitRule(
        id="disk.busy",
        title="the busiest disk's time",
        layer="hardware",
        use="system.disk.busy",
        ceiling="one",
        unit="share",
        loud=False,
        source="Linux, Documentation/admin-guide/iostats.rst: time doing I/Os (weak on disks that work in parallel)",
    ),
    LimitRule(
        id="lock.writer",
        title="the lock that only one writer can hold",
        layer="application",
        use="workload.lock_held",
        ceiling="one",
        unit="share",
        loud=False,
        source="SQLite, File Locking And Concurrency: one writer at a time",
    ),
)
