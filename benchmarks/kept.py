"""Remedies of known worth through the shipped proofs: what is told of those that are kept, and how many are kept that
are worth nothing. Rows of benchmarks/sceptic.py. Throughputs are generated; blocks, orders, looks, the error that
remedies share, the fresh blocks and the steps that are left out are the bench's own."""

from __future__ import annotations

import itertools
import math
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import verdicts as noises
from loadframe.analysis.carryover import carried_over
from loadframe.bench.base import Bench
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.bench.budget import Budget
from loadframe.diagnosis import judging
from loadframe.experiments import fresh
from loadframe.experiments.proof import prove, verdict_on
from loadframe.experiments.trying import known, prove_remedy
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.model import (
    Ending,
    Endpoint,
    ProfiledStep,
    ProfilePlace,
    Remedy,
    SettingValue,
    Step,
    StepRequest,
    TargetState,
    Verdict,
)
from loadframe.progress import Silent
from loadframe.runs.folder import RunFolder
from loadframe.workloads import registry as workloads
from loadframe.workloads.base import Workload
from simulated import step
from simulated_study import queue

LEVEL = 8.0
MEASURE = """
[measure]
window = "1s"
blocks = { min = 3, max = 10 }
budget = "100000s"
"""


class Nowhere(RunFolder):
    """A run folder that keeps nothing."""

    def __init__(self) -> None:
        super().__init__(Path(os.devnull))

    def append_line(self, name: str, schema: str, record: object) -> None:
        """As the folder does it."""

    def profiled(self) -> list[ProfiledStep]:
        """None, as it keeps none."""
        return []


class Generated:
    """See loadframe.bench.base.Bench. Treatment A serves 1,000/s, another one what `worth` says of it, times the
    next of the noise."""

    kind, is_local, free_disk_bytes = "sqlite", True, math.inf
    endpoint = Endpoint(kind, "nowhere", {})
    axis_unit, start_state = "clients", TargetState({}, {})

    def __init__(self, noise: Iterator[float]) -> None:
        self.study, self.run = queue([int(LEVEL)], MEASURE), Nowhere()
        self.worth: dict[str, float] = {"A": 1.0}
        self._noise, self._numbers = noise, itertools.count(1)

    @property
    def workload(self) -> Workload:
        """That of the study, which loads nothing."""
        table = self.study.workload
        return workloads.make(table.kind, table.options, Allowance(US), axis=self.study.load.axis)

    @property
    def treatments(self) -> int:
        """All that have a worth."""
        return len(self.worth)

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
        """A treatment that serves as A does."""
        self.worth[name] = 1.0

    def check(self, state: TargetState, kind: str | None = None) -> None:
        """It starts in every state."""

    def use(self, name: str) -> dict[str, SettingValue]:
        """What is in effect is not looked at here."""
        return {}

    def starts_fresh(self, name: str) -> bool:
        """It has always served."""
        return False

    def carries_over(self, name: str) -> bool:
        """What it was asked for before may matter."""
        return True

    def recover(self, name: str) -> None:
        """It never dies."""

    def is_cache(self, name: str) -> bool:
        """A queue is none."""
        return False

    def counters(self) -> dict[str, float]:
        """It counts nothing."""
        return {}

    def end(self, how: Ending) -> None:
        """It goes on."""

    def take_profile(self, place: ProfilePlace, *, treatment: str, level: float, window_s: float) -> ProfiledStep:
        """Without a sample."""
        return ProfiledStep(place, treatment, level, window_s, 0, 0.0, ())

    def take_step(self, request: StepRequest) -> Step:
        """A step of the next noise, as the bench takes one."""
        throughput = 1000 * self.worth[request.treatment] * math.exp(next(self._noise))
        return step(
            request.level,
            throughput,
            number=next(self._numbers),
            round=request.round_number,
            block=request.block,
            treatment=request.treatment,
            purpose=request.purpose,
        )


def book_of(bench: Bench, seed: int) -> Bookkeeping:
    """The book of a run whose time does not pass."""
    measure = bench.study.measure
    return Bookkeeping(bench, Budget(measure.budget, measure.window, clock=lambda: 0.0), Silent(), random.Random(seed))


@dataclass(frozen=True, slots=True)
class Told:
    """A remedy that was kept: what the blocks said that decided it, and the fresh ones."""

    deciding: Verdict
    again: Verdict


