"""The rules are a table that holds together: what they name exists, and a reader learns where it comes from."""

from __future__ import annotations

from loadframe.kinds.mysql.counters import MARIADB, MYSQL
from loadframe.kinds.postgres.kind import PostgresTarget
from loadframe.kinds.registry import KINDS
from loadframe.ledger.reading import DERIVED
from loadframe.ledger.rules import RULES
from loadframe.metrics import METRICS
from loadframe.recording.snapshot_process import EVERYTHING

COUNTERS = (*MARIADB.specs, *MYSQL.specs, *PostgresTarget.counter_specs)
OTHERS = KINDS.keys() - KINDS.own.keys()
OURS = [rule for rule in RULES if rule.id.partition(".")[0] not in OTHERS]
IDS = [rule.id for rule in RULES]
ASKED = {
    *(
        f"{kind}.{name}"
        for kind in ("mariadb", "mysql")
        for name in ("max_connections.asked", "table_open_cache.asked", "open_files_limit.asked", "memory_at_full")
    ),
    "postgres.memory_at_full",
    *(
        f"postgres.{name}.asked"
        for name in (
            "max_connections", "shared_buffers", "work_mem", "maintenance_work_mem", "autovacuum_max_workers",
        )
    ),
}  # fmt: skip
"""What bench.limits_now adds itself."""


def test_ids_are_unique() -> None:
    assert len(set(IDS)) == len(IDS)


def test_a_rule_names_what_exists() -> None:
    for rule in RULES:
        for metric in (rule.use, rule.use_now, rule.ceiling, rule.thrash, rule.errors):
            assert metric in (None, "one") or metric in METRICS, (rule.id, metric)
        assert set(rule.chain) <= set(IDS), rule.id
        assert rule.id not in rule.chain


def test_a_rule_says_where_it_comes_from_and_from_when_on_it_is_near() -> None:
    for rule in RULES:
        assert rule.source, rule.id
        assert rule.near is None or rule.near_use is None, rule.id
        if rule.near is not None or rule.near_use is not None:
            assert "near" in rule.source, f"{rule.id}: the source says where the threshold comes from"


def test_a_rule_is_read_by_somebody() -> None:
    read = {metric for source in EVERYTHING for metric in source.metrics}
    read |= {one.metric for one in DERIVED} | {spec.metric for spec in COUNTERS} | ASKED | {"one"}
    for rule in OURS:
        if not rule.use.startswith("workload.") and not rule.id.startswith(
            "cage."
        ):  # of a step's requests and recording
            assert {rule.use, rule.use_at_this_moment, rule.ceiling} <= read, rule.id


def test_what_is_derived_is_registered_and_read() -> None:
    read = {metric for source in EVERYTHING for metric in source.metrics} | {spec.metric for spec in COUNTERS} | ASKED
    for one in (row for row in DERIVED if row.metric.partition(".")[0] not in OTHERS):
        assert one.metric in METRICS
        for need in one.needs:
            assert need in METRICS
            of_steps = need.startswith(("system.", "target.cage.", "target.runtime."))
            assert of_steps or need in read | {other.metric for other in DERIVED}, one.metric
