"""One remedy against the state before it: applied, proved, measured once more where it is kept, and judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from loadframe.analysis.undisturbed import undisturbed
from loadframe.bench.bookkeeping import ERROR, FEWEST_BLOCKS, Bookkeeping
from loadframe.bench.settling import settled
from loadframe.diagnosis import judging
from loadframe.diagnosis.operational import OPERATIONAL, SERVED_AT_ONCE, served_at_once
from loadframe.experiments import fresh
from loadframe.experiments.collecting import receded, with_collector
from loadframe.experiments.examination import Examined, examine
from loadframe.experiments.proof import decided, level_ratios, look_around, operation_times, prove
from loadframe.experiments.sizing import Applied
from loadframe.experiments.sweep import curve_of
from loadframe.model import LevelRatio, Limit, Round, Step, Trial, Verdict

NO_ERROR = f"the {100 * ERROR:.0f} % of error that all remedies of an investigation share are spent"
FIRST = 1 - ERROR
"""Of the first remedy's interval: at its lower end half of the error that all share, and so is the other half left."""
NOT_AGAIN = "fresh blocks did not prove the gain again"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A remedy that was tried. steps: of its proof. after: what is seen of the state with it. again: the steps of the
    fresh blocks that followed, where it was kept. responses_s: by treatment, the response time at the lowest level,
    where how many requests are served at once is what the remedy is for. collecting: by treatment, what a profile shows
    of the collector of garbage, where the remedy is for that."""

    applied: Applied
    trial: Trial
    steps: tuple[Step, ...]
    after: Examined
    again: tuple[Step, ...] = ()
    responses_s: Mapping[str, float] = field(default_factory=dict)
    collecting: Mapping[str, float] = field(default_factory=dict)

    @property
    def seen_again(self) -> bool:
        """Whether the fresh blocks decide as the proof did, or there are none."""
        return self.trial.told.decision == self.trial.verdict.decision

    @property
    def in_series(self) -> tuple[str, ...]:
        """The causes that are there with the remedy and that it is not for; what only says again that throughput ends
        is no other cause."""
        own = OPERATIONAL.union(self.applied.remedy.addresses)
        return tuple(finding.id for finding in self.after.round.findings if finding.id not in own)


def attempt(book: Bookkeeping, examined: Examined, applied: Applied, levels: Sequence[float]) -> Attempt:
    """The proof of a remedy that is applied already."""
    one, remedy, name = examined.round, applied.remedy, applied.treatment
    effective = book.bench.use(name)
    verdict, ratios, steps = prove_remedy(book, one.treatment, name, levels, round_number=one.number)
    before, after = _of(steps, one.treatment), _of(steps, name)
    better = verdict.decision == "better"
    fell = verdict.decision != "worse" and judging.cures_failures(before, after)
    cures = fell and not judging.by_chance(verdict, before, after)
    named = {change.setting for change in remedy.changes}
    price = replace(remedy.price, memory_before_bytes=_memory(before), memory_after_bytes=_memory(after))
    trial = Trial(
        remedy=replace(remedy, price=price),
        verdict=replace(verdict, may_overstate=better),
        kept=better or cures,
        levels=ratios,
        effective={setting: value for setting, value in effective.items() if setting in named},
        treatment_before=one.treatment,
        treatment_after=name,
        note=_cure(before, after, proved=cures) if fell else _full(applied.full),
        operations=operation_times(before, after),
        deciding=tuple(step.number for step in steps),
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
        knobs=examined.situation.knobs,
        declared=book.bench.study.target.limit,
    )
    responses_s = _unloaded(book, one, applied) if trial.kept else {}
    aimed_at = [finding for finding in one.findings if finding.id in remedy.addresses]
    collecting = receded(book, aimed_at, one.treatment, name) if trial.kept else {}
    return Attempt(applied, trial, tuple(steps), seen, responses_s=responses_s, collecting=collecting)


def _unloaded(book: Bookkeeping, one: Round, applied: Applied) -> dict[str, float]:
    """The response times (s) at the lowest level of both treatments, where the remedy is for the number of requests
    served at once; empty for others. The state before has its curve; that after needs these steps for its own."""
    if not set(SERVED_AT_ONCE).intersection(applied.remedy.addresses):
        return {}
    lowest, name = book.bench.study.levels[0], applied.treatment
    book.progress.phase(f"{name} at {lowest:g}, where no request waits for another", FEWEST_BLOCKS)
    for block in range(1, FEWEST_BLOCKS + 1):
        book.take(round_number=one.number, block=block, treatment=name, level=lowest)
    sides = {each: undisturbed([s for s in book.of(each) if s.level == lowest]) for each in (one.treatment, name)}
    means = {each: fmean(step.latency.mean_ms / 1000 for step in steps) for each, steps in sides.items() if steps}
    return {each: mean for each, mean in means.items() if mean > 0}


def prove_remedy(
    book: Bookkeeping, before: str, after: str, levels: Sequence[float], *, round_number: int
) -> tuple[Verdict, tuple[LevelRatio, ...], list[Step]]:
    """The proof of a change, at a level of the error that all remedies of the investigation share: half of what is
    left, or all of it where not even the shortest proofs of this one and another have room in the budget. That is the
    error of proving it better, so of one end of the interval, which is never narrower than FIRST. What is not proven
    better, or is cut short, has spent its level. Some error must be left."""
    error = book.error
    with_another = (book.bench.study.measure.blocks.min + FEWEST_BLOCKS) * 2 * list(levels)
    level = error.level(last=not book.budget.affords(with_another))
    book.error = error.after(level, decided=False)
    confidence = max(FIRST, 1 - 2 * level)
    proof = prove(book, before, after, levels, round_number=round_number, confidence=confidence, enough=known)
    book.error = error.after(level, decided=proof[0].decision == "better")
    return proof


def measured_again(
    book: Bookkeeping, one: Round, tried: Attempt, levels: Sequence[float], *, reserve_s: float = 0.0
) -> Attempt:
    """A remedy that was kept for its throughput with what fresh blocks say of it, as far as the budget has room for
    them beside a reserve. One that is proved worse there is not kept."""
    trial = tried.trial
    if trial.verdict.decision != "better":
        return tried
    before, after = trial.treatment_before, trial.treatment_after
    steps = fresh.measure_again(
        book,
        before,
        after,
        levels,
        fresh.wanted([trial.verdict], book.bench.study.measure.blocks.max),
        round_number=one.number,
        done=trial.verdict.blocks,
        reserve_s=reserve_s + afterwards_s(book, one, levels, treatments=1),
    )
    if not steps:
        return tried
    verdict = fresh.told(steps, before, after)
    trial = replace(
        trial,
        fresh=verdict,
        kept=verdict.decision != "worse",
        levels=level_ratios(settled(steps), before, after),
        operations=operation_times(_of(steps, before), _of(steps, after)),
    )
    return replace(tried, trial=trial, again=tuple(steps))


def judged(one: Round, tried: Attempt, doubt: str = "") -> Round:
    """The round with this trial, judged from its fresh blocks where they decide. Nothing is refuted where the limit
    that was raised was full again all the same, nor where another cause is there with the remedy: of two limits in
    series neither helps alone. doubt: why the trial confirms nothing."""
    trial, fresh_ones = tried.trial, decided(tried.trial.told)
    steps = served_at_once((tried.again or tried.steps) if fresh_ones else tried.steps, tried.responses_s)
    steps = with_collector(steps, tried.collecting)
    before, after = sides(trial, steps)
    findings = judging.judge(
        one.findings,
        trial.remedy,
        trial.told if fresh_ones else trial.verdict,
        before,
        after,
        refutes=tried.applied.full is None and not tried.in_series,
        doubt=doubt or ("" if tried.seen_again else NOT_AGAIN),
    )
    return replace(one, tried=(*one.tried, trial), findings=findings)


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
    total = 2 * fresh.BLOCKS * list(judged) if one.number > 1 else []
    return book.budget.cost_s(treatments * FEWEST_BLOCKS * _other_levels(book, one, judged) + total)


def known(verdict: Verdict) -> bool:
    """Whether it is known that a remedy helps, or that it does not: by how much, fresh blocks say."""
    return decided(verdict) or judging.without_effect(verdict)


def _of(steps: Sequence[Step], treatment: str) -> list[Step]:
    return [step for step in steps if step.treatment == treatment]


def _other_levels(book: Bookkeeping, one: Round, judged: Sequence[float]) -> list[float]:
    """The study's levels and the two ends of the cliff, but for those that were judged already."""
    cliff = one.curve.cliff
    ends = (cliff.from_load, cliff.to_load) if cliff is not None else ()
    return sorted({*book.bench.study.levels, *ends} - set(judged))


def _cure(before: Sequence[Step], after: Sequence[Step], *, proved: bool) -> str:
    one, two = (100 * judging.failed_share(each) for each in (before, after))
    fell = f"requests that failed fell from {one:.3g} % to {two:.3g} %"
    return fell if proved else f"{fell}, which may be chance: too few requests failed, or too unevenly"


def _full(limit: Limit | None) -> str:
    if limit is None:
        return ""
    return f"{limit.title or limit.id} is full again at {limit.ceiling:,.6g}, and could not be raised further"


def _memory(steps: Sequence[Step]) -> float | None:
    values = [step.metrics["target.memory.rss"] for step in steps if "target.memory.rss" in step.metrics]
    return fmean(values) if values else None
