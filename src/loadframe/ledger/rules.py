"""The rules of the ledger, as data: for every limit where its ceiling and its use are read, and what happens there.

`use` and `ceiling` are metrics of units.py; a rule applies where both were measured. `thrash` must rise once a silent
limit is reached; `errors` must be above nothing once a loud one is. `configured` names the setting that asks for the
ceiling, in the layer the limit belongs to. To add a limit of a server, add a row to its `kinds/NAME/limits.py`; of what
is below it, to the table of its layer (cage_rules, process_rules, network_rules, machine_rules).
docs/ledger.md explains the columns.
"""

from __future__ import annotations

from itertools import chain

from loadframe.knowledge.kinds import rows
from loadframe.knowledge.limit import LAYERS, LimitRule
from loadframe.ledger.cage_rules import CAGE
from loadframe.ledger.machine_rules import HARDWARE, KERNEL
from loadframe.ledger.network_rules import NETWORK
from loadframe.ledger.process_rules import CGROUP, PROCESS, USER

_OF_KINDS = rows("limits", "LIMITS", LimitRule)

KIND_OF = {rule.id: kind for kind, limits in _OF_KINDS.items() for rule in limits}
"""By a rule's id, the kind that brought it, as `knowledge.kinds.rows_of` calls it."""

RULES: tuple[LimitRule, ...] = (
    *sorted(chain.from_iterable(_OF_KINDS.values()), key=lambda rule: LAYERS.index(rule.layer)),
    *CAGE, *PROCESS, *USER, *CGROUP, *NETWORK, *KERNEL, *HARDWARE,
)  # fmt: skip
"""From the server down to the hardware."""

__all__ = ["KIND_OF", "RULES", "LimitRule"]
