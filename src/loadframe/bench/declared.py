"""The workload and the knobs that a study names, and the workload with the options of one treatment at a time."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from loadframe.bench.rig import kinds_of
from loadframe.changes.journal import Journal, Reasons
from loadframe.entry_points import EXTENSIONS, FAMILIES_GROUP, Registry, not_installed
from loadframe.errors import StudyError
from loadframe.host.processes import Allowance
from loadframe.kinds import registry as targets
from loadframe.kinds.kind import KindOfTarget
from loadframe.knowledge.families import FAMILIES
from loadframe.model import Knob, SettingValue, TargetState
from loadframe.runs.folder import RunFolder
from loadframe.study import Study
from loadframe.workloads import registry as workloads
from loadframe.workloads.base import KindOfWorkload, TakesOptions, Workload


def workload_of(study: Study, allowance: Allowance | None = None, *, axis: str | None = None) -> Workload:
    """StudyError. axis: if not the study's."""
    given = study.workload
    return workloads.make(given.kind, given.options, allowance, axis=axis or study.load.axis, declared=given.declared)


def knobs_of(study: Study) -> tuple[Knob, ...]:
    return (*targets.of_study(study).knobs, *workloads.knobs(study.workload.kind, study.load.axis))


def distributions(study: Study) -> tuple[str, ...]:
    asked = (registry.distribution(kind) for _, kind, registry in _named(study))
    return tuple(dict.fromkeys(filter(None, asked)))


def absent(study: Study, measured_with: Sequence[str], metrics: Collection[str]) -> tuple[str, ...]:
    """Sentences on the study's kinds, and families of the run's metrics, that are not available here. measured_with:
    the run's other distributions."""
    families = sorted({name.partition(".")[0] for name in metrics} & EXTENSIONS[FAMILIES_GROUP].keys())
    asked = (*_named(study), *(("family of metrics", kind, FAMILIES) for kind in families))
    named = [(f"the {what} {kind!r}", kind, registry) for what, kind, registry in asked]
    gone = {name: (kind, registry) for name, kind, registry in named if kind not in registry}
    if not gone:
        return ()
    whose = f" The run was measured with {' and '.join(measured_with)}." if measured_with else ""
    broken = [fault for kind, registry in gone.values() if (fault := registry.why_not(kind)) is not None]
    absent_here = [not_installed(registry.group, kind, name) for name, (kind, registry) in gone.items()
                   if kind in EXTENSIONS[registry.group]]  # fmt: skip
    return (
        f"Not available here: {' and '.join(gone)}.{whose} What the run recorded is shown; words for metrics, limits "
        "and causes that only its distribution knows are left out. Install it to see them.",
        *(f"{fault.distribution}: {fault.fact}. {fault.remedy}" for fault in broken),
        *(f"{error.fact[0].upper()}{error.fact[1:]}. {error.remedy}" for error in absent_here),
    )


def _named(study: Study) -> Iterator[tuple[str, str, Registry[KindOfTarget] | Registry[KindOfWorkload]]]:
    for kind in kinds_of(study):
        yield "kind of target", kind, targets.KINDS
    yield "workload", study.workload.kind, workloads.KINDS


@dataclass
class WorkloadOptions:
    """Where the load itself is studied, its options change through the journal as settings of a server do. workload: as
    declared."""

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
        """All other options become as in the study; returns the effective changeable ones. StudyError."""
        then = TargetState(options=dict(options))
        if then != self._state:
            self._journal.go(treatment, self._state, then)
        return self.effective()

    def check(self, options: Mapping[str, SettingValue]) -> None:
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
        used = workloads.options(self.study.workload.kind, given)
        return {knob.name: used[knob.name] for knob in workloads.knobs(self.study.workload.kind, self.study.load.axis)}

    def close(self) -> None:
        self._journal.close(self._state, TargetState())
