"""The result of a search for settings, as its record has it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from loadframe.experiments import within
from loadframe.experiments.tuning_proof import Proof
from loadframe.experiments.tuning_space import may_lose
from loadframe.experiments.tuning_trials import Trials
from loadframe.kinds import registry as targets
from loadframe.kinds.kind import KindOfTarget
from loadframe.kinds.settings_file import written
from loadframe.model import SettingWorth, TunedSetting, Tuning, TuningEnd
from loadframe.study import Study
from loadframe.tuning.search import Dimension

NORMAL = 1.96
"""Standard deviations of a normal 95 % interval."""


def answer(
    trials: Trials, left_out: Mapping[str, str], findings: tuple[str, ...], proofs: Sequence[Proof], ended: bool = False
) -> Tuning:
    """The result of a search, from what it has measured at the time of the call. left_out, findings: as in Tuning.
    proofs: of which only the last may have held; the first one was that of the best settings. ended: none follows."""
    study, best = trials.book.bench.study, trials.space.start
    expected = trials.search.expected_gain(best)
    objective = within.shown(trials.objective, trials.levels, trials.start.steps, ())
    failed, proof, clamped = list(proofs), None, tuple[str, ...]()
    end: TuningEnd = "nothing-better" if ended else "stopped"
    chosen = None
    if proofs and proofs[-1].told.held:
        chosen, end = failed.pop(), "gained"
    elif proofs and ended:
        chosen, end = proofs[0], "no-proven-gain"
    if chosen is not None:
        best, proof, clamped = chosen.point, chosen.told, chosen.clamped
        expected, objective = proof.expected, proof.objective
    settings = [_setting(study, *dimension) for dimension in zip(trials.space.dimensions, best, strict=True)]
    if end != "stopped":
        worths = zip(settings, trials.space.dimensions, trials.search.worth(best), strict=True)
        settings = [replace(setting, worth=_worth(dimension, *worth)) for setting, dimension, worth in worths]
    tuning = Tuning(
        end=end,
        axis=study.load.axis,
        axis_unit=trials.book.bench.axis_unit,
        target_kind=study.target.kind,
        settings=tuple(settings),
        trials=tuple(trials.done),
        expected=expected,
        left_out=left_out,
        file_name="",
        file_text="",
        findings=findings,
        proof=proof,
        failed_proofs=tuple(attempted.told for attempted in failed),
        objective=objective,
        warnings=(*trials.notes, *clamped),
    )
    return with_file(tuning, targets.of_study(study))


def with_file(tuning: Tuning, row: KindOfTarget | None) -> Tuning:
    """The result with its proven settings as a file for that kind, computed here and never taken from a record; empty
    where the kind is not available (None). StudyError for settings that no such target has."""
    if tuning.end != "gained" or row is None:
        return replace(tuning, file_name="", file_text="")
    changed = {setting.name: setting.after for setting in tuning.settings if setting.after != setting.before}
    row.check_settings(changed)
    name, text = written(row, changed)
    return replace(tuning, file_name=name, file_text=text)


def _worth(dimension: Dimension, place: int, gain: float, spread: float) -> SettingWorth:
    low, high = (math.exp(gain + sign * NORMAL * spread) for sign in (-1, 1))
    return SettingWorth(dimension.values[place], math.exp(gain), low, high)


def _setting(study: Study, dimension: Dimension, place: int) -> TunedSetting:
    row = targets.of_study(study)
    spec = row.setting(dimension.name)
    assert spec is not None, "only settings of the catalogue are varied"
    after = dimension.values[place]
    loses = place != dimension.start and may_lose(row, dimension.name, after)
    return TunedSetting(
        name=dimension.name,
        before=dimension.values[dimension.start],
        values=dimension.values,
        after=after,
        restart=not spec.dynamic or (spec.sized_at_start and not study.target.is_running),
        gives_up=spec.gives_up if loses else None,
    )
