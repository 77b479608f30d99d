"""The JSON that other tools rely on: keys may be added, none is ever renamed or removed. A record's fields are its
keys, with exceptions in SHAPES. Numbers that are not finite are null."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from loadframe.diagnosis.windows import explained
from loadframe.model import (
    AnswerCompared,
    AnswersCompared,
    Calibration,
    Capacity,
    Change,
    Cliff,
    Comparison,
    Curve,
    FleetLimit,
    Forecast,
    Investigation,
    Ladder,
    LedgerNow,
    Profile,
    Round,
    Rung,
    RunQuality,
    Scalability,
    Verdict,
)
from loadframe.model.verdict import NOT_KNOWN
from loadframe.reporting import answers, facts, limits_report, plots, verdict_words

Json = dict[str, Any]
INTERVAL = ("ratio", "low", "high", "decision", "confidence")


def curve_json(curve: Curve, *, quality: RunQuality | None = None, answers: Sequence[AnswersCompared] = ()) -> Json:
    """loadframe.curve/1: throughput in 1/s, latency in ms, loads in the unit of the axis. quality: of the whole run."""
    more: Json = {} if quality is None else {"conduct": quality}
    return json_object({**_curve(curve), **more, **({"answers": answers} if answers else {})})


def comparison_json(comparisons: Sequence[Comparison]) -> Json:
    """One is loadframe.verdict/1 with its subject; several are loadframe.comparison/1."""
    shapes = []
    for comparison in comparisons:
        about = fields_of(comparison, "verdict", "fresh", "axis_unit", "levels")
        shapes.append(json_object({**verdict_json(comparison.verdict), **about, "level_ratios": comparison.levels}))
    return shapes[0] if len(shapes) == 1 else {"schema": "loadframe.comparison/1", "comparisons": shapes}


def forecast_json(forecast: Forecast, *, calibration: Calibration | None = None) -> Json:
    """loadframe.forecast/1; throughput in 1/s, loads in the unit of the axis, intervals of 90 % (of limits: 95 %).
    calibration: how often the intervals of all scored forecasts on this machine held."""
    return json_object({"schema": "loadframe.forecast/1", **fields_of(forecast), "calibration": calibration})


def ledger_json(now: LedgerNow) -> Json:
    """loadframe.limits/1; exhausted_at in seconds from the last reading."""
    more = {"axis": "seconds from now", "chains": limits_report.chains(now.limits)}
    return json_object({"schema": "loadframe.limits/1", **fields_of(now), **more})


def investigation_json(inv: Investigation) -> Json:
    """loadframe.investigation/1."""
    of_workers = facts.curve_of_workers(inv)
    more = {
        "answer": {"lines": answers.lines(inv), "next": answers.next_line(inv)},
        "gain": inv.gain,
        "reach": verdict_words.reach_of(inv),
        "stages": [row for part in plots.parts() for row in part.table(inv)],
        "enough": of_workers and of_workers.enough,
        "more": of_workers and of_workers.more,
        "answers": inv.answers,
    }
    return json_object({"schema": "loadframe.investigation/1", **fields_of(inv), **more})


def ladder_json(ladder: Ladder) -> Json:
    """loadframe.ladder/1; ratios of throughput. steps: in the study's order; a kept one against the kept ones before
    it, a reverted one against the state before it. share: of the total, in logarithms; null where the total is not
    proven or the change not kept. levels: of the total."""
    return json_object(
        {
            "schema": "loadframe.ladder/1",
            **fields_of(ladder, "study", "host", "rungs", "quality"),
            "total": None if ladder.total is None else ladder.total.reported,
            "levels": () if ladder.total is None else ladder.total.levels,
            "steps": ladder.rungs,
            "order": [rung.change for rung in ladder.rungs],
            "kept": [rung.change for rung in ladder.kept],
            "leave_one_out": [{"change": rung.change, **_interval(rung.at_top)} for rung in ladder.kept if rung.at_top],
            "interactions": [
                {**fields_of(interaction, "verdict"), **_interval(interaction.verdict)}
                for interaction in ladder.interactions
            ],
            "settings": [_change(change) for change in ladder.net_changes],
            **quality_of_run(ladder.quality),
        }
    )


def _rung(rung: Rung) -> Json:
    return {
        **fields_of(rung, "at_top"),
        **_interval(rung.reported),
        "may_overstate": rung.reported is not None and rung.reported.may_overstate,
        "refused": rung.refused or None,
        "leave_one_out": rung.at_top and _interval(rung.at_top),
        "changes": [_change(change) for change in rung.changes],
    }


def _interval(verdict: Verdict | None) -> Json:
    shape = {} if verdict is None else verdict_json(verdict)
    return {name: shape.get(name) for name in INTERVAL}


def _change(change: Change) -> Json:
    return fields_of(change, "needed", "why", "raises")


def quality_of_run(quality: RunQuality | None) -> Json:
    if quality is None:
        return {"flags": {}, "blind": (), "standing": ()}
    return {"flags": quality.flags, "blind": quality.blind, "standing": quality.not_reverted}


def capacity_json(search: Capacity) -> Json:
    """loadframe.capacity/1, throughput in 1/s. capacity: null where even the lowest level misses; its low is null where
    no load is shown to meet, its high where none is shown to miss."""
    bounds = {"load": search.load, "low": search.low, "high": search.high}
    return json_object(
        {
            "schema": "loadframe.capacity/1",
            "capacity": None if search.load is None else bounds,
            **fields_of(search, *bounds),
            "trials": [{**fields_of(trial), "met": not trial.missed} for trial in search.trials],
        }
    )


def verdict_json(verdict: Verdict) -> Json:
    """loadframe.verdict/1. low, high: null where the interval is open on that side."""
    known = {"ratio": verdict.has_ratio, "low": verdict.low > NOT_KNOWN[0], "high": verdict.high < NOT_KNOWN[1]}
    none = {name: None for name, is_known in known.items() if not is_known}
    return {"schema": "loadframe.verdict/1", **fields_of(verdict), **none}


def fleet_limits_json(limits: Sequence[FleetLimit]) -> list[Json]:
    """The field `fleet_limits` of a measurement's document."""
    return [
        {
            "host": fleet_limit.host,
            "driver": fleet_limit.driver,
            **asdict(fleet_limit.limit),
            **(dict.fromkeys(("use", "headroom")) if fleet_limit.unseen else {}),
            "error": fleet_limit.error,
            "unseen": fleet_limit.unseen,
        }
        for fleet_limit in limits
    ]


