"""The best settings of a search against the start, in fresh blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadframe.bench.beside import START
from loadframe.bench.examination import cuts
from loadframe.bench.proof import prove
from loadframe.bench.sweep import Bookkeeping
from loadframe.bench.tuning_answer import found
from loadframe.bench.tuning_space import Varied
from loadframe.bench.tuning_trials import Trials
from loadframe.model import TargetState, Tuning
from loadframe.targets.settings_file import written

PROOF_ROUND = 3
"""The round of the proof's steps."""
PROOF_SHARE = 0.3
"""Of the budget, what is kept for the proof where as many blocks as the study allows would take more."""


def kept_s(book: Bookkeeping, levels: Sequence[float]) -> float:
    """Seconds to keep for the proof."""
    blocks = book.bench.study.measure.blocks
    least, most = (book.budget.cost_s(2 * count * list(levels)) for count in (blocks.min, blocks.max))
    return max(least, min(most, PROOF_SHARE * book.budget.total_s))


def conclude(trials: Trials, varied: Varied, findings: tuple[str, ...]) -> Tuning:
    """The best of the trials, proved in fresh blocks where it is not the start."""
    book, space = trials.book, trials.space
    study, best = book.bench.study, trials.search.best()
    if best == space.start:
        return found(trials, varied, findings, best=best, end="nothing-better")
    name = trials.treatment(best)
    effective = book.bench.use(name)
    verdict, ratios, taken = prove(book, START, name, sorted(trials.levels), round_number=PROOF_ROUND)
    answer = found(trials, varied, findings, best=best, end="no-proven-gain", proof=taken)
    answer = replace(
        answer,
        verdict=verdict,
        levels=ratios,
        warnings=cuts(study.target.kind, TargetState(space.changes(best), {}), effective),
    )
    if verdict.decision != "better" or not (answer.objective is None or answer.objective.met):
        return answer
    file_name, text = written(study.target.kind, space.changes(best))
    return replace(answer, end="gained", file_name=file_name, file_text=text)
