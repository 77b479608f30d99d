"""The settings of MySQL Cluster: each has a source and a kind of restart, and says what it does not take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe_ndb.settings import (
    FIRST,
    GIVES_UP,
    MEMORY,
    PER_PART,
    RESTARTS,
    SETTINGS,
    TAKES,
    Setting,
    read_cpus,
)

ALL = [setting for table in SETTINGS.values() for setting in table.values()]
NDBD = SETTINGS["ndbd"]


@pytest.mark.parametrize("setting", ALL, ids=lambda setting: f"{setting.section}.{setting.name}")
def test_each_setting_has_a_source_and_takes_its_own_default_and_bounds(setting: Setting) -> None:
    assert setting.source
    assert setting.restart in RESTARTS
    for value in (setting.default, setting.low, setting.high):
        if value is not None and not setting.choices:
            assert setting.read(setting.show(value)) == value
    assert all(setting.read(str(choice)) == choice for choice in setting.choices)


def test_what_is_known_of_settings_belongs_to_settings() -> None:
    for table in (MEMORY, TAKES, GIVES_UP, FIRST, [PER_PART]):
        assert {name.lower() for name in table} <= NDBD.keys()


@pytest.mark.parametrize(
    ("name", "written", "value"),
    [
        ("DataMemory", "98M", 98 * 2**20),
        ("DataMemory", "16MB", 16 * 2**20),
        ("DataMemory", "2 G", 2**31),
        ("MaxNoOfConcurrentOperations", "32k", 32768),
        ("NoOfFragmentLogParts", "8", 8),
        ("Diskless", "Y", True),
        ("StopOnError", "0", False),
        ("Arbitration", "waitexternal", "WaitExternal"),
        ("LockExecuteThreadToCPU", "0-2, 5", "0-2, 5"),
    ],
)
def test_values_are_read_as_the_management_server_reads_them(name: str, written: str, value: object) -> None:
    assert NDBD[name.lower()].read(written) == value


@pytest.mark.parametrize(
    ("name", "written", "right"),
    [
        ("DataMemory", "512m", "capitals"),
        ("DataMemory", "1T", "capitals"),
        ("DataMemory", "512K", "1M to 16384G"),
        ("DataMemory", "-1", "whole number"),
        ("DataMemory", "", "whole number"),
        ("MaxNoOfExecutionThreads", "73", "2 to 72"),
        ("TimeBetweenGlobalCheckpoints", "60000", "20 to 32000 ms"),
        ("NoOfFragmentLogParts", "5", "one of 4, 6, 8"),
        ("Diskless", "on", "true or false"),
        ("LockPagesInMainMemory", "true", "whole number"),
        ("Arbitration", "none", "one of Default, Disabled"),
        ("LockExecuteThreadToCPU", "0;1", "such as 0-3,6"),
        ("LockExecuteThreadToCPU", "70000", "65535"),
    ],
)
def test_what_a_setting_does_not_take_is_refused_with_what_would_be_right(name: str, written: str, right: str) -> None:
    with pytest.raises(ValueError, match=right):
        NDBD[name.lower()].read(written)


def test_durability_is_given_up_by_some_values_only() -> None:
    checkpoints, diskless = NDBD["timebetweenglobalcheckpoints"], NDBD["diskless"]
    assert [checkpoints.weakens(ms) for ms in (1000, 2000, 2001)] == [False, False, True]
    assert [diskless.weakens(value) for value in (False, True)] == [False, True]
    assert NDBD["odirectsyncflag"].weakens(True)
    assert [NDBD["startpartitionedtimeout"].weakens(ms) for ms in (0, 60000)] == [False, True]
    assert not NDBD["datamemory"].weakens(2**30)


@given(st.frozensets(st.integers(0, 65535), min_size=1, max_size=8))
def test_lists_of_cpus_are_read_in_any_order(cpus: frozenset[int]) -> None:
    assert read_cpus(",".join(map(str, sorted(cpus, reverse=True)))) == cpus


@given(st.text(max_size=12))
def test_any_text_is_a_list_of_cpus_or_refused(text: str) -> None:
    try:
        assert read_cpus(text)
    except ValueError as error:
        assert "CPU" in str(error)


@pytest.mark.parametrize(
    ("name", "refused", "taken"),
    [("IndexMemory", "0", "1M"), ("ReservedConcurrentScans", "501", "500"), ("MaxBufferedEpochs", "0", "1")],
)
def test_what_ndb_mgmd_9_7_2_refused_is_refused_though_the_manual_has_it(name: str, refused: str, taken: str) -> None:
    setting = SETTINGS["ndbd"][name.lower()]
    assert setting.read(taken)
    with pytest.raises(ValueError, match=" to "):
        setting.read(refused)


def test_what_no_user_may_set_is_no_setting() -> None:
    """ndb_mgmd 9.7.2: "not configurable by user"."""
    assert "restartonerrorinsert" not in SETTINGS["ndbd"]
