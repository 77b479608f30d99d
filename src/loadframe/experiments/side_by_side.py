"""A study's alternatives against its target in the same blocks, each with its limits and causes; and what a cache still
has after a restart."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import median
from typing import get_args

from loadframe.analysis import comparison
from loadframe.analysis.divergence import divergence
from loadframe.analysis.selection import one_of_each_block
from loadframe.bench.base import Bench
from loadframe.bench.bookkeeping import FEWEST_BLOCKS, Bookkeeping
from loadframe.bench.rig import host_settings
from loadframe.errors import TargetError, WorkloadError
from loadframe.experiments.examination import examine
from loadframe.experiments.proof import orders, take_block, throughputs, verdict_on, verdicts_at_each_level
from loadframe.experiments.sweep import curve_of
from loadframe.model import (
    Alternative,
    Ending,
    Round,
    SettingValue,
    Step,
    Steps,
    TargetState,
    WarmRestart,
    Witness,
    of_treatment,
)
from loadframe.reporting.alternatives import warm_restart_sentence
from loadframe.runs.folder import Effective, RunFolder
from loadframe.runs.record import footprint
from loadframe.study import Study
from loadframe.study.declaration import AlternativeTable, StateTable
from loadframe.workloads.base import AsksForObjects

START = "A"
ERROR = 0.05
"""Error of the verdicts on all alternatives together, and of each over all its levels together (Bonferroni)."""
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
SHARE = 0.6


def declare(book: Bookkeeping) -> list[tuple[str, str]]:
    """Declare the alternatives, each paired with the study's own state; then all of them cold, on request."""
    study = book.bench.study
    states = {START: (book.bench.start_state, study.target.kind)}
    for alternative in study.alternative:
        state, kind = state_of(book.bench, alternative)
        states[book.next_treatment(alternative.name, state, kind)] = state, kind
    groups = [list(states)]
    if study.measure.cold:
        groups.append(
            [
                book.next_treatment(f"{book.called(name)}, cold", state, kind, cold_of=name)
                for name, (state, kind) in states.items()
            ]
        )
    return [(first, other) for first, *others in groups for other in others]


def state_of(bench: Bench, alternative: AlternativeTable) -> tuple[TargetState, str]:
    study, start = bench.study, bench.start_state
    kind = alternative.target.kind or study.target.kind
    own = start if kind == study.target.kind else replace(start, settings={}, limits=study.around(kind).target_limits)
    return changed(own, alternative, host_settings(alternative.host)), kind


def changed(state: TargetState, table: StateTable, host: Mapping[str, SettingValue]) -> TargetState:
    """host: the part that is set on the machine."""
    return replace(
        state,
        settings={**state.settings, **table.target.settings},
        limits={**state.limits, **table.cage.limits},
        host={**state.host, **host},
        cpus={**state.cpus, **table.cage.bound},
    )


def measure_side_by_side(book: Bookkeeping, run: RunFolder, pairs: Sequence[tuple[str, str]]) -> None:
    """Measure the pairs at all levels, in the study's fewest (at least two) to most blocks. Their number does not
    depend on what they show, so a single look at the end has its nominal error."""
    if not pairs:
        return
    study = book.bench.study
    treatments = list(dict.fromkeys(name for pair in pairs for name in pair))
    levels, blocks = list(study.levels), study.measure.blocks
    for name in treatments[1:]:  # the first is read back where the loop begins
        run.append_line("effective.jsonl", "effective", Effective(name, book.bench.use(name)))
    block_levels = levels * len(treatments)
    book.progress.phase(
        f"measuring {', '.join(book.called(name) for name in treatments)} side by side", len(block_levels) * blocks.min
    )
    whole_s = book.budget.left_s()
    for block, order in zip(range(1, blocks.max + 1), orders(book.random, [treatments], levels), strict=False):
        reserve_s = (1 - SHARE) * whole_s if block > blocks.min else 0.0
        if block > FEWEST_BLOCKS and not book.budget.affords(block_levels, reserve_s):
            break
        take_block(book, order, block=block, purpose="side by side")


