"""Limits of an nginx."""

from __future__ import annotations

from loadframe.knowledge.limit import LimitRule

DOCUMENTATION = "nginx documentation"
CHAIN = ("nginx.worker_rlimit_nofile", "process.open_files")

LIMITS: tuple[LimitRule, ...] = (
    LimitRule(
        id="nginx.worker_connections",
        title="the number of client connections",
        use="nginx.connections",
        ceiling="nginx.connections_allowed",
        loud=True,
        source=f"{DOCUMENTATION}, worker_connections times worker_processes, less what each worker needs for itself "
        "and keeps free, closing idle ones (ngx_drain_connections: 1 in 16); before an origin each client takes two; "
        "Active connections in stub_status, which is not told when none is free; near: 80 %, our choice",
        configured="worker_connections",
        errors="workload.errors",
        chain=CHAIN,
        near=0.8,
    ),
    LimitRule(
        id="nginx.worker_rlimit_nofile",
        title="the descriptors of a worker",
        use="nginx.worker_open_files",
        ceiling="nginx.worker_rlimit_nofile",
        loud=True,
        source=f"{DOCUMENTATION}, worker_rlimit_nofile: a worker without privileges cannot have more than it was "
        "given, and only the log says so; /proc/PID/limits; EMFILE in the log; near: 80 %, as for RLIMIT_NOFILE",
        configured="worker_rlimit_nofile",
        errors="nginx.descriptors_refused",
        chain=("process.open_files",),
        near=0.8,
        on_harm="reached",
    ),
    LimitRule(
        id="nginx.files_wanted",
        title="the descriptors that a worker needs with all its connections in use",
        use="nginx.files_wanted",
        ceiling="nginx.worker_rlimit_nofile",
        source="twice worker_connections: a file or an origin's connection for each client (nginx-proxy/nginx-proxy, "
        "issue 2387); near: more than there are",
        configured="worker_connections",
        chain=("nginx.worker_rlimit_nofile", "process.open_files"),
        near=1.001,
        pressure=True,
    ),
    LimitRule(
        id="nginx.worker_processes",
        title="the CPU of each worker",
        use="nginx.worker_cpu",
        ceiling="one",
        unit="share",
        source=f"{DOCUMENTATION}, worker_processes: a worker is one thread and uses one CPU at most; near: 95 %, as "
        "for a hot thread",
        configured="worker_processes",
        chain=("process.cpus", "cpu.saturated"),
        near=0.95,
    ),
    LimitRule(
        id="nginx.blocked_workers",
        title="workers that wait for a disk",
        use="nginx.worker_blocked",
        ceiling="one",
        unit="share",
        source=f"{DOCUMENTATION}, aio: a worker that reads from a disk serves no other request meanwhile; near: "
        "half of the "
        "time, our choice",
        configured="worker_processes",
        chain=("disk.busy",),
        near=0.5,
        pressure=True,
    ),
    LimitRule(
        id="nginx.keepalive",
        title="requests for which a connection was made",
        use="nginx.connection_share",
        ceiling="one",
        unit="share",
        source=f"{DOCUMENTATION}, keepalive_requests and keepalive_timeout; accepts over requests in stub_status; "
        "near: half, our choice",
        configured="keepalive_requests",
        thrash="nginx.accepts",
        near=0.5,
        pressure=True,
    ),
)
