"""OpenMetrics text of runs."""

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime

from loadframe.model import CaseStudy, Curve, LevelRatio, Limit
from loadframe.reporting.openmetrics import RATE, Sample, number
from loadframe.version import __version__

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
"""Meanings by name without the prefix, in the order of the text."""


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
        at = {"load": number(gain.load)} if isinstance(gain, LevelRatio) else {}
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
        at = {**own, "load": number(point.load)}
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
