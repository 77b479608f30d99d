"""The rules of the ledger, as data: for every limit where its ceiling and its use are read, and what happens there.

`use` and `ceiling` are metrics of units.py; a rule applies where both were measured. `thrash` must rise once a silent
limit is reached; `errors` must be above nothing once a loud one is. `configured` names the setting that asks for the
ceiling, in the layer the limit belongs to. To add a limit of a server, add a row to its `kinds/NAME/limits.toml`; of
what is below it, to limits.toml beside this file; of what a study's cage sets, to cage_limits.toml. docs/ledger.md
explains the columns.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from loadframe.knowledge.kinds import AT_HOME_ELSEWHERE, rows
from loadframe.knowledge.limit import LAYERS, LimitRule, limit_rules
from loadframe.metrics import IN_FRONT

_HERE = Path(__file__).parent
_OF_KINDS = rows("limits", "LIMITS", LimitRule)

KIND_OF = {
    rule.id: named if (named := rule.id.partition(".")[0]) in AT_HOME_ELSEWHERE else kind
    for kind, limits in _OF_KINDS.items()
    for rule in limits
}
"""By a rule's id, the kind that brought it, as `knowledge.kinds.rows_of` calls it."""


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

__all__ = ["KIND_OF", "RULES", "LimitRule"]
