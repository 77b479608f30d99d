"""Production data: rows in time order in; curve, demands, saturation and changes out (docs/observed.md). Curve, knee
and cliff are those of measured levels (curve.py)."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from loadframe.analysis import curve as curves
from loadframe.analysis import scalability as law
from loadframe.analysis.arrays import Floats
from loadframe.errors import SampleError
from loadframe.model import Curve, LoadInterval, Observation, Observations
from loadframe_watch.approaching import span
from loadframe_watch.leaks import grows
from loadframe_watch.observed import blocks as in_blocks
from loadframe_watch.observed import by_the_hour, regimes
from loadframe_watch.observed.blocks import Blocks
from loadframe_watch.observed.records import (
    Basis,
    Driver,
    Learned,
    MissingRows,
    Observed,
    ObservedData,
    ObservedDemand,
    RegimeChange,
)
from loadframe_watch.observed.selection import FEWEST_ROWS, LEAST_RANGE, Level, Rows, named, use_of
from loadframe_watch.saturation_of_rows import FULL, NEAR, OfRows, bend, of_rows

AFTER_CHANGE = 0.15
"""Least share of the rows after the last change."""
ADVICE = {
    "; load further.": "; no higher load was observed.",
    "but these levels do not show where: measure more blocks.": "but these rows do not show where.",
}
"""In place of a curve's advice on measuring."""
LONG_MEMORY = 1.0
"""Blocks of fewer autocorrelation times are too short to be independent."""


def learn(observed: Observed, *, within_latency_p95_ms: float | None = None) -> Learned:
    """From rows in time order. SampleError for few rows, a load that does not vary, nothing but the load, and an
    objective without a p95."""
    if within_latency_p95_ms is not None and observed.response_is != "p95":
        raise SampleError(
            f"{observed.name} has no p95 latency, so the capacity within an objective is unknown",
            remedy="Name one: a column latency_p95_ms, or --response with --response-is p95.",
        )
    rows, notes_of_rows = Rows.of(observed).counted()
    rows.check(observed)
    missing = in_blocks.missing(rows.time_s)
    changes = regimes.changes(rows.time_s, rows.load, rows.relations())
    rows, notes = _last_regime(rows, changes)
    notes += _of_late(rows)
    residuals = [in_blocks.standardised(rows.load, values) for values in rows.columns.values()]
    blocks = in_blocks.blocks(residuals, len(rows.load))
    if blocks.rows < LONG_MEMORY * blocks.tau:
        alike_s = blocks.tau * in_blocks.pauses(rows.time_s)[0]
        alike = span(alike_s) if alike_s >= 120 else f"{alike_s:.3g} s"
        notes.append(
            f"Rows resemble one another over {alike}, which is more than a "
            f"{in_blocks.FEWEST_BLOCKS}th of what was observed: the intervals are too narrow."
        )
    uses = {name: rows.columns[use_of(name)] for name in observed.use}
    at, response = (rows.time_s, rows.load), rows.columns.get("response")
    # Of all rows: in the curve an hour of each night, or an hourly batch, is no more than outliers.
    drivers = {name: by_the_hour.driver(*at, use) for name, use in uses.items()}
    near_end = tuple(peak for name, use in uses.items() if (peak := by_the_hour.apart(name, *at, use, response)))
    steps = {change.what for change in changes}  # what changed at one moment looks like growth
    growing = tuple(
        growth for name, use in uses.items() if named(use_of(name)) not in steps and (growth := grows(name, *at, use))
    )
    rows = rows.without(residuals)
    levels = rows.levels(blocks)
    curve = _curve(levels, "throughput", observed, rows, within_latency_p95_ms)
    of_response = _curve(levels, "response", observed, rows, None)
    basis: Basis = "throughput" if curve is not None or of_response is None else "response"
    demands = tuple(_demand(name, rows, blocks, levels, observed, drivers[name]) for name in observed.use)
    if either := [demand.resource for demand in demands if demand.driver == "either" and demand.full_at is not None]:
        notes.append(f"{by_the_hour.EITHER}: {', '.join(either)}.")
    highest = levels[-1].load
    shown = curve if curve is not None else of_response
    return Learned(
        name=observed.name,
        data=_data(observed, rows, blocks, residuals, missing),
        curve=shown,
        basis=basis,
        demands=demands,
        response_bend=None if "response" not in rows.columns else bend(rows.load, rows.columns["response"]),
        regimes=changes,
        came_near=bool(near_end)
        or any(growth.use >= NEAR for growth in growing)
        or (shown is not None and shown.knee is not None)
        or any(demand.highest_use >= NEAR for demand in demands),
        highest_load=highest,
        apart=near_end,
        growing=growing,
        observations=_ahead(rows, blocks, observed, demands),
        notes=(*observed.notes, *notes_of_rows, *notes),
    )


