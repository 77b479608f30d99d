"""Signatures of what is seen from outside of any process: its sockets, its threads, its runtime, its open files."""

from __future__ import annotations

from dataclasses import replace

from loadframe.knowledge.signature import OWN_CPU_BUSY, Condition, Rank, Signature
from loadframe.model import REACHED

FAILING = Condition("workload.errors", ">", 0.01, "more than one request in a hundred fails", per_request=True)
NO_MORE_FILES = Condition(
    "target.open_files.share", ">=", REACHED, "getrlimit(2): accept and open fail with EMFILE at the soft limit"
)
NEARLY_ALL_FILES = 0.85
HOT = 0.9
"""Of one CPU, as the busiest thread or a process whose threads run one at a time. Such a one waits for a CPU for less
than a tenth of the time, however busy other programs keep the others."""
ALL_OF_ITS_CPUS = Condition(
    "target.saturation", ">=", 0.9, "the target has all the CPU time that its CPUs and its quota let it have"
)

_DELAYED_ACK = Signature(
    id="net.delayed_ack",
    rank=Rank.NETWORK,
    title="answers wait for delayed acknowledgements (Nagle's algorithm)",
    present=(
        Condition(
            "workload.latency_delayed_ack_share",
            ">=",
            0.4,
            "include/net/tcp.h: TCP_DELACK_MIN is 40 ms; two fifths of the requests and more take that long",
        ),
        Condition(
            "workload.latency_delayed_ack_contrast",
            ">=",
            3.0,
            "a mode, not a broad distribution that reaches there: three times the bands around it, our choice",
        ),
        Condition(
            "system.network.delayed_acks",
            ">=",
            0.5,
            "TcpExt DelayedACKs: the timer ran out about once per request",
            per_request=True,
        ),
    ),
    absent=(OWN_CPU_BUSY,),
    explanation="The server writes an answer, or a request to a server of its own, in two small pieces. The second one "
    "waits until the other side has acknowledged the first, and that side delays this by 40 ms (RFC 896, RFC 1122). "
    "Write it at once, or set TCP_NODELAY.",
    whole=True,
)
"""Where requests wait for one another they take longer than that; then it is seen at the lowest level alone."""

_NETWORK: tuple[Signature, ...] = (
    Signature(
        id="net.accept_queue",
        rank=Rank.NETWORK,
        title="connections are dropped before they are accepted",
        present=(
            Condition(
                "system.network.listen_overflows",
                ">=",
                0.01,
                "ip-sysctl: a dropped connection tries again after a second or more",
                per_request=True,
            ),
            Condition(
                "target.accept_queue.share", ">=", 0.8, "listen(2), sock_diag(7): the queue that overflows is its own"
            ),
        ),
        absent=(NO_MORE_FILES, OWN_CPU_BUSY),
        explanation="The queue of connections that wait to be accepted is full, and the kernel drops further ones. A "
        "client notices nothing and tries again after a second. Its length is the smaller of listen()'s backlog and "
        "net.core.somaxconn.",
        explains_falling=True,
        explains=("process.accept_queue",),
        whole=True,
    ),
    Signature(
        id="net.ports",
        rank=Rank.NETWORK,
        title="the local ports for connections to one destination are used up",
        present=(
            Condition(
                "system.network.local_ports.share",
                ">=",
                0.95,
                "ip-sysctl: ip_local_port_range; beyond it connect(2) fails with EADDRNOTAVAIL",
            ),
            FAILING,
        ),
        absent=(),
        explanation="Each closed connection keeps its port for a minute (TIME_WAIT), on the side that closed it first. "
        "Keep connections open between requests, or widen net.ipv4.ip_local_port_range.",
        explains_falling=True,
        explains=("network.local_ports",),
        whole=True,
    ),
    _DELAYED_ACK,
    replace(_DELAYED_ACK, unloaded=True),
)

_FILES: tuple[Signature, ...] = (
    Signature(
        id="process.open_files",
        rank=Rank.FAILURES,
        title="a process has as many files open as it may",
        present=(
            Condition(
                "target.accept_queue.waiting",
                ">=",
                1.0,
                "accept(2): with EMFILE a connection stays in the queue, where it waits although the process is idle",
            ),
            NO_MORE_FILES,
        ),
        absent=(OWN_CPU_BUSY,),
        explanation="It cannot accept more connections until it closes some: they wait, and no request fails. EMFILE "
        "itself cannot be seen from outside; the open files were counted, and the connections that wait.",
        explains_falling=True,
        whole=True,
    ),
    Signature(
        id="process.open_files",
        rank=Rank.FAILURES,
        title="a process has nearly as many files open as it may, and requests fail",
        present=(
            Condition(
                "target.open_files.share",
                ">=",
                NEARLY_ALL_FILES,
                "open(2): EMFILE; what opens several files at a time is refused before the last one, and these are "
                "looked at once a second",
            ),
            FAILING,
        ),
        absent=(OWN_CPU_BUSY,),
        explanation="Opening a file or accepting a connection fails with EMFILE at the soft limit of open files. That "
        "itself cannot be seen from outside; the open files were counted, and the requests that fail.",
        explains_falling=True,
        explains=("lock.busy_errors",),
        whole=True,
        rises=True,
    ),
)

