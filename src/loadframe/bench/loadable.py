"""Which targets a workload can load: those that it names, and those whose kinds name it."""

from __future__ import annotations

from loadframe.kinds import registry as targets
from loadframe.workloads.base import Workload


def loads(workload: Workload, kind: str, form: str) -> bool:
    """Whether it loads a target: it names its form, or the kind names it; a kind that is never in one piece means its
    shards."""
    if form in workload.target_kinds:
        return True
    row = targets.KINDS.get(kind)
    return row is not None and workload.kind in row.loaded_by and (form == kind) is not bool(row.before)


def loaded_by(workload: Workload) -> frozenset[str]:
    """All that it loads, for advice."""
    naming = {kind: row for kind, row in targets.KINDS.items() if workload.kind in row.loaded_by}
    return workload.target_kinds | {f"sharded {kind}" if row.before else kind for kind, row in naming.items()}
