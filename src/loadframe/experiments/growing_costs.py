"""Whether a cost grows with the requests served or with time: in a sweep both go together, in a pause without load only
time goes on (analysis/growth.py)."""

import math
from dataclasses import replace
from statistics import fmean

from loadframe.analysis.growth import Growth, Of
from loadframe.bench.bookkeeping import FEWEST_BLOCKS, Bookkeeping
from loadframe.diagnosis.growing import GROWS, GROWTH, WHAT, cost_ms, grown
from loadframe.diagnosis.operational import UNKNOWN_KINDS
from loadframe.experiments.examination import Examined
from loadframe.experiments.sweep import measure_block
from loadframe.model import Finding, Mechanism, StepRequest, Steps

PAUSE_SHARE, SHORTEST_S, LONGEST_S = 1.0, 3.0, 20.0
"""The pause as a share of the sweep's time. For costs that follow requests a pause half as long was right in 83 %, this
in 94 % (benchmarks/growth.py)."""
CAME_BACK = 0.5
"""Share of the growth, in logarithms, that must be gone after a restart, at every level, ..."""
AGAIN = 1.05
"""... and the factor by which requests must be dearer in the next block, at every level."""


def measure_after_pause(book: Bookkeeping, treatment: str) -> bool:
    """Measure a block after a pause where a cost grows; returns whether it did. Without it the better fit may be wrong:
    the constant part of a request's cost curves either."""
    study = book.bench.study
    growth = grown(study.load.axis, book.of(treatment)) if study.target.kind in UNKNOWN_KINDS else None
    if growth is None:
        return False
    steps = book.of(treatment)
    taken_s = steps[-1].ended_s - steps[0].started_s
    pause_s = min(LONGEST_S, max(SHORTEST_S, PAUSE_SHARE * taken_s))
    levels = book.levels(treatment)
    if not book.budget.affords(levels, pause_s):
        return False
    book.progress.phase(f"a pause of {pause_s:.0f} s, and a block after it: does the cost follow time?", len(levels))
    book.bench.leave_alone(pause_s)
    block = 1 + max(step.block or 0 for step in steps)
    measure_block(book, treatment, levels, block, round_number=1)
    return True


def restart_confirms(book: Bookkeeping, examined: Examined, *, paused: bool) -> Examined:
    """Confirm growth by a restart of a private target and two blocks, where a pause has shown what the cost follows."""
    round_, study = examined.round, book.bench.study
    levels = book.levels(round_.treatment)
    growing = next((finding for finding in round_.findings if finding.id in GROWTH), None)
    growth = None if growing is None else grown(study.load.axis, book.of(round_.treatment))
    if growing is None or growth is None:
        return examined
    why = "a service that runs is not restarted" if study.target.is_running else ""
    if not why and not book.budget.affords(FEWEST_BLOCKS * levels):
        why = "too little of the budget was left for a restart and two blocks; give measure.budget more time"
    if why:
        because = f"not confirmed: {why}"
        mechanism = Mechanism(GROWS, growth.times, None, None, per_request=False, receded=False, because=because)
        return _settled(examined, replace(growing, mechanism=mechanism))
    name = book.next_treatment("restarted without a change", round_.state)
    book.progress.phase("restarted without a change: are requests cheap again?", FEWEST_BLOCKS * len(levels))
    before = book.of(round_.treatment)
    book.bench.recover(name)
    # The order of the first block before the restart, for a fast-growing cost differs within a block. In both blocks
    # after it: between the two steps of each level lies one block, where another order may put none.
    places = {step.level: step.number for step in sorted(before, key=lambda step: step.number, reverse=True)}
    order = sorted(levels, key=lambda level: places.get(level, 0))
    after = [
        [book.take(StepRequest(name, level, round_.number, block)) for level in order]
        for block in range(1, FEWEST_BLOCKS + 1)
    ]
    mechanism = after_restart(growth, before, *after)
    book.bench.recover(round_.treatment)
    known = mechanism.receded and growth.distinct and paused
    if mechanism.receded and not known:
        untold = "these steps do not tell whether the cost follows requests or time"
        pause = "" if paused else ", and no pause was measured"
        mechanism = replace(mechanism, because=f"{mechanism.because}; not confirmed, as {untold}{pause}")
    status = "confirmed" if known else growing.status
    return _settled(examined, replace(growing, status=status, mechanism=mechanism))


def _settled(examined: Examined, growing: Finding) -> Examined:
    findings = (growing if finding.id == growing.id else finding for finding in examined.round.findings)
    return examined.but(findings=tuple(findings))


def after_restart(growth: Growth, before: Steps, back: Steps, again: Steps) -> Mechanism:
    """What a restart shows, level by level, from the steps before it, its block and the next. receded: requests were as
    cheap as at first, and became dearer again."""
    of = growth.of
    first, last = _by_level(before, of, first=True), _by_level(before, of)
    earlier, later = _by_level(back, of), _by_level(again, of)
    levels = sorted(first.keys() & earlier.keys() & later.keys())
    left = [earlier[level] / last[level] for level in levels]
    wanted = [(first[level] / last[level]) ** CAME_BACK for level in levels]
    dearer = [later[level] / earlier[level] for level in levels]
    cheap = bool(levels) and all(now <= most for now, most in zip(left, wanted, strict=True))
    grows = bool(levels) and all(ratio >= AGAIN for ratio in dearer)
    lowest = levels[0] if levels else 0.0
    said = (
        f"{WHAT[of]} at level {lowest:g}: {last[lowest]:.3g} ms before a restart without any change, "
        f"{earlier[lowest]:.3g} ms after it, {later[lowest]:.3g} ms in the block that followed"
        if levels
        else "no level was measured on both sides of a restart"
    )
    why = (
        ""
        if (cheap and grows) or not levels
        else f"; requests {'stayed cheap' if cheap else 'were not as cheap as at first'}"
    )
    return Mechanism(
        metric=GROWS,
        before=growth.times,
        after=math.exp(fmean(math.log(earlier[level] / first[level]) for level in levels)) if levels else None,
        wanted=None,
        per_request=False,
        receded=cheap and grows,
        because=said + why,
    )


def _by_level(steps: Steps, of: Of, *, first: bool = False) -> dict[float, float]:
    ordered = sorted(steps, key=lambda step: step.started_s, reverse=first)
    return {step.level: cost_ms(step, of) for step in ordered if cost_ms(step, of) > 0}
