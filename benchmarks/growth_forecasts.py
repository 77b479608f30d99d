"""How good forecasts of growth are on real loads: python benchmarks/growth_forecasts.py [--role held|tuned|later]

Each load of growth_loads.json is cut at 1/2, 1/4, 1/8 and 1/16 of its entries; the rate and the time at 2, 4, 8 and 16
times the cut are forecast, as far as the load went, and scored. Beside it three rivals on the same cuts: the rate of
the last windows goes on (constant), a straight line of the rate over the entries, and one over their logarithm, with
the prediction intervals that least squares gives. Ends with 1 where fewer than 85 % of the held-out intervals hold.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from growth_loads import LOADS, RESULT
from loadframe_watch.growth import size_forecast, size_law
from loadframe_watch.growth.size_law import LoadWindow

CUTS, TIMES = (2, 4, 8, 16), (2.0, 4.0, 8.0, 16.0)
GOAL = 85.0
RIVALS = ("constant", "line", "logarithm")
MIB = float(1 << 20)


@dataclass(frozen=True, slots=True)
class Row:
    """One forecast: of which method, the load, how far, log of forecast over measured rate, whether it holds, width."""

    method: str
    load: str
    times: float
    error: float
    inside: bool
    width: float


def memories(load: Mapping[str, Any], entry_bytes: float) -> dict[str, float]:
    """The entries that fill each memory of the database, as its declaration says."""
    held: dict[str, float] = {}
    if "cache_kib" in load:
        held["cache"] = 1024.0 * load["cache_kib"]
    for name in ("innodb_buffer_pool_size", "shared_buffers"):
        if name in load.get("settings", {}):
            held[name] = MIB * float(load["settings"][name].rstrip("MB"))
    if "memory" in load:
        held["cage"] = MIB * float(load["memory"].removesuffix("MiB"))
    return {name: size / entry_bytes for name, size in held.items()}


def rival(method: str, windows: Sequence[LoadWindow], size: float) -> tuple[float, float, float]:
    """(rate, low, high) at a size; a rate that is not above zero counts as one entry a second."""
    bins = size_law.joined(windows)
    sizes = np.array([(one.before + one.after) / 2 for one in bins])
    rates = np.array([(one.after - one.before) / one.seconds for one in bins])
    if method == "constant":
        rates = rates[len(rates) // 2 :]
        middle, error, freedom = float(rates.mean()), float(rates.std(ddof=1)), len(rates) - 1
    else:
        x, at = (sizes, size) if method == "line" else (np.log(sizes), math.log(size))
        fit = stats.linregress(x, rates)
        middle, freedom = float(fit.intercept + fit.slope * at), len(x) - 2
        left = rates - fit.intercept - fit.slope * x
        around = 1 + 1 / len(x) + (at - x.mean()) ** 2 / ((x - x.mean()) ** 2).sum()
        error = math.sqrt(float((left**2).sum()) / freedom * around)
    half = float(stats.t.ppf(0.95, freedom)) * error
    return max(middle, 1.0), max(middle - half, 1.0), max(middle + half, 1.0)


def scored(
    name: str,
    load: Mapping[str, Any],
    result: Mapping[str, Any],
    cuts: Sequence[int] = CUTS,
    times_seen: Sequence[float] = TIMES,
    rivals: Sequence[str] = RIVALS,
) -> tuple[list[Row], list[Row], list[str]]:
    """Of one load: rows of the rate by each method, rows of the time by ours, refusals in words."""
    windows = [LoadWindow(*one) for one in result["windows"]]
    total = windows[-1].after
    rates, times, refused = list[Row](), list[Row](), list[str]()
    for cut in cuts:
        seen = [one for one in windows if one.after <= total / cut]
        last = max((one.after for one in seen), default=0.0)
        sizes = [factor * last for factor in times_seen if 0 < factor * last <= total]
        if not sizes:
            continue
        made = size_forecast.forecast(seen, sizes, memories(load, result["entry_bytes"]))
        if made.refused:
            refused.append(f"{name}: all from {last:,.0f}: {made.refused}")
            continue
        refused += [f"{name}: {one.entries:,.0f} from {last:,.0f}: {one.because}" for one in made.not_at]
        made = size_forecast.score(made, windows)
        for point, came in zip(made.at, made.scored, strict=True):
            far = point.entries / last
            rates.append(_row("forecast", name, far, point.rate.value, point.rate.low, point.rate.high, came.rate))
            expected = point.seconds
            times.append(_row("time", name, far, expected.value, expected.low, expected.high, came.seconds))
            for method in rivals:
                rates.append(_row(method, name, far, *rival(method, seen, point.entries), came.rate))
    return rates, times, refused


def _row(method: str, load: str, times: float, value: float, low: float, high: float, actual: float) -> Row:
    return Row(method, load, times, math.log(value / actual), low <= actual <= high, high / max(low, 1e-9))


def table(rows: Sequence[Row], methods: Sequence[str]) -> None:
    """Held, error and width by method and by how far."""
    print(f"{'':12} {'times':>6} {'count':>6} {'held %':>7} {'error %':>8} {'width':>7}")
    for method in methods:
        for far in (*TIMES, None):
            some = [one for one in rows if one.method == method and (far is None or abs(one.times - far) < 0.1)]
            if some:
                held = 100 * sum(one.inside for one in some) / len(some)
                error = 100 * (math.exp(float(np.median([abs(one.error) for one in some]))) - 1)
                width = float(np.median([one.width for one in some]))
                said = "all" if far is None else f"{far:g}"
                print(f"{method:12} {said:>6} {len(some):6} {held:7.0f} {error:8.1f} {width:7.2f}")


def main() -> int:
    """Print the tables; 1 where the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--role", choices=["held", "tuned", "later"], default="held")
    role = parser.parse_args().role
    declared, results = tomllib.loads(LOADS.read_text()), json.loads(RESULT.read_text())
    rates, times, refused = list[Row](), list[Row](), list[str]()
    for name, result in results.items():
        if result["role"] == role:
            for all_of_it, part in zip(
                (rates, times, refused), scored(name, declared["load"][name], result), strict=True
            ):
                all_of_it += part  # type: ignore[operator]
            _ends(name, declared["load"][name], result)
    print("\nthe rate")
    table(rates, ("forecast", *RIVALS))
    print("\nthe time from empty")
    table(times, ("time",))
    print("\n" + "\n".join(["refused", *refused]))
    ours = [one for one in (*rates, *times) if one.method in ("forecast", "time")]
    return 0 if 100 * sum(one.inside for one in ours) >= GOAL * len(ours) else 1


def _ends(name: str, load: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    """Where the memory of the whole load ended."""
    windows = [LoadWindow(*one) for one in result["windows"]]
    made = size_forecast.forecast(windows, (), memories(load, result["entry_bytes"]))
    if made.end is None:
        print(f"{name}: {windows[-1].after:,.0f} entries, no end of memory. {' '.join(made.notes)}")
        return
    ours, reads = made.end.entries, made.end.by_reads
    by = "" if reads is None else f", by its reads {reads.load:,.0f} ({reads.low:,.0f} to {reads.high:,.0f})"
    print(
        f"{name}: {windows[-1].after:,.0f} entries, memory ends at {ours.load:,.0f} "
        f"({ours.low:,.0f} to {ours.high:,.0f}){by}, "
        f"{made.end.times:.1f} times the cost, {'confirmed' if made.end.confirmed else 'suspected'} {made.end.memory}"
    )


if __name__ == "__main__":
    sys.exit(main())
