"""The resources in the metrics of a run's steps: stations, or bounds, which take no time until they are met. With
cgroups the machine's CPUs only bound."""

import re
from collections.abc import Mapping, Sequence

from loadframe.analysis.selection import select
from loadframe.model import Limit, Observation, Observations, Steps, by_level, timed

MACHINE_CPU = "cpu"
STATIONS: Mapping[str, str] = {
    "system.cpu.utilization": MACHINE_CPU,
    "system.disk.busy": "disk",
    "workload.lock_held": "lock.writer",
}
CAGED = re.compile(r"(?P<component>.+)\.cage\.(?P<what>cpu|read_bytes|write_bytes|reads|writes)\.utilization")
OWN_CPU = re.compile(r"(?P<component>(?!system\b).+)\.cpu\.utilization")
HOTTEST = re.compile(r"(?P<component>.+)\.cpu\.hottest_thread")
COUNTS: Mapping[str, str] = {
    "system.cpu.utilization": "system.cpu.count",
    "cage.cpu.utilization": "cage.cpu.limit",
    "cpu.utilization": "cpu.limit",
}


def observe(steps: Steps, *, name: str, axis: str, unit: str = "") -> Observations:
    """Observations of one treatment. Only what every step has is a resource."""
    counting = select(steps).steps
    metrics = sorted(set.intersection(*(set(step.metrics) for step in counting))) if counting else []
    if any(metric.startswith("shard1.") for metric in metrics):  # its shards are counted, not the whole
        metrics = [metric for metric in metrics if not metric.startswith("target.")]
    named = {metric: resource for metric in metrics if (resource := _resource(metric, metrics)) is not None}
    known = {step.number for there in by_level(counting).values() for step in timed(there)}
    rows = tuple(
        Observation(
            load=step.level,
            throughput=step.throughput,
            latency_p95_ms=step.latency.p95_ms if step.number in known else None,
            latency_mean_ms=step.latency.mean_ms if step.number in known else None,
            utilizations={resource: min(step.metrics[metric], 1.0) for metric, resource in named.items()},
        )
        for step in counting
    )
    servers = {
        resource: max(1.0, max(step.metrics[count] for step in counting))
        for metric, resource in named.items()
        if (count := _count(metric)) in metrics
    }
    caged = {resource for metric, resource in named.items() if metric.endswith(".cage.cpu.utilization")}
    stations = {*STATIONS.values(), *caged} - ({MACHINE_CPU} if caged else set())
    return Observations(
        name, rows, axis=axis, unit=unit, servers=servers, ceilings=frozenset(named.values()) - stations
    )


def _resource(metric: str, metrics: Sequence[str]) -> str | None:
    if metric in STATIONS:
        return STATIONS[metric]
    if caged := CAGED.fullmatch(metric):
        return f"{caged['component']}.{caged['what']}"
    if own := OWN_CPU.fullmatch(metric):
        component = own["component"]
        return None if f"{component}.cage.cpu.utilization" in metrics else f"{component}.cpu"
    hottest = HOTTEST.fullmatch(metric)
    return f"{hottest['component']}.hottest_thread" if hottest else None


def of_limit(limit: Limit) -> str | None:
    of_share = f"{limit.use_metric.removesuffix('.busy_cores').removesuffix('.cores')}.utilization"
    return _resource(limit.use_metric, ()) or _resource(of_share, ())


def _count(metric: str) -> str | None:
    ends = (end for end in COUNTS if f".{metric}".endswith(f".{end}"))
    return next((metric.removesuffix(end) + COUNTS[end] for end in ends), None)
