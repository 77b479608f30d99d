"""How many trials a search for settings takes: python benchmarks/tuning.py [--seeds N] [--peers] [--keep FILE]

Surfaces with a known best, each searched with many seeds; a trial is one noisy measurement.

  additive     6 settings of 2 to 7 values, of which 3 matter (5 to 70 % each): more is better, or there is a best value
               between two ends, or the values are words. Their effects add up in logarithms.
  bottleneck   the same, but the narrowest of the three decides, nearly: alone, none of them shows what it is worth.
  mariadb      every combination of four settings of a real MariaDB, measured three times: surfaces/mariadb-oltp.csv
               (`--record` measures it again, on your machine). Its truth is what each setting and each pair of them is
               worth there (least squares, each repeat with a level of its own); a trial adds to it what one of all
               measurements is off.
  nothing      additive, but every change is for the worse or does nothing.

Noise of the first two and the last: log-normal of 5 %, and a drift (AR(1), 3 %, 0.8 from one trial to the next).

Told are the trials until what a method recommends has 95 % of the best gain, and stays (median; mean with those that
never get there as half as many trials again; the share that gets there); on `nothing`, false winners: searches whose
recommendation is proved to be better in fresh blocks, though it is not.

  loadframe    as `loadframe tune`, without a diagnosis that says what to try first
  random       the best of random points
  tpe          Optuna's TPE (--peers; pip install optuna)
  gp           Optuna's Gaussian process (--peers; pip install optuna scipy torch)
  mlos         SMAC, set up as mlos-core does, for measurements without noise (--peers; pip install smac): with one hash
               seed (PYTHONHASHSEED) SMAC 2.4.1 measures here the same points as in mlos-core 0.6.2
  smac         SMAC with its own defaults, for measurements with noise: it measures good points up to three times

Peers recommend the best that they have measured, and are given the start as their first trial where they take one (SMAC
takes it after its initial design). They have no proof of what they recommend. Ends with 1 where a goal is missed: half
of the trials of SMAC as mlos-core sets it up (with --peers), at most 5 % false winners.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import logging
import math
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from multiprocessing import Pool
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from loadframe.analysis.comparison import verdict
from loadframe.analysis.sequential import Plan
from loadframe.model import StepRequest
from loadframe_tune.search import Dimension, Outcome, Point, Search, Space

if TYPE_CHECKING:
    from ConfigSpace import Configuration, ConfigurationSpace
    from optuna.samplers import BaseSampler
    from smac import HyperparameterOptimizationFacade

NOISE, DRIFT, DRIFT_KEEPS = 0.05, 0.03, 0.8
ENOUGH, COST, FALSE = 0.95, 0.5, 0.05
NEVER = 1.5
REPEATS = 3
HERE = Path(__file__).parent / "surfaces"
STUDY, GRID = HERE / "mariadb-oltp.toml", HERE / "mariadb-oltp.csv"


# --- surfaces ---


@dataclass(frozen=True)
class Surface:
    """truth: log throughput of a point against the start. noise: of a real surface, what its measurements are off, 0 in
    the mean; none of a synthetic one, whose noise is drawn."""

    name: str
    space: Space
    truth: Callable[[Point], float]
    noise: tuple[float, ...] = ()

    @cached_property
    def gain(self) -> float:
        """Of the best point, as a share of the start's throughput."""
        sizes = [range(len(each.values)) for each in self.space.dimensions]
        return math.expm1(max(self.truth(point) for point in itertools.product(*sizes)))


SETTINGS, MATTER = 6, 3


