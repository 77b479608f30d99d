"""Signatures of a MySQL Cluster."""

from __future__ import annotations

from collections.abc import Mapping

from loadframe.knowledge.signature import DISK_BUSY, OWN_CPU_BUSY, Condition, Rank, Signature, Trace

HOT = 0.9
HOT_THREAD = Condition("target.cpu.hottest_thread", ">=", HOT, "one thread is full: its work is the cause")
LOCKS_WAITED_FOR = Condition("ndb.lock_wait", ">=", 0.5, "on average half an operation or more waits for a row's lock")
WHAT: Mapping[str, str] = {
    "ldm": "the data threads (ldm) of the data nodes",
    "tc": "the transaction coordinators (tc) of the data nodes",
    "recv": "the receive threads of the data nodes",
    "send": "the send threads of the data nodes",
    "main": "the main threads of the data nodes",
}
"""By the kind of thread, in words."""
MORE: Mapping[str, str] = {
    "main": " It coordinates transactions where these have no threads of their own (up to eight execution threads)."
}


def _hot(kind: str) -> Signature:
    return Signature(
        id=f"ndb.{kind}_threads",
        rank=Rank.WORKERS,
        title=f"{WHAT[kind]} are at the limit of one CPU each",
        present=(
            Condition(f"ndb.{kind}_cpu", ">=", HOT, "a thread can use one CPU at most; less a tenth, our choice"),
        ),
        absent=(OWN_CPU_BUSY,),
        explanation=f"The other threads wait for them, and idle CPUs cannot help.{MORE.get(kind, '')}",
        explains=("cpu.hot_thread",),
    )


SIGNATURES = (
    *(_hot(kind) for kind in WHAT),
    Signature(
        id="ndb.send_buffers",
        rank=Rank.NETWORK,
        title="links between the cluster's nodes cannot send as fast as they are given work",
        present=(
            Condition(
                "ndb.send_overloads", ">=", 0.2, "one in five seconds: each lasts until the buffer is half empty"
            ),
        ),
        absent=(),
        explanation="Operations that need an overloaded link are refused and tried again by the client, or scans slow "
        "down.",
        explains_falling=True,
    ),
    Signature(
        id="ndb.sql_pool",
        rank=Rank.WORKERS,
        title="many threads of a SQL node wait on each of its connections to the cluster",
        present=(
            Condition(
                "ndb.sql.shared_by",
                ">=",
                4.0,
                "half of ndb_recv_thread_activation_threshold, from which on one thread receives for all; our choice",
            ),
        ),
        absent=(
            OWN_CPU_BUSY,
            HOT_THREAD,
            DISK_BUSY,
            LOCKS_WAITED_FOR,
            Condition("ndb.send_overloads", ">=", 0.2, "a link that is overloaded would be the cause"),
        ),
        explanation="All threads of a connection send through one link and are handed their answers by one thread at a "
        "time. That they wait there is seen; that more connections would help is not, until it is tried.",
        rises=True,
    ),
    Signature(
        id="ndb.row_locks",
        rank=Rank.LOCKS,
        title="operations wait for the locks of rows",
        present=(
            Condition("ndb.lock_waits", ">=", 0.05, "one request in twenty waits", per_request=True),
            Condition("ndb.lock_wait", ">=", 0.5, "on average half an operation or more waits"),
        ),
        absent=(OWN_CPU_BUSY,),
        explanation="Transactions change the same rows and wait for one another.",
        explains_falling=True,
    ),
    Signature(
        id="ndb.redo_log",
        rank=Rank.CACHES,
        title="the redo log is too short for what is written between two local checkpoints",
        present=(
            Condition("ndb.redo_fill", ">=", 0.75, "three quarters, as of the limit; our choice"),
            Condition("ndb.writes", ">=", 0.1, "one request in ten writes", per_request=True),
        ),
        absent=(OWN_CPU_BUSY,),
        explanation="Where the log is full, operations are refused or wait until a local checkpoint has freed some of "
        "it.",
        explains_falling=True,
    ),
    Signature(
        id="ndb.threads_share_cpu",
        rank=Rank.CPU,
        title="threads of a data node take turns on a CPU while others are idle",
        present=(
            Condition("ndb.preemptions", ">=", 0.5, "a thread is taken off its CPU in every other request", True),
            Condition("target.cpu.run_delay", ">=", 0.5, "on average half a thread could run and has no CPU"),
        ),
        absent=(
            OWN_CPU_BUSY,
            Condition("system.cpu.utilization", ">=", 0.9, "no CPU is idle"),
            Condition("target.saturation", ">=", 0.9, "it has all the CPU time that it may use"),
        ),
        explanation="They are bound to fewer CPUs than there are of them (LockExecuteThreadToCPU, ThreadConfig).",
        explains_falling=True,
    ),
    Signature(
        id="ndb.sql_node",
        rank=Rank.CPU,
        title="a SQL node has used up its CPUs before the data nodes have theirs",
        present=(Condition("ndb.sql.cpu", ">=", HOT, "USE method: a resource at 90 % and above has queues"),),
        absent=(
            HOT_THREAD,
            *(Condition(f"ndb.{kind}_cpu", ">=", HOT, "a data node's threads are full") for kind in WHAT),
        ),
        explanation="The data nodes could do more; another SQL node, or more CPUs for this one, gives it to them.",
        explains=("cpu.saturated",),
    ),
)

TRACES: Mapping[str, Trace] = {
    "ndb.sql_pool": Trace("ndb.sql.waiting", "waiting"),
    **{f"ndb.{kind}_threads": Trace("target.cpu.cores", "spread") for kind in WHAT},
    "ndb.threads_share_cpu": Trace("target.cpu.run_delay", "waiting"),
    "ndb.redo_log": Trace("workload.errors", price=False),
    "ndb.sql_node": Trace("ndb.sql.cores", "spread"),
}
