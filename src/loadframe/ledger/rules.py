"""The rules of the ledger, as data: for every limit where its ceiling and its use are read, and what happens there.

`use` and `ceiling` are metrics of units.py; a rule applies where both were measured. `thrash` must rise once a silent
limit is reached; `errors` must be above nothing once a loud one is. `configured` names the setting that asks for the
ceiling, in the layer the limit belongs to. To add a limit, add a row to the table of its layer (server_rules,
nginx_rules, postgres_rules, squid_rules, varnish_rules, process_rules, machine_rules); docs/ledger.md explains the
columns.
"""

from __future__ import annotations

from loadframe.kinds.nginx.limits import NGINX
from loadframe.kinds.postgres.limits import POSTGRES
from loadframe.kinds.squid.limits import SQUID
from loadframe.kinds.varnish.limits import VARNISH
from loadframe.ledger.cage_rules import CAGE
from loadframe.ledger.form import LimitRule
from loadframe.ledger.machine_rules import HARDWARE, KERNEL, NETWORK
from loadframe.ledger.process_rules import CGROUP, PROCESS, USER
from loadframe.ledger.server_rules import APPLICATION, MARIADB

RULES: tuple[LimitRule, ...] = (
    *MARIADB, *NGINX, *POSTGRES, *SQUID, *VARNISH, *APPLICATION, *CAGE, *PROCESS, *USER, *CGROUP, *NETWORK, *KERNEL,
    *HARDWARE,
)  # fmt: skip
"""From the server down to the hardware."""

__all__ = ["RULES", "LimitRule"]