def _last_regime(rows: Rows, changes: tuple[RegimeChange, ...]) -> tuple[Rows, list[str]]:
    if not changes:
        return rows, []
    for change in reversed(changes):
        after = rows.at(np.flatnonzero(rows.time_s >= change.at_s))
        above = after.load[after.load > 0]
        enough = len(after.load) >= max(FEWEST_ROWS, AFTER_CHANGE * len(rows.load)) and len(above) > 0
        if enough and float(np.quantile(above, 0.99)) >= LEAST_RANGE * float(np.quantile(above, 0.01)):
            note = f"Only the {len(after.load):,} rows after the last change were learnt from."
            return after, [note] if change is changes[-1] else [
                f"Too few rows follow the last change: the {len(after.load):,} after an earlier one were learnt from."
            ]
    return rows, ["Too few rows follow the last change: all rows were learnt from, and they mix several systems."]


def _of_late(rows: Rows) -> list[str]:
    """Notes on a change too late to learn from: the results are then those of before."""
    changed = regimes.recent(rows.time_s, rows.load, rows.relations())
    if not changed:
        return []
    first = min(change.at_s for change in changed)
    what = ", ".join(
        f"{change.what} is {abs(100 * (change.ratio - 1)):.2g} % {'higher' if change.ratio > 1 else 'lower'}"
        for change in changed
    )
    lasts = span(float(rows.time_s[-1]) - first)
    return [
        f"The last {lasts} are unlike the rest: at equal load {what}. They are too few to learn from, "
        "and what is said is of before."
    ]


def _curve(
    levels: tuple[Level, ...], column: str, observed: Observed, rows: Rows, within_ms: float | None
) -> Curve | None:
    """Of the throughput, or of 1 / response time (that of one requester). None without the column."""
    if column not in rows.columns:
        return None
    samples = []
    for level in levels:
        known = level.known(column)
        if column == "response":
            known = 1 / known[known > 0]
        if not len(known):
            continue
        slow = level.known("response") if column == "throughput" and "response" in level.cells else np.array([])
        p95 = 1000 * slow if observed.response_is == "p95" else np.array([])
        samples.append(curves.LevelSample(level.load, tuple(np.maximum(known, 0.0)), tuple(p95)))
    if len(samples) < 2:
        return None
    scalability = column == "throughput" and sum(max(sample.throughputs) > 0 for sample in samples) >= law.FEWEST_POINTS
    curve = curves.fit(
        samples,
        axis="load",
        treatment="observed",
        within_latency_p95_ms=within_ms,
        scalability=scalability,
        gradually=column == "throughput",
    )
    knee, loads, warnings = curve.knee, [sample.load for sample in samples], curve.warnings
    if knee is not None:  # within a level, which holds rows from around its load, the place of the bend is unknown
        at = int(np.clip(np.searchsorted(loads, knee.load), 1, len(loads) - 1))
        apart = (loads[at] / loads[at - 1]) ** 0.5
        knee = LoadInterval(knee.load, min(knee.low, knee.load / apart), max(knee.high, knee.load * apart))
    for advice, instead in ADVICE.items():
        warnings = tuple(warning.replace(advice, instead) for warning in warnings)
    return replace(curve, knee=knee, warnings=warnings)


