"""Settings of the machine: read and written where the kernel has them, and refused before anything is changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loadframe.changes.host import CATALOGUE, Host
from loadframe.errors import ChangeError, StudyError, UserError
from loadframe.model import SettingValue


def test_values_are_read_as_the_kernel_means_them(root: Path) -> None:
    read = Host(root).read
    assert (read("vm.dirty_ratio"), read("transparent_hugepage.enabled")) == (20, "madvise")
    assert (read("cpu.11.governor"), read("block.vda.scheduler")) == ("performance", "none")


def test_what_was_written_is_read_back(root: Path) -> None:
    host = Host(root)
    for name, value in (("vm.dirty_ratio", 5), ("transparent_hugepage.enabled", "never"), ("cpu.0.governor", "x")):
        host.write(name, value)
        assert host.read(name) == value


def test_a_star_is_every_one_that_is_there(root: Path) -> None:
    assert Host(root).check({"cpu.*.governor": "performance", "vm.swappiness": "10"}) == {
        "cpu.0.governor": "performance",
        "cpu.11.governor": "performance",
        "vm.swappiness": 10,
    }


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("vm.dirty_ration", 5, "vm.dirty_ratio"),
        ("kernel.hostname", "x", "not a machine setting that Loadframe can change"),
        ("../etc/passwd", "x", "not a machine setting"),
        ("block.../../vda.scheduler", "none", "not a machine setting"),
        ("vm.swappiness", 201, "0 to 200"),
        ("vm.swappiness", True, "0 to 200"),
        ("vm.swappiness", "much", "'much'"),
        ("transparent_hugepage.enabled", "sometimes", "always, madvise, never"),
        ("net.core.somaxconn", 128, "4096, as it is now, or more"),
        ("cpu.0.governor", "ondemand", "performance, powersave"),
    ],
)
def test_what_will_not_do_is_refused(root: Path, name: str, value: SettingValue, words: str) -> None:
    with pytest.raises(StudyError) as caught:
        Host(root).check({name: value})
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["vm.vfs_cache_pressure", "block.vdb.scheduler", "block.*.read_ahead_kb"])
def test_what_is_not_there_is_refused(root: Path, name: str) -> None:
    with pytest.raises(ChangeError, match="Omit it"):
        Host(root).check({name: 1})


def test_what_may_not_be_written_is_refused_with_the_reason(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(ChangeError, match="not writable for this user") as caught:
        Host(root).check({"vm.dirty_ratio": 5})
    assert "root" in caught.value.remedy


def test_a_ratio_that_bytes_rule_is_not_touched(root: Path) -> None:
    """Writing the ratio would clear the bytes for good."""
    (root / "proc/sys/vm/dirty_ratio").write_text("0\n")
    (root / "proc/sys/vm/dirty_bytes").write_text("1048576\n")
    with pytest.raises(ChangeError, match=r"vm\.dirty_bytes = 1048576"):
        Host(root).check({"vm.dirty_ratio": 5})


def test_what_the_kernel_moves_along_is_known(root: Path) -> None:
    host = Host(root)
    assert host.moves("transparent_hugepage.enabled") == ("vm.min_free_kbytes",)
    assert host.moves("block.vda.scheduler") == ("block.vda.nr_requests",)
    assert host.moves("vm.swappiness") == ()


def test_the_catalogue_names_each_setting_once_and_where_it_was_read() -> None:
    assert len({row.name for row in CATALOGUE}) == len(CATALOGUE)
    for row in CATALOGUE:
        assert ".rst" in row.source or "ABI/" in row.source
        assert row.path.count("*") == row.name.count("*") <= 1


def test_this_machine_answers_for_its_own() -> None:
    """Whichever of them it has, it reads."""
    read = {}
    for row in CATALOGUE:
        try:
            read[row.name] = Host(Path("/")).read(row.name)
        except UserError:
            continue
    assert isinstance(read["vm.swappiness"], int)