def alternatives_of(run: RunFolder, target: Round, steps: Steps, study: Study) -> tuple[Alternative, ...]:
    declared = {alternative.name for alternative in study.alternative}
    if not declared:
        return ()
    treatments = run.treatments().values()
    cold = {treatment.cold_of: treatment.name for treatment in treatments if treatment.cold_of}
    error, alternatives = ERROR / len(study.alternative), []
    for treatment in treatments:
        paired, name = _paired(steps, START, treatment.name), treatment.name
        if treatment.title not in declared or not paired:
            continue
        mine, kind = of_treatment(steps, name), treatment.kind or study.target.kind
        examined = examine(
            mine,
            treatment=name,
            state=treatment.state,
            effective=run.effective().get(name, {}),
            curve=curve_of(steps, study, name),
            target_kind=kind,
            highest_level=study.levels[-1],
            declared=study.target.limit,
            run=steps,
        ).round
        shown = {item.metric for finding in (*target.findings, *examined.findings) for item in finding.evidence}
        before, after = throughputs(paired, START), throughputs(paired, name)
        cold_pair = (cold[START], cold[name]) if {START, name} <= cold.keys() else ("", "")
        empty = _paired(steps, *cold_pair)  # empty, too, where no cold step was taken
        alternatives.append(
            Alternative(
                name=treatment.title,
                target_kind=kind,
                round=replace(examined, footprint=footprint(mine, sorted(shown))),
                verdict=verdict_on(paired, START, name, partial(comparison.verdict_at_end, confidence=1 - error)),
                by_level=verdicts_at_each_level(paired, START, name, error=error),
                cold=verdicts_at_each_level(empty, *cold_pair, error=error) if empty else (),
                divergence=divergence(before, after),
                witnesses=_witnesses(steps, name, max(before), shown),
                version="" if treatment.kind == study.target.kind else run.bench().versions.get(treatment.kind, ""),
            )
        )
    return tuple(alternatives)


def _witnesses(steps: Steps, name: str, level: float, more: set[str]) -> tuple[Witness, ...]:
    there = [step for step in steps if step.level == level]
    sides = [[step.metrics for step in of_treatment(there, treatment)] for treatment in (START, name)]
    shown = {
        metric: [[metrics[metric] for metrics in side if metric in metrics] for side in sides]
        for metric in dict.fromkeys((*WITNESSES, *sorted(more)))
    }
    return tuple(
        Witness(metric, level, median(target), median(alternative))
        for metric, (target, alternative) in shown.items()
        if target and alternative
    )


def _paired(steps: Steps, first: str, second: str) -> list[Step]:
    taken = one_of_each_block(step for step in steps if step.purpose == "side by side")
    sides = [{(step.level, step.block): step for step in of_treatment(taken, name)} for name in (first, second)]
    both = sorted(sides[0].keys() & sides[1].keys())
    return [side[key] for side in sides for key in both]


FETCHES = "fetches"
"""A cache's counter of requests that it passed on to its origin."""
POLL_S = 0.25


def one_of_each_kind(run: RunFolder) -> list[str]:
    """The first treatment of each kind of target: restarting all would take as long as measuring them."""
    kinds: dict[str, str] = {}
    for treatment in run.treatments().values():
        kinds.setdefault(treatment.kind, treatment.name)
    return list(kinds.values())


def try_restarts(book: Bookkeeping, run: RunFolder, treatments: Sequence[str]) -> None:
    """End each cache cleanly, and by SIGKILL, and record what it still has, at the lowest level. One that does not come
    back is not ended again."""
    level = book.bench.study.levels[0]
    for treatment in filter(book.bench.is_cache, treatments):
        for how in get_args(Ending):
            survival = warm_restart(book.bench, treatment, level, how)
            run.append_line("survival.jsonl", "survival", survival)
            book.progress.say(warm_restart_sentence(survival))
            if survival.kept is None:
                break


def warm_restart(bench: Bench, treatment: str, level: float, how: Ending) -> WarmRestart:
    workload = bench.workload
    assert isinstance(workload, AsksForObjects), "a cache is asked for objects"
    asked, kept, failed = workload.objects_at(level), None, ""
    try:
        bench.use(treatment)
        workload.set_level(bench.endpoint, level)
        workload.warm(bench.endpoint, level)
        bench.end(how)
        bench.use(treatment)
        before = _fetched(bench)
        workload.warm(bench.endpoint, level)
        kept = min(max(asked - round(_fetched(bench) - before), 0), asked)
    except (TargetError, WorkloadError) as error:  # the rest is measured already: recorded with this failure
        failed = error.fact
    return WarmRestart(treatment, bench.kind, how, asked, kept, failed)


def _fetched(bench: Bench) -> float:
    """A thread may report a fetch a moment after the answer, so read until two readings agree."""
    fetched, seen = bench.counters()[FETCHES], -1.0
    while fetched != seen:
        time.sleep(POLL_S)
        fetched, seen = bench.counters()[FETCHES], fetched
    return fetched
