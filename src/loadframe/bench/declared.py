"""The workload and the knobs that a study names, and the distributions that register them."""

from collections.abc import Iterator, Sequence

from loadframe.entry_points import Registry
from loadframe.host.processes import Allowance
from loadframe.kinds import registry as targets
from loadframe.kinds.kind import KindOfTarget
from loadframe.model import Knob
from loadframe.study import Study
from loadframe.workloads import registry
from loadframe.workloads import registry as workloads
from loadframe.workloads.base import KindOfWorkload, Workload


def workload_of(study: Study, allowance: Allowance | None = None, *, axis: str | None = None) -> Workload:
    """The workload for the study's axis, or for another of its kind. StudyError for what does not fit."""
    given = study.workload
    return registry.make(given.kind, given.options, allowance, axis=axis or study.load.axis, declared=given.declared)


def knobs_of(study: Study) -> tuple[Knob, ...]:
    """Settings that the study declares, and options of a workload that is itself studied."""
    return (*targets.of_study(study).knobs, *registry.knobs(study.workload.kind, study.load.axis))


def distributions(study: Study) -> tuple[str, ...]:
    """The other distributions that register its kinds of target, or its workload."""
    asked = (registry.distribution(kind) for _, kind, registry in _named(study))
    return tuple(dict.fromkeys(filter(None, asked)))


def absent(study: Study, measured_with: Sequence[str]) -> tuple[str, ...]:
    """Sentences on kinds of this study that are not available here. measured_with: the run's other distributions."""
    named = [(f"the {what} {kind!r}", kind, registry) for what, kind, registry in _named(study)]
    gone = [(name, registry.why_not(kind)) for name, kind, registry in named if kind not in registry]
    if not gone:
        return ()
    whose = f" The run was measured with {' and '.join(measured_with)}." if measured_with else ""
    return (
        f"Not available here: {' and '.join(name for name, _ in gone)}.{whose} What the run recorded is shown; words "
        "for metrics, limits and causes that only its distribution knows are left out. Install it to see them.",
        *(f"{broken.distribution}: {broken.fact}. {broken.remedy}" for _, broken in gone if broken is not None),
    )


def _named(study: Study) -> Iterator[tuple[str, str, Registry[KindOfTarget] | Registry[KindOfWorkload]]]:
    others = (alternative.target.kind for alternative in study.alternative if alternative.target.kind is not None)
    for kind in dict.fromkeys((study.target.kind, *others)):
        yield "kind of target", kind, targets.KINDS
    yield "workload", study.workload.kind, workloads.KINDS
