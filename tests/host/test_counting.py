"""The kernel is asked once to count every disk, without a rule that is ever in force."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loadframe.cages import cage as counting
from loadframe.cages.cage import COUNTS, RULES, Cage
from loadframe.cages.groups import hierarchies
from loadframe.host.leases import Lease
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance, spawn

ADD, REMOVE = 0x4C80, 0x4C81
"""LOOP_CTL_ADD and LOOP_CTL_REMOVE in include/uapi/linux/loop.h."""
MIB = 1 << 20


def disks(root: Path, **sizes: int) -> None:
    """Of a machine that is only folders and files: 254:0 is the first, 254:1 the next."""
    for minor, (name, sectors) in enumerate(sizes.items()):
        folder = root / "sys/block" / name
        folder.mkdir(parents=True)
        (folder / "dev").write_text(f"254:{minor}\n")
        (folder / "size").write_text(f"{sectors}\n")


def written(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, str]]:
    """What is put where from now on; it is put there, too."""
    puts: list[tuple[Path, str]] = []

    def put(path: Path, value: int | str) -> None:
        puts.append((path, str(value)))
        path.write_text(str(value))

    monkeypatch.setattr(counting, "put", put)
    return puts


def test_every_disk_that_is_not_counted_yet_is_asked_for_once(
    machine: Any, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = machine(1)
    (tree.top / "blkio" / COUNTS).parent.mkdir(exist_ok=True)
    (tree.top / "blkio" / COUNTS).write_text("254:1 Read 0\n254:1 Total 0\nTotal 0\n")
    disks(tree.root, vda=2048, vdb=2048, loop0=0)
    puts = written(monkeypatch)
    cage = Cage.make("target", {}, lease=lease, root=tree.root, make_folder=tree.make)
    (group,) = (folder for folder in cage.folders if "blkio" in folder.parts)
    assert puts == [(group / RULES, "254:0 0")]
    assert cage.limits() == {}


def test_version_2_needs_none(machine: Any, lease: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = machine(2)
    disks(tree.root, vda=2048)
    puts = written(monkeypatch)
    assert Cage.make("target", {}, lease=lease, root=tree.root, make_folder=tree.make).folders
    assert puts == []


def test_a_machine_that_refuses_it_is_measured_all_the_same(
    machine: Any, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = machine(1)
    disks(tree.root, vda=2048)

    def refused(path: Path, value: int | str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(counting, "put", refused)
    assert Cage.make("target", {}, lease=lease, root=tree.root, make_folder=tree.make).folders


@pytest.fixture
def new_disk(tmp_path: Path) -> Iterator[Path]:
    """A loop device that the kernel has just made: of it nothing is counted yet, as of any disk of a machine that has
    just started."""
    control = Path("/dev/loop-control")
    version_1 = any(each.version == 1 and "io" in each.controllers for each in hierarchies())
    if os.geteuid() != 0 or not control.exists() or not version_1:
        pytest.skip("needs root, loop devices and control groups of version 1 that count disks")
    descriptor = os.open(control, os.O_RDWR)
    number = next(n for n in range(64, 256) if not Path(f"/sys/block/loop{n}").exists())
    try:
        fcntl.ioctl(descriptor, ADD, number)
    except OSError as error:
        os.close(descriptor)
        pytest.skip(f"no loop device can be made here: {error}")
    disk = Path(f"/dev/loop{number}")
    image = tmp_path / "image"
    image.write_bytes(bytes(16 * MIB))
    try:
        if subprocess.run(["losetup", disk, image], capture_output=True).returncode != 0:
            pytest.skip("no loop device can be set up here")
        yield disk
    finally:
        subprocess.run(["losetup", "--detach", disk], check=False)
        fcntl.ioctl(descriptor, REMOVE, number)
        os.close(descriptor)


def test_what_is_written_to_a_disk_that_has_just_appeared_is_counted(new_disk: Path, lease: Lease) -> None:
    cage = Cage.make("target", {}, lease=lease)
    (group,) = (folder for folder in cage.folders if (folder / COUNTS).exists())
    command = ["dd", "if=/dev/zero", f"of={new_disk}", "bs=1M", "count=8", "oflag=direct", "status=none"]
    null = subprocess.DEVNULL
    assert spawn(command, Allowance(US, groups=cage.folders), stdout=null, stderr=null).wait() == 0
    number = new_disk.stat().st_rdev
    counted = f"{os.major(number)}:{os.minor(number)} Write {8 * MIB}"
    assert counted in (group / COUNTS).read_text().splitlines()
    assert (group / RULES).read_text() == "", "no rule is in force"
