"""What finding a capacity costs: python benchmarks/search.py [--seeds N] [--live [KIND ...]] [--alone]

Simulated servers of a capacity between 360 and 990 requests/s that nobody is told, searched between 50 and 5,000/s to
5 %. Beyond its capacity a server holds it, serves half of it, or collapses to a tenth; "stuck" collapses and stays down
until it has had a second with at most half of its capacity, or a new start. Noise of s %: the capacity of each trial is
lognormal with that deviation, whatever the trial's length ("slow": neighbours, caches, clock speeds), or with that of
one second, which longer trials average out ("fast"). All are judged by the same objective, at most 0.5 % of the
requests lost, and are given the same servers with the same seeds.

  loadframe     trials of 3 s (its default), error probability 5 %; the level that is shown to meet must have met for
                60 s in all. A trial ends early where the server is behind by a tenth of what the trial offers, as
                Loadframe's own do.
  foretold      the same server also tells how much of one resource is in use, with an error of
                3 %; it is used up at the capacity. Trials that met forecast it, as `loadframe capacity` has them do.
  mlrsearch     PyPI's library (RFC 9971), trials of 30 s and sums of 90 s, of which half may be bad (its default): so
                60 good seconds at the level that it answers. Width 5 %.
  mlr, short    the same, with its usual short trials of 1 s first.
  mlr, cut      mlrsearch, but its measurer ends trials early as Loadframe does.
  mlr, CSIT     what its authors use for packets: trials of 1 s, sums of 21 s. A sixth of the evidence of the others.
  sweep         one trial of 30 s per level, 25/s more each time, until one misses.

Told are load-seconds (mean), the share of them above the capacity, the error of the answer (Loadframe's estimate, the
others' lower bound), and how often the bracket holds the capacity. --live adds MariaDB, nginx and PostgreSQL: shorter
trials of the same proportions; nobody knows their capacity, so each answer is held against itself. The seeds are fixed.
Ends with 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal

import loadframe
from loadframe.analysis.capacity import CapacitySearch, Outcome, Settings
from loadframe.analysis.objective import FAR_BEHIND, lost_share, missed
from loadframe.bench.bench import RealBench
from loadframe.experiments.searching import objective_of
from loadframe.model import LoadInterval, Observation, Observations, StepRequest
from loadframe.prediction.forecasting import expected
from loadframe.runs.folder import RunFolder
from loadframe.study import Study, parse

LOW, HIGH = 50.0, 5000.0
WIDTH = 0.05
LOSS_RATIO = 0.005
TRIAL_S, HOLD_S = 3.0, 60.0
LONG_TRIAL_S, SUM_S = 30.0, 90.0
SWEEP_STEP = 25.0
NOISES = (0.0, 0.01, 0.02, 0.05)
BEYOND = {"holding": 1.0, "halving": 0.5, "collapsing": 0.1, "stuck": 0.1}
"""What a server still serves beyond its capacity, as a share of it."""
RECOVERY_LOAD, RECOVERY_S = 0.5, 1.0
MOST_TRIALS = 1000
USE_ERROR = 0.03

COST, ABOVE, COVERAGE = 0.5, 0.10, 0.95
PROBES, CLIFF_WIDTH, CLIFF = 10, 0.02, (750.0, 850.0)


# --- servers ---


@dataclass
class Server:
    """A simulated server, and what it was loaded with. fast: noise that longer trials average out."""

    kind: str
    capacity: float
    noise: float
    random: np.random.Generator
    fast: bool = False
    load_s: float = 0.0
    above_s: float = 0.0
    trials: int = 0
    stuck: bool = False
    levels: set[float] = field(default_factory=set)

    @property
    def answer(self) -> float:
        """The highest load that meets the objective: one that holds its capacity may be offered a little more."""
        return self.capacity / (1 - LOSS_RATIO) if self.kind == "holding" else self.capacity

    def load(self, load: float, seconds: float, *, cut: bool) -> tuple[float, float]:
        """Load it: the share of requests that were lost, and the seconds that it took. cut: to be ended early."""
        deviation = self.noise / math.sqrt(seconds) if self.fast else self.noise
        capacity = self.capacity * math.exp(deviation * self.random.standard_normal())
        lost = 0.0 if load <= capacity and not self.stuck else max(1 - BEYOND[self.kind] * capacity / load, 0.0)
        took = min(seconds, FAR_BEHIND * seconds / lost) if cut and lost > 0 else seconds
        self._remember(load, took, lost > LOSS_RATIO)
        self.trials += 1
        self.levels.add(load)
        self.load_s += took
        self.above_s += took if load > self.answer else 0.0
        return lost, took

    def used(self, load: float) -> float:
        """Of the resource that is used up at the capacity, as measured."""
        return min(load / self.capacity * math.exp(USE_ERROR * self.random.standard_normal()), 1.0)

    def _remember(self, load: float, seconds: float, collapsed: bool) -> None:
        if self.kind != "stuck":
            return
        if self.stuck and load <= RECOVERY_LOAD * self.capacity and seconds >= RECOVERY_S:
            self.stuck = False
        elif collapsed:
            self.stuck = True


@dataclass(frozen=True, slots=True)
class Answer:
    """What a search says: the bracket, and its one number."""

    low: float
    high: float
    load: float


# --- searches ---


def ours(server: Server, settings: Settings | None = None, *, foretold: bool = False) -> Answer:
    """The search that Loadframe ships. foretold: with a forecast from the trials below, as long as all have met."""
    search = CapacitySearch(
        settings or Settings(LOW, HIGH, integer=False, precision=WIDTH, trial_s=TRIAL_S, hold_s=HOLD_S)
    )
    below: list[Observation] = []
    while (trial := search.propose()) is not None and server.trials < MOST_TRIALS:
        if trial.restart:
            server.stuck = False
        lost, seconds = server.load(trial.load, trial.seconds, cut=True)
        search.observe(Outcome(lost <= LOSS_RATIO, seconds, trial.load * (1 - lost)))
        foretold = foretold and lost <= LOSS_RATIO
        if foretold:
            below.append(Observation(trial.load, trial.load, utilizations={"resource": server.used(trial.load)}))
            seen = Observations("simulated", tuple(below), axis="rate")
            if (where := expected(seen)) is not None:
                search.expect(where)
                foretold = False
    return Answer(search.low or 0.0, search.high or math.inf, search.estimate)


class Measurer(AbstractMeasurer):
    """What MLRsearch loads a simulated server with."""

    def __init__(self, server: Server, *, cut: bool) -> None:
        self._server, self._cut = server, cut

    def measure(self, intended_duration: float, intended_load: float) -> Any:
        lost, _ = self._server.load(intended_load, intended_duration, cut=self._cut)
        return result(intended_load, intended_duration, lost)


def result(load: float, seconds: float, lost: float) -> Any:
    """A trial's outcome as MLRsearch takes it: counts."""
    offered = max(round(load * seconds), 1)
    return MeasurementResult(
        intended_duration=seconds,
        intended_load=load,
        offered_count=offered,
        forwarding_count=min(offered, math.ceil(offered * (1 - lost))),
    )


