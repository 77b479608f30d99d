"""OpenMetrics text of the latest values of a watch (docs/watching.md)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from loadframe.formats.plain_numbers import is_number
from loadframe.reporting.openmetrics import RATE, Sample, text
from loadframe_watch.days import WatchLine, table_in, tables_in

FAMILIES: Mapping[str, str] = {
    "watch_info": "A watch: what is watched, and the metric that is its load. Always 1.",
    "watch_sampled_timestamp_seconds": "When counters were read last, in seconds since 1970.",
    "watch_target_present": "1 while the service that is watched is there, 0 while it is not.",
    "watch_load": "The load, in the unit of its metric.",
    f"watch_throughput_{RATE}": "Requests that the service counted, per second.",
    "watch_value": "A counter that was read, by its name; rates are per second.",
    "watch_response_seconds": "The time that the last unit of work took, from its intended start.",
    "watch_unit_failed": "1 if the last unit of work failed.",
    "watch_limit_use_ratio": "Use of a limit as a share of its ceiling.",
    "watch_limit_reached_load": "The load at which a limit will be reached.",
    "watch_limit_reached_timestamp_seconds": "When the load gets there, in seconds since 1970.",
    "watch_bend_load": "The load at which the response bends.",
    "watch_leak_ends_timestamp_seconds": "When a slow leak ends, in seconds since 1970.",
    "watch_alarms": "Alarms in the days that were read, by their kind.",
    "watch_alarm_timestamp_seconds": "When the last alarm of a kind was raised.",
    "watch_cost_cpu_cores": "CPUs that the watcher and its children used: 0.001 is a thousandth.",
    "watch_cost_memory_bytes": "Resident memory of the lasting process.",
}
"""Meaning by name without the prefix, in the order of the text."""
KNOWN = ("head", "unit", "target", "model", "cost")
"""The kinds of which only the latest line counts."""
HOLDS_S = 300.0
"""What a sample lacks keeps its previous value for as long as Prometheus keeps a series (its lookback delta)."""
MOST_READ, MOST_KINDS, LONGEST_NAME = 5_000, 100, 200
"""Bounds on metrics, kinds of alarms and letters of their names: another program may have written the file."""


def of_watch(lines: Iterable[WatchLine], name: str) -> str:
    """lines: in order. name: of the watch's folder. What is no number is left out."""
    seen = Seen()
    for line in lines:
        seen.take(line)
    return text(seen.samples(name), FAMILIES)


class Seen:
    """A watch after its lines so far, with the last value of each metric that still holds."""

    def __init__(self) -> None:
        self._last: dict[str, WatchLine] = {}
        self._alarms: dict[str, tuple[int, float]] = {}
        self._sampled_s: float | None = None
        self._pruned_s = -HOLDS_S
        self._readings: dict[tuple[str, str, str], tuple[float, float]] = {}

    def take(self, line: WatchLine) -> None:
        if line.kind == "sample":
            self._sample(line.at_s, line.data)
        elif line.kind in KNOWN:
            self._last[line.kind] = line
        elif line.kind == "alarm":
            kind = str(line.data.get("alarm", ""))[:LONGEST_NAME]
            if kind in self._alarms or len(self._alarms) < MOST_KINDS:
                self._alarms[kind] = self._alarms.get(kind, (0, 0.0))[0] + 1, line.at_s

    def samples(self, name: str) -> Iterator[Sample]:
        """name: of the watch's folder."""
        last, own = dict(self._last), {"watch": name}
        head, target = last.get("head"), last.get("target")
        if head is not None and head.data.get("pids") and (target is None or head.at_s > target.at_s):
            last["target"] = head  # at the beginning of a day it lists the processes
        if "target" in last:
            yield Sample("watch_target_present", float(bool(last["target"].data.get("pids"))), own)
        for kind, samples_of in SAMPLES_OF.items():
            if kind in last:
                yield from samples_of(last[kind].data, own)
        if self._sampled_s is not None:
            yield Sample("watch_sampled_timestamp_seconds", self._sampled_s, own)
            for (family, label, reading), (at_s, value) in self._readings.items():
                if abs(self._sampled_s - at_s) <= HOLDS_S:
                    yield Sample(family, float(value), {**own, label: reading} if label else own)
        for kind, (count, last_s) in self._alarms.items():
            yield Sample("watch_alarms", float(count), {**own, "alarm": kind})
            yield Sample("watch_alarm_timestamp_seconds", last_s, {**own, "alarm": kind})

    def _sample(self, at_s: float, data: Mapping[str, Any]) -> None:
        self._sampled_s = at_s
        if len(self._readings) >= MOST_READ and at_s - self._pruned_s >= HOLDS_S:
            self._pruned_s = at_s
            self._readings = {
                key: reading for key, reading in self._readings.items() if abs(at_s - reading[0]) <= HOLDS_S
            }
        self._keep("watch_load", data.get("load"))
        self._keep(f"watch_throughput_{RATE}", data.get("throughput"))
        for name, value in table_in(data.get("values")).items():
            self._keep("watch_value", value, "metric", str(name))
        for name, value in table_in(data.get("use")).items():
            self._keep("watch_limit_use_ratio", value, "limit", str(name))

    def _keep(self, family: str, value: Any, label: str = "", name: str = "") -> None:
        if is_number(value) and self._sampled_s is not None and len(name) <= LONGEST_NAME:
            key = family, label, name
            if key in self._readings or len(self._readings) < MOST_READ:
                self._readings[key] = self._sampled_s, value


def _head(data: Mapping[str, Any], own: Mapping[str, str]) -> Iterator[Sample]:
    about = {"subject": "subject", "load": "load_metric", "host": "host", "version": "loadframe_version"}
    yield Sample("watch_info", 1.0, {**own, **{label: str(data.get(key) or "") for key, label in about.items()}})


def _unit(data: Mapping[str, Any], own: Mapping[str, str]) -> Iterator[Sample]:
    yield from _if_number("watch_response_seconds", data.get("response_s"), own)
    yield Sample("watch_unit_failed", float(bool(data.get("error"))), own)


def _model(data: Mapping[str, Any], own: Mapping[str, str]) -> Iterator[Sample]:
    for limit in tables_in(data.get("limits")):
        mine = {**own, "limit": str(limit.get("id", ""))}
        yield from _if_number("watch_limit_reached_load", table_in(limit.get("at_load")).get("load"), mine)
        yield from _if_number("watch_limit_reached_timestamp_seconds", table_in(limit.get("at_s")).get("value"), mine)
    yield from _if_number("watch_bend_load", table_in(data.get("bend")).get("load"), own)
    for leak in tables_in(data.get("leaks")):
        ends_s = table_in(leak.get("ends_s")).get("value")
        yield from _if_number(
            "watch_leak_ends_timestamp_seconds", ends_s, {**own, "metric": str(leak.get("metric", ""))}
        )


def _cost(data: Mapping[str, Any], own: Mapping[str, str]) -> Iterator[Sample]:
    cpu_s, children_s, elapsed_s = (
        float(value) if is_number(value := data.get(name)) else 0.0 for name in ("cpu_s", "children_cpu_s", "elapsed_s")
    )
    if elapsed_s > 0:
        yield Sample("watch_cost_cpu_cores", (cpu_s + children_s) / elapsed_s, own)
    yield from _if_number("watch_cost_memory_bytes", data.get("rss_bytes"), own)


SAMPLES_OF = {"head": _head, "unit": _unit, "model": _model, "cost": _cost}


def _if_number(family: str, value: Any, labels: Mapping[str, str]) -> Iterator[Sample]:
    if is_number(value):
        yield Sample(family, float(value), labels)
