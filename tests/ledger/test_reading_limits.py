"""The ledger reads ceilings and uses, and tells what was asked for from what is in effect."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

import pytest

from loadframe.ledger.reading import clamped, read_limits
from loadframe.model import Limit, SettingValue, Step, TargetState

StepMaker = Callable[..., Step]


def limits(
    steps: list[Step], state: TargetState | None = None, effective: Mapping[str, SettingValue] | None = None
) -> dict[str, Limit]:
    return {one.limit.id: one.limit for one in read_limits(steps, state or TargetState(), effective or {})}


TABLES = {"mariadb.open_tables": 40.0, "mariadb.table_open_cache": 431.0}


def test_use_is_the_largest_seen_and_headroom_what_is_left(make_step: StepMaker) -> None:
    steps = [make_step(1, 1, TABLES), make_step(2, 1, {**TABLES, "mariadb.open_tables": 100.0})]
    found = limits(steps)["mariadb.table_open_cache"]
    assert (found.use, found.ceiling, found.headroom) == (100, 431, 331)
    assert not found.loud
    assert found.chain[-1] == "process.open_files"


def test_configured_and_effective_are_told_apart(make_step: StepMaker) -> None:
    state = TargetState({"table_open_cache": 2000})
    found = limits([make_step(1, 1, TABLES)], state, {"table_open_cache": 431})["mariadb.table_open_cache"]
    assert (found.configured, found.effective) == (2000, 431)


def test_a_step_is_judged_by_the_most_connections_at_once(make_step: StepMaker) -> None:
    """Between two readings all may have been taken and given back."""
    metrics = {"mariadb.max_used_connections": 40.0, "mariadb.connections": 12.0, "mariadb.max_connections": 40.0}
    assert limits([make_step(1, 1, metrics)])["mariadb.max_connections"].use == 40


def test_a_process_limit_is_configured_by_the_cage(make_step: StepMaker) -> None:
    metrics = {"target.open_files": 900.0, "target.open_files.limit": 1024.0}
    found = limits([make_step(1, 1, metrics)], TargetState(limits={"RLIMIT_NOFILE": 1024}))["process.open_files"]
    assert found.configured == found.effective == 1024
    assert found.loud


def test_what_was_not_measured_is_not_in_the_ledger(make_step: StepMaker) -> None:
    assert limits([make_step(1, 1, {})]) == {}


def test_cpu_and_memory_are_limits_too(make_step: StepMaker) -> None:
    metrics = {
        "system.cpu.busy_cores": 3.0,
        "system.cpu.count": 4.0,
        "system.memory.limit": 100.0,
        "system.memory.used": 70.0,
    }
    found = limits([make_step(1, 1, metrics)])
    assert found["cpu.saturated"].use == pytest.approx(3.0)
    assert found["system.memory"].headroom == pytest.approx(30.0)


@pytest.mark.parametrize(
    ("asked", "got", "cut"),
    [
        (12000, 9909, True),
        (64, "64", False),
        ("WAL", "wal", False),
        ("ON", 1, False),
        ("1.0", 1, False),
        ("NORMAL", "FULL", True),
        (3761, 20000, False),
    ],
)
def test_only_real_cuts_are_reported(asked: SettingValue, got: SettingValue, cut: bool) -> None:
    said = clamped({"setting": asked}, {"setting": got})
    assert bool(said) is cut
    if cut:
        assert str(asked) in said[0]
        assert str(got) in said[0]
    assert clamped({"setting": asked}, {}) == ()


def test_largest_numbers_do_not_break_the_ledger(make_step: StepMaker) -> None:
    metrics = {"system.files.allocated": 1.0, "system.files.limit": float(sys.maxsize)}
    assert limits([make_step(1, 1, metrics)])["system.files"].headroom > 0
