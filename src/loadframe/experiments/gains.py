"""What the kept changes give: the state with them against the first one, in one comparison, which every sentence, table
and export reads."""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from loadframe.analysis.divergence import at_loads
from loadframe.diagnosis.conclusion import net_changes
from loadframe.errors import StudyError
from loadframe.experiments.proof import compared, in_blocks, level_ratios, verdict_on
from loadframe.kinds import registry, settings_file
from loadframe.model import Change, ChangeRecord, Compared, CurvePoint, LevelRatio, Round, Step, Trial, Variant, Verdict
from loadframe.model.verdict import decide
from loadframe.study import Study

FROM_CURVES = "the curves of both states, which were not measured in turns: the mean over these loads"


def variants(rounds: Sequence[Round], steps: Sequence[Step], study: Study | None) -> tuple[Variant, ...]:
    """What can be done, the variant that gives nothing up first: the kept changes before each that gives more up, and
    all of them; as they are typed in where the study and its kind are known here and have a form for them. steps: all
    of the run. Empty where nothing was kept, or no load was measured in both states."""
    kept = [(number, trial) for number, one in enumerate(rounds) for trial in one.tried if trial.kept]
    ends = [
        last
        for last in range(1, len(kept) + 1)
        if last == len(kept) or kept[last][1].remedy.price.durability is not None
    ]
    found = []
    for end in ends:
        trials = [trial for _, trial in kept[:end]]
        against = _against_first(rounds, kept[end - 1][0], trials, steps)
        if not against.levels:
            continue
        given_up = [trial.remedy.price.durability for trial in trials if trial.remedy.price.durability]
        changes, loads = net_changes(trials), [one.load for one in against.levels]
        found.append(
            Variant(
                changes,
                study.objective.at if study is not None and study.objective.at in loads else loads[-1],
                rounds[0].treatment,
                trials[-1].treatment_after,
                "; ".join(dict.fromkeys(given_up)),
                copied(study, changes),
                verdict=against.verdict,
                levels=against.levels,
                fresh=against.fresh,
            )
        )
    return tuple(found)


def _against_first(rounds: Sequence[Round], number: int, trials: Sequence[Trial], steps: Sequence[Step]) -> Compared:
    """The state with these changes against the first one: of one change its trial, of several the blocks that held both
    against each other; at loads at which these have no interval, and where there are no such blocks, from the curves.
    number: of the round of the last change."""
    first, last = rounds[0], trials[-1]
    has_curve = number + 1 < len(rounds)
    if has_curve:
        after = rounds[number + 1].curve
    else:
        points = tuple(
            CurvePoint(row.load, row.after, row.after * row.low / row.ratio, row.after * row.high / row.ratio, None)
            for row in last.levels
        )
        after = replace(first.curve, points=points)
    rows = at_loads(first.curve, after)
    if len(trials) == 1:
        found = Compared(verdict=last.verdict, levels=last.levels, fresh=last.fresh)
    elif blocks := in_blocks(steps, first.treatment, last.treatment_after):
        pair = first.treatment, last.treatment_after
        found = compared(blocks, *pair)
    else:
        judged = [row for row in rows if row.load in last.told.levels] or list(rows)
        found = Compared(verdict=_of_curves(judged) if judged else last.told)
    every = {row.load: row for row in (*found.levels, *rows)}
    every |= {row.load: row for row in found.levels if row.low < row.high or not has_curve}
    return replace(found, levels=tuple(every[load] for load in sorted(every)))


def _of_curves(rows: Sequence[LevelRatio]) -> Verdict:
    """Over these loads; as what a curve suffers from, it may suffer from at all of them, the ends are means, too."""
    ratio, low, high = (
        math.exp(fmean(math.log(getattr(row, name)) for row in rows)) for name in ("ratio", "low", "high")
    )
    decision = decide(low, high) if all(row.low < row.high for row in rows) else "cannot-tell"
    return Verdict(ratio, low, high, decision, 0, FROM_CURVES, levels=tuple(row.load for row in rows))


def copied(study: Study | None, changes: Sequence[Change] | Sequence[ChangeRecord]) -> tuple[str, ...]:
    """Changes as they are typed in, a line each; empty for a kind that is not known here."""
    try:
        return () if study is None else settings_file.to_copy(registry.of_study(study), changes)
    except StudyError:
        return ()


def with_intervals(one: Round, steps: Sequence[Step]) -> Round:
    """A round with the ratios of its trials from the steps of their blocks, where none of their intervals is known: as
    an earlier version left it."""
    tried = []
    for trial in one.tried:
        if any(row.low < row.high for row in trial.levels):
            tried.append(trial)
            continue
        pair, judged = (trial.treatment_before, trial.treatment_after), trial.told.levels
        # The first version did not say what a step was taken for.
        known = [
            replace(step, purpose=step.purpose or "proof") for step in steps if step.purpose or step.level in judged
        ]
        blocks = in_blocks(known, *pair, above=trial.verdict.blocks if trial.fresh is not None else 0)
        if blocks:
            again, told = trial.fresh and verdict_on(blocks, *pair), trial.told
            levels = level_ratios(blocks, *pair)
            if again is None and len(told.levels) == 1:
                levels = tuple(replace(row, low=told.low, high=told.high) for row in levels)
            trial = replace(trial, fresh=again, levels=levels)
        tried.append(trial)
    return replace(one, tried=tuple(tried))
