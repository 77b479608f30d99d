"""Measurements as OpenMetrics text (https://prometheus.io/docs/specs/om/). Every family is a gauge, so that readers of
Prometheus' older text format (node_exporter's textfile collector, the Pushgateway) accept the same text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from loadframe.formats.said import words
from loadframe.model import CaseStudy, Curve, Limit, LoadGain, LoadInterval
from loadframe.version import __version__

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PREFIX = "loadframe_"
RATE = "requests_per_second"


@dataclass(frozen=True, slots=True)
class Family:
    """What a metric means. unit: the end of its name; "" for a load, whose unit the study chooses, and for a count."""

    help: str
    unit: str = ""


FAMILIES: Mapping[str, Family] = {
    "run_info": Family("A run: its study, target and load axis. Always 1."),
    "run_started_timestamp_seconds": Family("When the run was started, in seconds since 1970.", "seconds"),
    "run_ended": Family("1 for a run that ended as it should; 0 for one that was stopped, was killed, or still runs."),
    "treatment_info": Family("A state of the target, under the letter that the other metrics use. Always 1."),
    f"throughput_{RATE}": Family("Throughput at a load: the curve.", RATE),
    f"throughput_low_{RATE}": Family("Lower end of the 95 % interval of the throughput at a load.", RATE),
    f"throughput_high_{RATE}": Family("Upper end of the 95 % interval of the throughput at a load.", RATE),
    "latency_p95_seconds": Family("95 % of the requests at a load took no longer.", "seconds"),
    f"peak_throughput_{RATE}": Family("The highest throughput of the curve.", RATE),
    "peak_load": Family("The load at which throughput is highest, in the unit of the axis."),
    "knee_load": Family("The load at which the curve bends, in the unit of the axis."),
    "knee_load_low": Family("Lower end of the interval of the knee."),
    "knee_load_high": Family("Upper end of the interval of the knee."),
    "cliff_load": Family("The load at which throughput has fallen, in the unit of the axis."),
    "cliff_kept_ratio": Family("Share of the throughput that is left after the cliff.", "ratio"),
    "capacity_load": Family("The highest load that meets the study's objective, in the unit of the axis."),
    "limit_ceiling": Family("The ceiling of a limit, in its own unit. +Inf: the machine sets none."),
    "limit_use": Family("The highest use of a limit that was measured, in its own unit."),
    "limit_use_ratio": Family("Use of a limit as a share of its ceiling.", "ratio"),
    "limit_exhausted_load": Family("The load at which a limit runs out, in the unit of the axis."),
    "limit_exhausted_load_low": Family("Lower end of the interval of the load at which a limit runs out."),
    "limit_exhausted_load_high": Family("Upper end of the interval of the load at which a limit runs out."),
    "finding_info": Family("A cause with its status: suspected, helped, confirmed or refuted. Always 1."),
    "gain_ratio": Family("Throughput of the last state over that of the first, at the load of the answer.", "ratio"),
    "gain_low_ratio": Family("Lower end of the interval of the gain.", "ratio"),
    "gain_high_ratio": Family("Upper end of the interval of the gain.", "ratio"),
    "steps": Family("Finished steps of the run."),
    "steps_flagged": Family("Steps that carry a flag, by flag: what disturbed them."),
    "recorder_cpu_cores": Family("CPUs that the recorder used: 0.01 is one hundredth of a core.", "cores"),
    "recorder_memory_bytes": Family("Resident memory of the recorder.", "bytes"),
}
"""Every metric that is exported, by its name without the prefix, in the order of the text."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One value. family: its key in FAMILIES. labels: names of ours, values as they are; they are escaped later."""

    family: str
    value: float
    labels: Mapping[str, str]


def text(samples: Iterable[Sample], families: Mapping[str, Family] = FAMILIES) -> str:
    """The exposition of these samples, ended by "# EOF". What is no number is left out; of two samples with one name
    and labels the first is kept, as a reader refuses the second. KeyError for a family that is not declared."""
    lines: dict[str, dict[str, str]] = {}
    for sample in samples:
        if sample.family not in families:
            raise KeyError(sample.family)
        if not math.isnan(sample.value):
            labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels.items() if value != "")
            lines.setdefault(sample.family, {}).setdefault(f"{{{labels}}}" if labels else "", _number(sample.value))
    told = [line for name in families if name in lines for line in _family(name, families[name], lines[name])]
    return "\n".join([*told, "# EOF", ""])


def of_runs(runs: Iterable[CaseStudy]) -> str:
    """The exposition of these runs. They are told apart by the label `run`."""
    return text(sample for run in runs for sample in samples_of(run))


def samples_of(run: CaseStudy) -> Iterator[Sample]:
    """Everything that a run exports."""
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
        at = {"load": _number(gain.load)} if isinstance(gain, LoadGain) else {}
        about = {**own, **at, "decision": gain.decision}
        yield Sample("gain_ratio", gain.ratio, about)
        yield Sample("gain_low_ratio", gain.low, about)
        yield Sample("gain_high_ratio", gain.high, about)


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
        yield Sample(f"throughput_{RATE}", point.throughput, at)
        yield Sample(f"throughput_low_{RATE}", point.throughput_low, at)
        yield Sample(f"throughput_high_{RATE}", point.throughput_high, at)
        if point.latency_p95_ms is not None:
            yield Sample("latency_p95_seconds", point.latency_p95_ms / 1000, at)
    yield Sample(f"peak_throughput_{RATE}", curve.peak.throughput, own)
    yield Sample("peak_load", curve.peak.load, own)
    yield from _interval("knee_load", curve.knee, own)
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
    yield from _interval("limit_exhausted_load", limit.exhausted_at, own)


def _interval(family: str, found: LoadInterval | None, own: Mapping[str, str]) -> Iterator[Sample]:
    if found is not None:
        yield Sample(family, found.load, own)
        yield Sample(f"{family}_low", found.low, own)
        yield Sample(f"{family}_high", found.high, own)


# --- the text ---------------------------------------------------------------------------------------------------------


def _family(name: str, family: Family, values: Mapping[str, str]) -> Iterator[str]:
    whole = f"{PREFIX}{name}"
    yield f"# TYPE {whole} gauge"
    if family.unit:
        yield f"# UNIT {whole} {family.unit}"
    yield f"# HELP {whole} {_escaped(family.help)}"
    for labels, value in values.items():
        yield f"{whole}{labels} {value}"


def _escaped(value: str) -> str:
    """A text of others: one line without control characters, its backslashes and quotes escaped."""
    return words(value).replace("\\", "\\\\").replace('"', '\\"')


def _number(value: float) -> str:
    """A number as the format writes it, with all its digits."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