def synthetic(kind: str, seed: int) -> Surface:
    """A surface drawn with this seed."""
    chance = random.Random(f"{kind} {seed}")
    sizes = [chance.choice((2, 3, 5, 7, 7)) for _ in range(SETTINGS)]
    dimensions = tuple(
        Dimension(f"s{number}", tuple(range(size)), chance.choice((0, size // 2)), size > 3 or chance.random() < 0.5)
        for number, size in enumerate(sizes)
    )
    matter = set(chance.sample(range(SETTINGS), MATTER))
    effects = [_effect(chance, each, kind, number in matter) for number, each in enumerate(dimensions)]
    space = Space(dimensions)

    def additive(point: Point) -> float:
        return sum(
            effect[place] - effect[each.start] for effect, place, each in zip(effects, point, dimensions, strict=True)
        )

    def narrowest(point: Point) -> float:
        return -0.25 * math.log(sum(math.exp(-4 * effects[number][point[number]]) for number in matter))

    if kind == "bottleneck":
        return Surface(kind, space, lambda point: narrowest(point) - narrowest(space.start))
    return Surface(kind, space, additive)


def _effect(chance: random.Random, each: Dimension, kind: str, matters: bool) -> list[float]:
    """Log throughput by value."""
    last = len(each.values) - 1
    if kind == "nothing":
        slope = chance.uniform(0.02, 0.1) if matters else 0.0
        return [-slope * abs(place - each.start) for place in range(last + 1)]
    most = chance.uniform(0.15, 0.7) if matters else 0.01
    if not each.ordered:
        return [chance.uniform(-1, 1) * most for _ in range(last + 1)]
    if chance.random() < 0.6:
        bend = chance.uniform(0.5, 4)
        return [most * (1 - math.exp(-bend * place / last)) for place in range(last + 1)]
    peak, width = chance.uniform(0, last), chance.uniform(0.3, 0.7) * (last + 1)
    return [-most * ((place - peak) / width) ** 2 for place in range(last + 1)]


def recorded(path: Path = GRID) -> Surface:
    """The surface of a file: a column for each setting, `repeat` and `throughput`. Any trial may have the noise of any
    measurement: with that of the three repeats of its own point, the best of many trials is for sure the point with the
    highest single measurement, and the mean of many is not the truth."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in rows[0] if name not in ("repeat", "throughput")]
    values = [tuple(dict.fromkeys(row[name] for row in rows)) for name in names]
    ordered = [all(value.isdigit() for value in each) for each in values]
    dimensions = tuple(
        Dimension(name, tuple(sorted(each, key=int)) if order else each, 0, order)
        for name, each, order in zip(names, values, ordered, strict=True)
    )
    points = [tuple(each.values.index(row[each.name]) for each in dimensions) for row in rows]
    values = np.log([float(row["throughput"]) for row in rows])
    repeats = [int(row["repeat"]) for row in rows]
    design = np.array([_terms(dimensions, point) for point in points])
    offsets = np.array([[repeat == other for other in sorted(set(repeats))[1:]] for repeat in repeats], dtype=float)
    weights = np.linalg.lstsq(np.hstack([design, offsets]), values, rcond=None)[0]
    fitted = weights[: design.shape[1]]
    noise = tuple((values - np.hstack([design, offsets]) @ weights).tolist())
    start = float(np.dot(_terms(dimensions, (0,) * len(names)), fitted))
    return Surface(
        path.stem, Space(dimensions), lambda point: float(np.dot(_terms(dimensions, point), fitted)) - start, noise
    )


def _terms(dimensions: Sequence[Dimension], point: Point) -> list[float]:
    """1, which value each setting has, and which values each two settings have, those of the start left out."""
    alone = [
        [float(place == value) for value in range(1, len(each.values))]
        for each, place in zip(dimensions, point, strict=True)
    ]
    pairs = [a * b for one, other in itertools.combinations(alone, 2) for a in one for b in other]
    return [1.0, *itertools.chain(*alone), *pairs]


class Measures(Protocol):
    """What a search needs: a space, and the log throughput at any of its points against the start."""

    @property
    def space(self) -> Space: ...

    def measure(self, point: Point) -> float: ...


class Machine:
    """Measures the points of a surface, with noise."""

    def __init__(self, surface: Surface, seed: int) -> None:
        self.surface = surface
        self.space = surface.space
        self._random = np.random.default_rng(seed)
        self._drift = 0.0

    def measure(self, point: Point) -> float:
        """Log throughput against the start, as one trial shows it."""
        if self.surface.noise:
            return self.surface.truth(point) + float(self._random.choice(self.surface.noise))
        fresh = math.sqrt(1 - DRIFT_KEEPS**2) * self._random.normal(0, DRIFT)
        self._drift = DRIFT_KEEPS * self._drift + fresh
        return self.surface.truth(point) + self._drift + float(self._random.normal(0, NOISE))


# --- methods: what each recommends after each trial ---

Recommended = Iterator[Point]


def loadframe_search(machine: Measures, trials: int, seed: int) -> Recommended:
    search = Search(machine.space, seed=seed)
    for _ in range(trials):
        point = search.propose().point
        search.observe(Outcome(point, machine.measure(point)))
        yield search.best()


def random_search(machine: Measures, trials: int, seed: int) -> Recommended:
    space, chance = machine.space, random.Random(seed)
    points = [tuple(chance.randrange(len(each.values)) for each in space.dimensions) for _ in range(trials - 1)]
    return _best_measured(machine, iter((space.start, *points)), lambda value: None)


def tpe_search(machine: Measures, trials: int, seed: int) -> Recommended:
    from optuna.samplers import TPESampler

    return _optuna_search(machine, trials, TPESampler(seed=seed, multivariate=True))


def gp_search(machine: Measures, trials: int, seed: int) -> Recommended:
    from optuna.samplers import GPSampler

    return _optuna_search(machine, trials, GPSampler(seed=seed))


def _optuna_search(machine: Measures, trials: int, sampler: BaseSampler) -> Recommended:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = machine.space
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.enqueue_trial({each.name: each.start for each in space.dimensions})
    asked: list[optuna.Trial] = []

    def points() -> Iterator[Point]:
        for _ in range(trials):
            asked.append(study.ask())
            yield tuple(
                asked[-1].suggest_int(each.name, 0, len(each.values) - 1)
                if each.ordered
                else asked[-1].suggest_categorical(each.name, list(range(len(each.values))))
                for each in space.dimensions
            )

    return _best_measured(machine, points(), lambda value: study.tell(asked[-1], value))


def mlos_search(machine: Measures, trials: int, seed: int) -> Recommended:
    return _smac_search(machine, trials, seed, measured=1, chosen=1, drawn=0.1)


def smac_search(machine: Measures, trials: int, seed: int) -> Recommended:
    return _smac_search(machine, trials, seed, measured=3, chosen=8, drawn=0.2)


def _smac_search(machine: Measures, trials: int, seed: int, **settings: float) -> Recommended:
    """What SMAC holds for the best, until it has measured every point."""
    from smac.main.exceptions import ConfigurationSpaceExhaustedException
    from smac.runhistory import TrialValue

    logging.disable(logging.CRITICAL)
    space = machine.space

    def point_of(configuration: Configuration) -> Point:
        return tuple(int(configuration[each.name]) for each in space.dimensions)

    with tempfile.TemporaryDirectory() as folder:
        optimizer = _smac(_declared(space, seed), Path(folder), trials, seed, **settings)
        for _ in range(trials):
            try:
                trial = optimizer.ask()
            except ConfigurationSpaceExhaustedException:
                return
            cost = -machine.measure(point_of(trial.config))
            optimizer.tell(trial, TrialValue(cost=cost), save=False)
            yield point_of(optimizer.intensifier.get_incumbent())


def _smac(
    declared: ConfigurationSpace, folder: Path, trials: int, seed: int, *, measured: int, chosen: int, drawn: float
) -> HyperparameterOptimizationFacade:
    """SMAC with the forest of its defaults. measured: how often it measures a point at most. chosen: points from one
    forest. drawn: the share of points that it draws.

    The trees have room for as many leaves as there are trials. SMAC 2.4.1 gives them room for 2^20, which they never
    fill, and most of the time that it thinks goes into reserving it.
    """
    from smac import HyperparameterOptimizationFacade, Scenario
    from smac.model.random_forest import RandomForest
    from smac.random_design import ProbabilityRandomDesign

    scenario = Scenario(
        declared,
        deterministic=measured == 1,
        n_trials=trials,
        seed=seed,
        use_default_config=True,
        output_directory=folder,
    )
    forest = RandomForest(
        declared,
        n_trees=10,
        ratio_features=1.0,
        min_samples_split=2,
        min_samples_leaf=1,
        max_leaf_nodes=trials,
        log_y=True,
        n_jobs=1,
        seed=seed,
    )
    return HyperparameterOptimizationFacade(
        scenario,
        model=forest,
        intensifier=HyperparameterOptimizationFacade.get_intensifier(scenario, max_config_calls=measured),
        config_selector=HyperparameterOptimizationFacade.get_config_selector(scenario, retrain_after=chosen),
        random_design=ProbabilityRandomDesign(probability=drawn, seed=seed),
        logging_level=False,
    )


def _declared(space: Space, seed: int) -> ConfigurationSpace:
    """A space for SMAC: the values of its parameters are places; of categories, words. With numbers for words, equal
    configurations have different hashes in ConfigSpace 1.2 (of `np.int64(1)` and of `1`), mlos-core 0.6.2 does not know
    again what it has asked for, and SMAC goes through all other points in search of its second."""
    from ConfigSpace import CategoricalHyperparameter, ConfigurationSpace, UniformIntegerHyperparameter

    declared = ConfigurationSpace(seed=seed)
    for each in space.dimensions:
        last = len(each.values) - 1
        if each.ordered:
            declared.add(UniformIntegerHyperparameter(each.name, 0, last, default_value=each.start))
        else:
            words = [str(place) for place in range(last + 1)]
            declared.add(CategoricalHyperparameter(each.name, words, default_value=words[each.start]))
    return declared


def _best_measured(machine: Measures, points: Iterator[Point], tell: Callable[[float], None]) -> Recommended:
    best: tuple[float, Point] | None = None
    for point in points:
        value = machine.measure(point)
        tell(value)
        best = max(best, (value, point)) if best else (value, point)
        yield best[1]


METHODS = {
    "loadframe": loadframe_search,
    "random": random_search,
    "tpe": tpe_search,
    "gp": gp_search,
    "mlos": mlos_search,
    "smac": smac_search,
}
PEERS = ("tpe", "gp", "mlos", "smac")


# --- what is told ---


def surface_of(kind: str, seed: int) -> Surface:
    return recorded() if kind == "mariadb" else synthetic(kind, seed)


def trials_needed(surface: Surface, recommended: Recommended, trials: int) -> float:
    """Trials until the recommendation is good enough and stays so; where it is not at the end, NEVER times all."""
    good = [math.expm1(surface.truth(point)) >= ENOUGH * surface.gain for point in recommended]
    if not good[-1]:
        return NEVER * trials
    return len(good) - good[::-1].index(False) + 1 if False in good else 1


class Job(NamedTuple):
    """One search: of a method on a surface, with a seed."""

    surface: str
    method: str
    seed: int
    trials: int


def one(job: Job) -> tuple[Job, float]:
    """Trials needed by a search."""
    warnings.simplefilter("ignore")
    surface = surface_of(job.surface, job.seed)
    recommended = METHODS[job.method](Machine(surface, job.seed), job.trials, job.seed)
    return job, trials_needed(surface, recommended, job.trials)


def is_false_winner(seed: int, trials: int) -> bool:
    """Whether a search on a surface where nothing helps ends with a proved gain."""
    surface = surface_of("nothing", seed)
    machine = Machine(surface, seed)
    *_, best = loadframe_search(machine, trials, seed)
    if best == surface.space.start:
        return False
    plan = Plan(3, 6)
    sides: tuple[list[float], list[float]] = ([], [])
    for block in range(1, plan.last + 1):
        for place in (0, 1) if block % 2 else (1, 0):
            sides[place].append(math.exp(machine.measure((surface.space.start, best)[place])))
        if block >= plan.first:
            found = verdict({1.0: sides[0]}, {1.0: sides[1]}, plan=plan)
            if found.decided:
                return found.decision == "better"
    return False


def compare(jobs: Sequence[Job], kept: Path | None) -> dict[tuple[str, str], float]:
    """Prints a line for each method and surface; answers the medians. Searches that are kept are not done again."""
    needed = dict(read(kept)) if kept and kept.exists() else {}
    with Pool() as pool:
        for job, trials in pool.imap_unordered(one, [job for job in jobs if job not in needed]):
            needed[job] = trials
            if kept:
                with kept.open("a") as file:
                    print(*job, trials, sep=",", file=file)
    medians = {}
    print(f"{'surface':<12}{'method':<11}{'median':>7}{'mean':>7}{'there':>7}")
    for (surface, method), group in itertools.groupby(jobs, key=lambda job: (job.surface, job.method)):
        ours = [(needed[job], job.trials) for job in group]
        there = fmean(each <= trials for each, trials in ours)
        values = [each for each, _ in ours]
        medians[surface, method] = median(values)
        print(f"{surface:<12}{method:<11}{median(values):>7.0f}{fmean(values):>7.1f}{there:>7.0%}")
    return medians


def read(kept: Path) -> Iterator[tuple[Job, float]]:
    """Searches and what they needed, of a file of an earlier comparison: surface, method, seed, trials, needed."""
    with kept.open(newline="") as file:
        for surface, method, seed, trials, needed in csv.reader(file):
            yield Job(surface, method, int(seed), int(trials)), float(needed)


def main() -> int:
    parser = argparse.ArgumentParser(description="How many trials a search for settings takes.")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--surfaces", nargs="+", default=["additive", "bottleneck", "mariadb"])
    parser.add_argument("--peers", action="store_true", help="Optuna's TPE and Gaussian process, SMAC too")
    parser.add_argument("--without", nargs="*", default=[], choices=["random", *PEERS])
    parser.add_argument("--keep", type=Path, help="a file of what each search needed; those in it are not done again")
    parser.add_argument("--record", action="store_true", help="measure the grid of MariaDB, or go on with it")
    parser.add_argument("--seconds", type=float, default=math.inf, help="of --record; it goes on next time")
    given = parser.parse_args()
    if given.record:
        return record(given.seconds)
    methods = ["loadframe", "random", *(PEERS if given.peers else ())]
    methods = [each for each in methods if each not in given.without]
    searches = itertools.product(given.surfaces, methods, range(given.seeds))
    medians = compare([Job(*search, given.trials) for search in searches], given.keep)
    with Pool() as pool:
        false = fmean(pool.map(partial(is_false_winner, trials=given.trials // 2), range(given.seeds)))
    print(f"false winners where nothing helps: {false:.1%}")
    half = {kind: COST * medians.get((kind, "mlos"), math.inf) for kind in given.surfaces}
    dear = [kind for kind in given.surfaces if medians[kind, "loadframe"] > half[kind]]
    for kind in dear:
        print(f"goal missed: more than half of SMAC's trials on {kind}")
    return int(bool(dear) or false > FALSE)


# --- recording ---


def record(seconds: float) -> int:
    """Measure every combination of the study's values REPEATS times, in an order that is drawn for each repeat."""
    from loadframe.bench.bench import RealBench
    from loadframe.kinds.registry import kind_named
    from loadframe.model import TargetState
    from loadframe.runs.folder import RunFolder
    from loadframe.study import load

    study = load(STUDY)
    asked = study.tune.settings
    assert isinstance(asked, dict), "the study of a grid gives the values of each setting"
    values = {
        name: [kind_named("mariadb").check_settings({name: value})[name] for value in each]
        for name, each in asked.items()
    }
    done = Counter()
    if GRID.exists():
        with GRID.open(newline="") as file:
            done.update((row["repeat"], *(row[name] for name in values)) for row in csv.DictReader(file))
    else:
        GRID.write_text(",".join(["repeat", *values, "throughput"]) + "\n")
    until = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        run = RunFolder.create(Path(folder), study.study.name)
        with RealBench(study, run) as bench, GRID.open("a", newline="") as file:
            for repeat in range(1, REPEATS + 1):
                points = list(itertools.product(*values.values()))
                random.Random(repeat).shuffle(points)
                for number, point in enumerate(points):
                    row = [str(repeat), *map(str, point)]
                    if tuple(row) in done:
                        continue
                    if time.monotonic() > until:
                        return 0
                    name = f"{repeat}-{number}"
                    state = TargetState({**bench.start_state.settings, **dict(zip(values, point, strict=True))})
                    bench.declare(name, name, state)
                    step = bench.take_step(StepRequest(name, study.levels[-1], 1, repeat))
                    csv.writer(file, lineterminator="\n").writerow([*row, f"{step.throughput:.1f}"])
                    file.flush()
                    print(f"{' '.join(row)}: {step.throughput:,.0f}/s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
