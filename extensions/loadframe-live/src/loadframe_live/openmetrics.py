"""OpenMetrics text (https://prometheus.io/docs/specs/om/) of runs, and of the latest values of a watch
(docs/watching.md). Every family is a gauge, so that readers of Prometheus' older text format (node_exporter's textfile
collector, the Pushgateway) accept the same text."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from loadframe.formats.plain_numbers import is_number
from loadframe.formats.said import words
from loadframe.formats.watch_days import WatchLine
from loadframe.model import CaseStudy, Curve, LevelRatio, Limit
from loadframe.version import __version__

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PREFIX = "loadframe_"
RATE = "requests_per_second"


UNITS = (RATE, "seconds", "ratio", "cores", "bytes")
"""Suffixes of names; counts have none, and loads, whose unit the study chooses."""
FAMILIES: Mapping[str, str] = {
    "run_info": "A run: its study, target and load axis. Always 1.",
    "run_started_timestamp_seconds": "When the run was started, in seconds since 1970.",
    "run_ended": "1 for a run that ended as it should; 0 for one that was stopped, was killed, or still runs.",
    "treatment_info": "A state of the target, under the letter that the other metrics use. Always 1.",
    f"throughput_{RATE}": "Throughput at a load: the curve.",
    f"throughput_low_{RATE}": "Lower end of the 95 % interval of the throughput at a load.",
    f"throughput_high_{RATE}": "Upper end of the 95 % interval of the throughput at a load.",
    "latency_p95_seconds": "95 % of the requests at a load took no longer.",
    f"peak_throughput_{RATE}": "The highest throughput of the curve.",
    "peak_load": "The load at which throughput is highest, in the unit of the axis.",
    "knee_load": "The load at which the curve bends, in the unit of the axis.",
    "knee_load_low": "Lower end of the interval of the knee.",
    "knee_load_high": "Upper end of the interval of the knee.",
    "cliff_load": "The load at which throughput has fallen, in the unit of the axis.",
    "cliff_kept_ratio": "Share of the throughput that is left after the cliff.",
    "capacity_load": "The highest load that meets the study's objective, in the unit of the axis.",
    "limit_ceiling": "The ceiling of a limit, in its own unit. +Inf: the machine sets none.",
    "limit_use": "The highest use of a limit that was measured, in its own unit.",
    "limit_use_ratio": "Use of a limit as a share of its ceiling.",
    "limit_exhausted_load": "The load at which a limit runs out, in the unit of the axis.",
    "limit_exhausted_load_low": "Lower end of the interval of the load at which a limit runs out.",
    "limit_exhausted_load_high": "Upper end of the interval of the load at which a limit runs out.",
    "finding_info": "A cause with its status: suspected, helped, confirmed or refuted. Always 1.",
    "gain_ratio": "Throughput of the last state over that of the first, at the load of the answer.",
    "gain_low_ratio": "Lower end of the interval of the gain.",
    "gain_high_ratio": "Upper end of the interval of the gain.",
    "steps": "Finished steps of the run.",
    "steps_flagged": "Steps that carry a flag, by flag: what disturbed them.",
    "recorder_cpu_cores": "CPUs that the recorder used: 0.01 is one hundredth of a core.",
    "recorder_memory_bytes": "Resident memory of the recorder.",
}
"""Meaning of every exported metric, by its name without the prefix, in the order of the text."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One value. family: its key in FAMILIES. labels: our names, unescaped values."""

    family: str
    value: float
    labels: Mapping[str, str]


def text(samples: Iterable[Sample]) -> str:
    """The exposition of these samples, ended by "# EOF". NaN is left out; of two samples with one name and labels the
    first is kept, as a reader refuses the second. KeyError for an undeclared family."""
    families = {**FAMILIES, **WATCH_FAMILIES}
    lines: dict[str, dict[str, str]] = {}
    for sample in samples:
        if sample.family not in families:
            raise KeyError(sample.family)
        if not math.isnan(sample.value):
            labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels.items() if value != "")
            lines.setdefault(sample.family, {}).setdefault(f"{{{labels}}}" if labels else "", _number(sample.value))
    exposition = [line for name in families if name in lines for line in _family(name, families[name], lines[name])]
    return "\n".join([*exposition, "# EOF", ""])


def of_runs(runs: Iterable[CaseStudy]) -> str:
    """The exposition of these runs, distinguished by the label `run`."""
    return text(sample for run in runs for sample in samples_of(run))


def samples_of(run: CaseStudy) -> Iterator[Sample]:
    own = {"run": run.name, "study": run.study.name}
    yield from _of_run(run, own)
    for name, state in run.states.items():
        yield Sample("treatment_info", 1.0, {**own, "treatment": name, "title": state.title})
        yield from _of_curve(state.curve, {**own, "treatment": name})
    for round_ in run.rounds:
        of = {**own, "treatment": round_.treatment, "round": str(round_.number)}
        for limit in round_.limits:
            yield from _of_limit(limit, {**of, "limit": limit.id, "layer": limit.layer, "unit": limit.unit})
        for finding in round_.findings:
            cause = {"finding": finding.id, "status": finding.status, "title": finding.title}
            yield Sample("finding_info", 1.0, {**of, **cause})
    if (gain := run.gain) is not None:
        at = {"load": _number(gain.load)} if isinstance(gain, LevelRatio) else {}
        about = {**own, **at, "decision": gain.decision}
        if isinstance(gain, LevelRatio) or gain.has_ratio:
            yield from _interval("gain", gain.ratio, gain.low, gain.high, about, "_ratio")


