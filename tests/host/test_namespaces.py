"""A state directory that is shared with a container: pids mean another process there, or none."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from loadframe.cages import groups
from loadframe.errors import CageError
from loadframe.host import identity
from loadframe.host.leases import Lease
from loadframe.host.leftovers import sweep

INSIDE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
OWNER = """
import subprocess, sys
from loadframe.host.leases import Lease
lease = Lease.acquire("a study")
child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE,
                         stdout=open(lease.folder / "data", "w"), start_new_session=True)
lease.add_process(child.pid)
print(lease.folder, flush=True)
sys.stdin.read()
"""
SWEEP = "from loadframe.host.leftovers import sweep; print(*sweep(), sep='\\n')"


def _possible() -> bool:
    return (
        shutil.which("unshare") is not None
        and not subprocess.run([*INSIDE, "true"], capture_output=True, check=False).returncode
    )


pytestmark = pytest.mark.skipif(not _possible(), reason="no namespaces of pids may be made here")


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOADFRAME_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("LOADFRAME_SCRATCH", str(tmp_path / "scratch"))
    return tmp_path


def swept_inside() -> str:
    return subprocess.run([*INSIDE, sys.executable, "-c", SWEEP], capture_output=True, text=True, check=True).stdout


class Owner:
    """A command with a lease, and a process of it that writes into its folder."""

    def __init__(self, *prefix: str) -> None:
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.folder = Path(self._lines().readline().strip())

    def _lines(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    def own_pid(self) -> int:
        """As seen from here."""
        known = [self.process.pid, *identity.children(self.process.pid)]
        return known[-1]

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def outside() -> Iterator[Owner]:
    owner = Owner()
    yield owner
    owner.close()


@pytest.fixture
def inside() -> Iterator[Owner]:
    owner = Owner(*INSIDE)
    yield owner
    owner.close()


def test_a_command_in_a_container_leaves_a_running_command_alone(outside: Owner) -> None:
    assert swept_inside().strip() == ""
    assert (outside.folder / "data").exists()


def test_a_running_command_in_a_container_is_left_alone(inside: Owner) -> None:
    assert sweep() == []
    assert (inside.folder / "data").exists()


def test_what_may_be_in_use_elsewhere_is_left_and_said(outside: Owner, places: Path) -> None:
    with (outside.folder / "data").open("a"):  # they are in use, whatever becomes of the owner's child
        outside.close()
        said = swept_inside()
        for word in ("another PID namespace", "open for writing", str(outside.folder), "delete it"):
            assert word in said
        assert (outside.folder / "data").exists()
    (swept,) = sweep()
    assert f"removed {outside.folder}" in str(swept)


def test_what_a_container_that_is_gone_has_left_is_removed(inside: Owner) -> None:
    os.kill(inside.own_pid(), signal.SIGKILL)  # the first process of its namespace: all others end with it
    inside.process.wait(30)
    (swept,) = sweep()
    assert f"removed {inside.folder}" in str(swept)


def test_pids_of_another_namespace_are_never_ended(monkeypatch: pytest.MonkeyPatch, places: Path) -> None:
    """The numbers fit a process of ours by chance."""
    stranger = subprocess.Popen(["sleep", "1000"])
    try:
        lease = Lease.acquire("a study")
        lease.add_process(stranger.pid)
        (file,) = (places / "state/leases").glob("*.json")
        file.write_text(file.read_text().replace(identity.own_namespace(), "1.1"))
        lease._life.forget()
        sweep()
        assert stranger.poll() is None
        assert not lease.folder.exists()
    finally:
        stranger.kill()
        stranger.wait()


def test_without_a_sign_of_life_nothing_of_another_namespace_that_is_in_use_is_removed(places: Path) -> None:
    lease = Lease.acquire("a study")
    (file,) = (places / "state/leases").glob("*.json")
    file.write_text(file.read_text().replace(identity.own_namespace(), "1.1"))
    lease._life.end()
    with (lease.folder / "data").open("w"):
        (swept,) = sweep()
        assert "cannot be seen from here" in str(swept)
        assert lease.folder.exists()
    lease.release()


def test_data_that_lie_in_another_mount_namespace_are_not_forgotten(places: Path) -> None:
    """A container that shares the state directory alone: its scratch folder has the same path, and not our data."""
    lease = Lease.acquire("a study")
    (file,) = (places / "state/leases").glob("*.json")
    record = json.loads(file.read_text())
    file.write_text(json.dumps(record | {"owner": record["owner"] | {"started_ticks": 1}, "mounts": "1"}))
    lease._life.end()
    away = lease.folder.rename(places / "away")
    (swept,) = sweep()
    assert "not seen from here" in str(swept) and file.exists()
    away.rename(lease.folder)
    (swept,) = sweep()
    assert f"removed {lease.folder}" in str(swept) and not file.exists()


def test_control_groups_that_are_mounted_in_another_namespace_alone_are_not_taken_for_removed(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = Lease.acquire("a study")
    lease.add_groups([places / f"cgroup/cpu/loadframe-{lease.id}"])
    (file,) = (places / "state/leases").glob("*.json")
    record = json.loads(file.read_text())
    file.write_text(json.dumps(record | {"owner": record["owner"] | {"started_ticks": 1}, "mounts": "1"}))
    lease._life.end()
    monkeypatch.setattr(groups, "hierarchies", lambda: ())
    (swept,) = sweep()
    assert f"loadframe-{lease.id} in another mount namespace" in str(swept) and file.exists()
    top = places / "cgroup/cpu"
    monkeypatch.setattr(groups, "hierarchies", lambda: (groups.Hierarchy(1, frozenset({"cpu"}), top, top),))
    (swept,) = sweep()
    assert f"removed {lease.folder}" in str(swept) and not file.exists()


def test_a_lease_of_the_version_before_is_swept_too(places: Path) -> None:
    lease = Lease.acquire("a study")
    (file,) = (places / "state/leases").glob("*.json")
    old = json.loads(file.read_text())
    del old["machine"], old["mounts"], old["owner"]["namespace"]
    file.write_text(json.dumps(old | {"schema": "loadframe.lease/1"}))
    lease._life.end()
    assert sweep() == []
    old["owner"]["started_ticks"] = 1
    file.write_text(json.dumps(old | {"schema": "loadframe.lease/1"}))
    (swept,) = sweep()
    assert f"removed {lease.folder}" in str(swept)


def test_a_machine_that_was_given_another_name_is_the_same(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "machine", lambda: "one")
    monkeypatch.setattr(identity, "boot_id", lambda: "before")
    lease = Lease.acquire("a study")
    lease._life.forget()
    monkeypatch.setattr(identity, "host_name", lambda: "renamed")
    monkeypatch.setattr(identity, "boot_id", lambda: "after")
    (swept,) = sweep()
    assert f"removed {lease.folder}" in str(swept)


@pytest.mark.long
def test_without_proc_leftovers_stay_and_the_rest_goes_on(places: Path) -> None:
    lease = Lease.acquire("a study")
    lease._life.end()
    loadframe = Path(sys.executable).with_name("loadframe")
    without = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "-", loadframe]
    listed = subprocess.run([*without, "case", "list"], capture_output=True, text=True, check=False)
    assert listed.returncode == 0 and "render-farm" in listed.stdout
    assert "Leftovers of killed commands were not checked: /proc is not mounted (" in listed.stderr
    measured = subprocess.run([*without, "demo"], capture_output=True, text=True, check=False)
    assert measured.returncode == 1 and measured.stderr.startswith("/proc is not mounted (")
    assert lease.folder.exists()


def test_a_file_of_proc_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "BOOT_ID", tmp_path / "boot_id")
    with pytest.raises(CageError, match="boot_id cannot be read: No such file or directory"):
        identity.boot_id()


def test_proc_of_another_namespace_is_refused(places: Path) -> None:
    code = "from loadframe.host.leases import Lease; Lease.acquire('a study')"
    plain = [word for word in INSIDE if word != "--mount-proc"]
    done = subprocess.run([*plain, sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert CageError.__name__ in done.stderr
    assert "mount" in done.stderr