GC_SAMPLED, GC_SAMPLED_CORES = "target.runtime.gc_sampled_share", "target.runtime.gc_sampled_cores"
_COLLECTING = "Objects that live fill most of the heap, so a collection frees little and the next one comes soon. "
_RUNTIME: tuple[Signature, ...] = (
    Signature(
        id="runtime.garbage_collection",
        rank=Rank.RUNTIME,
        title="the runtime collects garbage most of the time",
        present=(
            Condition(
                "target.runtime.gc_share",
                ">=",
                0.2,
                "a fifth of the time, our choice; HotSpot's own goal is 1 % (-XX:GCTimeRatio=99)",
            ),
            Condition(
                "target.runtime.heap_live_share", ">=", 0.5, "what lives takes half of the heap or more, our choice"
            ),
        ),
        absent=(),
        explanation=_COLLECTING + "Give it a larger heap, or keep fewer objects.",
        explains=("cpu.hot_thread",),
    ),
    Signature(
        id="runtime.garbage_collection",
        rank=Rank.RUNTIME,
        title="the runtime's collector takes much of the CPU time",
        present=(
            Condition(
                "target.runtime.gc_cpu_share", ">=", 0.3, "CPU time of threads that are named as collectors, our choice"
            ),
            Condition(
                "target.runtime.heap_live_share", ">=", 0.5, "what lives takes half of the heap or more, our choice"
            ),
        ),
        absent=(Condition("target.runtime.gc_share", "<", 0.05, "its counters say that it seldom collects"),),
        explanation="Threads whose names are those of a collector used this share of the target's CPU time. "
        + "Give it a larger heap, or keep fewer objects.",
        explains=("cpu.hot_thread",),
    ),
)

_SAMPLED = Signature(
    id="runtime.garbage_collection",
    rank=Rank.RUNTIME,
    title="the runtime's collector takes much of the CPU time, as a profile shows",
    present=(
        Condition(GC_SAMPLED, ">=", 0.5, "of the samples: below half of them, what the program computes is more"),
        Condition(GC_SAMPLED_CORES, ">=", 0.2, "a fifth of one CPU, our choice: an idle program may collect, too"),
    ),
    absent=(Condition("target.runtime.gc_share", "<", 0.05, "its counters say that it seldom collects"),),
    explanation=_COLLECTING + "Give it a larger heap, or keep fewer objects.",
    explains=("cpu.hot_thread",),
    whole=True,
)

_ONE_CPU: tuple[Signature, ...] = (
    Signature(
        id="cpu.hot_thread",
        rank=Rank.CPU,
        title="one thread of the target is at the limit of its CPU",
        present=(Condition("target.cpu.hottest_thread", ">=", HOT, "one thread can use one CPU at most"),),
        absent=(ALL_OF_ITS_CPUS, OWN_CPU_BUSY),
        explanation="The work of one thread cannot be spread over several CPUs.",
    ),
    Signature(
        id="cpu.hot_thread",
        rank=Rank.CPU,
        title="the threads of one process take turns on one CPU (a global interpreter lock)",
        present=(
            Condition("target.cpu.one_at_a_time", ">=", 1.0, "/proc/PID/exe: CPython, PyPy or CRuby"),
            Condition(
                "target.cpu.busiest_process", ">=", 0.85, "all its threads together fill one CPU, less handing over"
            ),
            Condition(
                "target.cpu.busiest_process",
                "<=",
                1.25,
                "more would be work outside of the interpreter, which the lock does not hold back",
            ),
            Condition("target.cpu.busiest_threads", ">=", 1.5, "with one thread it would be that thread alone"),
        ),
        absent=(ALL_OF_ITS_CPUS, OWN_CPU_BUSY),
        explanation="Python and Ruby run the code of one thread at a time in each process, however many threads and "
        "CPUs there are. More processes spread the work, more threads do not.",
        whole=True,
    ),
)

NEARLY = 0.75
_NEARLY_ONE_CPU = Signature(
    id="cpu.hot_thread",
    rank=Rank.CPU,
    title="one thread of the target is busy most of the time where throughput stops growing",
    present=(
        Condition(
            "target.cpu.hottest_thread",
            ">=",
            NEARLY,
            "Kleinrock 1975 (M/M/1): busy three quarters of the time, it makes a request take four times as long",
        ),
        Condition("target.cpu.hottest_thread", "<", HOT, "one thread can use one CPU at most, and this one does not"),
    ),
    absent=(ALL_OF_ITS_CPUS, OWN_CPU_BUSY),
    explanation="Nothing else was found that is nearly used up. Its work cannot be spread over several CPUs, and where "
    "requests come to it in batches, as to an event loop, it is idle while all of them wait for something else.",
    failing_others=True,
)

OF_SERVICES: tuple[Signature, ...] = (*_NETWORK, *_FILES, *_RUNTIME, _SAMPLED, *_ONE_CPU, _NEARLY_ONE_CPU)
"""Of any target; each with what rules it out."""