def _of_run(run: CaseStudy, own: Mapping[str, str]) -> Iterator[Sample]:
    study, quality = run.study, run.quality
    about = {
        "axis": study.axis,
        "axis_unit": study.axis_unit,
        "work_unit": study.work_unit,
        "target": study.target_kind,
        "target_version": study.target_version,
        "workload": study.workload_kind,
        "loadframe_version": __version__,
    }
    yield Sample("run_info", 1.0, {**own, **about})
    with suppress(ValueError, OverflowError):
        yield Sample("run_started_timestamp_seconds", datetime.fromisoformat(run.started_at).timestamp(), own)
    yield Sample("run_ended", float(run.ended), own)
    yield Sample("steps", float(quality.steps), own)
    for flag, count in quality.flags.items():
        yield Sample("steps_flagged", float(count), {**own, "flag": flag})
    if quality.ticks:
        yield Sample("recorder_cpu_cores", quality.recorder_cpu_share, own)
        yield Sample("recorder_memory_bytes", quality.recorder_rss_bytes, own)


def _of_curve(curve: Curve, own: Mapping[str, str]) -> Iterator[Sample]:
    for point in curve.points:
        at = {**own, "load": _number(point.load)}
        ends = point.throughput_low, point.throughput_high
        yield from _interval("throughput", point.throughput, *ends, at, f"_{RATE}")
        if point.latency_p95_ms is not None:
            yield Sample("latency_p95_seconds", point.latency_p95_ms / 1000, at)
    yield Sample(f"peak_throughput_{RATE}", curve.peak.throughput, own)
    yield Sample("peak_load", curve.peak.load, own)
    if (knee := curve.knee) is not None:
        yield from _interval("knee_load", knee.load, knee.low, knee.high, own)
    if curve.cliff is not None:
        yield Sample("cliff_load", curve.cliff.to_load, own)
        yield Sample("cliff_kept_ratio", curve.cliff.throughput_kept, own)
    if curve.capacity is not None:
        yield Sample("capacity_load", curve.capacity.load, own)


def _of_limit(limit: Limit, own: Mapping[str, str]) -> Iterator[Sample]:
    yield Sample("limit_ceiling", limit.ceiling, own)
    yield Sample("limit_use", limit.use, own)
    if limit.ceiling > 0 and math.isfinite(limit.ceiling):
        yield Sample("limit_use_ratio", limit.use / limit.ceiling, own)
    if (at := limit.exhausted_at) is not None:
        yield from _interval("limit_exhausted_load", at.load, at.low, at.high, own)


def _interval(
    name: str, value: float, low: float, high: float, own: Mapping[str, str], unit: str = ""
) -> Iterator[Sample]:
    for end, quantity in (("", value), ("_low", low), ("_high", high)):
        yield Sample(f"{name}{end}{unit}", quantity, own)


# --- the text ---


def _family(name: str, meaning: str, values: Mapping[str, str]) -> Iterator[str]:
    whole = f"{PREFIX}{name}"
    yield f"# TYPE {whole} gauge"
    yield from (f"# UNIT {whole} {unit}" for unit in UNITS if name.endswith(f"_{unit}"))
    yield f"# HELP {whole} {_escaped(meaning)}"
    for labels, value in values.items():
        yield f"{whole}{labels} {value}"


def _escaped(value: str) -> str:
    """Foreign text on one line without control characters, its backslashes and quotes escaped."""
    return words(value).replace("\\", "\\\\").replace('"', '\\"')


def _number(value: float) -> str:
    """With all its digits."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


WATCH_FAMILIES: Mapping[str, str] = {
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
"""The same of a watch."""
KNOWN = ("head", "unit", "target", "model", "cost")
"""The kinds of which only the latest line counts."""
HOLDS_S = 300.0
"""What a sample lacks keeps its previous value for as long as Prometheus keeps a series (its lookback delta)."""
MOST_READ, MOST_KINDS, LONGEST_NAME = 5_000, 100, 200
"""Bounds on metrics, kinds of alarms and letters of their names: another program may have written the file."""


def of_watch(lines: Iterable[WatchLine], name: str) -> str:
    """The exposition of a watch from its lines, in order. name: of its folder. What is no number is left out."""
    seen = Seen()
    for line in lines:
        seen.take(line)
    return text(seen.samples(name))


class Seen:
    """The state of a watch after its lines so far, with the last value of each metric that still holds."""

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
        """Everything that the watch exports. name: of its folder."""
        last, own = dict(self._last), {"watch": name}
        head, target = last.get("head"), last.get("target")
        if head is not None and head.data.get("pids") and (target is None or head.at_s > target.at_s):
            last["target"] = head  # at the beginning of a day it lists the processes
        if "target" in last:
            yield Sample("watch_target_present", float(bool(last["target"].data.get("pids"))), own)
        for kind, tell in TOLD.items():
            if kind in last:
                yield from tell(last[kind].data, own)
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
        for name, value in table(data.get("values")).items():
            self._keep("watch_value", value, "metric", str(name))
        for name, value in table(data.get("use")).items():
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
    for limit in tables(data.get("limits")):
        mine = {**own, "limit": str(limit.get("id", ""))}
        yield from _if_number("watch_limit_reached_load", table(limit.get("at_load")).get("load"), mine)
        yield from _if_number("watch_limit_reached_timestamp_seconds", table(limit.get("at_s")).get("value"), mine)
    yield from _if_number("watch_bend_load", table(data.get("bend")).get("load"), own)
    for leak in tables(data.get("leaks")):
        ends_s = table(leak.get("ends_s")).get("value")
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


TOLD = {"head": _head, "unit": _unit, "model": _model, "cost": _cost}


def _if_number(family: str, value: Any, labels: Mapping[str, str]) -> Iterator[Sample]:
    if is_number(value):
        yield Sample(family, float(value), labels)


def table(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def tables(value: Any) -> list[Mapping[Any, Any]]:
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []
