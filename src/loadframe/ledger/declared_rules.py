"""Limits of a service that a study declares ([[target.limit]]), and those of pipelines, as rules of the ledger."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from loadframe.ledger.pipeline_rules import pipeline_rules
from loadframe.ledger.rules import RULES, LimitRule
from loadframe.metrics.exposed import OF, resolve, unit_of
from loadframe.model import Step
from loadframe.study.exposed_tables import LimitTable

SOURCE = "the study's [[target.limit]]"


def rules_for(limits: Sequence[LimitTable], steps: Sequence[Step]) -> tuple[LimitRule, ...]:
    """All rules for these steps: those that their study declares, those of the stages that were seen, and all others.
    The names of the steps' metrics say what was exposed, so a run folder is enough."""
    return rules_among(limits, {name for step in steps for name in step.metrics})


def rules_among(limits: Sequence[LimitTable], there: Collection[str]) -> tuple[LimitRule, ...]:
    """The same, where these metrics were read."""
    return (*(_rule(limit, there) for limit in limits), *pipeline_rules(there), *RULES)


def _rule(limit: LimitTable, there: Collection[str]) -> LimitRule:
    use = _metric(limit.use, there)
    number = isinstance(limit.ceiling, int | float)
    return LimitRule(
        id=f"{OF}{limit.name}",
        title=limit.title or limit.name.replace("_", " "),
        use=use,
        ceiling="" if number else _metric(str(limit.ceiling), there),
        most=float(limit.ceiling) if number else None,
        source=SOURCE,
        unit=unit_of(use),
        loud=limit.loud,
        configured=limit.raises or None,
        waits=True,
    )


def _metric(name: str, there: Collection[str]) -> str:
    """The metric that a study means; of one that is not exposed its name, which nothing has."""
    return resolve(name, there) or f"{OF}{name}"
