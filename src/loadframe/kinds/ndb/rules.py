"""All rules that a config.ini has to keep: those of MySQL Cluster itself, and what its benchmark has taught.

A rule is a function from a Case to what it finds; its name is how findings call it.
"""

from collections.abc import Callable, Iterator

from loadframe.kinds.ndb.config_rules import (
    Case,
    Found,
    api_slots,
    durability,
    file,
    limits,
    memory,
    nodes,
    replicas,
    settings,
)
from loadframe.kinds.ndb.cpu_rules import cpus, threads
from loadframe.model import NdbFinding, NdbSeverity

RULES: tuple[Callable[[Case], Iterator[Found]], ...] = (
    file, settings, nodes, replicas, limits, threads, cpus, api_slots, memory, durability,
)  # fmt: skip
SEVERITIES: tuple[NdbSeverity, ...] = ("error", "warning", "note")


def check(case: Case, name: str) -> tuple[NdbFinding, ...]:
    """What the rules find: errors first, in the order of the lines, nothing twice. name: of the config.ini."""
    found = (
        NdbFinding(rule.__name__, one.severity, one.file or name, one.line, one.fact, one.remedy, one.source)
        for rule in RULES
        for one in rule(case)
    )
    return tuple(sorted(dict.fromkeys(found), key=lambda one: (SEVERITIES.index(one.severity), one.line or 0)))
