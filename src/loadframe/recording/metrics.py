"""From the ticks of a recording to the metrics of a window, and the gaps in which the machine stalled."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from loadframe.errors import RecordingError
from loadframe.formats.json_text import write_json
from loadframe.knowledge.families import derived, family_of
from loadframe.metrics import is_known
from loadframe.metrics.exposed import with_quantiles
from loadframe.model import CounterSpec
from loadframe.recording.cage_metrics import cage_metrics, named
from loadframe.recording.derivation import Metrics, Window, derive, gather, nearest_pair, texts_of, window_of
from loadframe.recording.frames import MACHINE, Tick
from loadframe.recording.peer_metrics import Connections, peer_metrics
from loadframe.recording.process_metrics import RECORDER_CORES, recorder_rows
from loadframe.recording.process_window import ProcessInWindow, component_metrics, followed_processes
from loadframe.recording.runtime_metrics import runtime_metrics
from loadframe.recording.system_metrics import NETSTAT, busy_cores, system_metrics
from loadframe.recording.wait_metrics import wait_metrics

SERVICE_NOTE = "note:service"
COUNTERS_NOTE = "note:counters"
"""What the numbers in notes of the service mean, so that a recording can be read without its server."""
STEP_START = "mark:step-start"
MISSING_NOTE = "note:missing"
"""Counters of the service that are not known so far, and why: a JSON array of sentences."""
ITS_NETWORK = "netstat"
COUNTED_WHERE_THEY_ARRIVE = ("system.network.listen_overflows", "system.network.listen_drops")
"""Counted in the target's network namespace."""
STALL_INTERVALS = 3
"""A longer gap is a stall: one late tick happens on any busy machine."""


Readings = Sequence[tuple[float, float]]
"""CLOCK_MONOTONIC (s), value."""


class Stall(NamedTuple):
    """No tick came for length_s from start_s on (CLOCK_MONOTONIC)."""

    start_s: float
    length_s: float


def window_metrics(
    ticks: Sequence[Tick],
    start_s: float,
    end_s: float,
    *,
    service: Sequence[CounterSpec] = (),
    embedded: bool = False,
    pieces: Sequence[str] = (),
) -> Metrics:
    """Averages, rates and peaks over start_s..end_s (CLOCK_MONOTONIC). What cannot be computed (not recorded, damaged,
    reset, fewer than two ticks) is absent. ticks: of RecordingReader.ticks_between, in any order. service: the counters
    in notes of the source "service". embedded: the target lives in the driver's processes, and has their metrics if
    nothing was followed as "target". pieces: the components of the target, which has the metrics of all their
    processes, and of the fullest control group."""
    metrics = service_metrics(ticks, start_s, end_s, service)
    window = window_of(ticks, start_s, end_s)
    if window is None:
        return metrics
    processes = followed_processes(window)
    by_component: dict[str, list[ProcessInWindow]] = {}
    for process in processes:
        by_component.setdefault(process.component, []).append(process)
    if embedded and "target" not in by_component and "driver" in by_component:
        by_component["target"] = by_component["driver"]
    if pieces:
        by_component["target"] = [process for name in pieces for process in by_component.get(name, ())]
    metrics |= system_metrics(window) | derive(window, recorder_rows(window.facts.clock_ticks_per_s))
    metrics |= gather([partial(_foreign, window, processes, metrics)])
    interval_s = window.facts.interval_s
    gaps = stalls(window.ticks, interval_s)
    metrics["system.stall.share"] = min(1.0, sum(gap.length_s - interval_s for gap in gaps) / window.elapsed_s)
    metrics["system.stall.longest_ms"] = 1000 * max((gap.length_s for gap in gaps), default=0.0)
    machine = next(iter(texts_of(window.around, MACHINE)), b"").decode("ascii", "replace")
    ports = {port: name for name, members in by_component.items() for port in Connections(members).listening}
    for component, members in by_component.items():
        seen = Connections(members, {port: name for port, name in ports.items() if name != component})
        waits, peers = partial(wait_metrics, members, seen, machine), partial(peer_metrics, seen)
        parts = gather([waits, peers, partial(runtime_metrics, members)])
        metrics |= _known(component, component_metrics(members) | parts)
    for process in by_component.get("target", ()):
        if texts_of(process.window.around, ITS_NETWORK):
            of_network = derive(process.window, [replace(NETSTAT, source=ITS_NETWORK)])
            metrics |= {name: of_network[name] for name in COUNTED_WHERE_THEY_ARRIVE if name in of_network}
            break
    caged = {name.partition(":cgroup:")[0] for tick in window.ticks for name in tick.entries if ":cgroup:" in name}
    for component in sorted(caged):
        of_group = named(component, cage_metrics(component, window))
        metrics |= {name: value for name, value in of_group.items() if is_known(name)}
    for name, value in tuple(metrics.items()):  # shards are alike: the target has the largest value of each metric
        component, _, rest = name.partition(".")
        if component in pieces and component.startswith("shard") and rest.startswith("cage."):
            metrics[f"target.{rest}"] = max(value, metrics.get(f"target.{rest}", value))
    return {name: float(value) for name, value in metrics.items() if math.isfinite(value)}


