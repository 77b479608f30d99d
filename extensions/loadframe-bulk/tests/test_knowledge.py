"""What is known of the bulk loader: a process for each file is a cause, and a pool of them the remedy."""

from __future__ import annotations

from collections.abc import Callable

from loadframe.analysis.curve import LevelSample, fit
from loadframe.diagnosis.findings import diagnose
from loadframe.diagnosis.remedies import Situation, propose
from loadframe.diagnosis.windows import look
from loadframe.model import Finding, Step, TargetState

CAUSE = "bulk_loader.spawn_per_file"
IDLE = {"system.cpu.utilization": 0.5, "system.cpu.count": 2.0, "system.pressure.io.some": 0.01}


def test_a_process_for_each_file_is_a_cause_where_requests_pay_for_it(make_step: Callable[..., Step]) -> None:
    def loaded(faults: float, created: float) -> list[str]:
        metrics = {**IDLE, "loader.paging.minor_faults": faults, "system.processes.created": created}
        steps = [make_step(level, 100.0, metrics, block=block) for block in (1, 2, 3) for level in (1, 2, 4)]
        samples = [LevelSample(level, (100.0,) * 3, (1.0,) * 3) for level in (1, 2, 4)]
        findings, _ = diagnose(look(fit(samples, axis="pipelines", treatment="A"), steps), [])
        return [finding.id for finding in findings]

    assert loaded(50_000, 100) == [CAUSE]
    assert loaded(50_000, 5) == [], "processes that stay touch pages, too"
    assert loaded(1_000, 100) == [], "others on the machine start processes, too"


def test_a_pool_of_loaders_is_proposed_where_there_is_none() -> None:
    def proposed(kind: str, pool: int) -> list[tuple[str, object]]:
        situation = Situation(kind, TargetState(), {"pool": pool}, {}, {})
        remedies = propose([Finding(CAUSE, CAUSE, None, (), 1.0)], situation)
        return [(change.setting, change.after) for remedy in remedies for change in remedy.changes]

    assert proposed("bulk-loader", 0) == [("pool", 16)]
    assert proposed("bulk-loader", 4) == []
    assert proposed("postgres", 0) == []
