"""One remedy against the state before it: applied, proved, and judged from the blocks of its proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from loadframe.bench.examination import Examined, examine
from loadframe.bench.proof import level_ratios, look_around, operation_times, prove, sized
from loadframe.bench.sizing import Applied
from loadframe.bench.sweep import FEWEST_BLOCKS, Bookkeeping, curve_of
from loadframe.diagnosis import judging
from loadframe.model import Limit, Round, Step, Trial, Verdict

TOTAL_BLOCKS = 3
"""Two blocks have one degree of freedom: their interval says less of the whole gain than its proved parts do."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A remedy that was tried. steps: of its proof. after: what is seen of the state with it."""

    applied: Applied
    trial: Trial
    steps: tuple[Step, ...]
    after: Examined

    @property
    def in_series(self) -> tuple[str, ...]:
        """The causes that are there with the remedy and that it is not for."""
        return tuple(f.id for f in self.after.round.findings if f.id not in self.applied.remedy.addresses)


def attempt(book: Bookkeeping, examined: Examined, applied: Applied, levels: Sequence[float]) -> Attempt:
    """The proof of a remedy that is applied already."""
    one, remedy, name = examined.round, applied.remedy, applied.treatment
    effective = book.bench.use(name)
    verdict, ratios, steps = prove(
        book,
        one.treatment,
        name,
        levels,
        round_number=one.number,
        reserve_s=afterwards_s(book, one, levels, treatments=2),
        enough=known,
    )
    before, after = _of(steps, one.treatment), _of(steps, name)
    cures = verdict.decision != "worse" and judging.cures_failures(before, after)
    named = {change.setting for change in remedy.changes}
    price = replace(remedy.price, memory_before_bytes=_memory(before), memory_after_bytes=_memory(after))
    trial = Trial(
        remedy=replace(remedy, price=price),
        verdict=verdict,
        kept=verdict.decision == "better" or cures,
        levels=ratios,
        effective={setting: value for setting, value in effective.items() if setting in named},
        treatment_before=one.treatment,
        treatment_after=name,
        note=_cure(judging.failed_share(before), judging.failed_share(after)) if cures else _full(applied.full),
        operations=operation_times(before, after),
    )
    seen = examine(
        book.of(name),
        number=one.number,
        treatment=name,
        state=applied.state,
        effective=effective,
        curve=curve_of(book.steps, book.bench.study, name),
        target_kind=examined.situation.target_kind,
        highest_level=book.bench.study.levels[-1],
        free_disk_bytes=examined.situation.free_disk_bytes,
    )
    return Attempt(applied, trial, tuple(steps), seen)


def judged(one: Round, tried: Attempt) -> Round:
    """The round with this trial. Nothing is refuted where the limit that was raised was full again all the same, nor
    where another cause is there with the remedy: of two limits in series neither helps alone."""
    before, after = sides(tried.trial, tried.steps)
    refutes = tried.applied.full is None and not tried.in_series
    findings = judging.judge(one.findings, tried.trial.remedy, tried.trial.verdict, before, after, refutes=refutes)
    return replace(one, tried=(*one.tried, tried.trial), findings=findings)


def sides(trial: Trial, steps: Sequence[Step]) -> tuple[list[Step], list[Step]]:
    """The steps of the state before and of the one after."""
    return _of(steps, trial.treatment_before), _of(steps, trial.treatment_after)


def beside(book: Bookkeeping, one: Round, trial: Trial, levels: Sequence[float]) -> Trial:
    """A kept trial with the ratios at the levels at which it was not judged, too."""
    before, after = trial.treatment_before, trial.treatment_after
    around = look_around(book, before, after, _other_levels(book, one, levels), round_number=one.number)
    ratios = (*trial.levels, *level_ratios(around, before, after))
    return replace(trial, levels=tuple(sorted(ratios, key=lambda row: row.load)))


def afterwards_s(book: Bookkeeping, one: Round, judged: Sequence[float], *, treatments: int) -> float:
    """Seconds to keep in hand, so that the state after a kept remedy (and the one before it, for two treatments) can be
    measured at the other levels, and after a second remedy be proved against the first state."""
    total = 2 * TOTAL_BLOCKS * list(judged) if one.number > 1 else []
    return book.budget.cost_s(treatments * FEWEST_BLOCKS * _other_levels(book, one, judged) + total)


def known(verdict: Verdict) -> bool:
    """Whether it is known what a remedy is worth: by how much it helps, or that it does not."""
    return sized(verdict) or judging.without_effect(verdict)


def _of(steps: Sequence[Step], treatment: str) -> list[Step]:
    return [step for step in steps if step.treatment == treatment]


def _other_levels(book: Bookkeeping, one: Round, judged: Sequence[float]) -> list[float]:
    """The study's levels and the two ends of the cliff, but for those that were judged already."""
    cliff = one.curve.cliff
    ends = (cliff.from_load, cliff.to_load) if cliff is not None else ()
    return sorted({*book.bench.study.levels, *ends} - set(judged))


def _cure(before: float, after: float) -> str:
    return f"requests that failed fell from {100 * before:.3g} % to {100 * after:.3g} %"


def _full(limit: Limit | None) -> str:
    if limit is None:
        return ""
    return f"{limit.title or limit.id} is full again at {limit.ceiling:,.6g}, and no more could be given to it"


def _memory(steps: Sequence[Step]) -> float | None:
    values = [step.metrics["target.memory.rss"] for step in steps if "target.memory.rss" in step.metrics]
    return fmean(values) if values else None
