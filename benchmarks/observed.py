"""What production data tell, against the truth: python benchmarks/observed.py [--simulated N] [--live [SERVER ...]]

Real servers (observed_servers.py) are watched under a wandering load that never comes near their limit (half of it at
most), and under one that does; then the same server is measured level by level, up to twice its limit. What
`loadframe curve` and `loadframe predict` say of the watched half minute is scored against the levels: whether the
interval of the demand (95 %), of the knee (95 %, where one is told), of the load at which the resource is full (95 %),
and of the throughput at 1.5 times the highest load (90 %) holds the measured value, and how far off its middle is.
Rivals see the same rows: a straight line through all rows, the Universal Scalability Law by least squares on all rows
(what everybody fits), and the highest throughput seen.

--live measures (two minutes for each server, alone on the machine) and keeps the series in observed_series.json;
without it the kept ones are scored again. --simulated N: queues whose truth is known, to find faults: N series of each
kind.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import observed_servers as servers
from loadframe.analysis import scalability
from loadframe.prediction.forecasting import forecast
from loadframe_watch.observed.learning import learn
from loadframe_watch.observed.records import Learned, Observed

SERIES = Path(__file__).with_name("observed_series.json")
PARTS = {"far": 0.5, "through": 1.3}
"""The highest load of each part, as a share of the capacity."""

SHARES = (0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1.0, 1.2, 1.5, 1.95)
WATCHED_S, LEVEL_S, SETTLE_S, PROBE_S = 42.0, 1.5, 0.5, 2.0
AHEAD = 1.5
HIGHEST = 0.9
"""The truth of a demand is taken from levels with a use below this."""

GOALS = {"demand": 0.85, "forecast": 0.85}


# --- live ---


async def watch(kind: servers.Kind, server: servers.Server, chance: random.Random) -> dict[str, Any]:
    """Both parts and the levels of one server."""
    driver = servers.Driver(kind, server.port, chance)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    for line in kind.setup:
        writer.write(line)
        await reader.readline()
    writer.close()
    await driver.begin()
    capacity, limit = await _probe(driver, server)
    found: dict[str, Any] = {"unit": "clients" if kind.clients else "requests/s", "capacity": capacity, "limit": limit}
    for part, share in PARTS.items():
        want = servers.walk(WATCHED_S, share * limit, kind.clients, chance)
        found[part] = _columns(await servers.sampled(driver, server, WATCHED_S, want))
        await _quiet(driver)
    found["levels"] = []
    for share in sorted(SHARES, key=lambda _: chance.random()):
        level = max(1, round(share * limit)) if kind.clients else share * limit
        await servers.sampled(driver, server, SETTLE_S, lambda _, level=level: level)  # type: ignore[misc]
        rows = await servers.sampled(driver, server, LEVEL_S, lambda _, level=level: level)  # type: ignore[misc]
        means = [float(np.mean([getattr(row, name) for row in rows])) for name in ("load", "throughput", "use")]
        found["levels"].append([_tidy(each) for each in means])
        await _quiet(driver)
    found["levels"].sort()
    await driver.end()
    return found


async def _probe(driver: servers.Driver, server: servers.Server) -> tuple[float, float]:
    """The highest throughput, and the load at which it is reached in proportion."""
    if driver.kind.clients:
        (one,) = await servers.sampled(driver, server, 0.4, lambda _: 1.0)
        rows = await servers.sampled(driver, server, PROBE_S, lambda _: servers.MOST_CLIENTS)
        capacity = float(np.median([row.throughput for row in rows[1:]]))
        return capacity, capacity / one.throughput
    rows = await servers.sampled(driver, server, PROBE_S, lambda _: 20_000.0)
    await _quiet(driver)
    capacity = float(np.median([row.throughput for row in rows[1:]]))
    return capacity, capacity


async def _quiet(driver: servers.Driver) -> None:
    """What waits is thrown away, and what runs ends."""
    driver.want = 0.0
    driver.waiting.clear()
    await asyncio.sleep(SETTLE_S)


def _columns(rows: Sequence[servers.Sample]) -> dict[str, list[float | None]]:
    return {
        name: [_tidy(getattr(row, name)) for row in rows]
        for name in ("time_s", "load", "throughput", "response_s", "use")
    }


def _tidy(value: float) -> float | None:
    return float(f"{value:.5g}") if math.isfinite(value) else None


def live(names: Sequence[str]) -> None:
    """Measure these servers, and keep what was seen."""
    kept = json.loads(SERIES.read_text(encoding="utf-8")) if SERIES.exists() else {}
    for name in names or servers.KINDS:
        kind = servers.KINDS[name]
        with servers.started(kind) as server:
            kept[name] = asyncio.run(watch(kind, server, random.Random(name)))
        print(f"{name}: at most {kept[name]['capacity']:.0f}/s, reached at {kept[name]['limit']:.0f}", flush=True)
        SERIES.write_text(json.dumps(kept) + "\n", encoding="utf-8")


# --- scoring ---


@dataclass
class Truth:
    """Of one server, by its levels: demand_s over the range that was watched, the load of the knee, X at a load."""

    demand_s: float
    knee: float
    full: float
    ahead: float


@dataclass
class Score:
    """What was told of one thing: how often its interval held, and how far off the middles are."""

    told: int = 0
    held: int = 0
    errors: list[float] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)

    def note(self, value: float, low: float, high: float, truth: float) -> None:
        self.told += 1
        self.held += low <= truth <= high
        self.errors.append(abs(value / truth - 1))
        self.widths.append(high / low if low > 0 else math.inf)

    def line(self, name: str) -> str:
        if not self.told:
            return f"{name:44} {'-':>5}"
        error, width = float(np.median(self.errors)), float(np.median(self.widths))
        return f"{name:44} {self.told:>5} {self.held / self.told:>9.0%} {error:>8.1%} {width:>8.2f}"


HEAD = f"{'':44} {'told':>5} {'held':>9} {'error':>8} {'width':>8}"


def score(name: str, rows: Observed, truth: Truth, scores: dict[str, Score], part: str) -> Learned:
    """One series: what we and the rivals say of it, noted in `scores`."""
    found = learn(rows)
    (resource,) = found.demands

    def note(what: str, value: float, low: float, high: float, true: float) -> None:
        for key in (what, f"{what}, {part}"):
            scores.setdefault(key, Score()).note(value, low, high, true)

    if resource.demand_s is not None and resource.low_s is not None and resource.high_s is not None:
        note("demand", resource.demand_s, resource.low_s, resource.high_s, truth.demand_s)
    if resource.full_at is not None:
        note("load at which it is full", resource.full_at.load, resource.full_at.low, resource.full_at.high, truth.full)
    knee = found.curve.knee if found.curve is not None else None
    scores.setdefault(f"knee told, {part}", Score())
    if knee is not None:
        note("knee", knee.load, knee.low, knee.high, truth.knee)
    load, throughput = _known(rows)
    at = AHEAD * float(load.max())
    if found.observations is not None:
        (point,) = forecast(found.observations, [at]).at or (None,)
        if point is not None:
            ours = point.throughput
            note("throughput at 1.5 x the highest load", ours.value, ours.low, ours.high, truth.ahead)
    for rival, value in rivals(load, throughput, at).items():
        note(f"  {rival}", value, value, value, truth.ahead)
    return found


def rivals(load: np.ndarray, throughput: np.ndarray, at: float) -> Mapping[str, float]:
    """What others say of the throughput at a load."""
    above = throughput > 0
    law = scalability.fit(load[above], throughput[above])
    usl = float(scalability.predict(np.array([at]), law.lambda_, law.sigma, law.kappa)[0])
    return {
        "straight line": float((load * throughput).sum() / (load**2).sum()) * at,
        "scalability law": usl,
        "highest throughput seen": float(throughput.max()),
    }


def _known(rows: Observed) -> tuple[np.ndarray, np.ndarray]:
    load, throughput = np.array(rows.load), np.array(rows.throughput)
    known = np.isfinite(load) & np.isfinite(throughput) & (load > 0)
    return load[known], throughput[known]


def kept_series() -> Iterator[tuple[str, str, Observed, Truth]]:
    """Every series of the real servers that was kept, with its truth."""
    for name, one in json.loads(SERIES.read_text(encoding="utf-8")).items():
        levels = np.array(one["levels"], dtype=np.float64)
        for part in PARTS:
            rows = observed(name, one[part], one["unit"])
            yield name, part, rows, truth_of(levels, rows)


def observed(name: str, columns: Mapping[str, list[float | None]], axis: str) -> Observed:
    """The record of a series that was kept."""
    cells = {
        key: tuple(math.nan if cell is None else float(cell) for cell in values) for key, values in columns.items()
    }
    return Observed(
        name,
        cells["time_s"],
        cells["load"],
        cells["throughput"],
        cells["response_s"],
        {"server": cells["use"]},
        axis=axis,
    )


def truth_of(levels: np.ndarray, rows: Observed) -> Truth:
    """By levels (load, throughput, use): the slope of use on throughput within the range that was watched, where the
    line through the lowest levels meets the highest throughput, where that line's use is 1, X at 1.5 x."""
    load, throughput, use = levels.T
    top = max(value for value in rows.load if math.isfinite(value))
    within = (use < HIGHEST) & (load <= max(1.1 * top, np.sort(load)[2]))
    slope = float(np.polyfit(throughput[within], use[within], 1)[0])
    below = use < HIGHEST
    per_load = float((load[below] * throughput[below]).sum() / (load[below] ** 2).sum())
    line = np.polyfit(load[below], use[below], 1)
    return Truth(
        demand_s=slope,
        knee=float(throughput.max()) / per_load,
        full=float((1 - line[1]) / line[0]),
        ahead=float(np.interp(AHEAD * top, load, throughput)),
    )


