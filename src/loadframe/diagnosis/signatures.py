"""Signatures, as data: what must be seen, and what must be absent, before a cause is suspected.

A threshold is a starting point with its source; what confirms a finding is the intervention, not the threshold. The
order is from the hardware upwards: where two signatures hold alike, the one further down is the deeper cause and
comes first (a lock held while the disk is waited for is a disk that is waited for). A cause may have several signatures
under its one id: a server that tells what its connections wait for is a better witness than the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from loadframe.metrics import IN_FRONT
from loadframe.model import DRIVER_BESIDE, OTHERS

Comparison = Literal[">=", "<=", ">", "<"]


@dataclass(frozen=True, slots=True)
class Condition:
    """metric comparison threshold, at the place where the cause acts. source: where the threshold comes from.

    per_request: the metric is a rate and is divided by the throughput of the same window first.
    """

    metric: str
    comparison: Comparison
    threshold: float
    source: str
    per_request: bool = False

    def holds(self, value: float) -> bool:
        """Whether this value meets the condition."""
        match self.comparison:
            case ">=":
                return value >= self.threshold
            case "<=":
                return value <= self.threshold
            case ">":
                return value > self.threshold
            case "<":
                return value < self.threshold


@dataclass(frozen=True, slots=True)
class Signature:
    """present: all that the machine can measure must hold; the first one must be measured and carries the finding.
    absent: none may hold (it would be another cause).

    explains_falling: whether it can make throughput fall with load where it is there at every level alike.
    explains: limits that are reached, and causes that are seen, in this way: where both are, this says more.
    explanation: one or two sentences for the report.
    whole: every condition of `present` must have been measured.
    """

    id: str
    title: str
    present: tuple[Condition, ...]
    absent: tuple[Condition, ...]
    explanation: str
    explains_falling: bool = False
    explains: tuple[str, ...] = ()
    whole: bool = False


CPU_BUSY = Condition("system.cpu.utilization", ">=", 0.9, "USE method: a resource at 90 % and above has queues")
OWN_CPU_BUSY = Condition("system.cpu.own", ">=", 0.9, "the study's own work fills the CPUs: nothing else is waited for")
DISK_BUSY = Condition("system.disk.busy", ">=", 0.9, "iostats: a disk busy 90 % of the time has no reserve")
DISK_IDLE = Condition(
    "system.disk.working", "<", 0.1, "iostats: nine tenths of the time no disk has anything to do, or to flush"
)
DIRECT_RECLAIM = Condition(
    "system.paging.direct_stalls", ">=", 10.0, "USE method: memory saturation is any direct reclaim"
)

DRIVER_LIMITED = "driver.limited"
"""Where the driver is the bottleneck, nothing that is seen at the target is its limit."""

LIMITED_DRIVER = Signature(
    id=DRIVER_LIMITED,
    title="the load driver is the bottleneck, not the target",
    present=(Condition("driver.saturation", ">=", 0.9, "USE method: a resource at 90 % and above has queues"),),
    absent=(Condition("target.saturation", ">=", 0.9, "the target has no CPU time left either"),),
    explanation="The driver has no CPU time left to ask for more, while the target has.",
    explains_falling=True,
)


DRIVER_BESIDE_TARGET = Signature(
    id=DRIVER_BESIDE,
    title="the load driver takes a large part of the CPUs that the target is short of",
    present=(
        Condition(
            "driver.cpu.beside", ">=", 0.25, "without a quarter of its CPUs a target does three quarters of its work"
        ),
        Condition("target.cpus.busy", ">=", 0.9, "USE method: a resource at 90 % and above has queues"),
        Condition(
            "target.cpus.wait", ">=", 0.2, "a fifth of the time its threads could run and do not: it could use more"
        ),
    ),
    absent=(
        Condition("target.cage.cpu.throttled_share", ">=", 0.5, "the target's own quota keeps its threads waiting"),
    ),
    explanation="The curve is that of both together: alone the target would do more. Give the driver CPUs of its own "
    "(cage.cpus and cage.driver.cpus), or another machine; or load with a driver that needs less for a request.",
    explains=("cpu.saturated",),
)


STRANGERS = Condition("system.cpu.foreign", ">=", 0.2, "a fifth of the CPUs changes what two of them can do")
STOLEN = Condition("system.cpu.steal", ">=", 0.1, "netdata: the warning level for stolen CPU time")

CROWDED: tuple[Signature, ...] = (
    Signature(
        id=OTHERS,
        title="others take the CPU",
        present=(
            STRANGERS,
            Condition(
                "workload.cpu_wait", ">=", 0.2, "a fifth of the requests' time: their threads could run and do not"
            ),
        ),
        absent=(),
        explanation="Processes that belong to nobody in the study run while its threads wait for a CPU. End them, or "
        "measure when the machine is quiet: what else may hold the target back cannot be judged until then.",
        explains_falling=True,
    ),
    Signature(
        id=OTHERS,
        title="others take the CPU",
        present=(STOLEN,),
        absent=(),
        explanation="The hypervisor gives the CPU to other machines. Measure when these are quiet, or on CPUs of its "
        "own: what else may hold the target back cannot be judged until then.",
        explains_falling=True,
    ),
)


def _cage_signatures(component: str, layer: str, whose: str) -> tuple[Signature, ...]:
    """layer: what the ids begin with."""
    cage = f"{component}.cage"
    return (
        Signature(
            id=f"{layer}.cpu_quota",
            title=f"the CPU time that {whose} allows is used up",
            present=(
                Condition(f"{cage}.cpu.utilization", ">=", 0.8, "a quota that binds is used up but for slack"),
                Condition(
                    f"{cage}.cpu.throttled_share", ">=", 0.5, "sched-bwc: the quota runs out in every second period"
                ),
            ),
            absent=(),
            explanation="Whenever the quota of a period of 100 ms is used up, every thread waits for the next one.",
        ),
        *(
            signature
            for metric, what in (
                ("read_bytes", "bytes read"),
                ("write_bytes", "bytes written"),
                ("reads", "disk reads"),
                ("writes", "disk writes"),
            )
            for signature in _rate_signatures(f"{layer}.{metric}", f"{cage}.{metric}.utilization", what, whose)
        ),
    )


def _rate_signatures(cause: str, used: str, what: str, whose: str) -> tuple[Signature, ...]:
    """One limit of blk-throttle: used up, or mostly so by clients who wait for it while the disk is idle."""
    whole = Signature(
        id=cause,
        title=f"{what} are held back by {whose}",
        present=(Condition(used, ">=", 0.9, "blk-throttle lets no more than the limit pass"),),
        absent=(OWN_CPU_BUSY,),
        explanation="Requests wait until the rate that is allowed lets them pass, however idle the disk is.",
    )
    mostly = (
        Condition(used, ">=", 0.6, "of a slice of 100 ms is lost what few clients, or a second limit, leave unused"),
        Condition("system.pressure.io.some", ">=", 0.5, "psi: some task waited for I/O half of the time"),
        DISK_IDLE,
    )
    return whole, replace(whole, present=mostly, whole=True)


CAGE_SIGNATURES: tuple[Signature, ...] = (
    *_cage_signatures("target", "cage", "the cage"),
    *(
        signature
        for component in (*IN_FRONT, "driver")
        for signature in _cage_signatures(component, f"cage.{component}", f"the cage of the {component}")
    ),
)
"""What the cages allow: a limit set from outside is the deeper cause of whatever waits behind it."""

SIGNATURES: tuple[Signature, ...] = (
    LIMITED_DRIVER,
    *CROWDED,
    *CAGE_SIGNATURES,
    Signature(
        id="memory.swap",
        title="the machine swaps",
        present=(Condition("system.paging.swap_in", ">=", 10.0, "USE method: any sustained swapping is saturation"),),
        absent=(),
        explanation="Memory is overcommitted and pages travel to the disk and back.",
        explains_falling=True,
    ),
    Signature(
        id="memory.reclaim",
        title="memory is reclaimed while requests wait",
        present=(
            DIRECT_RECLAIM,
            Condition("system.pressure.memory.some", ">=", 0.1, "psi: some task waited for memory 10 % of the time"),
        ),
        absent=(Condition("system.paging.swap_in", ">=", 10.0, "that would be swapping"),),
        explanation="Allocations stall until the kernel has freed pages.",
        explains_falling=True,
    ),
    Signature(
        id="memory.mmap_page_faults",
        title="a mapped file is larger than memory, and each page of it is waited for",
        present=(
            Condition(
                "target.paging.major_faults", ">=", 1.0, "a request waits for the disk at least once", per_request=True
            ),
            Condition("target.cage.memory.refaults", ">=", 1.0, "what was dropped is wanted again", per_request=True),
        ),
        absent=(Condition("system.paging.swap_in", ">=", 10.0, "that would be swapping"),),
        explanation="A page that is not in memory is read when it is touched, one after the other, and unmapped from "
        "all CPUs to make room for the next; files that are read or sent are fetched many pages at a time.",
        explains_falling=True,
        explains=("cage.memory", "system.memory"),
    ),
    Signature(
        id="disk.saturated",
        title="the disk is saturated",
        present=(
            DISK_BUSY,
            Condition("system.disk.queue", ">=", 1.0, "USE method: a queue is saturation"),
            Condition(
                "system.pressure.io.full", ">=", 0.3, "psi: nothing else ran 30 % of the time while I/O was waited for"
            ),
        ),
        absent=(
            DIRECT_RECLAIM,
            Condition("system.disk.flushes_per_request", ">=", 0.5, "flushes, not the amount of data, are waited for"),
        ),
        explanation="Requests wait for a disk that has no time left.",
    ),
    Signature(
        id="disk.fsync",
        title="every commit waits for the disk",
        present=(
            Condition(
                "system.disk.flushes_per_request", ">=", 0.5, "one cache flush for at most two requests: no grouping"
            ),
            Condition(
                "target.cage.writes",
                ">=",
                0.5,
                "what is flushed was written: others flush disks too",
                per_request=True,
            ),
            Condition("system.pressure.io.some", ">=", 0.2, "psi: some task waited for I/O 20 % of the time"),
        ),
        absent=(OWN_CPU_BUSY, DIRECT_RECLAIM, DISK_IDLE),
        explanation="The disk must confirm each commit before the next can start, however few bytes it writes.",
    ),
    Signature(
        id="disk.fsync",
        title="every commit waits for the disk",
        present=(
            Condition("postgres.waiting_wal", ">=", 0.5, "on average half a connection waits for the log or more"),
            Condition("system.disk.flushes_per_request", ">=", 0.1, "the log is flushed for one request in ten"),
        ),
        absent=(OWN_CPU_BUSY, DIRECT_RECLAIM, DISK_IDLE),
        explanation="The disk must confirm a commit before it is done; connections flush for one another, and wait.",
    ),
    Signature(
        id="lock.writer",
        title="one writer holds the lock, the others wait",
        present=(
            Condition("workload.lock_waiting", ">=", 0.5, "on average half a request or more waits for the lock"),
            Condition(
                "workload.lock_held", ">=", 0.3, "held, or free only because those who wait sleep between their tries"
            ),
        ),
        absent=(OWN_CPU_BUSY,),
        explanation="Only one writer can hold the lock; more workers queue up or sleep and retry.",
        explains_falling=True,
    ),
    Signature(
        id="spawn.per_file",
        title="a process is started for each file, and small files pay for it",
        present=(
            Condition(
                "loader.paging.minor_faults",
                ">=",
                100.0,
                "a process that starts touches hundreds of pages for the first time",
                per_request=True,
            ),
            Condition("system.processes.created", ">=", 0.2, "one request in five starts a process", per_request=True),
        ),
        absent=(Condition("target.cpu.hottest_thread", ">=", 0.9, "one thread has the CPU, not many short ones"),),
        explanation="Starting a process, and its connections, takes longer than the work on a small file.",
        explains_falling=True,
    ),
    Signature(
        id="lock.busy_errors",
        title="requests give up on a lock",
        present=(
            Condition("workload.errors", ">", 0.01, "more than one request in a hundred fails", per_request=True),
        ),
        absent=(
            Condition("mariadb.connection_errors_max", ">", 1.0, "it is connections that are refused"),
            Condition("postgres.connections_refused", ">", 1.0, "it is connections that are refused"),
            Condition("nginx.workers", ">=", 1.0, "a web server has no lock that a request could give up on"),
        ),
        explanation="Requests fail at once where they could wait for the lock.",
        explains_falling=True,
    ),
    Signature(
        id="mariadb.buffer_pool",
        title="the buffer pool is too small for what is asked for",
        present=(
            Condition(
                "mariadb.pool_reads",
                ">=",
                0.1,
                "one request in ten has to fetch a page that was there",
                per_request=True,
            ),
        ),
        absent=(OWN_CPU_BUSY,),
        explanation="Pages are read from the disk again and again, because others have taken their place in memory.",
        explains_falling=True,
    ),
    Signature(
        id="mariadb.redo_log",
        title="the redo log is too small for what is written",
        present=(
            Condition(
                "mariadb.redo_fill", ">=", 0.75, "InnoDB flushes without regard to anything from 7/8 of the log on"
            ),
            Condition(
                "mariadb.pages_flushed", ">=", 0.1, "one request in ten makes the server write a page", per_request=True
            ),
        ),
        absent=(OWN_CPU_BUSY,),
        explanation="The log goes on only once the pages it protects are written; a small one has them written often.",
        explains_falling=True,
    ),
    Signature(
        id="postgres.shared_buffers",
        title="the shared buffers are too small for what is asked for",
        present=(
            Condition(
                "postgres.blocks_read",
                ">=",
                0.5,
                "one request in two has to fetch a page that was there",
                per_request=True,
            ),
            Condition("postgres.waiting_io", ">=", 0.2, "on average a connection in five waits for data files"),
        ),
        absent=(OWN_CPU_BUSY,),
        explanation="Pages are read again and again, because others have taken their place in the shared buffers.",
        explains_falling=True,
    ),
    Signature(
        id="postgres.checkpoints",
        title="checkpoints come as fast as the write-ahead log grows",
        present=(
            Condition(
                "postgres.checkpoints_requested", ">=", 0.1, "documentation: checkpoint_warning, 30 s; thrice as often"
            ),
            Condition(
                "postgres.wal_pages", ">=", 0.1, "one request in ten writes a whole page to the log", per_request=True
            ),
        ),
        absent=(),
        explanation="After each checkpoint every page goes whole into the log when it is first changed, so the log "
        "grows the faster, and data files have to be flushed the more often.",
        explains_falling=True,
    ),
    Signature(
        id="lock.table",
        title="statements wait for table locks",
        present=(
            Condition(
                "mariadb.table_locks_waited", ">=", 0.05, "MySQLTuner: 95 % should be immediate", per_request=True
            ),
        ),
        absent=(OWN_CPU_BUSY,),
        explanation="A statement locks the whole table and the others wait for it.",
        explains_falling=True,
    ),
    Signature(
        id="lock.row",
        title="transactions wait for row locks",
        present=(Condition("mariadb.row_lock_waits", ">=", 0.05, "one request in twenty waits", per_request=True),),
        absent=(OWN_CPU_BUSY,),
        explanation="Transactions change the same rows and wait for one another.",
        explains_falling=True,
    ),
    Signature(
        id="lock.row",
        title="transactions wait for row locks",
        present=(
            Condition("postgres.waiting_lock", ">=", 0.5, "on average half a connection or more waits for a lock"),
        ),
        absent=(OWN_CPU_BUSY,),
        explanation="Transactions change the same rows and wait for one another.",
        explains_falling=True,
    ),
    Signature(
        id="nginx.worker_rlimit_nofile",
        title="a worker has no descriptor left for clients that come",
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
        title="workers wait for the disk and answer nobody meanwhile",
        present=(Condition("nginx.worker_blocked", ">=", 0.5, "a worker is one thread: it waits half of the time"),),
        absent=(OWN_CPU_BUSY,),
        explanation="A worker that reads a file from the disk serves none of its other connections until it has it.",
        explains_falling=True,
    ),
    Signature(
        id="nginx.keepalive",
        title="connections are not kept for the next request",
        present=(Condition("nginx.accepts", ">=", 0.5, "one request in two needs a new connection", per_request=True),),
        absent=(Condition("nginx.connections_refused", ">", 1.0, "it is connections that are refused"),),
        explanation="Making a connection costs client and server more than a small answer.",
    ),
    Signature(
        id="nginx.worker_processes",
        title="the workers are at the limit of a CPU each",
        present=(Condition("nginx.worker_cpu", ">=", 0.9, "a worker is one thread and can use one CPU at most"),),
        absent=(CPU_BUSY,),
        explanation="There are fewer workers than CPUs, and those that are idle cannot help.",
    ),
    Signature(
        id="cpu.hot_thread",
        title="one thread of the target is at the limit of its CPU",
        present=(Condition("target.cpu.hottest_thread", ">=", 0.9, "one thread can use one CPU at most"),),
        absent=(CPU_BUSY,),
        explanation="The work of one thread cannot be spread over the CPUs that are idle.",
    ),
    DRIVER_BESIDE_TARGET,
    Signature(
        id="cpu.saturated",
        title="the CPUs are saturated",
        present=(
            CPU_BUSY,
            Condition("system.pressure.cpu.some", ">=", 0.3, "psi: some task waited for a CPU 30 % of the time"),
        ),
        absent=(
            STRANGERS,
            STOLEN,
        ),
        explanation="All CPUs are busy with the work that was asked for.",
    ),
)


def is_driver_limited(metrics: Mapping[str, float]) -> bool:
    """Whether the driver is the bottleneck where these metrics were measured."""
    return all(one.metric in metrics for one in LIMITED_DRIVER.present) and _holds(LIMITED_DRIVER, metrics)


def is_driver_beside(metrics: Mapping[str, float]) -> bool:
    """Whether the driver takes CPUs that the target is short of where these metrics were measured."""
    share, busy, *_ = DRIVER_BESIDE_TARGET.present
    return share.metric in metrics and busy.metric in metrics and _holds(DRIVER_BESIDE_TARGET, metrics)


def is_crowded(metrics: Mapping[str, float]) -> bool:
    """Whether others take the CPU where these metrics were measured."""
    return any(one.present[0].metric in metrics and _holds(one, metrics) for one in CROWDED)


def _holds(signature: Signature, metrics: Mapping[str, float]) -> bool:
    """Of what was measured all that must be present, and nothing that must be absent."""
    present = all(one.holds(metrics[one.metric]) for one in signature.present if one.metric in metrics)
    return present and not any(one.holds(metrics[one.metric]) for one in signature.absent if one.metric in metrics)