def ask_mlrsearch(
    measurer: Any,
    *,
    trial_s: float,
    sum_s: float,
    first_s: float,
    low: float = LOW,
    high: float = HIGH,
    budget_s: float = 1e9,
) -> Answer:
    """MLRsearch's answer, with two preceding targets and its own expansion, as its readme recommends."""
    goal = SearchGoal(
        loss_ratio=LOSS_RATIO,
        exceed_ratio=0.5,
        relative_width=WIDTH,
        initial_trial_duration=first_s,
        final_trial_duration=trial_s,
        duration_sum=sum_s,
        preceding_targets=2,
        expansion_coefficient=2,
        fail_fast=False,
    )
    config = Config(goals=[goal], min_load=low, max_load=high, search_duration_max=budget_s, warmup_duration=None)
    found = MultipleLossRatioSearch(config=config).search(measurer, debug=lambda text: None)[goal]
    lower, upper = found.relevant_lower_bound, found.relevant_upper_bound
    bound = float(lower) if lower else 0.0
    return Answer(bound, float(upper) if upper else math.inf, bound)


def mlrsearch(trial_s: float, sum_s: float, first_s: float, *, cut: bool = False) -> Callable[[Server], Answer]:
    return lambda server: ask_mlrsearch(Measurer(server, cut=cut), trial_s=trial_s, sum_s=sum_s, first_s=first_s)


