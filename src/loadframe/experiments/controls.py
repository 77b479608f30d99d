"""Controls of a kept remedy: its restart without the change (sham), half of the change (dose), for a stage of a
pipeline also less. A contradicted cause was only helped."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from loadframe.analysis import comparison
from loadframe.analysis.sequential import Plan
from loadframe.bench.bookkeeping import FEWEST_BLOCKS, Bookkeeping
from loadframe.bench.declared import knobs_of
from loadframe.diagnosis import judging
from loadframe.diagnosis.remedies import state_after
from loadframe.experiments.examination import Examined
from loadframe.experiments.proof import take_block, verdict_on
from loadframe.experiments.stopping import UNFIT
from loadframe.experiments.trying import afterwards_s
from loadframe.knowledge.families import in_series
from loadframe.ledger.reading import as_number
from loadframe.model import (
    Change,
    Control,
    ControlKind,
    Finding,
    Knob,
    Remedy,
    SettingValue,
    Step,
    Steps,
    Trial,
    Verdict,
    of_treatment,
)

BLOCKS = 3
"""Blocks of each control: two have one degree of freedom."""
MOST_BLOCKS = 5
MIB = 1 << 20
LEFT_ALONE = 0.95
"""Halving a stage that limits costs more than a twentieth."""
LEAST_COST = 0.25
"""Share of the gain, in logarithms, that each halving must cost: a remedy is two doublings, and half is left for
noise."""
NO_BUDGET = "skipped: too little of the budget was left"


def controlled(book: Bookkeeping, examined: Examined) -> Examined:
    """Try controls of the remedy kept last; findings that they contradict are no longer confirmed."""
    if not _confirmed(examined):
        return examined
    round_ = examined.round
    *earlier, trial = round_.tried
    less, half = _lessened(trial), halved(trial.remedy, knobs_of(book.bench.study))
    sham = _sham(book, examined)
    controls = [] if sham is None else [sham]
    if less is not None:
        controls.append(_measured("less", book, examined, less))
    if half is not None and trial.verdict.decision == "better" and trial.verdict.has_ratio:
        controls.append(_measured("dose", book, examined, half))
    book.bench.use(trial.treatment_after)
    against = "; ".join(control.because for control in controls if control.holds is False)
    findings = tuple(
        judging.only_helped(finding, against) if against and finding in _confirmed(examined) else finding
        for finding in round_.findings
    )
    trial = replace(trial, controls=(*trial.controls, *controls))
    return examined.but(tried=(*earlier, trial), findings=findings)


def less_s(book: Bookkeeping, examined: Examined) -> float:
    """To reserve for the control with less, where there will be one."""
    if not _confirmed(examined) or _lessened(examined.round.tried[-1]) is None:
        return 0.0
    return book.budget.cost_s(2 * BLOCKS * list(examined.levels)) + afterwards_s(book, examined)


def _confirmed(examined: Examined) -> list[Finding]:
    aimed_at = examined.round.tried[-1].remedy.addresses
    return [finding for finding in examined.round.findings if finding.status == "confirmed" and finding.id in aimed_at]


def _affords(book: Bookkeeping, examined: Examined, *, needed: bool = False) -> bool:
    """Besides the next round's first remedy, before which only a needed control comes."""
    reserve_s = afterwards_s(book, examined) + (0.0 if needed else book.remedy_s(FEWEST_BLOCKS))
    return book.budget.affords(2 * BLOCKS * list(examined.levels), reserve_s)


def _sham(book: Bookkeeping, examined: Examined) -> Control | None:
    round_, levels, trial = examined.round, examined.levels, examined.round.tried[-1]
    before = trial.treatment_before
    starts = [book.bench.starts_fresh(name) for name in (before, trial.treatment_after)]
    if not any(starts):
        return None
    title = "restarted without the change"
    if book.bench.study.target.is_running:
        return Control("sham", title, None, None, "skipped: Loadframe may not restart this server")
    if not _affords(book, examined):
        return Control("sham", title, None, None, NO_BUDGET)
    name = book.next_treatment(title, round_.state)
    book.progress.phase(f"{book.called(before)}, {title}", 2 * BLOCKS * len(levels))
    taken: list[Step] = []
    for block in range(1, BLOCKS + 1):
        for treatment in (before, name):
            if treatment == name:
                book.bench.recover(name)
            order = [(treatment, level) for level in levels]
            taken += take_block(book, order, block=block, round_number=round_.number)
    verdict = verdict_on(taken, before, name)
    if trial.verdict.decision != "better" or not trial.verdict.has_ratio:
        sides = of_treatment(taken, before), of_treatment(taken, name)
        return Control("sham", title, verdict, *of_failures(verdict, *sides))
    return Control("sham", title, verdict, *_of_sham(verdict, trial.reported))


def of_failures(verdict: Verdict, before: Steps, after: Steps) -> tuple[bool | None, str]:
    if judging.failed_share(before) < judging.FAILING:
        return None, "too few requests failed before the restart as well, so this control shows nothing"
    if not judging.cures_failures(before, after):
        return True, "a restart alone does not end the failures"
    if judging.by_chance(verdict, before, after):
        return None, "fewer requests failed after a restart alone, which may be chance"
    return False, "a restart alone ends the failures, too"


def _of_sham(sham: Verdict, whole: Verdict) -> tuple[bool | None, str]:
    if sham.high < whole.low:
        return True, f"a restart alone gives at most {sham.high:.3g} times as much, the change at least {whole.low:.3g}"
    if sham.decision == "better" and sham.ratio >= whole.low:
        return False, f"a restart alone gives {sham.ratio:.3g} times as much: the gain is not shown to be the change's"
    return None, f"a restart alone gives {_times(sham)}, which does not separate the two"


