"""What is known of MySQL Cluster holds together: its limits read what its nodes count, or what follows from that."""

from __future__ import annotations

from loadframe.ledger.rules import RULES
from loadframe.metrics import METRICS
from loadframe_ndb.metrics import DERIVED, SQL_NODES
from loadframe_ndb.ndbinfo import SPECS
from loadframe_ndb.sql_node import COUNTERS

COUNTED = {spec.metric for spec in (*SPECS, *COUNTERS)}
FOLLOWING = {row.metric for row in DERIVED}


def test_every_limit_is_of_what_is_counted_or_follows_from_it() -> None:
    rules = [rule for rule in RULES if rule.id.startswith("ndb.")]
    assert len(rules) > 5
    for rule in rules:
        read = {rule.use, rule.ceiling, rule.thrash or rule.use, rule.errors or rule.use} - {"one"}
        assert read <= COUNTED | FOLLOWING | {"workload.errors"}, rule.id


def test_what_follows_needs_what_is_counted_or_recorded_of_the_sql_nodes() -> None:
    for row in DERIVED:
        assert row.metric in METRICS
        for need in row.needs:
            assert need in COUNTED or need.partition(".")[0] in SQL_NODES, row.metric
