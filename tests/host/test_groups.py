"""Where control groups are, and where one of ours may be made: version 1, version 2, and what a machine refuses."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loadframe.cages import groups
from loadframe.errors import CageError

Machine = Callable[[int], Any]


def parents(tree: Any, *wanted: str) -> set[str]:
    return {str(place.parent.relative_to(tree.top)) for place in groups.find(wanted, tree.root)}


def test_every_controller_is_found_whatever_the_version(tree: Any) -> None:
    there = groups.available(tree.root)
    assert set(there) == {"cpu", "cpuset", "memory", "io", "pids"}
    for found in there.values():
        assert found is not None
        assert f"version {tree.version}" in found
        assert found.endswith("user/me")


def test_in_version_1_groups_are_made_below_our_own_and_none_that_would_change_more_than_is_asked(
    machine: Machine,
) -> None:
    tree = machine(1)
    assert parents(tree, "memory") == {f"{name}/user/me" for name in ("memory", "cpuacct", "blkio", "pids")}
    assert "cpu/user/me" in parents(tree, "cpu"), "only where a quota is asked for: the group has shares of its own"
    assert not any(name.startswith("cpuset") for name in parents(tree, "cpu"))


def test_in_version_2_controllers_are_handed_down_from_the_top(machine: Machine) -> None:
    tree = machine(2)
    assert parents(tree, "cpu", "memory") == {"user/me"}
    for folder in (tree.top, tree.top / "user", tree.top / "user/me"):
        assert {"cpu", "memory"} <= set((folder / "cgroup.subtree_control").read_text().split())


def test_a_group_with_processes_hands_nothing_down_so_the_one_above_it_is_taken(machine: Machine) -> None:
    tree = machine(2)
    tree.busy.add(tree.top / "user/me")
    assert parents(tree, "memory") == {"user"}
    assert parents(tree) == {"user/me"}, "where nothing is limited, counting needs no controllers"


@pytest.mark.parametrize(
    ("file", "limit"),
    [
        ("memory.max", "1073741824"),
        ("memory.high", "1073741824"),
        ("cpu.max", "50000 100000"),
        ("pids.max", "4915"),
        ("io.max", "254:0 rbps=max wbps=1048576 riops=max wiops=max"),
        ("cpuset.cpus", "0-1"),
    ],
)
def test_no_group_is_made_outside_of_one_that_limits_us(machine: Machine, file: str, limit: str) -> None:
    tree = machine(2)
    tree.busy.add(tree.top / "user/me")
    (tree.top / "user/me" / file).write_text(f"{limit}\n")
    with pytest.raises(CageError, match=f"{file} = {limit}"):
        groups.find(["memory"], tree.root)


@pytest.mark.parametrize(
    ("file", "allows"), [("cpu.max", "max 100000"), ("pids.max", "max"), ("io.max", "254:0 rbps=max wbps=max")]
)
def test_a_group_that_allows_everything_does_not_limit_us(machine: Machine, file: str, allows: str) -> None:
    tree = machine(2)
    tree.busy.add(tree.top / "user/me")
    (tree.top / "user/me" / file).write_text(f"{allows}\n")
    assert parents(tree, "memory") == {"user"}


def test_a_machine_without_control_groups_says_what_would_be_needed(tmp_path: Path) -> None:
    assert set(groups.available(tmp_path).values()) == {None}
    with pytest.raises(CageError, match="cpu, memory") as caught:
        groups.find(["memory", "cpu"], tmp_path)
    assert "root" in caught.value.remedy
    assert "Delegate=yes" in caught.value.remedy
    assert groups.find([], tmp_path) == []


def test_a_group_that_is_not_ours_to_write_is_named(tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert set(groups.available(tree.root).values()) == {None}
    with pytest.raises(CageError, match="user/me is not writable"):
        groups.find(["pids"], tree.root)


def test_a_container_that_sees_a_part_of_the_hierarchy_is_understood(machine: Machine) -> None:
    tree = machine(1)
    inside = "30 24 0:30 /docker/4f /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    (tree.root / "proc/self/mountinfo").write_text(inside)
    (tree.root / "proc/self/cgroup").write_text("30:memory:/docker/4f\n")
    assert parents(tree, "memory") == {"memory"}


@pytest.mark.parametrize("text", ["", "garbage", "30 24\n - \n", "1 2 3 / / rw - cgroup cgroup rw,\n"])
def test_odd_mount_tables_are_machines_without_control_groups(tmp_path: Path, text: str) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(text)
    assert set(groups.available(tmp_path).values()) == {None}
