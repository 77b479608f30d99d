"""Searches over settings of known worth through the shipped proofs: what is told of a gain that is proved. Rows of
benchmarks/sceptic.py. Throughputs are generated; trials, proofs and the fresh blocks after them are the bench's own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import kept
import verdicts as noises
from loadframe.experiments.side_by_side import START
from loadframe.model import Remedy, SettingValue, TargetState
from loadframe_tune.model import TuningProof
from loadframe_tune.proof import proved
from loadframe_tune.search import Dimension, Search, Space
from loadframe_tune.trials import Start, Trials, measure_start

SPACE = Space(
    (
        Dimension("cache_size", (-2000, -16000), 0),
        Dimension("mmap_size", (0, 1 << 26), 0),
        Dimension("wal_autocheckpoint", (1000, 3000), 0),
        Dimension("temp_store", ("DEFAULT", "MEMORY"), 0, ordered=False),
    )
)
MOST_WORTH = 0.05
"""Each setting is worth 0 to so much, any of it as likely."""
TRIALS = 12


class Server(kept.Generated):
    """Serves by what its settings are worth: log throughput by setting, of its second value."""

    def __init__(self, noise: Iterator[float], worths: Sequence[float]) -> None:
        super().__init__(noise)
        self._worths = dict(zip([each.name for each in SPACE.dimensions], worths, strict=True))

    def true(self, changes: dict[str, SettingValue]) -> float:
        """What these changes are worth, as a log ratio."""
        return sum(self._worths[name] for name in changes)

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
        """A treatment."""
        self.worth[name] = math.exp(self.true(dict(state.settings)))


@dataclass(slots=True)
class Gains:
    """Log ratios of what was proved, in order: the true ones, those of the blocks that decided, the fresh ones; and in
    how many the fresh interval has the true one."""

    true: list[float] = field(default_factory=list)
    deciding: list[float] = field(default_factory=list)
    fresh: list[float] = field(default_factory=list)
    held: int = 0

    def add(self, true: float, told: TuningProof) -> None:
        """A proof that held."""
        self.true.append(true)
        self.deciding.append(math.log(told.verdict.ratio))
        self.fresh.append(math.log(told.reported.ratio))
        self.held += math.log(told.reported.low) <= true <= math.log(told.reported.high)

    def over_true(self, told: Sequence[float]) -> tuple[float, float]:
        """The mean of these over the mean of the true ones, and its standard error."""
        true = np.array(self.true)
        apart = np.array(told) - true
        return 1 + float(apart.mean() / true.mean()), float(apart.std(ddof=1) / math.sqrt(len(true)) / true.mean())


def search(noise: Iterator[float], seed: int, worths: Sequence[float]) -> tuple[Server, list[Any]]:
    """A server with settings of these worths, searched, and its proofs."""
    bench = Server(noise, worths)
    book = kept.book_of(bench, seed)
    measure_start(book)
    level = kept.LEVEL
    start = Start.of(book.of(START), (level,))
    trials = Trials(
        book,
        bench.run,
        SPACE,
        Search(SPACE, seed=seed),
        (level,),
        TargetState({}, {}),
        start,
        names={SPACE.start: START},
    )
    trials.begin([])
    while len(trials.done) < TRIALS:
        trials.take(trials.search.propose())
    return bench, proved(trials, lambda _: None)


def gains(generate: noises.Generate, loudness: float, series: int) -> Gains:
    """Of so many searches those that prove a gain."""
    chance = np.random.default_rng(14)
    noise = loudness * generate(chance, series, 200)
    found = Gains()
    for number, row in enumerate(noise):
        worths = np.log1p(chance.uniform(0, MOST_WORTH, len(SPACE.dimensions))).tolist()
        book, proofs = search(iter(row.tolist()), number, worths)
        if proofs and proofs[-1].reported.held:
            told = proofs[-1].reported
            found.add(book.true(dict(told.changes)), told)
    return found