def _known(component: str, metrics: Metrics) -> Metrics:
    named = {f"{component}.{name}": value for name, value in metrics.items()}
    return {name: value for name, value in named.items() if is_known(name)}


def _foreign(window: Window, processes: Sequence[ProcessInWindow], metrics: Mapping[str, float]) -> Metrics:
    """What all CPUs did for processes, less those of the study; each pid counts once."""
    busy, count = busy_cores(window)
    if RECORDER_CORES not in metrics:
        raise RecordingError("The CPU time of the recorder was not recorded.")
    own = {process.pid: process for process in processes}
    known = sum(process.cores for process in own.values()) + metrics[RECORDER_CORES]
    return {"system.cpu.foreign": max(0.0, busy - known) / count}


def service_metrics(ticks: Sequence[Tick], start_s: float, end_s: float, service: Sequence[CounterSpec]) -> Metrics:
    """A cumulative counter has its rate between the notes nearest to the window's edges; others their largest value
    within the window (else the nearest), those of a family what it makes of them. Also quantiles of histograms, and
    what follows for families. Notes before the step are of another load."""
    if not service:
        return {}
    starts = (tick.monotonic_s for tick in ticks if STEP_START in tick.entries)
    begun_s = max((at_s for at_s in starts if at_s <= start_s), default=-math.inf)
    noted = [tick for tick in ticks if SERVICE_NOTE in tick.entries and tick.monotonic_s >= begun_s]
    noted.sort(key=lambda tick: tick.monotonic_s)
    read = [(tick.monotonic_s, read_counters(tick.entries[SERVICE_NOTE])) for tick in noted]
    return of_readings([(at_s, counters) for at_s, counters in read if counters], start_s, end_s, service)


def of_readings(
    notes: Sequence[tuple[float, Mapping[str, float]]], start_s: float, end_s: float, service: Sequence[CounterSpec]
) -> Metrics:
    """As service_metrics, from readings (s, value by CounterSpec.name) in time order."""
    metrics = {}
    for spec in service:
        readings = [(at_s, counters[spec.name]) for at_s, counters in notes if spec.name in counters]
        value = (_rate if spec.cumulative else _level)(readings, start_s, end_s)
        if value is not None:
            metrics[spec.metric] = value
        if (family := family_of(spec.metric)) is not None:
            inside = [reading for reading in readings if start_s <= reading[0] <= end_s]
            metrics |= family.in_window(spec.metric, inside)
    values = with_quantiles(metrics)
    return values | derived(values)


def specs_text(specs: Sequence[CounterSpec]) -> str:
    return write_json([asdict(spec) for spec in specs])


def read_specs(text: bytes) -> list[CounterSpec]:
    """The registered counters; none of a damaged note."""
    try:
        return [
            CounterSpec(str(spec["name"]), spec["metric"], cumulative=bool(spec["cumulative"]))
            for spec in json.loads(text)
            if is_known(spec["metric"])
        ]
    except (ValueError, TypeError, KeyError, RecursionError):
        return []


def read_counters(text: bytes) -> Metrics:
    try:
        noted = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(noted, dict):
        return {}
    return {
        name: float(value)
        for name, value in noted.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**64
    }


def _rate(readings: Readings, start_s: float, end_s: float) -> float | None:
    """None if the counter went back in between: it was reset, and may be beyond its first value again."""
    pair = nearest_pair([at_s for at_s, _ in readings], start_s, end_s)
    if pair is None:
        return None
    (first_s, first), (last_s, last) = readings[pair[0]], readings[pair[1]]
    steady = all(less <= more for (_, less), (_, more) in pairwise(readings[pair[0] : pair[1] + 1]))
    return (last - first) / (last_s - first_s) if steady else None


def _level(readings: Readings, start_s: float, end_s: float) -> float | None:
    inside = [value for at_s, value in readings if start_s <= at_s <= end_s]
    if inside:
        return max(inside)
    outside = [(max(start_s - at_s, at_s - end_s), value) for at_s, value in readings]
    return min(outside)[1] if outside else None


def stalls(ticks: Sequence[Tick], interval_s: float) -> list[Stall]:
    times = sorted(tick.monotonic_s for tick in ticks if tick.sample)
    longest_s = STALL_INTERVALS * interval_s
    return [Stall(a, b - a) for a, b in pairwise(times) if b - a > longest_s]
