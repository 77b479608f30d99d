"""The result of a search for settings, as its record has it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from loadframe.experiments import within
from loadframe.experiments.tuning_proof import Proof
from loadframe.experiments.tuning_space import may_lose
from loadframe.experiments.tuning_trials import Trials
from loadframe.kinds import registry as targets
from loadframe.kinds.kind import KindOfTarget
from loadframe.kinds.settings_file import written
from loadframe.model import SettingWorth, TunedSetting, Tuning, TuningEnd, TuningProof
from loadframe.study import Study
from loadframe.tuning.search import Dimension, Point

NORMAL = 1.96
"""Standard deviations of a normal 95 % interval."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The results of a search, from what it has measured at the time of the call. left_out, findings: as in Tuning."""

    trials: Trials
    left_out: Mapping[str, str]
    findings: tuple[str, ...]

    def stopped(self, failed: Sequence[Proof] = ()) -> Tuning:
        """As far as it has come. failed: the proofs that did not hold."""
        start = self.trials.space.start
        tuning = self._found(start, "stopped", self.trials.search.expected_gain(start))
        settings = tuple(replace(setting, worth=None) for setting in tuning.settings)
        return replace(tuning, settings=settings, failed_proofs=_told(failed))

    def nothing_better(self) -> Tuning:
        start = self.trials.space.start
        return self._found(start, "nothing-better", self.trials.search.expected_gain(start))

    def not_proved(self, failed: Sequence[Proof]) -> Tuning:
        """No proof held; the first one was that of the best settings."""
        return replace(self._proved(failed[0], "no-proven-gain"), failed_proofs=_told(failed))

    def so_far(self, proofs: Sequence[Proof]) -> Tuning:
        """After these proofs, of which only the last may have held; then with the settings as a file."""
        if not proofs or not proofs[-1].told.held:
            return self.stopped(proofs)
        tuning = replace(self._proved(proofs[-1], "gained"), failed_proofs=_told(proofs[:-1]))
        return with_file(tuning, targets.of_study(self.trials.book.bench.study))

    def _proved(self, proof: Proof, end: TuningEnd) -> Tuning:
        tuning_proof = proof.told
        tuning = self._found(proof.point, end, tuning_proof.expected)
        return replace(
            tuning,
            proof=tuning_proof,
            objective=tuning_proof.objective,
            warnings=(*tuning.warnings, *proof.clamped),
        )

    def _found(self, best: Point, end: TuningEnd, expected: float) -> Tuning:
        trials, study = self.trials, self.trials.book.bench.study
        return Tuning(
            end=end,
            axis=study.load.axis,
            axis_unit=trials.book.bench.axis_unit,
            target_kind=study.target.kind,
            settings=tuple(
                replace(_setting(study, dimension, place), worth=_worth(dimension, *worth))
                for dimension, place, worth in zip(
                    trials.space.dimensions, best, trials.search.worth(best), strict=True
                )
            ),
            trials=tuple(trials.done),
            expected=expected,
            left_out=self.left_out,
            file_name="",
            file_text="",
            findings=self.findings,
            objective=within.shown(trials.objective, trials.levels, trials.start.steps, ()),
            warnings=tuple(trials.notes),
        )


def with_file(tuning: Tuning, row: KindOfTarget | None) -> Tuning:
    """The result with its proven settings as a file for that kind, computed here and never taken from a record; empty
    where the kind is not available (None). StudyError for settings that no such target has."""
    if tuning.end != "gained" or row is None:
        return replace(tuning, file_name="", file_text="")
    changed = {setting.name: setting.after for setting in tuning.settings if setting.after != setting.before}
    row.check_settings(changed)
    name, text = written(row, changed)
    return replace(tuning, file_name=name, file_text=text)


def _told(proofs: Sequence[Proof]) -> tuple[TuningProof, ...]:
    return tuple(proof.told for proof in proofs)


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