def sweep(server: Server) -> Answer:
    """Level after level, from below."""
    low, load = 0.0, LOW
    while load <= HIGH:
        lost, _ = server.load(load, LONG_TRIAL_S, cut=False)
        if lost > LOSS_RATIO:
            return Answer(low, load, low)
        low, load = load, load + SWEEP_STEP
    return Answer(low, math.inf, low)


SEARCHES: dict[str, Callable[[Server], Answer]] = {
    "loadframe": ours,
    "foretold": partial(ours, foretold=True),
    "mlrsearch": mlrsearch(LONG_TRIAL_S, SUM_S, LONG_TRIAL_S),
    "mlr, short": mlrsearch(LONG_TRIAL_S, SUM_S, 1.0),
    "mlr, cut": mlrsearch(LONG_TRIAL_S, SUM_S, LONG_TRIAL_S, cut=True),
    "mlr, CSIT": mlrsearch(1.0, 21.0, 1.0),
    "sweep": sweep,
}


# --- tables ---


@dataclass
class Tally:
    """Many searches of one kind. errors: of the answers, as shares."""

    load_s: list[float] = field(default_factory=list)
    above_s: list[float] = field(default_factory=list)
    trials: list[int] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    covered: list[bool] = field(default_factory=list)

    def add(self, server: Server, answer: Answer) -> None:
        self.load_s.append(server.load_s)
        self.above_s.append(server.above_s)
        self.trials.append(server.trials)
        self.errors.append(abs(answer.load / server.answer - 1))
        self.covered.append(answer.low <= server.answer < answer.high)

    @property
    def above(self) -> float:
        """Share of all load-seconds above the capacity."""
        return sum(self.above_s) / sum(self.load_s)

    def cell(self) -> str:
        return (
            f"{fmean(self.load_s):4.0f} s {100 * self.above:3.0f} % {100 * fmean(self.errors):4.1f} % "
            f"{100 * fmean(self.covered):4.0f} %"
        )


def tally(search: Callable[[Server], Answer], kind: str, noise: float, *, fast: bool, seeds: int) -> Tally:
    found = Tally()
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        server = Server(kind, 600 * math.exp(random.uniform(-0.5, 0.5)), noise, random, fast)
        found.add(server, search(server))
    return found


Tallies = dict[tuple[str, float, bool], dict[str, Tally]]


def tables(seeds: int) -> Tallies:
    """Every search on every kind of server; printed as they come."""
    all_found: Tallies = {}
    for kind in BEYOND:
        print(
            f"\n{kind}: load-seconds, share of them above the capacity, error, brackets that hold it; {seeds} searches"
        )
        print(f"{'noise':12}" + "".join(f"{name:>25}" for name in SEARCHES))
        for noise, fast in ((noise, fast) for noise in NOISES for fast in (False, True) if noise or not fast):
            row = {name: tally(search, kind, noise, fast=fast, seeds=seeds) for name, search in SEARCHES.items()}
            all_found[kind, noise, fast] = row
            words = f"{100 * noise:g} % {'fast' if fast else 'slow'}" if noise else "none"
            print(f"{words:12}" + "".join(f"{each.cell():>25}" for each in row.values()), flush=True)
    return all_found


def cliffs(seeds: int) -> dict[float, list[int]]:
    """How many levels are probed until a cliff that is known to be between 750 and 850 is bracketed to 2 %, by noise;
    printed, with the trials at them."""
    found: dict[float, list[int]] = {}
    low, high = CLIFF
    print(
        f"\na cliff from {low:g} to {high:g}, to {100 * CLIFF_WIDTH:g} %: levels (most), trials, brackets that hold it"
    )
    for noise in (0.0, 0.0025, 0.005, 0.01):
        levels, trials, covered = [], [], []
        for seed in range(seeds):
            random = np.random.default_rng(seed)
            server = Server("collapsing", random.uniform(low, high), noise, random)
            guess = LoadInterval(math.sqrt(low * high), low, high)
            answer = ours(server, Settings(LOW, HIGH, precision=CLIFF_WIDTH, trial_s=TRIAL_S, guess=guess))
            levels.append(len(server.levels))
            trials.append(server.trials)
            covered.append(answer.low <= server.capacity < answer.high)
        found[noise] = levels
        words = f"{fmean(levels):5.1f} ({max(levels)})  {fmean(trials):5.1f}  {100 * fmean(covered):.0f} %"
        print(f"{100 * noise:5.2f} %  {words}", flush=True)
    return found


