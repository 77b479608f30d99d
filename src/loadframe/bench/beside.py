"""A study's alternatives beside its target: all measured in the same blocks, each with its own limits and causes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from loadframe.analysis import comparison
from loadframe.analysis.parting import parting
from loadframe.bench.examination import examine
from loadframe.bench.proof import by_level, orders, take_block
from loadframe.bench.sweep import FEWEST_BLOCKS, Bookkeeping, curve_of
from loadframe.model import Alternative, Round, Step, TargetState, Witness
from loadframe.runs.folder import Effective, RunFolder, Treatment
from loadframe.runs.record import footprint
from loadframe.study import Study

SIDE_BY_SIDE = 0
"""The round of these steps: those of the rounds that follow are measured with others beside them."""

START = "A"
"""The treatment that a study declares."""
ERROR = 0.05
"""Over all alternatives together, and of each over all its levels together (Bonferroni)."""
WITNESSES = (
    "workload.bytes",
    "target.cpu.cores",
    "target.cpu.system_cores",
    "target.memory.rss",
    "target.cage.memory.usage",
    "target.cage.memory.refaults",
    "target.paging.major_faults",
    "target.cage.read_bytes",
    "system.tlb_shootdowns",
    "system.stall.share",
)
"""What servers of the same thing differ in, beside what either of them was suspected of."""

SHARE = 0.6
"""More blocks than the study's least are measured only within this share of the budget: the rest is for what gave."""


def declare(book: Bookkeeping) -> list[str]:
    """The study's alternatives as treatments of its bench, in the study's order."""
    study, start = book.bench.study, book.bench.start_state
    names = []
    for alternative in study.alternative:
        limits = {} if alternative.cage.open_files is None else {"RLIMIT_NOFILE": alternative.cage.open_files}
        kind = alternative.target.kind or study.target.kind
        own = start.settings if kind == study.target.kind else {}
        state = TargetState({**own, **alternative.target.settings}, {**start.limits, **limits})
        names.append(book.next_treatment(alternative.name, state, kind))
    return names


def measure_beside(book: Bookkeeping, run: RunFolder, names: Sequence[str]) -> None:
    """The target and these alternatives at all levels of the study, in interleaved blocks: as many as the study's
    least while the budget allows it, two at least, then as many as there is room for, at most the study's most. How
    many they are does not depend on what they show, so one look at the end has the error that it says."""
    if not names:
        return
    study, treatments = book.bench.study, (START, *names)
    levels, blocks = list(study.levels), study.measure.blocks
    for name in names:
        run.append_line("effective.jsonl", "effective", Effective(name, book.bench.use(name)))
    one = levels * len(treatments)
    book.progress.phase(f"measuring {', '.join(treatments)} side by side", len(one) * blocks.min)
    whole_s = book.budget.left_s()
    for block, order in zip(range(1, blocks.max + 1), orders(book.random, treatments, levels), strict=False):
        reserve_s = (1 - SHARE) * whole_s if block > blocks.min else 0.0
        if block > FEWEST_BLOCKS and not book.budget.affords(one, reserve_s):
            break
        take_block(book, order, round_number=SIDE_BY_SIDE, block=block)


def alternatives_of(run: RunFolder, target: Round, steps: Sequence[Step], study: Study) -> tuple[Alternative, ...]:
    """What a run's steps say of its study's alternatives; of those that were measured beside the target, whose first
    round this is."""
    declared = {alternative.name for alternative in study.alternative}
    mine = [treatment for treatment in run.treatments().values() if treatment.title in declared]
    return tuple(_alternative(run, target, one, steps, study) for one in mine if any(_paired(steps, one.name)))


def _alternative(
    run: RunFolder, target: Round, treatment: Treatment, steps: Sequence[Step], study: Study
) -> Alternative:
    mine = [step for step in steps if step.treatment == treatment.name]
    examined = examine(
        mine,
        number=1,
        treatment=treatment.name,
        state=treatment.state,
        effective=run.effective().get(treatment.name, {}),
        curve=curve_of(steps, study, treatment.name),
        target_kind=treatment.kind or study.target.kind,
        highest_level=study.levels[-1],
    ).round
    causes = (*target.findings, *examined.findings)
    shown = {item.metric for finding in causes for item in finding.evidence}
    before, after = _paired(steps, treatment.name)
    highest, error = max(before), ERROR / len(study.alternative)
    return Alternative(
        name=treatment.title,
        target_kind=treatment.kind or study.target.kind,
        round=replace(examined, footprint=footprint(mine, sorted(shown))),
        verdict=comparison.verdict(before, after, confidence=1 - error),
        by_level=tuple(
            comparison.verdict({level: before[level]}, {level: after[level]}, confidence=1 - error / len(before))
            for level in before
        ),
        parting=parting(before, after),
        witnesses=_witnesses(steps, treatment.name, highest, shown),
    )


def _witnesses(steps: Sequence[Step], name: str, level: float, more: set[str]) -> tuple[Witness, ...]:
    """What both sides show at this level, of the usual metrics and these."""
    sides = [
        [step.metrics for step in steps if step.level == level and step.treatment == treatment]
        for treatment in (START, name)
    ]
    known = set.intersection(*(set(metrics) for side in sides for metrics in side))
    return tuple(
        Witness(metric, level, *(median(metrics[metric] for metrics in side) for side in sides))
        for metric in dict.fromkeys((*WITNESSES, *sorted(more)))
        if metric in known
    )


def _paired(steps: Sequence[Step], name: str) -> tuple[dict[float, list[float]], dict[float, list[float]]]:
    """Throughputs of the target and of an alternative by level, from the blocks that both were measured in side by
    side: the last step of each, as disturbed ones were repeated."""
    together = [step for step in steps if step.round == SIDE_BY_SIDE]
    sides = [
        {(step.level, step.block): step for step in together if step.treatment == treatment}
        for treatment in (START, name)
    ]
    both = sorted(sides[0].keys() & sides[1].keys())
    one, two = ([side[key] for key in both] for side in sides)
    return by_level(one, START), by_level(two, name)
