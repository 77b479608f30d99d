"""From a step's requests and its recording to its metrics, and to the flags of what disturbed it."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loadframe.analysis import disturbance
from loadframe.analysis.window import DELAYED_ACK_MS, Summary, band
from loadframe.bench.loading import Loaded
from loadframe.bench.rig import Rig, cpus_of
from loadframe.diagnosis.others import throttled_share, waiting
from loadframe.diagnosis.signatures import DRIVER_LIMITED, is_seen
from loadframe.host.processes import bound_to, parse_cpus
from loadframe.kinds import registry as targets
from loadframe.kinds.behind import component_of
from loadframe.ledger.reading import derive
from loadframe.metrics.agreements import contradictions, names_of, without
from loadframe.metrics.exposed import derived_metrics
from loadframe.model import (
    DRIVER_BESIDE,
    NO_LATENCIES,
    PART_LOST,
    TOO_FEW,
    UNSETTLED,
    WHOLE_SECONDS,
    WORK,
    Blind,
    CounterSpec,
    Latency,
    Step,
    StepRequest,
)
from loadframe.recording.derivation import Metrics
from loadframe.recording.frames import Tick
from loadframe.recording.metrics import STALL_INTERVALS, stalls, window_metrics
from loadframe.study import Study
from loadframe.study.cage_tables import ComponentCage

TICK_S = 0.1
"""Seconds between the recorder's ticks."""
NAMED, MOST_NAMED = 0.05, 3
"""A foreign program is named from this share of a CPU on, at most this many."""
FEWEST_WORKING = 0.5
"""Where nearly all requests wait in line, half a request is taken to be at work."""
BUSY_MACHINE = 0.95
"""Where all CPUs are busy, everything waits for a CPU: a cause of its own, not the driver's."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """blind: the counters that contradicted others, which are left out."""

    metrics: Metrics
    blind: tuple[Blind, ...]


def evaluate(
    loaded: Loaded,
    ticks: Sequence[Tick],
    study: Study,
    rig: Rig,
    *,
    one_lock: bool,
    printed: Sequence[CounterSpec] = (),
    work: str = WORK,
) -> Evaluated:
    """study: with the CPUs of the target's state; one_lock, work: as of the workload. printed: counters of families."""
    summary, embedded = loaded.summary, rig.target.embedded
    metrics = window_metrics(
        ticks,
        summary.window_start_s,
        summary.window_end_s,
        service=(*rig.counter_specs, *printed),
        embedded=embedded,
        pieces=components(study) if study.target.shards is not None else (),
    )
    exposed = derived_metrics(metrics, [name for table in study.target.metrics for name in table.requests])
    metrics = {**exposed, **metrics}  # the runtime's own metrics take precedence
    known, asks = NO_LATENCIES not in loaded.marks, work == WORK  # a statement may be a thousand entries
    own = {"throughput": summary.throughput} if asks else {}
    if asks and loaded.offered is None and known:  # in an open loop requests may wait in the driver
        own["workload.concurrency"] = summary.concurrency
    blind = contradictions({**metrics, **own})
    metrics = without(metrics, blind)
    metrics |= derived(
        metrics, summary, study, embedded=embedded, one_lock=one_lock, unknown=names_of(blind), behind=loaded.components
    )
    if "system.cpu.foreign" in metrics:
        named = [stranger for stranger in loaded.strangers.items() if stranger[1] >= NAMED][:MOST_NAMED]
        metrics |= {f"stranger.{component_of(program)}.cores": cores for program, cores in named}
    if not known:
        metrics.pop("workload.concurrency", None)
    if not known or WHOLE_SECONDS in loaded.marks:
        metrics.pop("workload.failed_time", None)
    if WHOLE_SECONDS in loaded.marks:  # the times within a second are random
        metrics.pop("workload.silence_ms", None)
    if not embedded:
        bound = [cpus for pid in rig.target.pids() if (cpus := bound_to(pid)) is not None]
        metrics |= shared(metrics, frozenset().union(*map(parse_cpus, bound)), driver_cpus(study))
    if "target.memory.rss" in metrics:  # otherwise not on this machine, whose ceilings are not its own
        metrics, _ = derive(metrics, {})
    length = summary.window_end_s - summary.window_start_s
    if (late := band(loaded.latencies_ms, *DELAYED_ACK_MS)) is not None:  # as long as a delayed acknowledgement
        metrics["workload.latency_delayed_ack_share"] = late.share
        metrics["workload.latency_delayed_ack_contrast"] = late.contrast
    if loaded.offered is not None:
        metrics["workload.offered"] = loaded.offered / length
    if loaded.moved_bytes is not None:
        metrics["workload.bytes"] = loaded.moved_bytes / length
    return Evaluated(metrics, blind)


