"""What a search has found, as its record says it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from loadframe.bench import within
from loadframe.bench.beside import START
from loadframe.bench.tuning_space import Varied, may_lose
from loadframe.bench.tuning_trials import Trials
from loadframe.model import SettingWorth, Step, TunedSetting, Tuning, TuningEnd
from loadframe.study import Study
from loadframe.targets import registry as targets
from loadframe.tuning.space import Dimension, Point

NORMAL = 1.96
"""Standard deviations of a normal 95 % interval."""


def found(
    trials: Trials,
    varied: Varied,
    findings: tuple[str, ...],
    *,
    best: Point,
    end: TuningEnd,
    proof: Sequence[Step] = (),
) -> Tuning:
    """What the search found, without a verdict. proof: the fresh blocks."""
    book, study = trials.book, trials.book.bench.study
    before = [step for step in proof or trials.start.steps if step.treatment == START]
    after = [step for step in proof if step.treatment != START]
    worth = trials.search.worth(best)
    return Tuning(
        end=end,
        axis=study.load.axis,
        axis_unit=book.bench.axis_unit,
        target_kind=study.target.kind,
        settings=tuple(
            replace(_setting(study, each, place), worth=None if end == "stopped" else _worth(each, *told))
            for each, place, told in zip(trials.space.dimensions, best, worth, strict=True)
        ),
        trials=tuple(trials.done),
        expected=trials.search.expected_gain(best),
        verdict=None,
        levels=(),
        left_out=varied.left_out,
        file_name="",
        file_text="",
        findings=findings,
        objective=within.shown(trials.objective, trials.levels, before, after),
    )


def _worth(each: Dimension, place: int, gain: float, spread: float) -> SettingWorth:
    low, high = (math.exp(gain + sign * NORMAL * spread) for sign in (-1, 1))
    return SettingWorth(each.values[place], math.exp(gain), low, high)


def _setting(study: Study, each: Dimension, place: int) -> TunedSetting:
    spec = targets.setting(study.target.kind, each.name)
    assert spec is not None, "only settings of the catalogue are varied"
    after = each.values[place]
    loses = place != each.start and may_lose(study.target.kind, each.name, after)
    return TunedSetting(
        name=each.name,
        before=each.values[each.start],
        values=each.values,
        after=after,
        restart=study.target.attach is None and (not spec.dynamic or spec.sized_at_start),
        gives_up=spec.gives_up if loses else None,
    )