# --- goals ---


def goals(found: Tallies, probes: dict[float, list[int]]) -> Iterator[tuple[str, float, float, bool]]:
    """What was promised of collapsing servers: words, the figure, the goal, and whether lower is better."""
    mine = {key: row for key, row in found.items() if key[0] == "collapsing"}
    for (_, noise, fast), row in mine.items():
        words = f"collapsing, noise {100 * noise:g} %{' fast' if fast else ''}"
        ours_, theirs = row["loadframe"], row["mlrsearch"]
        yield f"{words}: load-seconds, of mlrsearch's", fmean(ours_.load_s) / fmean(theirs.load_s), COST, True
        yield f"{words}: share above the capacity", ours_.above, ABOVE, True
        yield f"{words}: answers within 5 %", fmean(error <= WIDTH for error in ours_.errors), COVERAGE, False
    for noise in NOISES:
        held = [one for key, row in found.items() if key[1] == noise for one in row["loadframe"].covered]
        yield f"all servers, noise {100 * noise:g} %: brackets that hold the capacity", fmean(held), COVERAGE, False
    yield f"cliff to {100 * CLIFF_WIDTH:g} %: levels probed, most, without noise", max(probes[0.0]), PROBES, True


def judge(found: Tallies, probes: dict[float, list[int]]) -> bool:
    """A line per goal; whether all were met."""
    print("\ngoals")
    met = []
    for words, figure, goal, lower in goals(found, probes):
        met.append(figure <= goal if lower else figure >= goal)
        verdict = "met" if met[-1] else f"missed by {abs(figure - goal) / goal:.0%}"
        print(f"  {words}: {figure:.3g} (goal {'<=' if lower else '>='} {goal:g}): {verdict}")
    return all(met)


# --- live ---

MARIADB = """
[study]
name = "search-mariadb"
question = "How many requests per second does it take?"
[target]
kind = "mariadb"
[cage]
cpus = "0"
[cage.driver]
cpus = "1"
[workload]
kind = "oltp"
[load]
axis = "rate"
levels = { from = 100, to = 20000, count = 2 }
[objective]
within = { loss_ratio = 0.01, latency_p95_ms = 50 }
[measure]
window = "1500ms"
"""
POSTGRES = """
[study]
name = "search-postgres"
question = "How many transactions per second does it take?"
[target]
kind = "postgres"
[target.settings]
synchronous_commit = "off"
[cage]
cpus = "0"
[cage.driver]
cpus = "1"
[workload]
kind = "pgbench"
[workload.options]
script = "simple-update"
[load]
axis = "rate"
levels = { from = 100, to = 20000, count = 2 }
[objective]
within = { loss_ratio = 0.01, latency_p95_ms = 50 }
[measure]
window = "1500ms"
"""
NGINX = """
[study]
name = "search-nginx"
question = "How many requests per second does it take?"
[target]
kind = "nginx"
[target.settings]
output_buffers_number = 1
output_buffers_size = 512
postpone_output = 0
[cage]
cpus = "0"
[cage.driver]
cpus = "1"
[workload]
kind = "http"
[workload.options]
smallest_bytes = 65536
objects = 100
[load]
axis = "rate"
levels = { from = 50, to = 10000, count = 2 }
[objective]
within = { loss_ratio = 0.01, latency_p95_ms = 50 }
[measure]
window = "1500ms"
"""
"""Answers in pieces of 512 bytes cost the server more than the driver: else that is the bottleneck."""
LIVE = {"mariadb": MARIADB, "nginx": NGINX, "postgres": POSTGRES}
"""Studies on real servers, by the kind of target."""
LIVE_HOLD_S = 30.0
"""Half of what is asked of the simulated servers."""
LIVE_BUDGET_S = 600.0
"""For each search: on a machine that others use, noise may keep both from an end."""


