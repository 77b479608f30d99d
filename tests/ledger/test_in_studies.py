"""The rules whose use or ceiling follows from other metrics are read in studies, as they are at a moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from loadframe.analysis.curve import LevelSample, fit
from loadframe.diagnosis.findings import diagnose
from loadframe.diagnosis.windows import look
from loadframe.experiments.examination import memory_at_full, with_memory_at_full
from loadframe.kinds.mysql import counters as mysql_counters
from loadframe.kinds.postgres import counters as postgres_settings
from loadframe.ledger.reading import derive, read_limits
from loadframe.metrics import METRICS
from loadframe.model import Limit, Step, TargetState

StepMaker = Callable[..., Step]
GIB = 2.0**30
HERE = {
    "system.cpu.count": 2.0,
    "system.memory.limit": 16 * GIB,
    "target.cpus.named": 64.0,
    "target.cpu.cores": 1.5,
    "target.memory.rss": 0.5 * GIB,
}
MARIADB = {
    **HERE,
    "mariadb.threads_running": 8.0,
    "mariadb.table_cache_hits": 900.0,
    "mariadb.table_cache_misses": 100.0,
    "mariadb.questions": 500.0,
    "mariadb.table_open_cache": 64.0,
    "mariadb.opened_tables": 1.0,
    "mariadb.pool_pages": 8192.0,
    "mariadb.pool_pages_free": 1024.0,
    "mariadb.pool_page_bytes": 16384.0,
    "mariadb.pool_reads": 10.0,
    "mariadb.pool_read_requests": 1000.0,
    "mariadb.max_connections": 151.0,
}
POSTGRES = {**HERE, "postgres.max_connections": 100.0, "postgres.connections_allowed": 97.0}


def limits(make_step: StepMaker, metrics: Mapping[str, float], kind: str, **effective: float) -> dict[str, Limit]:
    """Of steps with 4, 8 and 16 connections, each of which takes 8 MiB."""
    taken = []
    for count in (4, 8, 16):
        one = {**metrics, f"{kind}.connections": count, "target.memory.rss": 0.5 * GIB + count * 2**23}
        taken.append(make_step(count, 100.0, derive(one, {})[0]))
    series = read_limits(with_memory_at_full(taken, effective), TargetState(), {})
    return {one.limit.id: one.limit for one in series}


def test_a_mariadbs(make_step: StepMaker) -> None:
    found = limits(make_step, MARIADB, "mariadb")
    assert (found["process.cpus"].use, found["process.cpus"].ceiling) == (1.5, 2.0)
    assert (found["mariadb.tables_at_once"].use, found["mariadb.tables_at_once"].ceiling) == (16.0, 64.0)
    assert (found["mariadb.buffer_pool"].use, found["mariadb.buffer_pool"].ceiling) == (7168.0, 8192.0)
    expected = 0.5 * GIB + 151 * 2**23 + 1024 * 16384
    assert found["mariadb.memory_budget"].use == pytest.approx(expected)
    assert found["mariadb.memory_budget"].ceiling == 16 * GIB


def test_a_postgress(make_step: StepMaker) -> None:
    found = limits(make_step, {**POSTGRES, "target.memory.shared": 0.25 * GIB}, "postgres", shared_buffers=GIB)
    expected = 0.5 * GIB + 100 * 2**23 + 0.75 * GIB
    assert found["postgres.memory_budget"].use == pytest.approx(expected)


def test_the_memory_that_is_allowed_is_the_cages_where_there_is_one(make_step: StepMaker) -> None:
    found = limits(make_step, {**MARIADB, "target.cage.memory.limit": 2 * GIB}, "mariadb")
    assert found["mariadb.memory_budget"].ceiling == 2 * GIB


def test_as_many_connections_in_each_step_tell_nothing_of_what_each_takes() -> None:
    values = {"mariadb.max_connections": 151.0, "target.memory.allowed": GIB}
    assert memory_at_full("mariadb", [(4.0, 1e8), (4.0, 1.1e8), (8.0, 2e8)], values) is None


def test_of_a_target_in_pieces_nothing_is_made_up(make_step: StepMaker) -> None:
    metrics = {**POSTGRES, "shard1.cpu.cores": 1.0}
    assert "postgres.memory_budget" not in limits(make_step, metrics, "postgres", shared_buffers=GIB)


def test_steps_have_what_these_rules_need() -> None:
    """The counters that a private server is asked for in each step, and what is seen of its processes."""
    there = {spec.metric for spec in mysql_counters.MARIADB.specs}
    assert {name for name in MARIADB if name.startswith("mariadb.")} <= there
    assert {spec.metric for spec in postgres_settings.ASKED} >= {"postgres.max_connections"}
    assert {"target.cpus.named", "target.memory.shared"} <= METRICS.keys()


def test_a_limit_whose_harm_is_a_time_is_no_finding_of_its_own(make_step: StepMaker) -> None:
    """Seconds of waiting per request are no events that one request in twenty pays for: signatures judge them."""
    metrics = {**HERE, "target.cpu.cores": 2.0, "target.cpu.run_delay": 60.0}
    steps = [make_step(level, 100.0, derive(metrics, {})[0], block=block) for block in (1, 2) for level in (1, 2, 4)]
    found = [one.limit for one in read_limits(steps, TargetState(), {})]
    assert "process.cpus" in {limit.id for limit in found}
    samples = [LevelSample(level, (100.0, 100.0), (2.0, 2.0)) for level in (1.0, 2.0, 4.0)]
    findings, _ = diagnose(look(fit(samples, axis="concurrency", treatment="A"), steps), found)
    assert "process.cpus" not in {finding.id for finding in findings}
