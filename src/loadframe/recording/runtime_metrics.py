"""Garbage collection, from a Java virtual machine's counters, and from the CPU time of threads with names of
collectors."""

import re
from collections.abc import Mapping, Sequence

from loadframe.errors import RecordingError
from loadframe.recording import procfs
from loadframe.recording.derivation import Metrics, growth, nearest_pair
from loadframe.recording.process_metrics import parse_tasks
from loadframe.recording.process_window import ProcessInWindow

JVM = "jvm"
_ONE_HEAP = "GarbageFirst"  # each of G1's two generations may have all of the heap
Counters = Mapping[str, str]
_COLLECTORS = {
    r"GC Thread#\d+|ParGC.*|GC task thread.*": "HotSpot, gc/shared/workerThread.cpp: parallel collections",
    r"G1 .*": "HotSpot, gc/g1: G1 Main Marker, G1 Conc#, G1 Refine#, G1 Service",
    r"CMS .*|Concurrent Mark.*": "HotSpot up to 13, gc/cms",
    r"ZWorker.*|ZDriver.*|ZDirector|ZStat|ZUncommitter|XWorker.*|XDriver": "HotSpot, gc/z and gc/x",
    r"Shenandoah.*": "HotSpot, gc/shenandoah",
    r"VM Thread": "HotSpot, runtime/vmThread.cpp: the serial collector runs in it, and other work at safepoints",
}
"""Name of a thread, as far as the kernel keeps it (15 bytes) -> source. Threads of Go have no names, and those of V8
also compile: a profile shows these (experiments/profiling.py)."""
COLLECTORS = re.compile("|".join(f"(?:{name})" for name in _COLLECTORS))


def runtime_metrics(processes: Sequence[ProcessInWindow]) -> Metrics:
    """Of the Java process whose collectors took most time; and the CPU time of all collecting threads."""
    of_jvms = [metrics for process in processes if (metrics := _of_jvm(process))]
    busiest: Metrics = max(of_jvms, key=lambda metrics: metrics.get("runtime.gc_share", 0.0), default={})
    return busiest | _collecting(processes)


def _of_jvm(process: ProcessInWindow) -> Metrics:
    ticks = [tick for tick in process.window.around if JVM in tick.entries]
    pair = nearest_pair([tick.monotonic_s for tick in ticks], process.window.start_s, process.window.end_s)
    if pair is None:
        return {}
    looks = [parse_counters(tick.entries[JVM]) for tick in ticks[pair[0] : pair[1] + 1]]
    metrics = _heap(looks)
    try:
        grown = growth(collected_s(looks[0]), collected_s(looks[-1]))
    except RecordingError:  # another process under this pid, or no counters of collectors
        return metrics
    return metrics | {"runtime.gc_share": grown / (ticks[pair[1]].monotonic_s - ticks[pair[0]].monotonic_s)}


def parse_counters(text: bytes) -> dict[str, str]:
    rows = (line.partition(" ") for line in text.decode("ascii", "replace").splitlines())
    return {name: value for name, _, value in rows}


def collected_s(counters: Counters) -> float:
    """With pauses of concurrent collectors. RecordingError."""
    frequency = _number(counters, "sun.os.hrt.frequency")
    spent = [
        _number(counters, name) for name in counters if name.startswith("sun.gc.collector.") and name.endswith(".time")
    ]
    if not spent or not frequency:
        raise RecordingError("A Java virtual machine does not tell the time of its collectors.")
    return sum(spent) / frequency


def _heap(looks: Sequence[Counters]) -> Metrics:
    used, old = [], []
    for counters in looks:
        spaces: dict[str, float] = {}
        for name in counters:
            if name.startswith("sun.gc.generation.") and name.endswith(".used"):
                generation = name.split(".")[3]
                spaces[generation] = spaces.get(generation, 0.0) + _number(counters, name)
        if spaces:
            used.append(sum(spaces.values()))
            old.append(spaces[max(spaces)])
    if not used:
        return {}
    metrics: Metrics = {"runtime.heap_use": max(used), "runtime.heap_live": min(old)}
    most = [_number(looks[-1], name) for name in looks[-1] if name.endswith(".maxCapacity")]
    if most:
        one_heap = looks[-1].get("sun.gc.policy.name") == _ONE_HEAP
        metrics["runtime.heap_ceiling"] = max(most) if one_heap else sum(most)
    return metrics


def _number(counters: Counters, name: str) -> float:
    value = counters.get(name, "")
    return float(procfs.parse_count(value.encode())) if value else 0.0


def _collecting(processes: Sequence[ProcessInWindow]) -> Metrics:
    collecting = together = 0.0
    named = False
    for process in processes:
        names: dict[int, str] = {}
        for tick in process.window.around:
            for row in parse_tasks(tick.entries.get("tasks", b"")):
                if row.stat:
                    names.setdefault(row.thread, row.name)
        for thread, (run, _) in process.cpu_rates.items():
            together += run
            if COLLECTORS.fullmatch(names.get(thread, "")):
                named = True
                collecting += run
    return {"runtime.gc_cpu_share": collecting / together} if named and together > 0 else {}