def derived(
    metrics: Mapping[str, float],
    summary: Summary,
    study: Study,
    *,
    embedded: bool,
    one_lock: bool,
    unknown: frozenset[str] = frozenset(),
    behind: Sequence[str] = (),
) -> Metrics:
    """unknown: components that exist and were not measured, so that no sum is known. behind: programs that the target
    connects to."""
    length = summary.window_end_s - summary.window_start_s
    values = {
        "workload.errors": summary.errors / length,
        "workload.failed_time": summary.failed_time,
        "workload.concurrency": summary.concurrency,
        "workload.silence_ms": summary.silence_ms,
    }
    if one_lock:
        values |= {"workload.lock_held": summary.lock_held, "workload.lock_waiting": summary.waiting}
    if "driver.cpu.run_delay" in metrics and not embedded and summary.concurrency > 0:
        values["workload.driver_lag"] = metrics["driver.cpu.run_delay"] / summary.concurrency
    values |= _cpu_wait(metrics, summary, embedded=embedded, one_lock=one_lock)
    if "driver.cpu.cores" in metrics:
        driver = [_cpu_share("driver", study.cage.driver, metrics), metrics.get("driver.cpu.hottest_thread")]
        target = [_cpu_share(name, study.allowed(name), metrics) for name in components(study)]
        for name, shares in (("driver", driver), ("target", target)):
            if known := [share for share in shares if share is not None]:
                values[f"{name}.saturation"] = max(known)
    helpers = (f"{name}.cpu.cores" for name in (*(helper.name for helper in study.target.with_), *behind))
    parts = ("target.cpu.cores", "driver.cpu.cores", *helpers)
    used = [metrics[name] for name in parts if name in metrics]
    if used and "system.cpu.count" in metrics and not unknown.intersection(parts):
        values["system.cpu.own"] = sum(used) / metrics["system.cpu.count"]
    flushes = metrics.get("system.disk.flushes")
    if flushes is not None and summary.throughput > 0:
        values["system.disk.flushes_per_request"] = flushes / summary.throughput
    return values


def _cpu_wait(metrics: Mapping[str, float], summary: Summary, *, embedded: bool, one_lock: bool) -> Metrics:
    """Threads of the target, or of its driver, that wait for a CPU, per request in progress; and how busy their CPUs
    were. Requests in line for the one lock need no CPU: they would hide that its holder is delayed."""
    parts = ("target", *(() if embedded else ("driver",)))
    waits = waiting(metrics, parts)
    working = summary.concurrency - (summary.waiting if one_lock else 0.0)
    if math.isinf(waits) or summary.concurrency <= 0:
        return {}
    count = metrics.get("system.cpu.count", math.inf)
    anywhere = all(metrics.get(f"{part}.cpu.limit", 0.0) >= count for part in parts)
    busy = metrics.get("system.cpu.utilization" if anywhere else "system.cpu.busiest")
    values = {} if busy is None else {"workload.cpus_busy": busy}
    return values | {"workload.cpu_wait": waits / max(working, FEWEST_WORKING)}


def driver_cpus(study: Study) -> frozenset[int]:
    return cpus_of(study.cage.driver) or frozenset(os.sched_getaffinity(0))


def components(study: Study) -> tuple[str, ...]:
    return targets.components(study.target.kind, study.target.shards, study.target.sql_nodes)


def _cpu_share(component: str, allowed: ComponentCage, metrics: Mapping[str, float]) -> float | None:
    """CPU time over all that its CPUs and quota allow, or the share of periods in which the quota ran out if higher:
    how much of a quota can be used depends on the number of threads. None where neither is known."""
    cpus = cpus_of(allowed)
    most = float(len(cpus)) if cpus else metrics.get("system.cpu.count", math.nan)
    most = min(most, metrics.get(f"{component}.cage.cpu.limit", most))
    groups = ("cage",) if component == "driver" else ("cage", "cgroup")  # its group is the target's
    used, throttled = metrics.get(f"{component}.cpu.cores"), throttled_share(metrics, component, groups)
    shares = [used / most if used is not None and most > 0 else None, throttled]
    return max((share for share in shares if share is not None), default=None)


