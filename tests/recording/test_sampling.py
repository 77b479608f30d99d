"""What is read, and how often: on trees laid out as a kernel would, so that each reading is known."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from loadframe.recording import procfs
from loadframe.recording.frame_writer import FrameWriter
from loadframe.recording.frames import Facts, Tick, read_frames
from loadframe.recording.held_files import Descriptors
from loadframe.recording.metrics import window_metrics
from loadframe.recording.sampling import CgroupFiles, ProcessFiles, SystemFiles

FACTS = Facts(0.1, 100, 2, 4096, 0.5, 0.0, 1e9)
DATA = Path(__file__).parent.parent / "data" / "proc"


def lay(root: Path, path: str, text: bytes | str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A machine with one process of 200 threads."""
    root = tmp_path / "root"
    for name in ("stat", "meminfo", "vmstat", "diskstats", "loadavg"):
        lay(root, f"proc/{name}", (DATA / name).read_bytes())
    lay(root, "proc/sys/fs/file-nr", (DATA / "file-nr").read_bytes())
    lay(root, "proc/net/snmp", "Tcp: RetransSegs InErrs\nTcp: 7 0\n")
    for cpu in (0, 1, 10):
        lay(root, f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq", "2900000\n")
    lay(root, "sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq", "1\n")
    for name in ("stat", "status", "io", "limits"):
        lay(root, f"proc/7/{name}", (DATA / f"process-{name}").read_bytes())
    (root / "proc/7/fd").mkdir()
    for thread in range(100, 300):
        lay(root, f"proc/7/task/{thread}/stat", f"{thread} (a) S 1 1 1 0 -1 0 0 0 0 0 5 0 0 0 20 0 1 0 0 0 7\n")
        lay(root, f"proc/7/task/{thread}/schedstat", f"{thread} 0 1\n")
        lay(root, f"proc/7/task/{thread}/wchan", "futex_wait_queue")
        lay(root, f"proc/7/task/{thread}/status", "Name: a\n" + "x" * 400 + "\nvoluntary_ctxt_switches: 5\n")
    return root


class Recording:
    """Ticks of 0.1 s into a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.writer = FrameWriter(path, FACTS)
        self.now_s = 0.0

    def tick(self, *sampled: SystemFiles | ProcessFiles | CgroupFiles) -> None:
        self.writer.begin_sample(self.now_s, self.now_s + 1e9)
        for each in sampled:
            each.sample(self.now_s)
        self.writer.end_record()
        self.now_s += 0.1

    def ticks(self) -> list[Tick]:
        self.writer.close()
        salvaged = read_frames(self.path)
        assert not salvaged.warnings
        return salvaged.ticks


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    return Recording(tmp_path / "a.lfr")


def follow(tree: Path, recording: Recording, descriptors: Descriptors) -> ProcessFiles:
    return ProcessFiles(tree, "target", 7, recording.writer, descriptors, size_counts=False, interval_s=0.1)


def test_the_machine_is_read_whole_and_sockets_and_frequencies_once_per_second(
    tree: Path, recording: Recording
) -> None:
    system = SystemFiles(tree, recording.writer)
    for _ in range(11):
        recording.tick(system)
    ticks = recording.ticks()
    assert all(tick.entries["system:/proc/vmstat"] == (DATA / "vmstat").read_bytes() for tick in ticks)
    frequency = "system:/sys/devices/system/cpu/cpu10/cpufreq/scaling_cur_freq"
    assert [index for index, tick in enumerate(ticks) if frequency in tick.entries] == [0, 10]
    assert not [name for name in ticks[0].entries if "policy0" in name]
    assert "system:/proc/pressure/io" not in ticks[0].entries
    assert window_metrics(ticks, 0, 2)["system.cpu.frequency"] == 2.9e9


def test_a_file_of_any_length_is_read_whole(tree: Path, recording: Recording) -> None:
    long = b"intr " + b"0 " * 900_000
    lay(tree, "proc/stat", long)
    system = SystemFiles(tree, recording.writer)
    recording.tick(system)
    recording.tick(system)
    assert [tick.entries["system:/proc/stat"] for tick in recording.ticks()] == [long, long]


def test_each_thread_is_looked_at_once_per_second_and_its_cpu_time_in_turn(tree: Path, recording: Recording) -> None:
    files = follow(tree, recording, Descriptors())
    for _ in range(10):
        recording.tick(files)
    ticks = recording.ticks()
    seen = [procfs.parse_tasks(tick.entries["target:7:tasks"]) for tick in ticks]
    assert [len(rows) for rows in seen] == [20] * 10
    assert sorted(row.thread for rows in seen for row in rows) == list(range(100, 300))
    assert all(row.stat.startswith(b"%d (a) S" % row.thread) for rows in seen for row in rows)
    times = [procfs.parse_tasks(tick.entries["target:7:task-schedstat"]) for tick in ticks]
    assert [len(rows) for rows in times][:4] == [32, 32, 32, 32]
    assert {row.schedstat for row in times[0]} == {b"%d 0 1\n" % row.thread for row in times[0]}
    assert {tick.entries["target:7:threads"] for tick in ticks} == {b"200\n"}
    switches = procfs.parse_tasks(ticks[0].entries["target:7:task-status"])
    assert [len(row.stat) for row in switches] == [256]
    assert procfs.parse_process_status(switches[0].stat).voluntary_switches == 5


@pytest.mark.parametrize("threads", [3, 50])
def test_every_thread_is_asked_in_turn_where_it_sleeps(tree: Path, recording: Recording, threads: int) -> None:
    for thread in range(100 + threads, 300):
        shutil.rmtree(tree / f"proc/7/task/{thread}")
    files = follow(tree, recording, Descriptors())
    for _ in range(100):
        recording.tick(files)
    rows = [row for tick in recording.ticks() for row in procfs.parse_tasks(tick.entries["target:7:tasks"])]
    asked = Counter(row.thread for row in rows if row.wchan)
    assert len(asked) == threads
    assert max(asked.values()) <= 2 * min(asked.values())


def test_without_descriptors_to_spare_the_same_is_read(tree: Path, recording: Recording) -> None:
    descriptors = Descriptors()
    descriptors.free = 10
    files = follow(tree, recording, descriptors)
    recording.tick(files)
    recording.tick(files)
    rows = [row for tick in recording.ticks() for row in procfs.parse_tasks(tick.entries["target:7:tasks"])]
    assert len({row.thread for row in rows}) == 40
    assert all(row.stat for row in rows)
    files.close()
    assert descriptors.free == 10


def test_a_census_of_a_part_stands_for_all(tree: Path, recording: Recording) -> None:
    for thread in range(100, 300, 2):
        stat = tree / f"proc/7/task/{thread}/stat"
        stat.write_bytes(stat.read_bytes().replace(b") S", b") R"))
    files = follow(tree, recording, Descriptors())
    for _ in range(10):
        recording.tick(files)
    metrics = window_metrics(recording.ticks(), 0, 2)
    assert metrics["target.threads.count"] == 200
    assert metrics["target.threads.running"] == pytest.approx(100)
    assert metrics["target.threads.sleeping"] == pytest.approx(100)
    assert metrics["target.threads.polling"] == 0


def test_cgroups_of_both_versions(tmp_path: Path, recording: Recording) -> None:
    root = tmp_path / "root"
    lay(root, "two/cpu.stat", "usage_usec 0\nnr_periods 0\nnr_throttled 0\n")
    lay(root, "two/cpu.max", "50000 100000\n")
    lay(root, "two/memory.current", "4096\n")
    lay(root, "two/memory.max", "max\n")
    lay(root, "two/io.stat", "8:0 rbytes=0 wbytes=0\n253:0 rbytes=0 wbytes=0\n")
    lay(root, "one/cpuacct.usage", "0\n")
    lay(root, "one/cpu.cfs_quota_us", "-1\n")
    lay(root, "one/cpu.cfs_period_us", "100000\n")
    lay(root, "one/memory.usage_in_bytes", "8192\n")
    lay(root, "one/memory.limit_in_bytes", "1048576\n")
    descriptors = Descriptors()
    free = descriptors.free
    two = CgroupFiles(root, "target", ["/two"], recording.writer, descriptors)
    one = CgroupFiles(root, "driver", ["/one", "/one", "/absent"], recording.writer, descriptors)
    recording.tick(two, one)
    lay(root, "two/cpu.stat", "usage_usec 30000\nnr_periods 10\nnr_throttled 4\n")
    lay(root, "two/io.stat", "8:0 rbytes=100 wbytes=0\n253:0 rbytes=50 wbytes=10\n")
    lay(root, "one/cpuacct.usage", "50000000\n")
    recording.tick(two, one)
    two.close()
    one.close()
    assert descriptors.free == free
    metrics = window_metrics(recording.ticks(), 0, 0.1)
    assert metrics["target.cgroup.cpu.cores"] == pytest.approx(0.3)
    assert metrics["target.cgroup.cpu.limit"] == 0.5
    assert metrics["target.cgroup.cpu.throttled"] == pytest.approx(0.4)
    assert metrics["target.cgroup.memory.usage"] == 4096
    assert "target.cgroup.memory.limit" not in metrics
    assert metrics["target.cgroup.io.read_bytes"] == pytest.approx(1500)
    assert metrics["driver.cgroup.cpu.cores"] == pytest.approx(0.5)
    assert "driver.cgroup.cpu.limit" not in metrics
    assert metrics["driver.cgroup.memory.limit"] == 2**20


def test_what_is_no_longer_followed_is_no_longer_named(tree: Path, recording: Recording) -> None:
    files = follow(tree, recording, Descriptors())
    recording.tick(files)
    files.close()
    recording.writer.write_block()
    named = len(recording.writer.buffer)
    recording.tick()
    recording.writer.write_block()
    assert named and b"target:7" not in recording.writer.buffer[: recording.writer.end or 64]
    assert [list(tick.entries) for tick in recording.ticks()][1] == []