def kept(generate: noises.Generate, worth: float, loudness: float, series: int) -> list[Told]:
    """The remedies that are kept, of `series` remedies that are worth this factor."""
    noise = loudness * generate(np.random.default_rng(11), series, 40)
    found = []
    for number, row in enumerate(noise):
        bench = Generated(iter(row.tolist()))
        book = book_of(bench, number)
        bench.worth["B"] = worth
        proved, _ = prove_remedy(book, "A", "B", [LEVEL], round_number=1)
        deciding = proved.verdict
        if deciding.decision != "better":
            continue
        blocks = fresh.wanted([deciding], bench.study.measure.blocks.max)
        steps = fresh.measure_again(book, "A", "B", [LEVEL], blocks, round_number=1, done=deciding.blocks)
        again = verdict_on(steps, "A", "B")
        if again.exceeds_noise:
            found.append(Told(deciding, again))
    return found


def overstated(told: Sequence[Verdict], worth: float) -> tuple[float, float]:
    """Mean gain that is told over the true one, both in logarithms, and its standard error."""
    gains = np.log([each.ratio for each in told]) / math.log(worth)
    return float(gains.mean()), float(gains.std(ddof=1)) / math.sqrt(len(gains))


def holding(told: Sequence[Verdict], worth: float) -> float:
    """Per cent of intervals that have the true gain."""
    return 100 * sum(each.low <= worth <= each.high for each in told) / len(told)


LOUD = 5.0
"""Remedies without effect are proved in noise of 10 %: in less most are soon known to be worth less than a tenth."""


def proven(generate: noises.Generate, worths: Sequence[float], investigations: int, *, sharing: bool = True) -> int:
    """In how many investigations that try remedies of these worths one that is worth nothing is proven to help.
    sharing: as shipped, else each is proved at 95 %."""
    noise = LOUD * generate(np.random.default_rng(12), investigations, 20 * len(worths))
    wrong = 0
    for number, row in enumerate(noise):
        bench = Generated(iter(row.tolist()))
        book = book_of(bench, number)
        for name, worth in zip("BCDEFGHIJ", worths, strict=False):
            bench.worth[name] = worth
            if sharing:
                proved, _ = prove_remedy(book, "A", name, [LEVEL], round_number=1)
            else:
                ((proved, _),) = prove(book, [("A", name)], [LEVEL], round_number=1, enough=known)
            if worth == 1 and proved.verdict.decision == "better":
                wrong += 1
                break
    return wrong


def ended(share: float, often: float, series: int) -> tuple[int, int]:
    """How many of so many pairs of equal treatments, in three blocks of two steps, look as if failures had ended, and
    how many of these are proved. share: of 40 requests, how many fail, each for itself, in a share `often` of steps."""
    chance, undecided = np.random.default_rng(15), Verdict(1.0, 0.9, 1.1, "no-proven-difference", 3, "")
    by_rule = proved = 0
    for _ in range(series):
        sides = []
        for treatment in "AB":
            failed = (chance.binomial(40, share, 6) * (chance.random(6) < often)).tolist()
            sides.append(
                [
                    step(LEVEL, 40.0, block=block, treatment=treatment, requests=40 - each, errors=each)
                    for block, each in zip((1, 2, 3) * 2, failed, strict=True)
                ]
            )
        fell = judging.cures_failures(*sides)
        by_rule += fell
        proved += fell and not judging.by_chance(undecided, *sides)
    return by_rule, proved


# --- what one treatment leaves behind for the next ---

OWED = math.log(15_358 / 3_268)
"""What PostgreSQL served after itself over what it served after the other treatment, in logarithms."""


class Owing(Generated):
    """Two treatments of equal worth; A pays for what B has left behind: OWED less in logarithms at first, of which a
    share `left` remains after each second."""

    def __init__(self, noise: Iterator[float], left: float) -> None:
        super().__init__(noise)
        self.worth["B"] = 1.0
        self._left, self._owed, self._last = left, 0.0, ""

    def take_step(self, request: StepRequest) -> Step:
        """A step of `window_s`, or of the study's window; it pays as at its middle."""
        if request.treatment != self._last:
            self._owed = OWED if request.treatment == "A" and self._last else 0.0
        self._last, seconds = request.treatment, request.window_s or self.study.measure.window
        self.worth["A"] = math.exp(-self._owed * self._left ** (seconds / 2))
        self._owed *= self._left**seconds
        return super().take_step(request)


def owed(left: float, series: int, *, washes: bool) -> tuple[int, int]:
    """The number of pairs of equal treatments, of `series`, that are called different, and of these the number without
    a word on carry-over."""
    noise = noises.white(np.random.default_rng(13), series, 100)
    different = unsaid = 0
    for number, row in enumerate(noise):
        book = book_of(Owing(iter(row.tolist()), left), number)
        book.washes = washes
        book.take(StepRequest("A", LEVEL, 1, 1))
        ((proved, _),) = prove(book, [("A", "B")], [LEVEL], round_number=1)
        if proved.verdict.decided:
            different += 1
            unsaid += not carried_over(book.steps)
    return different, unsaid
