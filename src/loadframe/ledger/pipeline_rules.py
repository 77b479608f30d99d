"""Limits of the pipelines that steps tell of, as rules of the ledger: of each stage its workers and the queue before
it, of each change log the speed at which it is followed."""

from __future__ import annotations

from collections.abc import Collection

from loadframe.knowledge.limit import LimitRule
from loadframe.metrics.pipelines import LOGS, STAGES, names

SOURCE = "statistics that the pipeline prints of its stages (docs/pipelines.md)"
ROBINHOOD = "RobinHood 3, EntryProcessor_DumpCurrentStages and cl_reader_dump_stats"


def pipeline_rules(there: Collection[str]) -> tuple[LimitRule, ...]:
    """Where these metrics were measured; as shares, as more workers and more room may come with the load. A pipeline
    waits; it refuses nothing, and that a queue is full costs nothing by itself: which stage limits is the diagnosis' to
    say."""
    stages = (rule for stage in names(there) for rule in (_workers(stage), _queue(stage)))
    return (*stages, *(_follow(log) for log in names(there, LOGS)))


def _workers(stage: str) -> LimitRule:
    return LimitRule(
        id=f"{STAGES}{stage}",
        title=f"the workers of the stage {stage}, those at work of all",
        use=f"{STAGES}{stage}.busy_share",
        ceiling="one",
        source=f"{SOURCE}: workers at work; {ROBINHOOD}",
        layer="application",
        unit="share",
        near=0.85,
    )


def _queue(stage: str) -> LimitRule:
    return LimitRule(
        id=f"{STAGES}{stage}.queue",
        title=f"the queue before the stage {stage}, of its room",
        use=f"{STAGES}{stage}.queue_share",
        ceiling="one",
        source=f"{SOURCE}: entries that wait, at most `queue`; RobinHood's max_pending_operations",
        layer="application",
        unit="share",
    )


def _follow(log: str) -> LimitRule:
    """1 less log time over real time: 0 where it is followed, 1 where nothing of it is applied."""
    return LimitRule(
        id=f"{LOGS}{log}",
        title=f"how far the change log {log} is not followed",
        use=f"{LOGS}{log}.behind",
        ceiling="one",
        source=f"{SOURCE}: log time over real time, below 1 it falls behind; {ROBINHOOD}",
        layer="application",
        unit="share",
        near_use=0.02,
    )
