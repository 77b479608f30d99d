"""Whole investigations of a simulated service whose settings do nothing, or of which one does something. Rows of
benchmarks/sceptic.py, and as a table: python benchmarks/decoys.py [--investigations N] [--only NOISE ...]

The service serves eight requests at a time, so that `service.parallelism` is found, and declares four settings that an
investigation tries for it. Throughputs and response times are generated, with the noise of a shared machine; sweep,
sizing, blocks, orders, looks, fresh blocks, judgement and budget are Loadframe's own. Seeds are fixed.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

import verdicts as noises
from claims import Figure, rate, row
from kept import Generated
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.bench.budget import Budget
from loadframe.experiments.frame import looked_at
from loadframe.experiments.sweep import sweep
from loadframe.experiments.trials import try_remedies
from loadframe.model import Latency, Remedy, SettingValue, Step, StepRequest, TargetState
from loadframe.progress import Silent
from loadframe.study import parse
from simulated import step

AT_ONCE = 8
RESPONSE_S = 0.02
STEP_S = 1.6
"""What a step with a window of 1 s takes; a shorter one takes so much less."""
MOST_ROUNDS = 6
BUDGETS = ("80s", "240s")
"""The second one has room for fresh blocks after each proof."""
LOUD = 4.0
"""Times the noise of verdicts.py: 8 % from step to step, as between two services on a shared machine."""
STEPS = 400
"""More than any budget has room for."""
STUDY = """
[study]
name = "service"
question = "?"
[target]
kind = "service"
command = ["service", "--port", "{{port}}"]
[target.settings]
buffer_mb = 64
idle_timeout_s = 60
threads = 64
workers = 4
[target.setting.buffer_mb]
values = [64, 256]
apply = "environment"
[target.setting.idle_timeout_s]
values = [60, 600]
apply = "environment"
[target.setting.threads]
values = [64, 256]
apply = "environment"
[target.setting.workers]
values = [4, 16]
apply = "environment"
[workload]
kind = "http"
[load]
axis = "concurrency"
levels = [1, 4, 16, 32]
[measure]
window = "1s"
blocks = {{ min = 3, max = 6 }}
budget = "{budget}"
"""


def heavy_tails(random: np.random.Generator, count: int, length: int) -> noises.Numbers:
    """Student's t of 3 degrees of freedom, of which neighbours share a half, on a slow walk: what a shared machine with
    services of others shows."""
    values = noises.SIGMA * random.standard_t(3, (count, length)) / math.sqrt(3)
    for i in range(1, length):
        values[:, i] = 0.5 * values[:, i - 1] + math.sqrt(0.75) * values[:, i]
    return values + 0.1 * noises.white(random, count, length).cumsum(axis=1)


NOISES: Mapping[str, noises.Generate] = {
    **{name: noises.NOISES[name] for name in ("white", "AR(1) 0.8", "linear drift", "random walk", "bursts")},
    "heavy tails": heavy_tails,
}


class Service(Generated):
    """A service on a bench without a machine. gain: what its setting "workers" is worth once it is raised; per_request:
    whether that makes each request faster, so that no more of them are served at a time. Time passes with its steps."""

    def __init__(self, noise: Iterator[float], gain: float, budget: str, *, per_request: bool = False) -> None:
        super().__init__(noise)
        self.study = parse(STUDY.format(budget=budget))
        self.start_state = TargetState(dict(self.study.target.settings), {})
        self.states = {"A": self.start_state}
        self.now_s = 0.0
        self._gain, self._per_request = gain, per_request

    @property
    def treatments(self) -> int:
        """All that have a state."""
        return len(self.states)

    def declare(
        self,
        name: str,
        title: str,
        state: TargetState,
        kind: str | None = None,
        *,
        cold_of: str = "",
        remedy: Remedy | None = None,
    ) -> None:
        """A treatment in its state."""
        self.states[name] = state

    def use(self, name: str) -> dict[str, SettingValue]:
        """The settings are what the state says."""
        return dict(self.states[name].settings)

    def take_step(self, request: StepRequest) -> Step:
        """A closed loop in the next noise."""
        treatment, level = request.treatment, request.level
        raised = self.states[treatment].settings["workers"] != self.start_state.settings["workers"]
        gain = self._gain if raised else 1.0
        response_s, most = (RESPONSE_S / gain, AT_ONCE) if self._per_request else (RESPONSE_S, AT_ONCE * gain)
        throughput = min(level, most) / response_s * math.exp(next(self._noise))
        self.now_s += STEP_S + (request.window_s or 1.0) - 1.0
        mean = 1000 * level / throughput
        metrics = {
            "workload.concurrency": level,
            "target.cpu.cores": 0.0005 * throughput,
            "driver.cpu.cores": 0.0005 * throughput,
            "target.cpu.run_delay": 0.0,
            "driver.cpu.run_delay": 0.0,
            "system.cpu.utilization": 0.3,
            "system.cpu.count": 2.0,
            "system.cpu.own": 0.3,
        }
        return step(
            level,
            throughput,
            metrics,
            number=next(self._numbers),
            round=request.round_number,
            block=request.block,
            treatment=treatment,
            purpose=request.purpose,
            latency=Latency(mean, mean, mean, mean, mean),
        )


@dataclass(frozen=True, slots=True)
class Found:
    """What became of an investigation. kept: the settings that were kept; tried: the number of trials; statuses: each
    cause of the first round with what became of it; within: whether a change was kept whose told gain lies within the
    told noise floor."""

    kept: tuple[str, ...]
    tried: int
    statuses: tuple[tuple[str, str], ...]
    within: bool

    @property
    def confirmed(self) -> bool:
        """Whether a cause was."""
        return any(status == "confirmed" for _, status in self.statuses)

    @property
    def decoy(self) -> bool:
        """Whether a setting that does nothing was kept."""
        return any(name != "workers" for name in self.kept)


def investigated(noise: Iterator[float], seed: int, gain: float, budget: str, *, per_request: bool = False) -> Found:
    """The loop of lab.investigate on the service: sweep, examine, try remedies, go on from what is kept."""
    bench = Service(noise, gain, budget, per_request=per_request)
    measure = bench.study.measure
    clock: Callable[[], float] = lambda: bench.now_s  # noqa: E731
    book = Bookkeeping(bench, Budget(measure.budget, measure.window, clock=clock), Silent(), random.Random(seed))
    book.washes = True
    treatment, state, already, rounds = "A", bench.start_state, set[str](), []
    for number in range(1, MOST_ROUNDS + 1):
        curve = sweep(book, treatment, round_number=number)
        tried = try_remedies(book, looked_at(book, number, treatment, state, bench.use(treatment), curve), already)
        rounds.append(tried.round)
        if tried.kept is None:
            break
        treatment, state = tried.kept
    trials = [trial for one in rounds for trial in one.tried]
    kept = [trial for trial in trials if trial.kept]
    return Found(
        kept=tuple(change.setting for trial in kept for change in trial.remedy.changes),
        tried=len(trials),
        statuses=tuple((finding.id, finding.status) for one in rounds[:1] for finding in one.findings),
        within=any(
            trial.reported.floor is not None and trial.reported.ratio <= trial.reported.floor[1] for trial in kept
        ),
    )


def investigations(
    generate: noises.Generate, gain: float, budget: str, count: int, *, per_request: bool = False
) -> list[Found]:
    """So many of them, each in a noise of its own."""
    noise = LOUD * generate(np.random.default_rng(17), count, STEPS)
    return [
        investigated(iter(row.tolist()), number, gain, budget, per_request=per_request)
        for number, row in enumerate(noise)
    ]


# --- rows ---

FEWER = 20
"""Of this many series one is drawn: it is a whole investigation."""
PARALLELISM = ("service.parallelism", "confirmed")


def nothing_kept(name: str, budget: str, series: int) -> Figure:
    """Investigations that keep a setting that does nothing."""
    found = investigations(NOISES[name], 1.0, budget, series // FEWER)
    return rate(sum(bool(one.kept) for one in found), len(found), 1.0)


def real_kept(gain: float, series: int) -> Figure:
    """Investigations that keep the one setting that does something."""
    found = investigations(NOISES["white"], gain, BUDGETS[1], series // FEWER)
    return rate(sum("workers" in one.kept for one in found), len(found), 90.0)


def faster(name: str, series: int) -> Figure:
    """Investigations that confirm more requests at a time, where each is faster."""
    found = investigations(NOISES[name], 2.0, BUDGETS[1], series // FEWER, per_request=True)
    return rate(sum(PARALLELISM in one.statuses for one in found), len(found), 1.0)


for _name in ("white", "AR(1) 0.8", "heavy tails"):
    for _budget in BUDGETS:
        row(f"decoys: {_name}, {_budget}", f"of settings that do nothing one is kept, {_name} of 8 %, {_budget}",
            section=4, goal=1)(partial(nothing_kept, _name, _budget))  # fmt: skip
    row(f"decoys: faster, {_name}", f"requests twice as fast confirmed as more at a time, {_name} of 8 %", section=2,
        goal=1)(partial(faster, _name))  # fmt: skip
for _gain, _least in ((1.3, 80), (2.0, 95)):
    row(f"decoys: x{_gain:g}", f"a setting worth {_gain:g} times among three that do nothing is kept, white of 8 %",
        section=4, goal=_least, most=False)(partial(real_kept, _gain))  # fmt: skip


# --- the table ---


def _share(found: list[Found], of: Callable[[Found], bool]) -> str:
    return f"{100 * sum(map(of, found)) / len(found):.1f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--investigations", type=int, default=200, metavar="N", help="of each kind")
    parser.add_argument("--only", nargs="+", metavar="NOISE", choices=list(NOISES), help="these kinds of noise")
    arguments = parser.parse_args()
    print("Per cent of investigations; the noise of a step is 8 %")
    print(f"{'noise, budget':24}{'decoy kept':>12}{'within floor':>14}{'confirmed':>11}{'trials':>8}", end="")
    print(f"{'x1.3 kept':>11}{'x2 kept':>9}{'confirmed':>11}{'faster kept':>13}{'confirmed':>11}")
    for budget in BUDGETS:
        for name in arguments.only or NOISES:
            count = arguments.investigations
            nothing = investigations(NOISES[name], 1.0, budget, count)
            some, twice = (investigations(NOISES[name], gain, budget, count) for gain in (1.3, 2.0))
            faster = investigations(NOISES[name], 2.0, budget, count, per_request=True)
            tried = sum(one.tried for one in nothing) / count
            right: Callable[[Found], bool] = lambda one: "workers" in one.kept  # noqa: E731
            cells = (
                (_share(nothing, lambda one: one.decoy or bool(one.kept)), 12),
                (_share(nothing, lambda one: one.within), 14),
                (_share(nothing, lambda one: one.confirmed), 11),
                (f"{tried:.1f}", 8),
                (_share(some, right), 11),
                (_share(twice, right), 9),
                (_share(twice, lambda one: one.confirmed), 11),
                (_share(faster, right), 13),
                (_share(faster, lambda one: one.confirmed), 11),
            )
            print(f"{f'{name}, {budget}':24}" + "".join(f"{cell:>{width}}" for cell, width in cells), flush=True)


if __name__ == "__main__":
    main()
