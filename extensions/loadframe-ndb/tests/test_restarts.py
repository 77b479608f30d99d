"""Which restarts lead a cluster from one set of settings to another."""

from __future__ import annotations

import pytest

from loadframe.errors import TargetError
from loadframe.model import SettingValue
from loadframe_ndb.own_settings import checked
from loadframe_ndb.private_cluster import stages

Settings = dict[str, SettingValue]


def plan(old: Settings, new: Settings, replicas: int = 2) -> list[tuple[str, Settings]]:
    return [(one.restart, dict(one.settings)) for one in stages(checked(old), checked(new), replicas)]


def test_what_each_node_reads_for_itself_is_changed_in_turn() -> None:
    assert plan({}, {"SchedulerSpinTimer": 100}) == [("rolling", {"SchedulerSpinTimer": 100})]


def test_with_one_copy_all_of_it_restarts() -> None:
    assert plan({}, {"SchedulerSpinTimer": 100}, replicas=1) == [("system", {"SchedulerSpinTimer": 100})]


def test_what_all_nodes_must_have_alike_restarts_all_of_them() -> None:
    assert plan({"MaxNoOfExecutionThreads": 4}, {}) == [("system", {})]


def test_where_it_is_not_said_all_of_it_restarts() -> None:
    assert plan({}, {"tcp_SendBufferMemory": "1M"}) == [("system", {"tcp_SendBufferMemory": 1 << 20})]


def test_the_same_values_need_nothing() -> None:
    assert plan({"DataMemory": "98M"}, {"datamemory": 98 << 20}) == []


def test_a_default_that_is_given_is_no_value_left_out_as_versions_differ_in_theirs() -> None:
    assert plan({"StringMemory": 25}, {}) == [("system", {})]
    assert plan({"NoOfReplicas": 2}, {}) == [], "where no restart could follow"


def test_an_empty_file_system_comes_last_and_leaves_nothing_old() -> None:
    old: Settings = {"FragmentLogFileSize": "8M", "SchedulerSpinTimer": 1}
    new: Settings = {"FragmentLogFileSize": "4M", "MaxNoOfExecutionThreads": 4}
    assert plan(old, new) == [
        ("system", {"MaxNoOfExecutionThreads": 4, "FragmentLogFileSize": 8 << 20}),
        ("rolling, initial", {"MaxNoOfExecutionThreads": 4, "FragmentLogFileSize": 4 << 20}),
    ]
    assert plan(old, {"FragmentLogFileSize": "4M"}) == [("rolling, initial", {"FragmentLogFileSize": 4 << 20})]


def test_an_empty_file_system_with_one_copy_is_refused() -> None:
    with pytest.raises(TargetError, match="FragmentLogFileSize") as caught:
        plan({}, {"FragmentLogFileSize": "4M"}, replicas=1)
    assert "NoOfReplicas = 2" in caught.value.remedy


def test_what_takes_a_cluster_without_data_is_refused() -> None:
    with pytest.raises(TargetError, match="NoOfReplicas") as caught:
        plan({}, {"NoOfReplicas": 1})
    assert "target.settings" in caught.value.remedy
