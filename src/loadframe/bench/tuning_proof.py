"""The best settings of a search against the start, in fresh blocks; where they do not hold, the next best ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from loadframe.analysis.sequential import ErrorBudget
from loadframe.bench import within
from loadframe.bench.beside import START
from loadframe.bench.examination import cuts
from loadframe.bench.proof import decided, prove
from loadframe.bench.sizing import UNFIT
from loadframe.bench.sweep import FEWEST_BLOCKS, Bookkeeping
from loadframe.bench.tuning_trials import Trials
from loadframe.model import SettingValue, Step, TargetState, TuningProof
from loadframe.tuning.space import Point

PROOF_ROUND = 3
"""The round of the first proof's steps; each further one has the next."""
PROOF_SHARE = 0.3
"""Of the budget, what is kept for the first proof where as many blocks as the study allows would take more."""
MOST_PROOFS = 3
ERROR = 0.05
"""Of all proofs of a search together: that one decides where there is no difference."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A point that was held against the start. steps: the fresh blocks. cuts: what the target did not grant."""

    point: Point
    told: TuningProof
    steps: tuple[Step, ...]
    cuts: tuple[str, ...]


def kept_s(book: Bookkeeping, levels: Sequence[float]) -> float:
    """Seconds to keep for the first proof."""
    least, most = _proof_s(book, levels)
    return max(least, min(most, PROOF_SHARE * book.budget.total_s))


def proofs(trials: Trials) -> Iterator[Proof]:
    """Proofs in turn, of the point that promises most each time, until one holds, nothing promises more than the start,
    or no time is left for another one. What failed is told to the search, so that the next point is chosen with it. A
    point with which the target fails amid its proof has failed: there is no proof of it, but a trial that says why.

    Together they err in ERROR of all searches at most. Levels depend on what was proved before and on time alone; a
    proof that was cut short has spent its level once anybody could have looked at it.
    """
    error, tried = ErrorBudget(ERROR), list[Point]()
    while not tried or (error.left and _another(trials, len(tried))):  # time for the first one was kept
        point = trials.search.best(tried)
        if point == trials.space.start:
            return
        try:
            effective = trials.book.bench.use(trials.treatment(point))
        except UNFIT as unfit:
            trials.refuse(point, unfit.fact)
            tried.append(point)
            continue
        _, longest_s = _proof_s(trials.book, trials.levels)
        level = error.level(last=not _another(trials, len(tried) + 1, longest_s))
        number = PROOF_ROUND + len(tried)
        tried.append(point)
        try:
            proof = _prove(trials, point, effective, level, round_number=number)
        except UNFIT as unfit:
            if _looked_at(trials.book, number):
                error = error.after(level, decided=False)
            trials.refuse(point, f"in its proof, {unfit.fact}")
            continue
        yield proof
        if proof.told.held:
            return
        error = error.after(level, decided=decided(proof.told.verdict))
        _tell(trials, proof)


def _another(trials: Trials, done: int, after_s: float = 0.0) -> bool:
    """Whether there may be another proof. done: the number of proofs so far; after_s: seconds that pass before it."""
    least, _ = _proof_s(trials.book, trials.levels)
    return done < MOST_PROOFS and trials.book.budget.left_s() - after_s >= least


def _looked_at(book: Bookkeeping, round_number: int) -> bool:
    """Whether a proof that was cut short may have had blocks enough for an interval."""
    blocks = {step.block for step in book.steps if step.round == round_number and step.counts}
    return len(blocks) >= FEWEST_BLOCKS


def _proof_s(book: Bookkeeping, levels: Sequence[float]) -> tuple[float, float]:
    """Seconds that the shortest and the longest proof take."""
    blocks = book.bench.study.measure.blocks
    least, most = (book.budget.cost_s(2 * count * list(levels)) for count in (blocks.min, blocks.max))
    return least, most


def _prove(
    trials: Trials, point: Point, effective: Mapping[str, SettingValue], level: float, *, round_number: int
) -> Proof:
    """One proof, with intervals at 1 - level."""
    name, levels = trials.treatment(point), sorted(trials.levels)
    changes, expected = trials.space.changes(point), trials.search.expected_gain(point)
    verdict, ratios, taken = prove(trials.book, START, name, levels, round_number=round_number, confidence=1 - level)
    before, after = ([step for step in taken if step.treatment == each] for each in (START, name))
    objective = within.shown(trials.objective, levels, before, after)
    told = TuningProof(changes, expected, verdict, ratios, objective)
    kind = trials.book.bench.study.target.kind
    return Proof(point, told, tuple(taken), cuts(kind, TargetState(changes, {}), effective))


def _tell(trials: Trials, proof: Proof) -> None:
    """The blocks of a proof that failed, to the search."""
    objective = proof.told.objective
    missed = objective is not None and not objective.met
    after = [step for step in proof.steps if step.treatment != START]
    use = within.used(trials.objective, after)
    for block in sorted({step.block for step in proof.steps}):
        start = [step for step in proof.steps if step.block == block and step.treatment == START]
        if all(step.throughput > 0 for step in start):
            trials.observe(trials.space.start, start)
        trials.observe(proof.point, [step for step in after if step.block == block], missed=missed, use=use)