def _times(verdict: Verdict) -> str:
    if not verdict.has_ratio:
        return f"nothing to compare ({verdict.method})"
    return f"{verdict.ratio:.3g} times as much ({verdict.low:.3g} to {verdict.high:.3g})"


def _measured(kind: ControlKind, book: Bookkeeping, examined: Examined, other: Remedy) -> Control:
    round_, levels, trial = examined.round, examined.levels, examined.round.tried[-1]
    if not _affords(book, examined, needed=kind == "less"):
        return Control(kind, other.title, None, None, NO_BUDGET)
    name = book.next_treatment(other.title, state_after(round_.state, other), remedy=other)
    judged, plan = _of_dose, None
    if kind == "less":
        left_s = book.budget.left_s() - afterwards_s(book, examined)
        most = max(BLOCKS, min(MOST_BLOCKS, int(left_s / book.budget.cost_s(2 * list(levels)))))
        change = other.changes[0]
        once, less = _number(change.before), _number(change.after)
        halvings = max(1.0, math.log2(once / less)) if once and less else 1.0  # 1 where that is not known
        judged, plan = partial(_of_less, halvings=halvings), Plan(BLOCKS, most)
    taken: list[Step] = []
    book.progress.phase(other.title, 2 * BLOCKS * len(levels))
    verdict, holds, because = None, None, NO_BUDGET
    try:
        for block in range(1, (plan.last if plan else BLOCKS) + 1):
            pair = (trial.treatment_before, name)
            order = [(treatment, level) for treatment in (pair if block % 2 else pair[::-1]) for level in levels]
            taken += take_block(book, order, block=block, round_number=round_.number)
            if block >= BLOCKS:
                judge = partial(comparison.verdict, plan=plan) if plan else comparison.verdict_at_end
                verdict = verdict_on(taken, trial.treatment_before, name, judge)
                holds, because = judged(verdict, trial.reported)
            if holds is not None:
                break
    except UNFIT as error:
        book.bench.recover(trial.treatment_after)
        return Control(kind, other.title, None, None, f"skipped: the target does not work with it: {error.fact}")
    return Control(kind, other.title, verdict, holds, because)


def _of_dose(dose: Verdict, whole: Verdict) -> tuple[bool | None, str]:
    said = f"half the way gives {_times(dose)}"
    if dose.decision == "worse":
        return False, f"{said}: worse than without the change"
    if dose.low > whole.high:
        return False, f"{said}: more than the whole way"
    if dose.low > 1 and dose.high < whole.low:
        return True, f"{said}: something between"
    return None, f"{said}, which is not distinguishable from {'all of it' if dose.low > 1 else 'nothing of it'}"


def halved(remedy: Remedy, knobs: Sequence[Knob] = ()) -> Remedy | None:
    """The geometric mean, or the nearest declared value. None unless all needed changes are numbers, and where the half
    equals an end."""
    declared = {knob.name: knob.values for knob in knobs}
    halves = [_half(change, declared.get(change.setting, ())) for change in remedy.changes if change.needed]
    changes = tuple(filter(None, halves))
    if not changes or len(changes) < len(halves):
        return None
    settings = ", ".join(f"{change.setting} = {change.after}" for change in changes)
    return replace(remedy, id=f"{remedy.id}.half", title=f"half the way: {settings}", changes=changes)


def _lessened(trial: Trial) -> Remedy | None:
    of_stage = in_series(trial.remedy.addresses[0])
    return lessened(trial.remedy) if of_stage and trial.verdict.decision == "better" else None


def lessened(remedy: Remedy) -> Remedy | None:
    """As much less than before as the remedy gives more, at least half; None unless it makes one number larger."""
    changes = [change for change in remedy.changes if change.needed]
    before, after = (_number(changes[0].before), _number(changes[0].after)) if len(changes) == 1 else (None, None)
    if before is None or after is None or not 2 <= before < after:
        return None
    less = max(1, int(min(before / 2, before * before / after)))
    title = f"less than there was: {changes[0].setting} = {less}"
    return replace(remedy, id=f"{remedy.id}.less", title=title, changes=(replace(changes[0], after=less),))


def _of_less(less: Verdict, whole: Verdict, halvings: float) -> tuple[bool | None, str]:
    """A stage that limits passes in proportion to its workers: less must cost the more, the more the remedy gave."""
    said = f"it gives {_times(less)}"
    if less.high < 1:
        return True, f"{said}: what is taken from the stage is missing at the end of the pipeline"
    if less.low > min(LEFT_ALONE, max(1.0, whole.low) ** (-LEAST_COST * halvings)):
        return False, f"{said}: the pipeline does not need what was taken from the stage"
    return None, f"{said}, which is not distinguishable from no loss"


def _half(change: Change, declared: Sequence[SettingValue]) -> Change | None:
    before, after = _number(change.before), _number(change.after)
    if before is None or after is None:
        return None
    middle = math.sqrt(before * after) if before > 0 and after > 0 else (before + after) / 2
    if after.is_integer():
        grain = MIB if before % MIB == after % MIB == 0 else 1  # keep sizes in whole MiB
        middle = round(middle / grain) * grain
    if declared:
        low, high = sorted((before, after))
        between = [value for value in map(_number, declared) if value is not None and low < value < high]
        middle = min(between, key=lambda value: abs(value - middle), default=before)
        middle = int(middle) if middle.is_integer() else middle
    return None if middle in (before, after) else replace(change, after=middle)


def _number(value: SettingValue | None) -> float | None:
    number = as_number(value)
    return number if number is not None and math.isfinite(number) else None