def _demand(
    resource: str, rows: Rows, blocks: Blocks, levels: tuple[Level, ...], observed: Observed, driver: Driver
) -> ObservedDemand:
    uses, served = rows.columns[use_of(resource)], rows.columns.get("throughput")
    cells = [(level.known(use_of(resource)), level.load) for level in levels]
    seen = [(float(np.median(known)), load) for known, load in cells if len(known)]
    highest, at = max(seen, default=(float("nan"), levels[-1].load))
    near = next((load for use, load in seen if use >= FULL), None)
    ahead = OfRows(None) if driver == "hour" else of_rows(rows.load, uses, served, last=True)
    demand = ObservedDemand(
        resource,
        highest,
        at,
        full_at=ahead.at,
        servers=observed.servers.get(resource, 1.0),
        flattens=ahead.flattens,
        cheaper=ahead.cheaper,
        driver=driver,
    )
    if driver == "hour" or served is None:
        return demand
    used, both = np.isfinite(uses), np.isfinite(uses) & np.isfinite(served)
    columns = (rows.load, used), (served, both), (uses, both)
    (load, _), (throughput, weight), (use, _) = (
        in_blocks.means(np.where(there, column, np.nan), blocks.label, blocks.count) for column, there in columns
    )
    if near is not None and int((load < near).sum()) >= in_blocks.FEWEST:
        weight = np.where(load < near, weight, 0.0)
    line = in_blocks.law(throughput, use, weight)
    if line is None or line.high * float(np.nanmax(throughput)) < in_blocks.LEAST_RISE:
        return demand
    low_s, slope_s = max(line.low, 0.0), max(line.slope, 0.0)
    demand = replace(demand, demand_s=slope_s, low_s=low_s, high_s=line.high, background=line.background)
    if (grows := in_blocks.growing(throughput, use, weight)) is None:
        return demand
    return replace(demand, growing=grows.ratio, growing_low=grows.low, growing_high=grows.high)


def _ahead(rows: Rows, blocks: Blocks, observed: Observed, demands: Sequence[ObservedDemand]) -> Observations | None:
    """None without a throughput."""
    if "throughput" not in rows.columns:
        return None
    inputs, p95 = [], observed.response_is == "p95"
    for level in rows.levels(blocks, ahead=True):
        responses = level.cells.get("response", np.full_like(level.cells["throughput"], np.nan))
        for at, (throughput, slow_s) in enumerate(zip(level.cells["throughput"], responses, strict=True)):
            uses = {name: float(level.cells[use_of(name)][at]) for name in observed.use}
            if not np.isfinite([throughput, *uses.values()]).all():
                continue
            slow_ms = 1000 * float(slow_s) if np.isfinite(slow_s) else None
            inputs.append(
                Observation(
                    level.load,
                    float(throughput),
                    latency_p95_ms=slow_ms if p95 else None,
                    latency_mean_ms=None if p95 else slow_ms,
                    utilizations={name: float(np.clip(use, 0.0, 1.0)) for name, use in uses.items()},
                )
            )
    return Observations(
        observed.name,
        tuple(inputs),
        servers={name: observed.servers.get(name, 1.0) for name in observed.use},
        flattening=frozenset(demand.resource for demand in demands if demand.cheaper),
        by_the_hour=frozenset(demand.resource for demand in demands if demand.driver == "hour"),
    )


def _data(
    observed: Observed, rows: Rows, blocks: Blocks, residuals: list[Floats], missing: MissingRows
) -> ObservedData:
    usual, gaps = in_blocks.pauses(rows.time_s)
    away = np.stack(residuals)
    outliers = np.any(np.abs(np.nan_to_num(away)) > in_blocks.FAR, axis=0)
    return ObservedData(
        rows=len(observed.time_s),
        used=len(rows.load),
        incomplete=int((~np.isfinite(away)).any(axis=0).sum()),
        gaps=gaps,
        span_s=float(rows.time_s[-1] - rows.time_s[0]),
        block_s=float(blocks.rows * usual),
        blocks=blocks.count,
        outliers=int(outliers.sum()),
        missing=missing,
        response_s=_quantile(rows.columns.get("response"), 0.5),
        slow_response_s=_quantile(rows.columns.get("response"), 0.99),
    )


def _quantile(values: Floats | None, share: float) -> float | None:
    known = None if values is None else values[np.isfinite(values)]
    return None if known is None or not len(known) else float(np.quantile(known, share))
