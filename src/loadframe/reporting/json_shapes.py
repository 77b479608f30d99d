"""The JSON shapes that other tools rely on. Keys may be added; none is ever renamed or taken away.

What is not a number (a bend that was not found, an interval without data) is null: JSON knows no NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from loadframe.model import (
    Alternative,
    Calibration,
    Cliff,
    Comparison,
    Conduct,
    Curve,
    Finding,
    Forecast,
    Investigation,
    Limit,
    LoadInterval,
    Profile,
    Remedy,
    Round,
    Scalability,
    StateSummary,
    Trial,
    Verdict,
)
from loadframe.reporting import reaching

Json = dict[str, Any]


def curve_json(curve: Curve, *, conduct: Conduct | None = None) -> Json:
    """loadframe.curve/1; throughput in requests per second, latency in ms, loads in the unit of the axis. conduct: of
    the whole run, with the recorder's own cost."""
    return _object(
        {
            "schema": "loadframe.curve/1",
            "axis": curve.axis,
            "treatment": curve.treatment,
            "points": [_record(point) for point in curve.points],
            "shape": curve.shape,
            "peak": _record(curve.peak),
            "knee": _interval(curve.knee),
            "cliff": _cliff(curve.cliff),
            "capacity": _interval(curve.capacity),
            "usl": _scalability(curve.usl),
            "warnings": list(curve.warnings),
            "closed_loop": curve.closed_loop,
            **({"conduct": _record(conduct)} if conduct is not None else {}),
        }
    )


def verdict_json(verdict: Verdict) -> Json:
    """loadframe.verdict/1; ratio is after / before, low and high its interval at `confidence`."""
    return _object({"schema": "loadframe.verdict/1", **_record(verdict)})


def comparison_json(comparisons: Sequence[Comparison]) -> Json:
    """A single comparison is loadframe.verdict/1 with what it is about; several are loadframe.comparison/1."""
    shapes = [_comparison(each) for each in comparisons]
    return shapes[0] if len(shapes) == 1 else {"schema": "loadframe.comparison/1", "comparisons": shapes}


def _comparison(comparison: Comparison) -> Json:
    about = {name: value for name, value in _record(comparison).items() if name not in ("verdict", "axis_unit")}
    ratios = about.pop("levels")
    return {**verdict_json(comparison.verdict), **_object({**about, "level_ratios": ratios})}


def forecast_json(forecast: Forecast, *, calibration: Calibration | None = None) -> Json:
    """loadframe.forecast/1; throughput in 1/s, loads in the unit of the axis, intervals of 90 % (of limits: 95 %).
    calibration: how often the intervals of all forecasts scored on this machine held."""
    return _object({"schema": "loadframe.forecast/1", **_record(forecast), "calibration": calibration})


def limits_json(limits: Iterable[Limit]) -> Json:
    """loadframe.limits/1; every number in the limit's own unit."""
    return _object({"schema": "loadframe.limits/1", "limits": [_record(limit) for limit in limits]})


def investigation_json(inv: Investigation) -> Json:
    """loadframe.investigation/1: everything that the page shows."""
    return _object(
        {
            "schema": "loadframe.investigation/1",
            "run": inv.run,
            "report": inv.report,
            "started_at": inv.started_at,
            "seconds": inv.seconds,
            "study": _record(inv.study),
            "host": _record(inv.host),
            "outcome": _record(inv.outcome),
            "rounds": [_round(round_) for round_ in inv.rounds],
            "before": _state(inv.before),
            "after": _state(inv.after),
            "reach": _reach(inv),
            "gain": _verdict(inv.gain),
            "gain_durability_kept": _verdict(inv.gain_durability_kept),
            "ladder": [_record(step) for step in inv.ladder],
            "next_limit": _record(inv.next_limit) if inv.next_limit else None,
            "conduct": _record(inv.conduct),
            "warnings": list(inv.warnings),
            "profiles": [_profile(profile) for profile in inv.profiles],
            "profile_missing": [_record(requirement) for requirement in inv.profile_missing],
            "forecast": forecast_json(inv.forecast) if inv.forecast else None,
            "alternatives": [_alternative(one) for one in inv.alternatives],
            "survivals": [_record(one) for one in inv.survivals],
            "latencies": [_record(one) for one in inv.latencies],
        }
    )


