"""Verdicts outside the loop: a study's alternatives, measured side by side, and two runs that were measured apart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import geometric_mean

from loadframe.analysis import samples
from loadframe.analysis.undisturbed import undisturbed
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.errors import RunError
from loadframe.experiments.proof import decided, prove_side_by_side
from loadframe.experiments.side_by_side import START, declare
from loadframe.model import FLAGS, Comparison, LevelRatio, Step, Verdict
from loadframe.runs.folder import RunFolder

ERROR = 0.05
"""Over all alternatives of a study together."""
NEAR = 2.0
"""A ratio that is less than this many half-widths of its interval from 1 was only just decided."""


def alternatives(book: Bookkeeping, *, enough: Callable[[Verdict], bool] = decided) -> list[Comparison]:
    """The study's alternatives against its target, all in the same blocks, at all levels, and cold where the study asks
    for that; with m verdicts each has an error of 0.05 / m (Bonferroni)."""
    pairs = declare(book)
    proofs = prove_side_by_side(
        book,
        [(pair.before, pair.after) for pair in pairs],
        book.bench.study.levels,
        confidence=1 - ERROR / len(pairs),
        enough=enough,
    )
    return [
        Comparison(
            before="as given" if pair.before == START else "as given, cold",
            after=pair.title,
            verdict=replace(verdict, may_overstate=_near(verdict)),
            levels=ratios,
            axis_unit=book.bench.axis_unit,
            work_unit=book.bench.work_unit,
        )
        for pair, (verdict, ratios, _) in zip(pairs, proofs, strict=True)
    ]


def _near(verdict: Verdict) -> bool:
    """Whether it ended when it had just been decided: whoever stops there stops at a lucky moment."""
    half = math.log(verdict.high / verdict.low) / 2
    return decided(verdict) and abs(math.log(verdict.ratio)) < NEAR * half


def runs(before: RunFolder, after: RunFolder, *, treatments: tuple[str, str] = (START, START)) -> Comparison:
    """Two runs, from the throughputs of their steps at the levels that both have.

    They were measured one after the other, so nothing cancels: each throughput is divided by what both runs together
    reach at its level, and the two series, in the order in which they were measured, are compared as samples are.
    RunError where a run lacks the treatment or they have no level in common.
    """
    one, two = (_steps(run, name) for run, name in zip((before, after), treatments, strict=True))
    axes = [run.declared().load.axis for run in (before, after)]
    if axes[0] != axes[1]:
        raise RunError(
            f"{before.path} grows {axes[0]}, {after.path} grows {axes[1]}: their levels cannot be compared",
            remedy="Compare runs with the same load axis.",
        )
    levels = sorted(_working(one) & _working(two))
    if not levels:
        raise RunError(
            f"{before.path} and {after.path} have no level in common at which anything was done",
            remedy="Measure both at the same levels (--set load.levels=...).",
        )
    pairs = [_level_ratio(one, two, level) for level in levels]
    middle = {pair.load: math.sqrt(pair.before) * math.sqrt(pair.after) for pair in pairs}
    first, second = (
        [step.throughput / middle[step.level] for step in each if step.level in middle] for each in (one, two)
    )
    try:
        verdict = samples.unpaired(first, second, fitted=len(levels) - 1)
    except ValueError as error:
        raise RunError(f"{before.path} and {after.path}: {error}", remedy="Measure more blocks.") from error
    return Comparison(
        before=str(before.path),
        after=str(after.path),
        verdict=replace(verdict, levels=tuple(levels)),
        levels=tuple(pairs),
        notes=(*_unlike(before, after), *_flag_notes([*one, *two]), ONE_AFTER_THE_OTHER),
        axis_unit=before.axis_unit(),
        work_unit=before.work_unit(),
    )


ONE_AFTER_THE_OTHER = (
    "The runs were measured one after the other: whatever else changed on the machine between them counts as a "
    "difference. A study with alternatives measures both side by side."
)


def _steps(run: RunFolder, treatment: str) -> list[Step]:
    """The steps of a treatment in the order taken; at a level with enough undisturbed ones, only those."""
    steps = (step for step in run.steps() if step.treatment == treatment and step.counts)
    mine = sorted(steps, key=lambda step: step.number)
    if not mine:
        known = ", ".join(run.treatments()) or "none"
        raise RunError(f"{run.path} has no finished step of treatment {treatment!r}", remedy=f"It has: {known}.")
    return undisturbed(mine)


def _working(steps: Sequence[Step]) -> set[float]:
    """The levels at which anything was done."""
    return {step.level for step in steps if step.throughput > 0}


def _level_ratio(one: Sequence[Step], two: Sequence[Step], level: float) -> LevelRatio:
    before, after = (
        geometric_mean([step.throughput for step in each if step.level == level and step.throughput > 0])
        for each in (one, two)
    )
    return LevelRatio(level, before, after, after / before)


def _unlike(before: RunFolder, after: RunFolder) -> tuple[str, ...]:
    """In what the two runs differ besides their time: the machine, the target, the workload."""
    one, two = before.host(), after.host()
    machine = [
        name.replace("_", " ")
        for name in ("hostname", "kernel", "cpu_model", "cpus", "memory_bytes", "virtualisation")
        if getattr(one, name) != getattr(two, name)
    ]
    studies = before.study(), after.study()
    declared = [table for table in ("target", "cage", "workload") if studies[0].get(table) != studies[1].get(table)]
    notes = [f"The machines differ in {', '.join(machine)}: the ratio is not of the target alone."] if machine else []
    notes += [f"The studies differ in {', '.join(declared)}."] if declared else []
    return tuple(notes)


def _flag_notes(steps: Sequence[Step]) -> tuple[str, ...]:
    flags = Counter(flag for step in steps for flag in step.flags)
    return tuple(f"{count} of {len(steps)} steps: {FLAGS.get(flag, flag)}." for flag, count in flags.items())