def _curve(curve: Curve) -> Json:
    return {"schema": "loadframe.curve/1", **fields_of(curve)}


SHAPES: Mapping[type, Callable[[Any], Json]] = {
    AnswerCompared: lambda answer: {**fields_of(answer), "equal": answer.equal},
    AnswersCompared: lambda answers: {**fields_of(answers), "equal": answers.equal, "missing": answers.missing or None},
    Cliff: lambda cliff: {"from": cliff.from_load, "to": cliff.to_load, "throughput_kept": cliff.throughput_kept},
    Curve: _curve,
    Forecast: forecast_json,
    Profile: lambda profile: fields_of(profile, "flame"),  # the run folder has the stacks themselves
    Round: lambda round_: {**fields_of(round_), "curve": explained(round_)},
    Rung: _rung,
    Scalability: lambda usl: {
        "lambda": usl.lambda_,
        "sigma": usl.sigma,
        "kappa": usl.kappa,
        "intervals": {"lambda": usl.lambda_interval, "sigma": usl.sigma_interval, "kappa": usl.kappa_interval},
        "peak_load": usl.peak_load,
    },
    Verdict: verdict_json,
}


def fields_of(record: Any, *without: str) -> Json:
    """By their stored names, one level deep; `_clean` opens nested records."""
    wanted = (field for field in fields(record) if field.name not in without)
    return {field.metadata.get("alias", field.name): getattr(record, field.name) for field in wanted}


def json_object(value: Mapping[Any, Any]) -> Json:
    return {str(key): _clean(item) for key, item in value.items()}


def _clean(value: Any) -> Any:
    if is_dataclass(value):
        return json_object(SHAPES.get(type(value), fields_of)(value))
    if isinstance(value, Mapping):
        return json_object(value)
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, bool | str | int | None):
        return value
    if hasattr(value, "item"):
        return _clean(value.item())
    number = float(value)
    return number if math.isfinite(number) else None
