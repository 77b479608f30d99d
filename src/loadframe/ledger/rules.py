"""The rules for limits: where the ceiling and the use of each are read, and what happens there (docs/ledger.md)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from loadframe.knowledge.kinds import rows
from loadframe.knowledge.rows import AT_HOME_ELSEWHERE, LAYERS, limit_rules
from loadframe.knowledge.rows import LimitRule as LimitRule
from loadframe.metrics import IN_FRONT
from loadframe.metrics.exposed import OF, resolve, unit_of
from loadframe.metrics.pipelines import LOGS, STAGES, names
from loadframe.model import Step

if TYPE_CHECKING:
    from loadframe.study.exposed_tables import LimitTable

_HERE = Path(__file__).parent
_OF_KINDS = rows("limits", "LIMITS", LimitRule)

KIND_OF = {
    rule.id: named if (named := rule.id.partition(".")[0]) in AT_HOME_ELSEWHERE else kind
    for kind, limits in _OF_KINDS.items()
    for rule in limits
}
"""The kind that brought a rule, by the rule's id, as `knowledge.kinds.rows_of` names it."""


def _cage_rules(component: str, cage: str, whose: str, setting: str) -> tuple[LimitRule, ...]:
    file = _HERE / "cage_limits.toml"
    return limit_rules(file, component=component, cage=cage, whose=whose, setting=setting)


RULES: tuple[LimitRule, ...] = (
    *sorted(chain.from_iterable(_OF_KINDS.values()), key=lambda rule: LAYERS.index(rule.layer)),
    *_cage_rules("target", "cage", "the cage", ""),
    *chain.from_iterable(
        _cage_rules(component, f"cage.{component}", f"the cage of the {component}", f"{component}.")
        for component in (*IN_FRONT, "driver")
    ),
    *limit_rules(_HERE / "limits.toml"),
)
"""All rules, from the server down to the hardware."""

DECLARED = "the study's [[target.limit]]"
PRINTED = "statistics that the pipeline prints of its stages (docs/pipelines.md)"
ROBINHOOD = "RobinHood 3, EntryProcessor_DumpCurrentStages and cl_reader_dump_stats"


def pipeline_rules(there: Collection[str]) -> tuple[LimitRule, ...]:
    """Rules for the workers and the queue of each stage, and for the speed of following each change log: as shares, as
    more workers and more room may come with the load. A full queue costs nothing by itself: the diagnosis decides which
    stage limits."""
    share = partial(LimitRule, ceiling="one", layer="application", unit="share")
    stages = (
        (
            share(
                id=f"{STAGES}{name}",
                title=f"the workers of the stage {name}, those at work of all",
                use=f"{STAGES}{name}.busy_share",
                source=f"{PRINTED}: workers at work; {ROBINHOOD}",
                near=0.85,
            ),
            share(
                id=f"{STAGES}{name}.queue",
                title=f"the queue before the stage {name}, of its room",
                use=f"{STAGES}{name}.queue_share",
                source=f"{PRINTED}: entries that wait, at most `queue`; RobinHood's max_pending_operations",
            ),
        )
        for name in names(there)
    )
    logs = (
        share(  # 1 minus log time over real time: 0 where it is followed, 1 where nothing of it is applied
            id=f"{LOGS}{log}",
            title=f"how far the change log {log} is not followed",
            use=f"{LOGS}{log}.behind",
            source=f"{PRINTED}: log time over real time, below 1 it falls behind; {ROBINHOOD}",
            near_use=0.02,
        )
        for log in names(there, LOGS)
    )
    return (*chain.from_iterable(stages), *logs)


def rules_for(limits: Sequence[LimitTable], steps: Sequence[Step]) -> tuple[LimitRule, ...]:
    """All rules for these steps: declared ones, those of the stages in their metrics, and all others."""
    return rules_among(limits, {name for step in steps for name in step.metrics})


def rules_among(limits: Sequence[LimitTable], there: Collection[str]) -> tuple[LimitRule, ...]:
    """As `rules_for`, where these metrics were read."""
    return (*(declared_rule(limit, there) for limit in limits), *pipeline_rules(there), *RULES)


def declared_rule(limit: LimitTable | SimpleNamespace, there: Collection[str]) -> LimitRule:
    use = resolve(limit.use, there) or f"{OF}{limit.use}"
    ceiling, most = "", None
    if isinstance(limit.ceiling, str):
        ceiling = resolve(limit.ceiling, there) or f"{OF}{limit.ceiling}"
    else:
        most = float(limit.ceiling)
    return LimitRule(
        id=f"{OF}{limit.name}",
        title=limit.title or limit.name.replace("_", " "),
        use=use,
        ceiling=ceiling,
        most=most,
        source=DECLARED,
        unit=unit_of(use),
        loud=limit.loud,
        configured=limit.raises or None,
        waits=True,
    )
