"""Signatures of nginx, and the traces of their causes."""

from __future__ import annotations

from loadframe.knowledge.signature import CPU_BUSY, OWN_CPU_BUSY, Condition, Rank, Signature, Trace

SIGNATURES = (
    Signature(
        id="nginx.worker_rlimit_nofile",
        rank=Rank.WORKERS,
        title="a worker has no descriptor left for new clients",
        present=(
            Condition(
                "nginx.descriptors_refused", ">=", 1.0, "accept_mutex_delay, 500 ms: each keeps all clients waiting"
            ),
        ),
        absent=(),
        explanation="A worker without a descriptor takes no connection for half a second, and a file gives an error.",
        explains_falling=True,
    ),
    Signature(
        id="nginx.blocked_workers",
        rank=Rank.WORKERS,
        title="workers wait for the disk and serve no other requests meanwhile",
        present=(Condition("nginx.worker_blocked", ">=", 0.5, "a worker is one thread: it waits half of the time"),),
        absent=(OWN_CPU_BUSY,),
        explanation="While a worker reads a file from the disk, it serves none of its other connections.",
        explains_falling=True,
    ),
    Signature(
        id="nginx.keepalive",
        rank=Rank.WORKERS,
        title="connections are not kept alive",
        present=(Condition("nginx.accepts", ">=", 0.5, "one request in two needs a new connection", per_request=True),),
        absent=(Condition("nginx.connections_refused", ">", 1.0, "it is connections that are refused"),),
        explanation="Opening a connection costs client and server more than a small response.",
    ),
    Signature(
        id="nginx.worker_processes",
        rank=Rank.WORKERS,
        title="the workers are at the limit of one CPU each",
        present=(Condition("nginx.worker_cpu", ">=", 0.9, "a worker is one thread and can use one CPU at most"),),
        absent=(CPU_BUSY,),
        explanation="There are fewer workers than CPUs, so the idle CPUs cannot help.",
    ),
)

TRACES = {
    "nginx.worker_processes": Trace("target.cpu.cores", "passes", ceiling="nginx.workers"),
    "nginx.blocked_workers": Trace("nginx.worker_blocked", "share"),
}

RULED_OUT_BY = {
    "lock.busy_errors": (
        Condition("nginx.workers", ">=", 1.0, "a web server has no lock that a request could time out on"),
    )
}
"""By a cause that is not of one kind of server alone: what is seen where it is another cause."""
