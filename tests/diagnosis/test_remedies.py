"""A remedy is a chain: every link that has to hold, in order, sized from what was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.diagnosis.remedies import Situation, propose, state_after
from loadframe.model import Finding, Remedy, SettingValue, TargetState

MARIADB: dict[str, SettingValue] = {
    "RLIMIT_NOFILE": 1024,
    "open_files_limit": 1024,
    "table_open_cache": 64,
    "max_connections": 151,
}


def finding(name: str) -> Finding:
    return Finding(name, name, None, (), 1.0)


def situation(
    kind: str, effective: Mapping[str, SettingValue], *, demand: float | None = None, state: TargetState | None = None
) -> Situation:
    ceilings = {"mariadb.table_open_cache": 64.0, "process.open_files": 1024.0}
    demands = {"mariadb.table_open_cache": demand}
    return Situation(kind, state or TargetState(), effective, demands, ceilings)


def only(remedies: tuple[Remedy, ...]) -> Remedy:
    assert len(remedies) == 1
    return remedies[0]


def test_a_larger_table_cache_raises_the_files_first() -> None:
    remedy = only(propose([finding("mariadb.table_open_cache")], situation("mariadb", MARIADB, demand=10_000)))
    assert [change.setting for change in remedy.changes] == ["RLIMIT_NOFILE", "open_files_limit", "table_open_cache"]
    files, limit, tables = (int(change.after) for change in remedy.changes)
    assert tables >= 1.2 * 10_000
    assert limit >= 10 + 151 + 2 * tables
    assert files >= limit
    assert all(change.needed for change in remedy.changes)


@pytest.mark.parametrize("cause", ["process.open_files", "mariadb.open_files_limit"])
def test_more_files_are_asked_for_as_far_as_the_machine_gives_them(cause: str) -> None:
    asked = only(propose([finding(cause)], situation("mariadb", MARIADB)))
    assert [(change.setting, change.after) for change in asked.changes] == [
        ("RLIMIT_NOFILE", 4100),
        ("open_files_limit", 4100),
    ]
    some = replace(situation("mariadb", MARIADB), most_open_files=2000)
    assert only(propose([finding(cause)], some)).changes[0].after == 2000
    assert propose([finding(cause)], replace(some, most_open_files=1024)) == ()


def test_a_link_that_suffices_is_named_and_left_alone() -> None:
    roomy = {**MARIADB, "RLIMIT_NOFILE": 1_000_000, "open_files_limit": 500_000}
    remedy = only(propose([finding("mariadb.table_open_cache")], situation("mariadb", roomy, demand=10_000)))
    assert [(change.setting, change.needed) for change in remedy.changes] == [
        ("RLIMIT_NOFILE", False),
        ("open_files_limit", False),
        ("table_open_cache", True),
    ]
    assert remedy.changes[0].before == remedy.changes[0].after == 1_000_000
    after = state_after(TargetState({"table_open_cache": 64}), remedy)
    assert set(after.settings) == {"table_open_cache"}
    assert after.limits == {}


def test_where_the_need_is_unknown_the_ceiling_is_quadrupled() -> None:
    remedy = only(propose([finding("mariadb.table_open_cache")], situation("mariadb", MARIADB, demand=None)))
    assert remedy.changes[-1].after == 260


@given(st.floats(1, 1e6))
def test_the_raised_ceiling_always_covers_the_need(demand: float) -> None:
    remedy = only(propose([finding("mariadb.table_open_cache")], situation("mariadb", MARIADB, demand=demand)))
    assert float(remedy.changes[-1].after) >= max(demand, 128)


def test_sqlite_goes_to_the_write_ahead_log_before_it_gives_durability_up() -> None:
    rollback: dict[str, SettingValue] = {"journal_mode": "delete", "synchronous": "FULL"}
    first = only(propose([finding("disk.fsync"), finding("lock.writer")], situation("sqlite", rollback)))
    assert first.id == "sqlite.journal_mode.wal"
    assert first.price.durability is None
    logged: dict[str, SettingValue] = {"journal_mode": "wal", "synchronous": 2}
    second = only(propose([finding("disk.fsync"), finding("lock.writer")], situation("sqlite", logged)))
    assert second.id == "sqlite.synchronous.normal"
    assert "lost" in (second.price.durability or "")


def test_nothing_is_proposed_where_nothing_is_left_to_gain() -> None:
    best: dict[str, SettingValue] = {"journal_mode": "wal", "synchronous": "NORMAL"}
    assert propose([finding("disk.fsync"), finding("lock.writer")], situation("sqlite", best)) == ()
    assert propose([finding("cpu.saturated")], situation("mariadb", MARIADB)) == ()


CAGED = {"cage.cpu_quota": 0.3, "cage.memory": 64.0 * 2**20, "cpu.saturated": 2.0, "system.memory": 8.0 * 2**30}


def caged(effective: Mapping[str, SettingValue], ceilings: Mapping[str, float]) -> Situation:
    return Situation("postgres", TargetState(), effective, dict.fromkeys(ceilings), ceilings)


def test_a_cage_is_raised_as_far_as_the_machine_goes() -> None:
    quota = only(propose([finding("cage.cpu_quota")], caged({"cpu.max": 30_000}, CAGED)))
    assert [(change.layer, change.setting, change.after) for change in quota.changes] == [
        ("process", "cpu.max", 120_000)
    ]
    larger = {**CAGED, "cage.cpu_quota": 1.5}
    assert only(propose([finding("cage.cpu_quota")], caged({"cpu.max": 150_000}, larger))).changes[0].after == 200_000
    all_of_it = {**CAGED, "cage.cpu_quota": 2.0}
    assert propose([finding("cage.cpu_quota")], caged({"cpu.max": 200_000}, all_of_it)) == ()
    memory = only(propose([finding("cage.memory")], caged({"memory.max": 64 << 20}, CAGED)))
    assert 4 * 64 * 2**20 <= int(memory.changes[0].after) <= CAGED["system.memory"]
    assert int(memory.changes[0].after) % 2**20 == 0, "the kernel cuts what is no whole page"
    assert "MiB of memory" in memory.title
    mapped = only(propose([finding("memory.mmap_page_faults")], caged({"memory.max": 64 << 20}, CAGED)))
    assert (mapped.id, mapped.changes) == (memory.id, memory.changes)
    assert state_after(TargetState({}, {"memory.max": 64 << 20}), memory).limits["memory.max"] > 64 << 20


@pytest.mark.extension("loadframe_bulk")
def test_a_component_in_front_of_the_shards_has_its_own_cage_raised() -> None:
    ceilings = {"cage.loader.cpu_quota": 0.4, "cage.cpu_quota": 0.3, "cpu.saturated": 2.0}
    loader = caged({"cpu.max": 30_000, "loader.cpu.max": 40_000}, ceilings)
    raised = only(propose([finding("cage.loader.cpu_quota")], loader))
    after = state_after(TargetState({}, {"cpu.max": 30_000, "loader.cpu.max": 40_000}), raised)
    assert after.limits == {"cpu.max": 30_000, "loader.cpu.max": 160_000}
    assert "the loader's cage" in raised.title
    assert propose([finding("cage.driver.cpu_quota")], caged({}, {"cage.driver.cpu_quota": 0.4})) == ()


def test_without_a_cage_there_is_nothing_to_raise() -> None:
    assert propose([finding("cage.cpu_quota"), finding("cage.write_bytes")], caged({}, {})) == ()


def test_a_larger_pool_stays_within_half_of_the_memory_that_the_cage_has() -> None:
    pool: dict[str, SettingValue] = {"innodb_buffer_pool_size": 8 << 20}
    roomy = Situation("mariadb", TargetState(), pool, {}, {"system.memory": 8.0 * 2**30})
    assert only(propose([finding("mariadb.buffer_pool")], roomy)).changes[0].after == 64 << 20
    tight = replace(roomy, ceilings={**roomy.ceilings, "cage.memory": 64.0 * 2**20})
    assert only(propose([finding("mariadb.buffer_pool")], tight)).changes[0].after == 32 << 20
    full = replace(roomy, ceilings={"system.memory": 16.0 * 2**20})
    assert propose([finding("mariadb.buffer_pool")], full) == ()


@pytest.mark.parametrize("kind", ["mariadb", "postgres"])
def test_remedies_for_sqlite_are_not_offered_to_others(kind: str) -> None:
    rollback: dict[str, SettingValue] = {"journal_mode": "delete", "synchronous": "FULL"}
    ids = {remedy.id for remedy in propose([finding("disk.fsync")], situation(kind, rollback))}
    assert not any(name.startswith("sqlite") for name in ids)


POSTGRES: dict[str, SettingValue] = {
    "max_connections": 20,
    "shared_buffers": 128 << 20,
    "max_wal_size": 32 << 20,
    "synchronous_commit": "on",
    "fsync": True,
}


def test_postgres_gets_more_connections_than_it_keeps_for_administrators() -> None:
    demand, ceiling = {"postgres.max_connections": 65.0}, {"postgres.max_connections": 17.0}
    asked = Situation("postgres", TargetState(), POSTGRES, demand, ceiling)
    (change,) = only(propose([finding("postgres.max_connections")], asked)).changes
    assert (change.setting, change.before) == ("max_connections", 20)
    assert int(change.after) >= 1.2 * 65


def test_postgres_is_tried_without_compiling_statements() -> None:
    situation = Situation("postgres", TargetState(), POSTGRES, {}, {})
    (change,) = only(propose([finding("postgres.jit")], situation)).changes
    assert (change.setting, change.after) == ("jit", False)


def test_shared_buffers_of_postgres_are_raised_within_half_of_the_memory() -> None:
    small = Situation("postgres", TargetState(), POSTGRES, {}, {"system.memory": float(512 << 20)})
    (change,) = only(propose([finding("postgres.shared_buffers")], small)).changes
    assert (change.setting, change.after) == ("shared_buffers", 256 << 20)
    assert propose([finding("postgres.shared_buffers")], replace(small, target_kind="sqlite")) == ()


@pytest.mark.parametrize(
    ("effective", "changes"),
    [
        (
            {"innodb_flush_log_at_trx_commit": 1, "sync_binlog": 1, "log_bin": True},
            {"innodb_flush_log_at_trx_commit": 2, "sync_binlog": 1000},
        ),
        (
            {"innodb_flush_log_at_trx_commit": 1, "sync_binlog": 1, "log_bin": False},
            {"innodb_flush_log_at_trx_commit": 2},
        ),
        ({"innodb_flush_log_at_trx_commit": 2, "sync_binlog": 1, "log_bin": True}, {"sync_binlog": 1000}),
        ({"innodb_flush_log_at_trx_commit": 2, "sync_binlog": 0, "log_bin": True}, {}),
    ],
)
def test_a_commit_of_mysql_waits_for_two_logs(
    effective: dict[str, SettingValue], changes: dict[str, SettingValue]
) -> None:
    made = propose([finding("disk.fsync")], Situation("mysql", TargetState(), effective, {}, {}))
    assert {change.setting: change.after for one in made for change in one.changes} == changes
    assert all("power" in (one.price.durability or "") for one in made), "what may be lost is said"


LITTLE_MEMORY = {"system.memory": 64.0 * 2**20}


@pytest.mark.parametrize(
    ("kind", "cause", "before"),
    [
        ("mariadb", "mariadb.redo_log", {"innodb_log_file_size": 100 << 20}),
        ("mysql", "mysql.redo_log", {"innodb_redo_log_capacity": 100 << 20}),
        ("postgres", "postgres.checkpoints", {"max_wal_size": 100 << 20}),
    ],
)
def test_what_is_on_the_disk_grows_within_half_of_what_is_free_there(
    kind: str, cause: str, before: dict[str, SettingValue]
) -> None:
    (setting, size), *_ = before.items()
    asked = Situation(kind, TargetState(), before, {}, LITTLE_MEMORY, free_disk_bytes=600.0 * 2**20)
    (change,) = only(propose([finding(cause)], asked)).changes
    assert (change.setting, change.before, change.after) == (setting, size, 400 << 20), "memory is no bound"
    roomy = replace(asked, free_disk_bytes=float(1 << 40))
    assert int(only(propose([finding(cause)], roomy)).changes[0].after) >= 800 << 20
    full = replace(asked, free_disk_bytes=190.0 * 2**20)
    assert propose([finding(cause)], full) == (), "it cannot even be doubled: the disk is the bound"
    unknown = replace(asked, free_disk_bytes=math.inf, ceilings={"system.memory": 300.0 * 2**20})
    assert only(propose([finding(cause)], unknown)).changes[0].after == 150 << 20, (
        "then no more than half of the memory"
    )


def test_commits_of_postgres_wait_no_longer_only_for_a_price() -> None:
    remedy = only(propose([finding("disk.fsync")], Situation("postgres", TargetState(), POSTGRES, {}, {})))
    assert [(change.setting, change.after) for change in remedy.changes] == [("synchronous_commit", "off")]
    assert remedy.price.durability is not None
    for already in ({"synchronous_commit": "off"}, {"fsync": False}):
        asked = Situation("postgres", TargetState(), {**POSTGRES, **already}, {}, {})
        assert propose([finding("disk.fsync")], asked) == ()
