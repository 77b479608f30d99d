"""Comparisons outside the loop: a study's alternatives, and two runs measured apart."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter

from loadframe.analysis import samples
from loadframe.analysis.divergence import at_loads
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.errors import RunError, UserError
from loadframe.experiments.proof import prove
from loadframe.experiments.reading import conclude
from loadframe.experiments.side_by_side import START, declare
from loadframe.model import FLAGS, Comparison, Steps, Verdict
from loadframe.runs.folder import RunFolder
from loadframe.system.files import Folder, Whose

ERROR = 0.05
NEAR_CAPACITY = 0.9
MOST_RUNS = 1000
NEAR = 2.0
"""A ratio within this many half-widths of 1 was only just decided."""


def alternatives(book: Bookkeeping, *, enough: Callable[[Verdict], bool] = attrgetter("decided")) -> list[Comparison]:
    """Compare the alternatives with the target, in the same blocks, at all levels, and cold where asked; of m verdicts
    each has an error of 0.05 / m (Bonferroni)."""
    pairs = declare(book)
    proofs = prove(book, pairs, book.bench.study.levels, confidence=1 - ERROR / len(pairs), enough=enough)
    return [
        Comparison(
            before=book.called(before),
            after=book.called(after),
            verdict=replace(proved.verdict, may_overstate=_near(proved.verdict)),
            levels=proved.levels,
            axis_unit=book.bench.axis_unit,
            work_unit=book.bench.work_unit,
        )
        for (before, after), (proved, _) in zip(pairs, proofs, strict=True)
    ]


def _near(verdict: Verdict) -> bool:
    """To stop as soon as a verdict is decided is to stop at a lucky moment."""
    half = math.log(verdict.high / verdict.low) / 2
    return verdict.decided and verdict.has_ratio and abs(math.log(verdict.ratio)) < NEAR * half


def runs(before: RunFolder, after: RunFolder, *, treatments: tuple[str, str] = (START, START)) -> Comparison:
    """Compare two runs by their throughputs at the common levels near capacity, unpaired, each divided by the geometric
    mean of both at its level. What runs differ by without a change is estimated from runs of the same study next to the
    first. RunError where a run lacks the treatment, or there is no common level."""
    cases = conclude(before), conclude(after)
    first, second = (case.state(name) for case, name in zip(cases, treatments, strict=True))
    study, other = (case.study for case in cases)
    if study.axis != other.axis:
        raise RunError(
            f"{before.path} grows {study.axis}, {after.path} grows {other.axis}: their levels cannot be compared",
            remedy="Compare runs with the same load axis.",
        )
    same = before.path.resolve() == after.path.resolve()
    if same and cases[0].compared(*reversed(treatments)) is not None:
        raise RunError(
            f"{before.path} holds {second.treatment} and {first.treatment} against each other in this order",
            remedy=f"Compare treatment {first.treatment} against {second.treatment}.",
        )
    if same and (known := cases[0].compared(*treatments)) is not None:
        return Comparison(
            first.title,
            second.title,
            verdict=known.reported,
            levels=known.levels,
            axis_unit=study.axis_unit,
            work_unit=study.work_unit,
        )
    pairs = at_loads(first.curve, second.curve)
    if not pairs:
        raise RunError(
            f"{before.path} and {after.path} have no level in common at which anything was done",
            remedy="Measure both at the same levels (--set load.levels=...).",
        )
    most = max(pair.before for pair in pairs), max(pair.after for pair in pairs)
    near = [pair for pair in pairs if pair.before >= NEAR_CAPACITY * most[0] or pair.after >= NEAR_CAPACITY * most[1]]
    middle = {pair.load: math.sqrt(pair.before) * math.sqrt(pair.after) for pair in near}
    series = [
        [step.throughput / middle[step.level] for step in taken if step.level in middle]
        for taken in (first.steps, second.steps, *_equal_runs(before, after, treatments[0]))
    ]
    fitted, steps = len(near) - 1, [*first.steps, *second.steps]
    flags = Counter(flag for step in steps for flag in step.flags)
    try:
        between = samples.learnt([series[0], *series[2:]], fitted=fitted)
        verdict = samples.unpaired(series[0], series[1], fitted=fitted, between=between)
    except ValueError as error:
        raise RunError(f"{before.path} and {after.path}: {error}", remedy="Measure more blocks.") from error
    return Comparison(
        before=str(before.path),
        after=str(after.path),
        verdict=replace(verdict, levels=tuple(middle)),
        levels=pairs,
        notes=(
            *(() if len(near) == len(pairs) else (NOT_ALL_DECIDE,)),
            *_unlike(before, after),
            *(f"{count} of {len(steps)} steps: {FLAGS.get(flag, flag)}." for flag, count in flags.items()),
            ONE_AFTER_THE_OTHER,
        ),
        axis_unit=study.axis_unit,
        work_unit=study.work_unit,
    )


def _equal_runs(before: RunFolder, after: RunFolder, treatment: str) -> list[Steps]:
    """The newest `samples.MOST_SESSIONS`, oldest first."""
    place = Folder(before.path.resolve().parent, Whose.NAMED, what="folder of runs")
    others = {before.path.resolve().name, after.path.resolve().name}
    sessions: list[Steps] = []
    try:
        place.open()
        names = sorted(place.folders(MOST_RUNS))
    except UserError:
        return []
    for name in reversed(names):
        if name in others or len(sessions) == samples.MOST_SESSIONS:
            continue
        try:
            run = RunFolder.below(place, name)
            if run.host() == before.host() and _measured(run) == _measured(before):
                sessions.append(conclude(run).state(treatment).steps)
        except UserError:  # no run, or one that was stopped before it had any steps
            continue
    return sessions[::-1]


def _measured(run: RunFolder) -> list[object]:
    study = run.study()
    return [study.get(table) for table in ("target", "cage", "workload", "load", "host")]


NOT_ALL_DECIDE = (
    f"Only levels near capacity decide, where a run does {100 * NEAR_CAPACITY:.0f} % of its most or more: below, "
    "the load decides how much is done."
)
ONE_AFTER_THE_OTHER = (
    "The runs were measured one after the other: what else changed on the machine between them counts as a difference "
    "where it is larger than what two runs differ by. A study with alternatives measures both side by side."
)


def _unlike(before: RunFolder, after: RunFolder) -> tuple[str, ...]:
    first, second = before.host(), after.host()
    machine = [
        name.replace("_", " ")
        for name in ("hostname", "kernel", "cpu_model", "cpus", "memory_bytes", "virtualisation")
        if getattr(first, name) != getattr(second, name)
    ]
    studies = before.study(), after.study()
    declared = [table for table in ("target", "cage", "workload") if studies[0].get(table) != studies[1].get(table)]
    return (
        *([f"The machines differ in {', '.join(machine)}: the ratio is not of the target alone."] if machine else []),
        *([f"The studies differ in {', '.join(declared)}."] if declared else []),
    )
