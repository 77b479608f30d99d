"""The workload with the options of one treatment at a time: where the load itself is studied, its options change
through the journal as settings of a server do."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from loadframe.changes.journal import Journal, Reasons
from loadframe.errors import StudyError
from loadframe.model import SettingValue, TargetState
from loadframe.runs.folder import RunFolder
from loadframe.study import Study
from loadframe.workloads import registry
from loadframe.workloads.base import TakesOptions, Workload


@dataclass
class WorkloadOptions:
    """workload: as the study declares it. Changes end with this object."""

    study: Study
    workload: Workload
    run: RunFolder
    reasons: Reasons | None = None
    kind: str = field(init=False)
    now: Workload = field(init=False)
    _state: TargetState = field(default_factory=TargetState, init=False)

    def __post_init__(self) -> None:
        self.kind = f"workload {self.workload.kind}"
        self.now = self.workload
        self._journal = Journal(self.run, self, private=True, reasons=self.reasons)

    def bring(self, treatment: str, options: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
        """Set these options, and all others as in the study; returns the effective changeable ones. StudyError."""
        then = TargetState(options=dict(options))
        if then != self._state:
            self._journal.go(treatment, self._state, then)
        return self.effective()

    def check(self, options: Mapping[str, SettingValue]) -> None:
        """StudyError for options that do not suit the workload."""
        self._with(options)

    def apply(self, state: TargetState) -> None:
        self.now = self._with(state.options)
        self._state = state

    def _with(self, options: Mapping[str, SettingValue]) -> Workload:
        if not options:
            return self.workload
        if isinstance(self.workload, TakesOptions):
            return self.workload.with_options(options)
        raise StudyError(
            f"The workload {self.workload.kind} cannot go on with other options: {', '.join(options)}",
            remedy="Give them in [workload.options].",
        )

    def effective(self) -> dict[str, SettingValue]:
        given = {**self.study.workload.options, **self._state.options}
        used = registry.options(self.study.workload.kind, given)
        return {knob.name: used[knob.name] for knob in registry.knobs(self.study.workload.kind, self.study.load.axis)}

    def close(self) -> None:
        self._journal.close(self._state, TargetState())
