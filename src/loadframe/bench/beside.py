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
from loadframe.model import Alternative, Round, Step, TargetState, Verdict, Witness
from loadframe.runs.folder import Effective, RunFolder, Treatment
from loadframe.runs.record import footprint
from loadframe.study import Study

START = "A"
"""The treatment that a study declares."""
CONFIDENCE = 0.95
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
    least while the budget allows it, two at least, then more until at each level it is known which one is better."""
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
        if block > blocks.min and all(_known(book.steps, name) for name in names):
            break
        take_block(book, order, round_number=1, block=block)


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
    highest = max(before)
    return Alternative(
        name=treatment.title,
        target_kind=treatment.kind or study.target.kind,
        round=replace(examined, footprint=footprint(mine, sorted(shown))),
        verdict=comparison.verdict(before, after),
        by_level=_by_level(steps, treatment.name),
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
    """Throughputs of the target and of an alternative by level, from the blocks that both have: the last step of each
    block, as disturbed ones were repeated."""
    sides = []
    for treatment in (START, name):
        last = {(step.level, step.block): step for step in steps if step.treatment == treatment and step.block > 0}
        sides.append(last)
    both = sorted(sides[0].keys() & sides[1].keys())
    one, two = ([side[key] for key in both] for side in sides)
    return by_level(one, START), by_level(two, name)


def _by_level(steps: Sequence[Step], name: str) -> tuple[Verdict, ...]:
    """The verdict at each level; all of them hold at once (Bonferroni)."""
    before, after = _paired(steps, name)
    confidence = 1 - (1 - CONFIDENCE) / max(len(before), 1)
    return tuple(
        comparison.verdict({level: before[level]}, {level: after[level]}, confidence=confidence) for level in before
    )


def _known(steps: Sequence[Step], name: str) -> bool:
    return all(verdict.decision != "no-proven-difference" for verdict in _by_level(steps, name))
