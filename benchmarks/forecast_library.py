"""What forecasts from the library's curves came to, and the conformal interval that follows.

Split conformal prediction (Papadopoulos, Proedrou, Vovk and Gammerman 2002, "Inductive confidence machines for
regression") on the logarithm of the throughput, residuals divided by what is expected of them: the score of a forecast
is log (actual / forecast) / scale, and the logarithm of the scale is linear in what is known beforehand (Papadopoulos
and Haralambous 2011, Neural Networks 24, 842-851): how far beyond the data it reaches, and how far the candidates part.
Curves are the unit, not points (Dunn, Wasserman and Ramdas 2023, JASA 118, hierarchical prediction): each curve weighs
1, shared by all of its forecasts, with and without utilisations, and the curve to come stands among them as one more,
at the far end of the side in question. Both ends are the quantile at 90 % of |score|, which takes 9 curves; from 39
curves on each side has its own, at 95 %: before, one curve that is like no other would decide a side alone. With fewer
than 9 they are refused (infinite). Every score is of a curve that gave nothing to the errors by which its candidates
were weighed, nor to the scale (leave one out; curves of one group leave together).

What is shown of one library is not shown of a server unlike all of it: exchangeability is assumed.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from loadframe.analysis.arrays import Floats
from loadframe.formats.json_text import write_json
from loadframe.model import Observation, Observations
from loadframe.prediction import candidates, pool, refusal
from loadframe.prediction import system as systems
from loadframe.prediction.candidates import Seen
from loadframe.prediction.library import Bounds, Calibrated, Library, Scale, known

FEWEST_LOADS = 3
"""A curve is forecast from at least this many loads."""

SIDE = 0.05
"""What may lie beyond each side."""

FEWEST_APART = 39
"""With fewer groups both ends are as far away."""

LEAST_WRONG = 0.03
"""Added before logarithms are taken: no window is known better."""

SHRUNK = 1.0
"""Ridge on columns of mean 0 and variance 1: the slopes of the scale are about half of what least squares would have;
some thirty curves tell no more."""

UNKNOWN = 0.5
"""The error of a ceiling of which the library tells nothing."""

SATURATES = 0.85
"""A curve whose highest throughput is below this share of the line through its lowest loads has shown its most."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve of the library. group: curves of the same servers under nearly the same work, which leave together. kind:
    of server. limits: by the highest load seen, the load at which a limit that binds runs out."""

    name: str
    group: str
    kind: str
    observations: Observations
    limits: Mapping[float, float]


@dataclass(frozen=True, slots=True)
class Case:
    """One curve up to one of its loads, and what came. own: backtests; each: of the candidates; law: by least squares;
    log_x: what the later loads gave, doublings: how far they are; ceilings: the most that each candidate knows; peak:
    (log of the highest throughput, log of the load where it is reached in proportion) of a curve that saturates."""

    group: str
    own: Mapping[str, Sequence[float]]
    each: Mapping[str, Floats]
    law: Floats
    log_x: Floats
    doublings: Floats
    data: Seen
    regime: str
    ceilings: Mapping[str, float]
    peak: tuple[float, float] | None


FEWEST_BEYOND = 5

TRUST_ALONE = 12.0
"""In place of pool.TRUST where no resource is known: a study then shows less, as a curve that rises in proportion does
not show where it will bend."""


def trusted(*, alone: bool) -> float:
    """How much the library counts where utilisations are not used, and where they are."""
    return TRUST_ALONE if alone else pool.TRUST


def cases(curve: Curve, *, alone: bool) -> list[Case]:
    """The curve foretold from each of its loads that is high enough, without its utilisations where alone."""
    kind = systems.kind_of(curve.observations)
    names = candidates.ALONE if alone else candidates.WITH_RESOURCES
    whole = candidates.seen(curve.observations, kind, ())
    found = []
    for cut in range(FEWEST_LOADS, len(whole.loads)):
        top = float(whole.loads[cut - 1])
        below = whole.before(cut).rows
        resources = () if alone else refusal.rising(below)
        if not alone and not resources:
            continue
        limit = math.inf if alone else curve.limits.get(top, math.inf)
        data = candidates.seen(below, kind, resources, limit)
        later = whole.loads[cut:]
        found.append(
            Case(
                curve.group,
                pool.backtests(data, names),
                candidates.forecasts(data, later, names),
                candidates.least_squares(data, later),
                np.log(whole.throughputs[cut:]),
                np.log2(later / top),
                data,
                candidates.regime(data),
                {} if alone else candidates.ceilings(data),
                None if alone or math.isfinite(limit) else _peak(whole, cut),
            )
        )
    return found


def _peak(whole: Seen, cut: int) -> tuple[float, float] | None:
    """Of a curve that saturates after these loads."""
    half = max(cut // 2, 1)
    rise = float(np.median(whole.throughputs[:half] / whole.loads[:half]))
    peak = float(whole.throughputs.max())
    at = peak / rise
    if peak > SATURATES * rise * float(whole.loads[-1]) or at <= float(whole.loads[cut - 1]):
        return None
    return math.log(peak), math.log(at)


@dataclass(frozen=True, slots=True)
class Foretold:
    """What the forecasts of one curve came to: doublings, apart and wrong = log (actual / forecast), (n,)."""

    doublings: Floats
    apart: Floats
    wrong: Floats


def calibrate(alone: Iterable[Case], explained: Iterable[Case]) -> tuple[Calibrated, Calibrated]:
    """From the cases of all curves, without their utilisations and with them. The scale and the interval are of both;
    the errors of the candidates and all else of each."""
    sides = [_grouped(alone), _grouped(explained)]
    trusts = [trusted(alone=True), trusted(alone=False)]
    told = [
        {group: _foretold(mine, _others(side, group), trust) for group, mine in side.items()}
        for side, trust in zip(sides, trusts, strict=True)
    ]
    scale, points = intervals(told)
    first, second = (_calibrated(side, scale, points, trust) for side, trust in zip(sides, trusts, strict=True))
    return first, second


def intervals(told: Sequence[Mapping[str, Foretold]]) -> tuple[Scale, Bounds]:
    """The scale, and the ends as multiples of it. told: by group, one mapping for each way of forecasting."""
    scores = []
    for group in sorted({name for side in told for name in side}):
        scale = scaled([one for side in told for name, one in side.items() if name != group])
        mine = [side[group] for side in told if group in side]
        scores.append(np.concatenate([one.wrong / scale.of(one.doublings, one.apart) for one in mine]))
    return scaled([one for side in told for one in side.values()]), bounds(scores)


def scaled(told: Sequence[Foretold]) -> Scale:
    """Ridge regression of log (|wrong| + LEAST_WRONG), each of `told` counting once."""
    if not told:
        return Scale(math.log(UNKNOWN), 0.0, 0.0)
    told_before = np.concatenate([known(one.doublings, one.apart) for one in told])
    wrong = np.concatenate([np.log(np.abs(one.wrong) + LEAST_WRONG) for one in told])
    weights = np.concatenate([np.full(len(one.wrong), 1 / (len(one.wrong) * len(told))) for one in told])
    middle, height = weights @ told_before, float(weights @ wrong)
    wide = np.sqrt(weights @ (told_before - middle) ** 2)
    columns = (told_before - middle) / np.where(wide > 0, wide, 1.0)
    matrix = (columns * weights[:, None]).T @ columns + SHRUNK * np.eye(2)
    slopes = np.linalg.solve(matrix, (columns * weights[:, None]).T @ (wrong - height)) / np.where(wide > 0, wide, 1.0)
    return Scale(height - float(slopes @ middle), float(slopes[0]), float(slopes[1]))


def _grouped(made: Iterable[Case]) -> dict[str, list[Case]]:
    grouped: dict[str, list[Case]] = defaultdict(list)
    for case in made:
        grouped[case.group].append(case)
    return grouped


def _others(grouped: Mapping[str, list[Case]], group: str) -> Mapping[str, list[Case]]:
    return {name: cases for name, cases in grouped.items() if name != group} or grouped


def _foretold(mine: Sequence[Case], others: Mapping[str, Sequence[Case]], trust: float) -> Foretold:
    """Each case by the errors of the others."""
    errors, found = errors_of(others), []
    for case in mine:
        pooled = pool.pooled(case.each, case.doublings, pool.weigh(case.own, errors[case.regime], trust), case.law)
        most = candidates.offered(case.data, np.exp2(case.doublings) * case.data.loads[-1])
        wrong = np.minimum(case.log_x, most) - np.minimum(pooled.log_x, most)
        found.append((case.doublings, pooled.apart, wrong))
    doublings, apart, wrong = (np.concatenate(values) for values in zip(*found, strict=True))
    return Foretold(doublings, apart, wrong)


def _calibrated(grouped: Mapping[str, Sequence[Case]], scale: Scale, points: Bounds, trust: float) -> Calibrated:
    throughputs, loads = [], []
    for group, mine in grouped.items():
        most = ceiling_errors({name: cases for name, cases in grouped.items() if name != group} or grouped)
        ends = [end for case in mine if (end := _ends(case, most)) is not None]
        if ends:
            throughputs.append(np.array([end[0] for end in ends]))
            loads.append(np.array([end[1] for end in ends]))
    reached = sorted((max(float(case.doublings.max()) for case in mine) for mine in grouped.values()), reverse=True)
    return Calibrated(
        errors=errors_of(grouped),
        most_errors=ceiling_errors(grouped),
        scale=scale,
        points=points,
        most_throughput=bounds(throughputs),
        most_load=bounds(loads),
        doublings=reached[min(FEWEST_BEYOND, len(reached)) - 1] if reached else 0.0,
        curves=len(grouped),
        trust=trust,
    )


def bounds(scores: Sequence[Floats]) -> Bounds:
    """The weighted quantiles at SIDE and 1 - SIDE, or of both sides at once; scores: of each group."""
    if not scores:
        return Bounds(-math.inf, math.inf)
    values = np.concatenate(scores)
    weights = np.concatenate([np.full(len(mine), 1 / len(mine)) for mine in scores]) / (len(scores) + 1)
    if len(scores) < FEWEST_APART:
        both = _quantile(np.abs(values), weights, 2 * SIDE)
        return Bounds(-both, both)
    return Bounds(-_quantile(-values, weights, SIDE), _quantile(values, weights, SIDE))


def _quantile(values: Floats, weights: Floats, beyond: float) -> float:
    order = np.argsort(values)
    reached = np.flatnonzero(np.cumsum(weights[order]) >= 1 - beyond - 1e-12)
    return float(values[order][reached[0]]) if len(reached) else math.inf


def errors_of(grouped: Mapping[str, Sequence[Case]]) -> dict[str, dict[str, float]]:
    """Mean error per doubling of each candidate by regime, in logarithms, each group counting once; of a regime that no
    group has, that of all."""
    found = {}
    for regime in candidates.REGIMES:
        chosen = [[case for case in mine if case.regime == regime] for mine in grouped.values()]
        means = [_mean_errors(mine) for mine in chosen if mine] or [_mean_errors(mine) for mine in grouped.values()]
        found[regime] = {name: math.exp(float(np.mean([one[name] for one in means]))) for name in means[0]}
    return found


def _mean_errors(mine: Sequence[Case]) -> dict[str, float]:
    return {
        name: float(
            np.mean(
                [
                    np.mean(
                        np.log(np.abs(case.each[name] - case.log_x) / (case.doublings + pool.BASE) + pool.LEAST_ERROR)
                    )
                    for case in mine
                ]
            )
        )
        for name in mine[0].each
    }


def ceiling_errors(grouped: Mapping[str, Sequence[Case]]) -> dict[str, float]:
    """Mean |log (most / forecast)| of each candidate that knows a most, a group counting once; UNKNOWN without any."""
    each: dict[str, list[float]] = {name: [] for name in candidates.BOUNDED}
    for mine in grouped.values():
        peaks = [(case.peak[0], case.ceilings) for case in mine if case.peak is not None]
        for name, errors in each.items():
            if peaks:
                errors.append(float(np.mean([abs(peak - ceilings[name]) for peak, ceilings in peaks])))
    return {name: float(np.mean(errors)) if errors else UNKNOWN for name, errors in each.items()}


def _ends(case: Case, errors: Mapping[str, float]) -> tuple[float, float] | None:
    if case.peak is None:
        return None
    most, at, scale = pool.most(case.data, errors)
    return (case.peak[0] - most) / scale, (case.peak[1] - at) / scale


# --- the curves, and what is kept of them ---


@cache
def curves() -> tuple[Curve, ...]:
    """Every curve of the library."""
    published = [
        Curve(name, one["group"], one["kind"], _observations(name, {"rows": [[*row, {}] for row in one["rows"]]}), {})
        for name, one in _kept("published_curves.json").items()
    ]
    return (*published, *(recorded(name, one) for name, one in _kept("library_curves.json").items()))


def _kept(name: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(Path(__file__).with_name(name).read_text())
    return made


def recorded(name: str, one: Mapping[str, Any]) -> Curve:
    """A curve as benchmarks/server_curves.py writes it."""
    limits: dict[float, float] = {}
    for load, found in one["limits"].items():
        binding = [limit["load"] for limit in found if limit["binds"] and limit["load"] > float(load)]
        if binding:
            limits[float(load)] = min(binding)
    return Curve(name, name, one["kind"], _observations(name, one), limits)


def build(made_of: Sequence[Curve]) -> Library:
    """The library of these curves."""
    made = {alone: [case for curve in made_of for case in cases(curve, alone=alone)] for alone in (True, False)}
    return Library(*calibrate(made[True], made[False]))


def as_json(library: Library) -> str:
    """The text of calibration.json; an infinite end is null."""
    rounded = _rounded(asdict(library))
    return write_json(rounded, indent=1) + "\n"


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, float):
        return float(f"{value:.4g}") if math.isfinite(value) else None
    return value


def _observations(name: str, one: Mapping[str, Any]) -> Observations:
    return Observations(
        name,
        tuple(
            Observation(load, throughput, p95_ms[0] if p95_ms else None, utilizations=used)
            for load, throughput, used, *p95_ms in one["rows"]
        ),
        axis=one.get("axis", "load"),
        servers=one.get("servers", {}),
        ceilings=frozenset(one.get("ceilings", ())),
    )