def is_late(ticks: Sequence[Tick], summary: Summary) -> bool:
    """Whether ticks of a window were missed; at its end no later one may have been recorded yet."""
    last_s = max((tick.monotonic_s for tick in ticks if tick.sample), default=-math.inf)
    return summary.window_end_s - last_s > STALL_INTERVALS * TICK_S or any(
        stall.start_s < summary.window_end_s and stall.start_s + stall.length_s > summary.window_start_s
        for stall in stalls(ticks, TICK_S)
    )


def flags(summary: Summary, metrics: Mapping[str, float], *, late: bool, ended_early: bool = False) -> tuple[str, ...]:
    """What spoils the step, of model.FLAGS. late: the recorder missed ticks. ended_early: the backlog decides."""
    length_s = summary.window_end_s - summary.window_start_s
    machine_busy = metrics.get("system.cpu.utilization", 1.0) > BUSY_MACHINE
    exceeded = disturbance.exceeded(metrics, length_s)
    seen = {
        UNSETTLED: not summary.settled,
        TOO_FEW: summary.needed_s > 0 and not ended_early,
        "errors": summary.errors > 0,
        "driver-limited": is_seen(DRIVER_LIMITED, metrics),
        "driver-beside": is_seen(DRIVER_BESIDE, metrics),
        "driver-lag": "driver-lag" in exceeded and not machine_busy,
        "steal": "steal" in exceeded,
        "stranger": "stranger" in exceeded,
        "clock-step": metrics.get("system.clock.step", 0.0) > 0,
        PART_LOST: metrics.get("target.parts_lost", 0.0) > 0,
        "frequency": "frequency" in exceeded or metrics.get("system.cpu.throttles", 0.0) > 0,
        "disk-stalled": "disk-stalled" in exceeded,
        "recorder-late": late,
        "ended-early": ended_early,
    }
    return tuple(flag for flag, present in seen.items() if present)


def step_of(request: StepRequest, loaded: Loaded, seen: Evaluated, *, late: bool, number: int, think_s: float) -> Step:
    summary = loaded.summary
    return Step(
        number=number,
        round=request.round_number,
        block=request.block,
        treatment=request.treatment,
        level=request.level,
        started_s=summary.started_s,
        ended_s=summary.ended_s,
        window_start_s=summary.window_start_s,
        window_end_s=summary.window_end_s,
        requests=summary.requests,
        errors=summary.errors,
        throughput=summary.throughput,
        batches=summary.batches,
        latency=summary.latency if loaded.latency_known else Latency(0.0, 0.0, 0.0, 0.0, 0.0),
        waiting_share=summary.waiting_share,
        operations=summary.operations if loaded.latency_known else (),
        metrics=seen.metrics,
        flags=(*flags(summary, seen.metrics, late=late, ended_early=loaded.ended_early), *loaded.marks),
        closed_loop=loaded.offered is None,
        blind=seen.blind,
        purpose=request.purpose,
        think_s=think_s,
        needed_s=0.0 if loaded.ended_early else summary.needed_s,
    )


def shared(metrics: Mapping[str, float], target: frozenset[int], driver: frozenset[int]) -> Metrics:
    """Shares of the target's CPUs: what the driver used, and what was busy, both at least. Of its threads' runnable
    time: that without a CPU (schedstat). target, driver: the CPUs that each may use. Empty where the CPU time of either
    was not measured."""
    own, theirs = metrics.get("target.cpu.cores"), metrics.get("driver.cpu.cores")
    if own is None or theirs is None or not target:
        return {}
    taken = max(0.0, theirs - len(driver - target)) if driver & target else 0.0
    busy = min(1.0, (own + taken) / len(target))
    if len(target) >= metrics.get("system.cpu.count", float("inf")):
        busy = max(busy, metrics.get("system.cpu.utilization", 0.0))
    shares = {"driver.cpu.beside": min(1.0, taken / len(target)), "target.cpus.busy": busy}
    waited = metrics.get("target.cpu.run_delay")
    if waited is not None and waited + own > 0:
        shares["target.cpus.wait"] = waited / (waited + own)
    return shares