def _alternative(one: Alternative) -> Json:
    return {
        "name": one.name,
        "target_kind": one.target_kind,
        "round": _round(one.round),
        "verdict": verdict_json(one.verdict),
        "by_level": [verdict_json(verdict) for verdict in one.by_level],
        "cold": [verdict_json(verdict) for verdict in one.cold],
        "parting": _interval(one.parting),
        "witnesses": [_record(witness) for witness in one.witnesses],
    }


def _profile(profile: Profile) -> Json:
    """Without the boxes of the flame graph: the run folder has the stacks themselves."""
    return {name: value for name, value in _record(profile).items() if name != "flame"}


def _round(round_: Round) -> Json:
    return {
        "number": round_.number,
        "treatment": round_.treatment,
        "state": _record(round_.state),
        "effective": dict(round_.effective),
        "silent_cuts": list(round_.silent_cuts),
        "curve": curve_json(round_.curve),
        "limits": limits_json(round_.limits)["limits"],
        "findings": [_finding(finding) for finding in round_.findings],
        "tried": [_trial(trial) for trial in round_.tried],
        "untried": [{"remedy": _remedy(each.remedy), "because": each.because} for each in round_.untried],
        "footprint": [dict(row) for row in round_.footprint],
        "ruled_out": [_record(item) for item in round_.ruled_out],
    }


def _finding(finding: Finding) -> Json:
    return {**_record(finding), "reached_at": _interval(finding.reached_at)}


def _remedy(remedy: Remedy) -> Json:
    return _record(remedy)


def _trial(trial: Trial) -> Json:
    return {
        **_record(trial),
        "remedy": _remedy(trial.remedy),
        "verdict": verdict_json(trial.verdict),
        "fresh": _verdict(trial.fresh),
    }


def _verdict(verdict: Verdict | None) -> Json | None:
    return verdict_json(verdict) if verdict else None


def _reach(inv: Investigation) -> Json | None:
    found = reaching.of(inv)
    return _record(found) if found else None


def _state(state: StateSummary | None) -> Json | None:
    if state is None:
        return None
    bend = _record(state.bend) if state.bend else None
    return {"peak": _record(state.peak), "knee": _interval(state.knee), "bend": bend}


def _interval(interval: LoadInterval | None) -> Json | None:
    return _record(interval) if interval else None


def _cliff(cliff: Cliff | None) -> Json | None:
    if cliff is None:
        return None
    return {"from": cliff.from_load, "to": cliff.to_load, "throughput_kept": cliff.throughput_kept}


def _scalability(usl: Scalability | None) -> Json | None:
    if usl is None:
        return None
    intervals = {"lambda": usl.lambda_interval, "sigma": usl.sigma_interval, "kappa": usl.kappa_interval}
    return {
        "lambda": usl.lambda_,
        "sigma": usl.sigma,
        "kappa": usl.kappa,
        "intervals": {name: list(interval) for name, interval in intervals.items()},
        "peak_load": usl.peak_load,
    }


def _record(value: Any) -> Json:
    """A record's fields by their names, one level deep; `_clean` opens the records below."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _object(value: Mapping[str, Any]) -> Json:
    return {str(key): _clean(item) for key, item in value.items()}


def _clean(value: Any) -> Any:
    """The same with null for what is not finite, plain numbers for numpy's, lists for tuples, objects for records."""
    if is_dataclass(value):
        return _clean(_record(value))
    if isinstance(value, Mapping):
        return _object(value)
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    if isinstance(value, bool | str | int | None):
        return value
    if hasattr(value, "item"):
        return _clean(value.item())
    number = float(value)
    return number if math.isfinite(number) else None
