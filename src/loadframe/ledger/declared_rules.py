"""Limits of a service that a study declares ([[target.limit]]), and those of pipelines, as rules of the ledger."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING

from loadframe.ledger.pipeline_rules import pipeline_rules
from loadframe.ledger.rules import RULES, LimitRule
from loadframe.metrics.exposed import OF, resolve, unit_of
from loadframe.model import Step

if TYPE_CHECKING:
    from loadframe.study.exposed_tables import LimitTable

SOURCE = "the study's [[target.limit]]"


def rules_for(limits: Sequence[LimitTable], steps: Sequence[Step]) -> tuple[LimitRule, ...]:
    """All rules for these steps: those that their study declares, those of the stages that were seen, and all others.
    The names of the steps' metrics say what was exposed, so a run folder is enough."""
    return rules_among(limits, {name for step in steps for name in step.metrics})


def rules_among(limits: Sequence[LimitTable], there: Collection[str]) -> tuple[LimitRule, ...]:
    """The same, where these metrics were read."""
    return (*(declared_rule(limit, there) for limit in limits), *pipeline_rules(there), *RULES)


def declared_rule(limit: LimitTable | SimpleNamespace, there: Collection[str]) -> LimitRule:
    """A limit that a study declares, where these metrics were read. A metric that is not exposed keeps its name, which
    nothing has. Light: the lasting process of a watch has its limits as plain records."""
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
        source=SOURCE,
        unit=unit_of(use),
        loud=limit.loud,
        configured=limit.raises or None,
        waits=True,
    )
