"""A cage sets what it is told in either version, counts what is used in it, and holds for real where the machine lets
us."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loadframe.cages import cage as cages
from loadframe.cages import groups
from loadframe.cages.cage import LIMITS, Cage
from loadframe.errors import CageError
from loadframe.host.leases import Lease
from loadframe.host.leftovers import sweep
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance, spawn

SOME = {
    "cpu.max": 50_000,
    "memory.max": 64 << 20,
    "pids.max": 20,
    "io.rbps": 1_000_000,
    "io.wbps": 2_000_000,
    "io.riops": 300,
    "io.wiops": 400,
}


@pytest.fixture(autouse=True)
def one_disk(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "tree" in request.fixturenames or "machine" in request.fixturenames:
        monkeypatch.setattr(cages, "block_device", lambda path, root=Path("/"): "254:0")


def made(tree: Any, lease: Lease, limits: dict[str, int] | None = None, **options: Any) -> Cage:
    return Cage.make(
        "target", SOME if limits is None else limits, lease=lease, root=tree.root, make_folder=tree.make, **options
    )


def contents(cage: Cage, name: str) -> str:
    (text,) = {(folder / name).read_text() for folder in cage.folders if (folder / name).exists()}
    return text


# --- limits ---


def test_limits_are_written_in_the_words_of_their_version_and_read_back(tree: Any, lease: Lease) -> None:
    limits = {name: SOME[name] for name in ("cpu.max", "memory.max", "pids.max", "io.wbps")}
    cage = made(tree, lease, limits)
    assert cage.limits() == limits
    if tree.version == 1:
        assert contents(cage, "cpu.cfs_quota_us") == "50000"
        assert contents(cage, "memory.limit_in_bytes") == "67108864"
        assert int(contents(cage, "memory.memsw.limit_in_bytes")) - 67108864 == cages.SWAP_BYTES
        assert contents(cage, "blkio.throttle.write_bps_device") == "254:0 2000000"
    else:
        assert contents(cage, "cpu.max") == "50000 100000"
        assert (contents(cage, "memory.max"), contents(cage, "memory.swap.max")) == ("67108864", "0")
        assert contents(cage, "io.max") == "254:0 wbps=2000000"
    assert contents(cage, "pids.max") == "20"


def test_a_limit_that_is_no_longer_asked_for_is_lifted(tree: Any, lease: Lease) -> None:
    cage = made(tree, lease, {"cpu.max": 50_000, "memory.max": 64 << 20})
    cage.set({"memory.max": 128 << 20})
    assert cage.limits() == {"memory.max": 128 << 20}
    assert contents(cage, "cpu.cfs_quota_us" if tree.version == 1 else "cpu.max").split()[0] in ("-1", "max")


@pytest.mark.parametrize("name", LIMITS)
def test_every_limit_is_written_and_read_back_by_itself(tree: Any, lease: Lease, name: str) -> None:
    assert made(tree, lease, {name: SOME[name]}).limits() == {name: SOME[name]}


def test_a_limit_that_the_kernel_refuses_is_named_with_its_value(
    tree: Any, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    cage = made(tree, lease, {"memory.max": 64 << 20})

    def busy(path: Path, value: int | str) -> None:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(cages, "put", busy)
    with pytest.raises(
        CageError, match=r"memory.max = 1048576 was refused .* target: Device or resource busy"
    ) as caught:
        cage.set({"memory.max": 1 << 20})
    assert "allow more" in caught.value.remedy


def test_cpus_are_bound_by_a_cpuset_too_where_there_is_one(tree: Any, lease: Lease) -> None:
    for folder in (tree.top / "cpuset/user/me", tree.top):
        if folder.is_dir():
            (folder / "cpuset.effective_mems").write_text("0\n")
    cage = made(tree, lease, {}, cpus=frozenset({0, 2}))
    assert contents(cage, "cpuset.cpus") == "0,2"
    if tree.version == 1:
        assert contents(cage, "cpuset.mems") == "0"


def test_the_lease_knows_every_group_before_it_is_made(tree: Any, lease: Lease) -> None:
    known: list[bool] = []

    def watched(folder: Path) -> None:
        known.append(str(folder) in lease._file.read_text())
        tree.make(folder)

    Cage.make("target", {"memory.max": 64 << 20}, lease=lease, root=tree.root, make_folder=watched)
    assert known
    assert all(known)


def test_the_group_that_limits_a_process_has_the_smallest_quota(tree: Any) -> None:
    """A pod has a quota, the container in it none, a larger or a smaller one."""
    (tree.root / "proc/7").mkdir()
    (tree.root / "proc/7/cgroup").write_text((tree.root / "proc/self/cgroup").read_text())
    assert groups.limiting(7, tree.root) == ()
    cpu = "cpu" if tree.version == 1 else ""
    quota = ("cpu.cfs_quota_us", "50000") if tree.version == 1 else ("cpu.max", "50000 100000")
    pod = tree.top / cpu / "user"
    (pod / "cpu.cfs_period_us").write_text("100000")
    (pod / quota[0]).write_text(quota[1])
    assert groups.limiting(7, tree.root) == (pod,)
    own = tree.top / cpu / "user/me"
    (own / quota[0]).write_text(quota[1].replace("50000", "400000"))
    assert groups.limiting(7, tree.root) == (pod,)
    (own / quota[0]).write_text(quota[1].replace("50000", "20000"))
    assert groups.limiting(7, tree.root) == (own,)
    assert groups.limiting(8, tree.root) == ()


def test_where_nothing_is_limited_a_machine_without_control_groups_is_no_error(tmp_path: Path, lease: Lease) -> None:
    cage = Cage.make("target", {}, lease=lease, cpus=frozenset({0}), root=tmp_path)
    assert cage.folders == ()
    with pytest.raises(CageError, match="memory"):
        Cage.make("target", {"memory.max": 1 << 20}, lease=lease, root=tmp_path)


def test_an_io_rate_needs_a_disk(tmp_path: Path) -> None:
    with pytest.raises(CageError, match="limited per disk") as caught:
        cages.block_device(Path("/proc/self"), tmp_path)
    assert "LOADFRAME_SCRATCH" in caught.value.remedy


def test_a_partition_is_limited_by_its_disk(tmp_path: Path) -> None:
    number = tmp_path.stat().st_dev
    disk = tmp_path / "sys/devices/disk"
    (disk / "part").mkdir(parents=True)
    (disk / "dev").write_text("8:0\n")
    entry = tmp_path / "sys/dev/block" / f"{os.major(number)}:{os.minor(number)}"
    entry.parent.mkdir(parents=True)
    entry.symlink_to(disk / "part")
    assert cages.block_device(tmp_path, tmp_path) == entry.name
    (disk / "part/partition").write_text("1\n")
    assert cages.block_device(tmp_path, tmp_path) == "8:0"


def test_it_knows_whether_its_memory_was_too_small_in_either_version(tree: Any, lease: Lease) -> None:
    assert made(tree, lease).ended_for_memory() == 2


def test_without_a_group_of_its_own_it_knows_whether_the_machine_had_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    vmstat = {"now": "oom_kill 7\n"}
    monkeypatch.setattr(cages, "text", lambda path: vmstat["now"] if path == Path("/proc/vmstat") else "")
    cage = Cage("target", (), None)
    assert cage.ended_for_memory() == 0, "what was before it"
    vmstat["now"] = "pgfault 3\noom_kill 8\n"
    assert cage.ended_for_memory() == 1
    cage.begin()
    assert cage.ended_for_memory() == 0


# --- for real ---

THERE = {name for name, found in groups.available().items() if found is not None}


def needs(*controllers: str) -> pytest.MarkDecorator:
    missing = set(controllers) - THERE
    return pytest.mark.skipif(bool(missing), reason=f"this machine grants no control groups with {sorted(missing)}")


def inside(cage: Cage, program: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", "-S", "-c", program]
    return spawn(command, Allowance(US, groups=cage.folders), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def counted(cage: Cage, *places: tuple[str, str]) -> float:
    """What the kernel counts in the first of these places that there is: a file, and the pattern before the number."""
    for folder in cage.folders:
        for file, before in places:
            if (folder / file).exists() and (found := re.search(before + r"(\d+)", (folder / file).read_text())):
                return float(found[1])
    raise AssertionError(f"the groups have none of {places}")


SPIN = "import time\nuntil = time.monotonic() + {}\nwhile time.monotonic() < until: pass\nprint(time.process_time())"


@needs("cpu")
def test_a_quota_of_a_tenth_of_a_cpu_takes_the_rest_away(lease: Lease) -> None:
    cage = Cage.make("target", {"cpu.max": 10_000}, lease=lease)
    process = inside(cage, SPIN.format(0.8))
    used_s = float(process.communicate(timeout=60)[0])
    assert used_s < 0.4, "a tenth, and what one late period may add; never more than half, however busy the machine"
    assert counted(cage, ("cpu.stat", "nr_throttled ")) > 0


@needs("memory")
def test_a_memory_limit_ends_who_wants_more_and_it_is_known_why(lease: Lease) -> None:
    cage = Cage.make("target", {"memory.max": 32 << 20}, lease=lease)
    assert cage.ended_for_memory() == 0
    process = inside(cage, "x = bytearray(100 << 20)")
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert cage.ended_for_memory() == 1
    assert counted(cage, ("memory.max_usage_in_bytes", ""), ("memory.peak", "")) <= 32 << 20


@needs("memory")
def test_a_memory_limit_makes_the_page_cache_give_way(lease: Lease, tmp_path: Path) -> None:
    cage = Cage.make("target", {"memory.max": 32 << 20}, lease=lease)
    process = inside(cage, f"f = open({str(tmp_path / 'large')!r}, 'wb')\nfor _ in range(64): f.write(bytes(1 << 20))")
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert counted(cage, ("memory.usage_in_bytes", ""), ("memory.current", "")) <= 32 << 20
    assert counted(cage, ("memory.failcnt", ""), ("memory.events", "max ")) > 0


@needs("memory")
def test_what_can_be_read_again_is_forgotten(lease: Lease, tmp_path: Path) -> None:
    cage = Cage.make("target", {"memory.max": 64 << 20}, lease=lease)
    large = tmp_path / "large"
    large.write_bytes(bytes(16 << 20))
    os.sync()
    with large.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    inside(cage, f"open({str(large)!r}, 'rb').read()").communicate(timeout=60)
    before = counted(cage, ("memory.usage_in_bytes", ""), ("memory.current", ""))
    cage.forget()
    after = counted(cage, ("memory.usage_in_bytes", ""), ("memory.current", ""))
    assert before - after > 12 << 20
    Cage("target", (), None).forget()


@needs("pids")
def test_a_process_too_many_is_refused_and_counted(lease: Lease) -> None:
    cage = Cage.make("target", {"pids.max": 2}, lease=lease)
    process = inside(cage, "import os\nfor _ in range(3):\n    if os.fork() == 0: import time; time.sleep(60)")
    with process:
        assert process.wait(timeout=60) == 1, "BlockingIOError"
        assert counted(cage, ("pids.events", "max ")) >= 1
        lease.release()
    assert not any(folder.exists() for folder in cage.folders), "those that slept are ended with the cage"


@needs("io")
def test_writes_are_held_back_to_the_rate_and_counted(lease: Lease) -> None:
    """2 MB at 2 MB/s: the kernel lets no more pass, so most of a second must go by; how much more is the machine's."""
    cage = Cage.make("target", {"io.wbps": 2_000_000}, lease=lease)
    file = lease.folder / "written"
    program = f"""
import os, time
descriptor = os.open({str(file)!r}, os.O_WRONLY | os.O_CREAT)
began = time.monotonic()
for _ in range(2):
    os.write(descriptor, bytes(1_000_000))
    os.fdatasync(descriptor)
print(time.monotonic() - began)
"""
    took_s = float(inside(cage, program).communicate(timeout=60)[0])
    assert took_s > 0.5
    assert counted(cage, ("blkio.throttle.io_service_bytes", "Write "), ("io.stat", "wbytes=")) >= 2_000_000