def real() -> bool:
    """Print the scores of the real servers; whether the goals are met."""
    scores: dict[str, Score] = {}
    for name, part, rows, truth in kept_series():
        found = score(name, rows, truth, scores, part)
        (one,) = found.demands
        knee = found.curve.knee if found.curve else None
        print(
            f"{name}, {part}: demand {1000 * (one.demand_s or 0):.3f} ms "
            f"({1000 * (one.low_s or 0):.3f} to {1000 * (one.high_s or 0):.3f}; true {1000 * truth.demand_s:.3f}); "
            f"knee {_told(knee)} (true {truth.knee:.0f}); full {_told(one.full_at)} (true {truth.full:.0f}); "
            f"{'near' if found.came_near else 'not near'}"
        )
    return table(scores)


def _told(found: Any) -> str:
    return "none" if found is None else f"{found.load:.0f} ({found.low:.0f} to {found.high:.0f})"


def table(scores: Mapping[str, Score]) -> bool:
    """Print the scores; whether the goals are met."""
    print(HEAD)
    for name in sorted(scores):
        if not name.startswith("knee told"):
            print(scores[name].line(name))
    shares = {"demand": scores["demand"], "forecast": scores["throughput at 1.5 x the highest load"]}
    return all(one.held >= GOALS[name] * one.told for name, one in shares.items())


def main() -> int:
    """Exit 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--live", nargs="*", metavar="SERVER")
    parser.add_argument("--simulated", type=int, default=0, metavar="N")
    arguments = parser.parse_args()
    if arguments.simulated:
        import observed_simulated

        return 0 if observed_simulated.table(arguments.simulated) else 1
    if arguments.live is not None:
        live(arguments.live)
        return 0
    return 0 if real() else 1


if __name__ == "__main__":
    sys.exit(main())