class LiveMeasurer(AbstractMeasurer):
    """What MLRsearch loads a real server with: steps of the same bench. trials: load, seconds."""

    def __init__(self, bench: RealBench) -> None:
        self._bench, self._objective = bench, objective_of(bench.study)
        self.trials: list[tuple[float, float]] = []

    def measure(self, intended_duration: float, intended_load: float) -> Any:
        load, block = round(intended_load), len(self.trials) + 1
        step = self._bench.take_step(StepRequest("A", load, 1, block, window_s=intended_duration))
        self.trials.append((load, step.ended_s - step.started_s))
        # A trial that is too slow has lost nothing, but is bad all the same.
        lost = max(lost_share(step), 2 * LOSS_RATIO) if missed(self._objective, step) else 0.0
        return result(intended_load, intended_duration, lost)


def live_mlrsearch(study: Study, runs: Path, hold_s: float) -> tuple[Answer | None, list[tuple[float, float]]]:
    """Its answer, with trials in proportion to the simulated ones, and the load and seconds of each. None where the
    budget ended first: then the library has no answer."""
    run = RunFolder.create(runs, study.study.name)
    with RealBench(study, run) as bench:
        bench.declare("A", "as given", bench.start_state)
        bench.use("A")
        measurer = LiveMeasurer(bench)
        trial_s, sum_s = hold_s * LONG_TRIAL_S / HOLD_S, hold_s * SUM_S / HOLD_S
        low, high = study.levels[0], study.levels[-1]
        budget_s = study.measure.budget
        try:
            answer = ask_mlrsearch(
                measurer, trial_s=trial_s, sum_s=sum_s, first_s=trial_s, low=low, high=high, budget_s=budget_s
            )
        except RuntimeError as error:
            if "too long" not in str(error):
                raise
            return None, measurer.trials
    return answer, measurer.trials


def live(kinds: Sequence[str], hold_s: float, budget_s: float) -> None:
    """Both on real servers; nobody knows the true capacity, so each is held against its own answer."""
    for kind in kinds:
        study = parse(LIVE[kind], [f"measure.budget={budget_s:g}s"])
        print(f"\n{kind}, live: answer (bracket), load-seconds, share of them above the answer")
        with tempfile.TemporaryDirectory() as folder:
            found = loadframe.capacity(study, Path(folder), hold_s=hold_s)
            show_live("loadframe", found.load, found.low, found.high, found.load_seconds, found.seconds_above_share)
            answer, trials = live_mlrsearch(study, Path(folder), hold_s)
            total = sum(seconds for _, seconds in trials)
            if answer is None:
                print(f"  mlrsearch  no answer after {total:.0f} s of load: its budget ended", flush=True)
                continue
            above = sum(seconds for load, seconds in trials if load > answer.load)
            show_live("mlrsearch", answer.load, answer.low, answer.high, total, above / total)


def show_live(
    name: str, load: float | None, low: float | None, high: float | None, seconds: float, above: float
) -> None:
    bracket = " to ".join("?" if end is None else f"{end:,.0f}" for end in (low, high))
    print(f"  {name:10} {load or 0:8,.0f}/s ({bracket})  {seconds:5.0f} s  {100 * above:3.0f} %", flush=True)


def main() -> int:
    """Print all tables; 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="searches of each kind")
    parser.add_argument("--live", nargs="*", choices=LIVE, help="also on real servers, all of them or these")
    parser.add_argument("--hold", type=float, default=LIVE_HOLD_S, help="seconds for which a real server must meet")
    parser.add_argument("--budget", type=float, default=LIVE_BUDGET_S, help="seconds for each search of a real server")
    parser.add_argument("--alone", action="store_true", help="no simulated servers")
    arguments = parser.parse_args()
    met = arguments.alone or judge(tables(arguments.seeds), cliffs(arguments.seeds))
    if arguments.live is not None:
        live(arguments.live or list(LIVE), arguments.hold, arguments.budget)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
