"""Limits of the kernel and the hardware."""

from __future__ import annotations

from functools import partial

from loadframe.knowledge.limit import LimitRule

FS = "Linux, Documentation/admin-guide/sysctl/fs.rst"
KERNEL_RST = "Linux, Documentation/admin-guide/sysctl/kernel.rst"
IP = "Linux, Documentation/networking/ip-sysctl.rst"
PSI = "Linux, Documentation/accounting/psi.rst"
USE = "Gregg, The USE Method"
CEILING = "its ceiling is a sysctl, which is not recorded"
SOCKETS = "sock_diag(7) is not recorded; a step has the drops of all queues, system.network.listen_overflows"
FILLS = "it fills with time, not with the load of a step"

_kernel = partial(LimitRule, layer="kernel")
_hardware = partial(LimitRule, layer="hardware")
_share = partial(_hardware, ceiling="one", unit="share")

KERNEL: tuple[LimitRule, ...] = (
    _kernel(
        id="system.files",
        title="open files of the whole machine",
        use="system.files.allocated",
        ceiling="system.files.limit",
        loud=True,
        source="Linux, Documentation/admin-guide/sysctl/fs.rst: file-nr and file-max; near: 80 % (netdata)",
        errors="workload.errors",
        near=0.8,
    ),
    _kernel(
        id="kernel.nr_open",
        title="the open files to which the process's own limit may be raised, of those that any process may ask for",
        use="target.open_files.hard_limit",
        ceiling="system.files.per_process_limit",
        loud=True,
        source=f"{FS}: nr_open; the hard RLIMIT_NOFILE cannot be raised beyond it; one that is as high costs nothing",
        chain=("system.files",),
        pressure=True,
        now_only="it compares two ceilings, which no load moves",
    ),
    _kernel(
        id="kernel.threads_max",
        title="threads of the whole machine",
        use="system.threads.count",
        ceiling="system.threads.limit",
        loud=True,
        source=f"{KERNEL_RST}: threads-max; /proc/loadavg; clone answers EAGAIN; near: 80 %, our choice",
        near=0.8,
        now_only=CEILING,
    ),
    _kernel(
        id="kernel.pid_max",
        title="process and thread ids",
        use="system.threads.count",
        ceiling="system.pids.limit",
        loud=True,
        source=f"{KERNEL_RST}: pid_max; near: 85 % (netdata)",
        near=0.85,
        now_only=CEILING,
    ),
    _kernel(
        id="kernel.aio",
        title="asynchronous I/O requests",
        use="system.aio",
        ceiling="system.aio.limit",
        loud=True,
        source=f"{FS}: aio-nr and aio-max-nr; io_setup answers EAGAIN; near: 80 %, our choice",
        near=0.8,
        now_only=CEILING,
    ),
    _kernel(
        id="kernel.somaxconn",
        title="the longest accept queue that a server may ask for",
        use="target.accept_queue",
        ceiling="system.network.somaxconn",
        source=f"{IP}: somaxconn cuts listen()'s backlog silently; near: 80 %, our choice, or any drop",
        thrash="system.network.listen_overflows",
        near=0.8,
        on_harm="near",
        now_only=SOCKETS,
    ),
)

