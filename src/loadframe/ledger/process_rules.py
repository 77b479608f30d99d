"""Limits of one process, of its user and of its control group."""

from __future__ import annotations

from functools import partial

from loadframe.knowledge.limit import LimitRule

CGROUP_V2 = "Linux, Documentation/admin-guide/cgroup-v2.rst"
USE = "Gregg, The USE Method"
WALKED = "counting it walks a folder or a table of the process, which is too slow for every tick"
SOCKETS = "of a step the signature net.accept_queue judges the queue and the drops together"
OTHER_GROUPS = "a study records the groups of its cages, which the rules of cage.* read"

_process = partial(LimitRule, layer="process")
_user = partial(LimitRule, layer="user", loud=True)
_cgroup = partial(LimitRule, layer="cgroup", now_only=OTHER_GROUPS)

PROCESS: tuple[LimitRule, ...] = (
    _process(
        id="process.open_files",
        title="open files of the target's process",
        use="target.open_files",
        ceiling="target.open_files.limit",
        loud=True,
        source="getrlimit(2), RLIMIT_NOFILE; /proc/PID/limits and /proc/PID/fd; near: 80 %, our choice",
        configured="RLIMIT_NOFILE",
        errors="workload.errors",
        chain=("process.open_files_hard", "kernel.nr_open", "system.files"),
        near=0.8,
    ),
    _process(
        id="process.open_files_hard",
        title="the open files to which the process may raise its own limit",
        use="target.open_files",
        ceiling="target.open_files.hard_limit",
        loud=True,
        source="getrlimit(2): the soft limit cannot exceed the hard one; near: 80 %, our choice",
        chain=("kernel.nr_open", "system.files"),
        near=0.8,
        now_only="a step is judged by the soft limit, process.open_files, which is met first",
    ),
    _process(
        id="process.mappings",
        title="memory mappings of the process",
        use="target.mappings",
        ceiling="system.mappings.limit",
        loud=True,
        source="Linux, Documentation/admin-guide/sysctl/vm.rst: max_map_count; /proc/PID/maps; near: 80 %, our choice",
        near=0.8,
        now_only=WALKED,
    ),
    _process(
        id="process.hot_thread",
        title="the busiest thread, which has no more than one CPU",
        use="target.cpu.hottest_thread",
        ceiling="one",
        unit="cores",
        source="/proc/PID/task/TID/schedstat; near: 95 % of a CPU, our choice",
        near=0.95,
    ),
    _process(
        id="process.cpus",
        title="the CPUs that the process may use",
        use="target.cpu.cores",
        ceiling="target.cpus.allowed",
        unit="cores",
        source="sched_getaffinity(2), cpusets: Cpus_allowed_list in /proc/PID/status, which may name CPUs that are not "
        f"there; {USE}; near: 95 %, our choice",
        thrash="target.cpu.run_delay",
        chain=("cpu.saturated",),
        near=0.95,
    ),
    _process(
        id="process.run_delay",
        title="threads of the process that wait for a CPU, on the average",
        use="target.cpu.run_delay",
        ceiling="target.cpus.allowed",
        source=f"Linux, Documentation/scheduler/sched-stats.rst; {USE}: saturation; near: half a thread, our choice",
        near_use=0.5,
        pressure=True,
    ),
    _process(
        id="process.accept_queue",
        title="connections that wait to be accepted",
        use="target.accept_queue",
        ceiling="target.accept_queue.limit",
        source="listen(2), min(backlog, somaxconn); sock_diag(7); ip-sysctl.rst; ListenOverflows counts the drops, of "
        "all queues; near: 80 %, our choice, or any drop",
        configured="back_log",
        thrash="system.network.listen_overflows",
        chain=("kernel.somaxconn",),
        near=0.8,
        on_harm="near",
        now_only=SOCKETS,
    ),
)

USER: tuple[LimitRule, ...] = (
    _user(
        id="user.threads",
        title="threads of the user",
        use="user.threads",
        ceiling="user.threads.limit",
        source="getrlimit(2), RLIMIT_NPROC: fork and clone answer EAGAIN; near: 80 %, our choice",
        chain=("cgroup.pids", "kernel.threads_max", "kernel.pid_max"),
        near=0.8,
        now_only="counting it walks every process of the machine, which is too slow for every tick",
    ),
    _user(
        id="user.epoll_watches",
        title="files watched by epoll, of the user (counted: this process)",
        use="target.epoll_watches",
        ceiling="system.epoll_watches.limit",
        source="epoll(7), max_user_watches; /proc/PID/fdinfo; near: 80 %, our choice",
        near=0.8,
        now_only=WALKED,
    ),
    _user(
        id="user.inotify_watches",
        title="files watched by inotify, of the user (counted: this process)",
        use="target.inotify_watches",
        ceiling="system.inotify_watches.limit",
        source="inotify(7), max_user_watches; /proc/PID/fdinfo; near: 80 %, our choice",
        near=0.8,
        now_only=WALKED,
    ),
    _user(
        id="user.inotify_instances",
        title="inotify instances of the user (counted: this process)",
        use="target.inotify_instances",
        ceiling="system.inotify_instances.limit",
        source="inotify(7), max_user_instances; /proc/PID/fd; near: 80 %, our choice",
        near=0.8,
        now_only=WALKED,
    ),
)

CGROUP: tuple[LimitRule, ...] = (
    _cgroup(
        id="cgroup.pids",
        title="threads of the control group",
        use="target.cgroup.pids",
        ceiling="target.cgroup.pids.limit",
        loud=True,
        source=f"{CGROUP_V2}: pids.max, pids.current; pids.events counts the refusals; near: 80 %, our choice",
        errors="target.cgroup.pids.refused",
        chain=("kernel.threads_max", "kernel.pid_max"),
        near=0.8,
        on_harm="reached",
    ),
    _cgroup(
        id="cgroup.memory",
        title="memory of the control group, without file pages not used lately",
        use="target.cgroup.memory",
        ceiling="target.cgroup.memory.limit",
        unit="bytes",
        loud=True,
        source=f"{CGROUP_V2}: memory.max, memory.current less inactive_file; memory.events counts how often it was at "
        "the limit; near: 80 %, our choice",
        thrash="target.cgroup.memory.hits",
        chain=("system.memory",),
        near=0.8,
    ),
    _cgroup(
        id="cgroup.cpu",
        title="CPU quota of the control group",
        use="target.cgroup.cpu",
        ceiling="target.cgroup.cpu.limit",
        unit="cores",
        source=f"{CGROUP_V2}: cpu.max; nr_throttled in cpu.stat; near: 80 %, our choice (bursts are throttled earlier)",
        thrash="target.cgroup.cpu.throttled",
        chain=("process.cpus", "cpu.saturated"),
        near=0.8,
    ),
    *(
        _cgroup(
            id=f"cgroup.{name}",
            title=f"{words} of the control group",
            use=f"target.cgroup.{name}",
            ceiling=f"target.cgroup.{name}.limit",
            unit=unit,
            source=f"{CGROUP_V2}: io.max and io.stat; blkio.throttle in version 1; near: 90 %, our choice",
            near=0.9,
        )
        for name, words, unit in (
            ("read_bytes", "bytes read per second", "bytes/s"),
            ("write_bytes", "bytes written per second", "bytes/s"),
            ("reads", "reads per second", "1/s"),
            ("writes", "writes per second", "1/s"),
        )
    ),
)