@needs("pids")
def test_a_limit_is_raised_for_what_runs(lease: Lease) -> None:
    cage = Cage.make("target", {"pids.max": 1}, lease=lease)
    process = spawn(
        [sys.executable, "-I", "-S", "-c", "import os, sys; sys.stdin.read(1); sys.exit(os.fork() and 7)"],
        Allowance(US, groups=cage.folders), stdin=subprocess.PIPE, stdout=None, stderr=None,
    )  # fmt: skip
    cage.set({"pids.max": 5})
    assert process.stdin is not None
    process.stdin.write(b"x")
    process.stdin.close()
    assert process.wait(timeout=60) == 7


SECOND = next((one for one in groups.hierarchies() if one.version == 2 and os.access(one.own, os.W_OK)), None)


@pytest.mark.skipif(SECOND is None, reason="no writable hierarchy of version 2 is mounted")
def test_version_2_counts_for_real(lease: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where version 1 has the controllers, version 2 still counts CPU time."""
    assert SECOND is not None
    monkeypatch.setattr(groups, "hierarchies", lambda root: (SECOND,))
    cage = Cage.make("target", {}, lease=lease)
    assert [folder.parent for folder in cage.folders] == [SECOND.own]
    used_s = float(inside(cage, SPIN.format(0.2)).communicate(timeout=60)[0])
    assert counted(cage, ("cpu.stat", "usage_usec ")) / 1e6 >= 0.4 * used_s, "less what the launcher used"


OWNER = """
import subprocess, sys
from loadframe.cages.cage import Cage
from loadframe.host.leases import Lease
lease = Lease.acquire("a study")
cage = Cage.make("target", {"pids.max": 100}, lease=lease)
detached = subprocess.Popen(["sleep", "1000"], start_new_session=True, stdout=subprocess.DEVNULL)
for folder in cage.folders:
    (folder / "cgroup.procs").write_text(str(detached.pid))
print(detached.pid, *cage.folders, flush=True)
sys.stdin.read()
"""


@needs("pids")
def test_after_kill_9_the_next_sweep_ends_who_is_in_the_cage_and_removes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADFRAME_STATE", str(tmp_path / "state"))
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert owner.stdout
    detached, *folders = owner.stdout.readline().decode().split()
    assert folders
    assert all(Path(folder).is_dir() for folder in folders)
    owner.kill()
    owner.communicate()
    (swept,) = sweep()
    assert f"ended process {detached}" in swept.actions
    assert not any(Path(folder).exists() for folder in folders)
    assert sweep() == []
