"""Where the ceiling and the use of each limit are read, and what happens there (docs/ledger.md)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from loadframe.knowledge.families import FAMILIES
from loadframe.knowledge.kinds import rows
from loadframe.knowledge.rows import AT_HOME_ELSEWHERE, LAYERS, limit_rules
from loadframe.knowledge.rows import LimitRule as LimitRule
from loadframe.metrics import IN_FRONT
from loadframe.metrics.exposed import OF, resolve, unit_of
from loadframe.model import Steps

if TYPE_CHECKING:
    from loadframe.study.exposed_tables import LimitTable

_HERE = Path(__file__).parent
_OF_KINDS = rows("limits", "LIMITS", LimitRule)

KIND_OF = {
    rule.id: named if (named := rule.id.partition(".")[0]) in AT_HOME_ELSEWHERE else kind
    for kind, limits in _OF_KINDS.items()
    for rule in limits
}
"""By the id of the rule that it brought, as `knowledge.kinds.rows_of` names it."""


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
"""From the server down to the hardware."""

DECLARED = "the study's [[target.limit]]"


def rules_for(limits: Sequence[LimitTable], steps: Steps) -> tuple[LimitRule, ...]:
    """Declared ones, those of the families of their metrics, and all others."""
    return rules_among(limits, {name for step in steps for name in step.metrics})


def rules_among(limits: Sequence[LimitTable], there: Collection[str]) -> tuple[LimitRule, ...]:
    """As `rules_for`, where these metrics were read."""
    of_families = chain.from_iterable(family.limits(there) for family in FAMILIES.values())
    return (*(declared_rule(limit, there) for limit in limits), *of_families, *RULES)


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
