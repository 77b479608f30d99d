"""Forecasts of simulated systems whose truth is known, to find faults: what benchmarks/forecasts.py prints of them.

Closed networks (clients, or pipelines without think time) and offered rates, of two to four resources with one to eight
servers, whose demands stay or grow until saturation by up to a half, in five ways; two of these ways the forecast does
not know. Each is measured at 3, 5 or 8 levels up to a quarter of the load at which it saturates, one window each, with
1, 3 or 5 % of noise in throughput and in every utilisation; then half, the same, twice and four times that load are
forecast, and the load and throughput of saturation.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

import forecast_claims
from loadframe.analysis import queueing
from loadframe.model import Estimate, Forecast, Observation, Observations
from loadframe.prediction.forecasting import forecast

GROWTHS = ("steady", "logarithmic", "linear", "power 1.5", "levelling")
NOISES = (0.01, 0.03, 0.05)
LEVELS = (3, 5, 8)
ASKED = (0.5, 1.0, 2.0, 4.0)
"""Shares of the load of saturation that are forecast."""

LOWEST_SATURATION = 12.0
MOST_ERROR = 0.1
LEAST_HELD = 0.85
FLAT = 1e-9
OFFERED = 1.06
"""No more than this share of a rate can be served, of the rate as the windows counted it."""
HEAD = f"{'systems':34} {'forecasts':>9} {'refused':>8} {'error':>8} {'inside':>8} {'width':>8}"


@dataclass(frozen=True)
class Truth:
    """A system. demands_s without load; growth until saturation, by which of GROWTHS, and at which stations."""

    demands_s: np.ndarray
    servers: np.ndarray
    think_s: float
    growth: float
    way: str
    grows: np.ndarray
    rate: bool

    @property
    def first_saturation(self) -> float:
        """The load of saturation without growth."""
        ceiling = 1 / float((self.demands_s / self.servers).max())
        return ceiling if self.rate else (self.think_s + float(self.demands_s.sum())) * ceiling

    def demands_at(self, load: float) -> np.ndarray:
        """Seconds of each station at a load."""
        x = load / self.first_saturation
        grown = {
            "steady": 0.0,
            "logarithmic": np.log(max(load, 1)) / np.log(self.first_saturation),
            "linear": x,
            "power 1.5": x**1.5,
            "levelling": 1.5 * x / (x + 0.5),
        }[self.way]
        return self.demands_s * (1 + self.growth * grown * self.grows)

    def throughput(self, load: float) -> float:
        """What it does at a load, 1/s."""
        demands = self.demands_at(load)
        if self.rate:
            return min(load, 1 / float((demands / self.servers).max()))
        return float(queueing.throughputs(demands, int(load), self.think_s, self.servers)[-1])

    def saturation(self) -> float:
        """The load at which the slowest station would be busy all the time, if nobody had to wait."""
        for load in self.first_saturation * np.geomspace(0.05, 4, 600):
            demands = self.demands_at(load)
            cycle = 1.0 if self.rate else self.think_s + demands.sum()
            if load * float((demands / self.servers).max()) >= cycle:
                return float(load)
        raise AssertionError("every system saturates")


@dataclass
class Row:
    """What the forecasts of one kind came to."""

    forecasts: int = 0
    refused: int = 0
    errors: list[float] = field(default_factory=list)
    inside: list[bool] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)

    def note(self, expected: Estimate, actual: float) -> None:
        """One forecast number beside the measured one."""
        self.errors.append(abs(expected.value / actual - 1))
        self.inside.append(expected.low <= actual <= expected.high)
        self.widths.append((expected.high - expected.low) / expected.value)

    def line(self, name: str) -> str:
        """A row of the table."""
        refused = f"{self.refused} of {self.forecasts}" if self.refused else "0"
        if not self.errors:
            return f"{name:34} {self.forecasts:>9} {refused:>8}"
        error, width = np.median(self.errors), np.median(self.widths)
        return f"{name:34} {self.forecasts:>9} {refused:>8} {error:>8.1%} {np.mean(self.inside):>8.1%} {width:>8.0%}"


def draw_truth(random: np.random.Generator, way: str, rate: bool) -> Truth:
    """A system that saturates at twelve clients or more."""
    stations = int(random.integers(2, 5))
    servers = random.choice([1, 1, 2, 4, 8], stations).astype(float)
    used = random.uniform(0.15, 1, stations)
    used[random.integers(stations)] = 1.0
    longest = 10 ** random.uniform(-3, -1)
    demands = used * servers * longest
    think = float(random.choice([0.0, random.uniform(0, 1), random.uniform(1, 10)]) * 3 * demands.sum())
    if (think + demands.sum()) / longest < LOWEST_SATURATION:
        think = float(random.uniform(LOWEST_SATURATION, 60) * longest - demands.sum())
    grows = random.random(stations) < 0.6
    grows[used.argmax()] |= random.random() < 0.6
    growth = 0.0 if way == "steady" else float(random.uniform(0, 0.5))
    return Truth(demands, servers, think, growth, way, grows, rate)


def levels_of(truth: Truth, count: int) -> np.ndarray:
    """Levels up to a quarter of the saturation, as people choose them."""
    top = truth.first_saturation / 4
    if truth.rate:
        return np.geomspace(top / 8, top, count)
    levels = np.unique(np.round(np.geomspace(max(1, top / 8), max(top, 3), count)))
    return levels if len(levels) >= min(count, 3) else np.arange(1.0, 4.0)


def observe(truth: Truth, levels: np.ndarray, noise: float, random: np.random.Generator) -> Observations:
    """One noisy window at each level."""
    rows = []
    for load in levels:
        throughput, demands = truth.throughput(load), truth.demands_at(load)
        used = throughput * demands / truth.servers * np.exp(random.normal(0, noise, len(demands)))
        names = {f"r{index}": min(float(value), 1.0) for index, value in enumerate(used)}
        rows.append(Observation(float(load), throughput * float(np.exp(random.normal(0, noise))), utilizations=names))
    servers = {f"r{index}": float(count) for index, count in enumerate(truth.servers)}
    return Observations("simulated", tuple(rows), axis="rate" if truth.rate else "concurrency", servers=servers)


def judged(systems: int) -> Iterator[tuple[dict[str, str], Truth, Observations, Forecast, np.random.Generator, float]]:
    """Every simulated system with its forecast, and how it was made."""
    for way in GROWTHS:
        for noise in NOISES:
            for count in LEVELS:
                for number in range(systems):
                    random = np.random.default_rng([GROWTHS.index(way), int(1000 * noise), count, number])
                    rate = number % 4 == 3
                    truth = draw_truth(random, way, rate)
                    seen = observe(truth, levels_of(truth, count), noise, random)
                    asked = [share * truth.first_saturation for share in ASKED]
                    found = forecast(seen, asked if rate else sorted({float(round(load)) for load in asked}))
                    made = {"growth": way, "noise": f"{noise:.0%} noise", "levels": f"{count} levels"}
                    yield made | {"load": "rates" if rate else "clients"}, truth, seen, found, random, noise


def simulated(systems: int) -> bool:
    """Print the table of the simulated systems, and the faults that were found; whether the goals are met."""
    rows: dict[str, Row] = {name: Row() for name in ("all", "saturation: load", "capacity: throughput")}
    below = unoffered = 0
    for made, truth, seen, found, random, noise in judged(systems):
        mine = [rows.setdefault(name, Row()) for name in made.values()]
        for row in (rows["all"], *mine):
            row.forecasts += 1
            row.refused += found.refused is not None
        counted = max(1.0, *(row.throughput / row.load for row in seen.rows))
        for point in found.at:
            actual = truth.throughput(point.load) * float(np.exp(random.normal(0, noise)))
            for row in (rows["all"], *mine):
                row.note(point.throughput, actual)
            unoffered += truth.rate and point.throughput.high > OFFERED * counted * point.load
        if found.capacity is not None:
            loads = truth.first_saturation * np.geomspace(0.5, 4, 12)
            rows["saturation: load"].note(found.capacity.load, truth.saturation())
            peak = max(truth.throughput(load if truth.rate else round(load)) for load in loads)
            rows["capacity: throughput"].note(found.capacity.throughput, peak)
            below += found.capacity.throughput.low < max(_medians(seen))
    print(HEAD)
    for name, row in rows.items():
        print(row.line(name), flush=True)
    print(f"{below} most below what was seen, {unoffered} ends above the rate that is offered")
    error, held = float(np.median(rows["all"].errors)), float(np.mean(rows["all"].inside))
    return error <= MOST_ERROR and held >= LEAST_HELD and not below and not unoffered


def _medians(seen: Observations) -> list[float]:
    return [float(np.median([row.throughput for row in seen.rows if row.load == load])) for load in seen.loads]


def limits_passed(systems: int) -> int:
    """Of systems with a limit of the ledger that runs out between the highest load measured and the saturation: those
    where it is not what comes first, or a load beyond it gives more than it does there."""
    wrong = 0
    for number in range(systems):
        random = np.random.default_rng([17, number])
        truth = draw_truth(random, "steady", number % 2 == 1)
        seen = observe(truth, levels_of(truth, 5), 0.02, random)
        load = 1.5 * seen.loads[-1]
        limit = forecast_claims.limit_at(load)
        found = forecast(seen, [load, 4 * load], limits=[limit])
        there, beyond = (point.throughput.value for point in found.at)
        named = found.capacity is not None and found.capacity.limited_by == limit.id
        wrong += not named or beyond > there * (1 + FLAT)
    return wrong


def most_told(name: str, systems: int) -> int:
    """Of systems whose most must not be told, those where it is. hidden: one resource is not measured and stops the
    throughput; idle: none follows the load."""
    told = 0
    for number in range(systems):
        random = np.random.default_rng([len(name), number])
        truth = draw_truth(random, "steady", False)
        levels = np.unique(np.round(truth.first_saturation * np.geomspace(0.25, 1.5, 6)))
        seen = observe(truth, levels, 0.02, random)
        hidden = f"r{int((truth.demands_s / truth.servers).argmax())}"
        rows = tuple(replace(row, utilizations=_told(row, hidden, name, random)) for row in seen.rows)
        told += forecast(replace(seen, rows=rows)).capacity is not None
    return told


def _told(row: Observation, hidden: str, name: str, random: np.random.Generator) -> dict[str, float]:
    if name == "idle":
        return {resource: float(random.uniform(0.02, 0.04)) for resource in row.utilizations}
    # What is left is used little, so that it does not explain why the throughput stops.
    return {resource: 0.6 * used for resource, used in row.utilizations.items() if resource != hidden}


def latencies(systems: int) -> None:
    """p95 latency at half, once and twice the saturation, against a discrete-event simulation."""
    row = Row()
    for number in range(systems):
        random = np.random.default_rng([95, number])
        truth = draw_truth(random, "steady", False)
        levels = levels_of(truth, 4)
        seen = observe(truth, levels, 0.02, random)
        observations = Observations(
            seen.name,
            tuple(
                Observation(one.load, one.throughput, p95_ms(truth, int(one.load), random), None, one.utilizations)
                for one in seen.rows
            ),
            axis=seen.axis,
            servers=seen.servers,
        )
        found = forecast(observations, sorted({float(round(share * truth.first_saturation)) for share in ASKED[:3]}))
        row.forecasts += 1
        row.refused += found.refused is not None
        for point in found.at:
            if point.latency_p95_ms is not None:
                row.errors.append(abs(point.latency_p95_ms.value / p95_ms(truth, int(point.load), random) - 1))
    print(
        f"{'p95 latency':34} {row.forecasts:>9} {row.refused:>8} {np.median(row.errors):>8.1%}  no interval is claimed"
    )


def p95_ms(truth: Truth, clients: int, random: np.random.Generator, requests: int = 4000) -> float:
    """Of a network whose stations serve first come, first served, with exponential times; think time not counted."""
    free = [[0.0] * int(count) for count in truth.servers]
    for station in free:
        heapq.heapify(station)
    thinking = random.exponential(max(truth.think_s, 1e-12), requests + clients)
    service = random.exponential(1.0, (requests + clients, len(free))) * truth.demands_s
    # (time, request, station): a request arrives at a station; beyond the last one it is done.
    events = [(float(thinking[index]), index, 0) for index in range(clients)]
    heapq.heapify(events)
    begun = {index: float(thinking[index]) for index in range(clients)}
    following, found = clients, []
    while len(found) < requests:
        now, request, station = heapq.heappop(events)
        if station == len(free):
            found.append(now - begun.pop(request))
            if following < len(service):
                begun[following] = now + (float(thinking[following]) if truth.think_s else 0.0)
                heapq.heappush(events, (begun[following], following, 0))
                following += 1
            continue
        start = max(now, heapq.heappop(free[station]))
        end = start + float(service[request, station])
        heapq.heappush(free[station], end)
        heapq.heappush(events, (end, request, station + 1))
    return 1000 * float(np.quantile(found[requests // 5 :], 0.95))
