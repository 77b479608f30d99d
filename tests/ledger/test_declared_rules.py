"""Limits that a study declares are rows of the ledger, in steps, at a moment, and from a run folder alone."""

from __future__ import annotations

from collections.abc import Callable

from loadframe.ledger.reading import read_limits, read_now
from loadframe.ledger.rules import RULES, rules_among, rules_for
from loadframe.model import Step, TargetState
from loadframe.study.exposed_tables import LimitTable

StepMaker = Callable[..., Step]


def limit(**keys: object) -> LimitTable:
    return LimitTable.model_validate({"name": "pool", "use": "in_use", "ceiling": "size", **keys})


def test_a_declared_limit_is_read_from_steps(make_step: StepMaker) -> None:
    metrics = {'service.in_use{db="a"}': 3.0, 'service.size{db="a"}': 4.0}
    steps = [make_step(1, 1, metrics), make_step(2, 1, {**metrics, 'service.in_use{db="a"}': 4.0})]
    state, effective = TargetState({"pool_size": 8}), {"pool_size": 4}
    declared = limit(**{"raise": "pool_size", "title": "the pool of connections"})
    (found,) = [one.limit for one in read_limits(steps, state, effective, rules_for([declared], steps))]
    assert (found.id, found.use, found.ceiling, found.headroom) == ("service.pool", 4, 4, 0)
    assert (found.configured, found.effective, found.layer, found.loud) == (8, 4, "server", False)
    assert found.title == "the pool of connections" and found.waits


def test_a_ceiling_may_be_a_number_and_the_use_in_bytes(make_step: StepMaker) -> None:
    steps = [make_step(1, 1, {"service.store_bytes": 2.0**20})]
    declared = limit(use="store_bytes", ceiling=2.0**21, loud=True)
    (found,) = [one.limit for one in read_limits(steps, TargetState(), {}, rules_for([declared], steps))]
    assert (found.ceiling, found.unit, found.loud) == (2.0**21, "bytes", True)


def test_what_is_not_exposed_or_has_no_ceiling_is_not_read(make_step: StepMaker) -> None:
    for metrics in ({"service.in_use": 1.0}, {"service.size": 4.0}, {"service.in_use": 1.0, "service.size": 0.0}, {}):
        steps = [make_step(1, 1, metrics)]
        assert read_limits(steps, TargetState(), {}, rules_for([limit()], steps)) == []


def test_at_a_moment_it_is_read_or_the_reason_is_told() -> None:
    values = {"service.in_use": 4.0, "service.size": 4.0}
    found, _ = read_now(values, {}, kinds={"service"}, rules=rules_among([limit()], values))
    (pool,) = [one for one in found if one.id == "service.pool"]
    assert (pool.status, pool.use) == ("reached", 4)
    _, unread = read_now({}, {}, kinds={"service"}, rules=rules_among([limit()], {}))
    assert "service.pool" in [one.id for one in unread]


def test_without_a_declared_limit_the_rules_are_those_of_the_table(make_step: StepMaker) -> None:
    assert rules_for([], [make_step(1, 1, {})]) == RULES