HARDWARE: tuple[LimitRule, ...] = (
    _hardware(
        id="system.memory",
        title="the machine's memory",
        use="system.memory.used",
        ceiling="system.memory.limit",
        unit="bytes",
        loud=True,
        source="proc(5), /proc/meminfo: MemTotal and MemAvailable; near: less than 15 % available (netdata)",
        thrash="system.paging.direct_stalls",
        near=0.85,
    ),
    _share(
        id="memory.pressure",
        title="the time in which some task waited for memory",
        use="system.pressure.memory.some",
        source=f"{PSI}; near: its example, 150 ms in 1 s",
        thrash="system.paging.direct_stalls",
        near=0.15,
        pressure=True,
    ),
    _share(
        id="memory.direct_reclaim",
        title="the part of page reclaim that tasks had to do themselves",
        use="system.paging.direct_share",
        source=f"/proc/vmstat: pgscan_direct, pgscan_kswapd, allocstall; near: any ({USE})",
        thrash="system.paging.direct_stalls",
        near=0.0,
        pressure=True,
        now_only="a step is judged by how often tasks stalled for it, system.paging.direct_stalls",
    ),
    _share(
        id="memory.working_set",
        title="the time in which tasks waited for pages that were dropped a short while ago",
        use="system.paging.refault_wait",
        source="Linux, mm/workingset.c; workingset_refault as a share of the pages read from disks, of the time in "
        "which tasks waited for I/O; near: 50 ms in 1 s, as for I/O",
        thrash="system.paging.refaults",
        near=0.05,
        pressure=True,
        now_only="a step is judged by target.paging.major_faults and system.pressure.memory.some",
    ),
    _hardware(
        id="memory.swap",
        title="swap space",
        use="system.swap.used",
        ceiling="system.swap.limit",
        unit="bytes",
        source=f"proc(5), /proc/meminfo; {USE}: any page going in or out is saturation; near: 80 %, our choice",
        thrash="system.paging.swap_out",
        near=0.8,
        now_only="a step is judged by the pages that went in and out: system.paging.swap_in and swap_out",
    ),
    _hardware(
        id="memory.dirty",
        title="changed pages that wait for the disk",
        use="system.memory.unwritten",
        ceiling="system.memory.dirty_limit",
        unit="bytes",
        source="Linux, Documentation/admin-guide/sysctl/vm.rst: dirty_ratio; /proc/vmstat: nr_dirty_threshold; near: "
        "writers are slowed from half-way between the background and this threshold (mm/page-writeback.c), by default "
        "75 %",
        near=0.75,
        now_only="pages written in earlier steps fill it for minutes: the use is not that of one step's load",
    ),
    _hardware(
        id="cpu.saturated",
        title="the CPUs",
        use="system.cpu.busy_cores",
        ceiling="system.cpu.count",
        unit="cores",
        source="Gregg, The USE Method: utilisation of CPUs from /proc/stat; near: 95 %, our choice",
        near=0.95,
    ),
    _hardware(
        id="cpu.run_queue",
        title="runnable threads, against the CPUs",
        use="system.processes.running",
        ceiling="system.cpu.count",
        source=f"{USE}: saturation; /proc/stat at one moment; near: more runnable threads than CPUs",
        thrash="system.pressure.cpu.some",
        near=1.01,
        pressure=True,
    ),
    _share(
        id="cpu.steal",
        title="CPU time that the hypervisor gave to other machines",
        use="system.cpu.steal",
        source="proc(5), /proc/stat; near: 10 % (netdata)",
        near=0.10,
        pressure=True,
    ),
    _share(
        id="cpu.frequency",
        title="speed that busy CPUs did not get",
        use="system.cpu.frequency_lost",
        source="Linux, Documentation/admin-guide/pm/cpufreq.rst: scaling_cur_freq, cpuinfo_max_freq; near: 20 %, our "
        "choice",
        near=0.2,
        pressure=True,
        now_only="a step is flagged by system.cpu.frequency_drop, against the fastest moment of its own",
    ),
    _share(
        id="cpu.heat",
        title="the time for which a CPU was slowed because of heat",
        use="system.cpu.throttled",
        source="Linux, Documentation/ABI/testing/sysfs-devices-system-cpu: core_throttle_total_time_ms; near: any "
        "(pmie)",
        near=0.0,
        pressure=True,
        now_only="a step is flagged by system.cpu.throttles, which counts the same as events",
    ),
    _share(
        id="cpu.softirq",
        title="interrupt work of the CPU that has most of it",
        use="system.cpu.softirq_busiest",
        source=f"{USE}; /proc/stat; near: 80 %, our choice",
        thrash="system.network.squeezes",
        near=0.8,
        now_only="a step has the busiest CPU as a whole, system.cpu.busiest, without the part that interrupts took",
    ),
    _share(
        id="disk.busy",
        title="the busiest disk's time",
        use="system.disk.busy",
        source="Linux, Documentation/admin-guide/iostats.rst: time doing I/Os (weak on disks that work in parallel); "
        "near: 70 % (netdata)",
        near=0.7,
    ),
    _share(
        id="disk.flushing",
        title="the time in which a disk emptied its cache",
        use="system.disk.flushing",
        source="Linux, Documentation/admin-guide/iostats.rst: time spent flushing; a safe commit costs a flush; near: "
        "70 %, as for busy",
        near=0.7,
        now_only="a step is judged by the signature disk.fsync: system.disk.working and flushes_per_request",
    ),
    _hardware(
        id="disk.queue",
        title="requests in a disk's queue",
        use="system.disk.queue_fullest",
        ceiling="system.disk.queue_limit",
        source=f"/sys/block/*/queue/nr_requests; near: an average queue above 1 ({USE})",
        thrash="system.pressure.io.some",
        near_use=1.0,
        now_only="a step is judged by system.disk.queue of the busiest disk; nr_requests is not recorded",
    ),
    _share(
        id="disk.pressure",
        title="the time in which all tasks waited for I/O",
        use="system.pressure.io.full",
        source=f"{PSI}; near: its example, 50 ms in 1 s",
        near=0.05,
        pressure=True,
    ),
    _share(
        id="disk.space",
        title="the fullest file system's space",
        use="system.filesystem.space",
        loud=True,
        source="statvfs(3), as df(1) counts; near: 80 % (netdata)",
        near=0.8,
        now_only=FILLS,
    ),
    _share(
        id="disk.inodes",
        title="the fullest file system's inodes",
        use="system.filesystem.inodes",
        loud=True,
        source="statvfs(3); near: 80 % (netdata)",
        near=0.8,
        now_only=FILLS,
    ),
)
