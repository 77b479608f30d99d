"""What is read, and how often: on trees laid out as a kernel would, so that each reading is known."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from loadframe.recording import procfs
from loadframe.recording.frame_writer import FrameWriter
from loadframe.recording.frames import Facts, Tick
from loadframe.recording.held_files import Descriptors
from loadframe.recording.metrics import window_metrics
from loadframe.recording.process_metrics import parse_tasks
from loadframe.recording.readers import RecordingReader
from loadframe.recording.sampling import CgroupFiles, ProcessFiles, SystemFiles, size_counts_open_files

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


Sampled = SystemFiles | ProcessFiles | CgroupFiles
Kind = TypeVar("Kind", SystemFiles, ProcessFiles, CgroupFiles)


class Recording:
    """Ticks of 0.1 s into a file, of what stays open until the recording is closed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.writer = FrameWriter(path, FACTS)
        self.now_s = 0.0
        self._open: list[Sampled] = []

    def of(self, files: Kind) -> Kind:
        self._open.append(files)
        return files

    def end(self, files: Sampled) -> None:
        self._open.remove(files)
        files.close()

    def close(self) -> None:
        for files in self._open:
            files.close()
        self.writer.close()

    def tick(self, *sampled: Sampled) -> None:
        self.writer.begin(self.now_s, self.now_s + 1e9)
        for each in sampled:
            each.sample(self.now_s)
        self.writer.end_record()
        self.now_s += 0.1

    def ticks(self) -> list[Tick]:
        self.writer.close()
        with RecordingReader(self.path) as reader:
            ticks = reader.all_ticks()
            assert not reader.warnings
        return ticks


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[Recording]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = open_descriptors()
    recording = Recording(tmp_path / "a.lfr")
    yield recording
    recording.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert open_descriptors() == before


def follow(tree: Path, recording: Recording, descriptors: Descriptors, pid: int = 7) -> ProcessFiles:
    files = ProcessFiles(tree, "target", pid, recording.writer, descriptors, interval_s=0.1)
    return recording.of(files)


def test_the_machine_is_read_whole_and_sockets_and_frequencies_once_per_second(
    tree: Path, recording: Recording
) -> None:
    system = recording.of(SystemFiles(tree, recording.writer))
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
    system = recording.of(SystemFiles(tree, recording.writer))
    recording.tick(system)
    recording.tick(system)
    assert [tick.entries["system:/proc/stat"] for tick in recording.ticks()] == [long, long]


def test_each_thread_is_looked_at_once_per_second_and_its_cpu_time_in_turn(tree: Path, recording: Recording) -> None:
    files = follow(tree, recording, Descriptors())
    for _ in range(10):
        recording.tick(files)
    ticks = recording.ticks()
    seen = [parse_tasks(tick.entries["target:7:tasks"]) for tick in ticks]
    assert [len(rows) for rows in seen] == [20] * 10
    assert sorted(row.thread for rows in seen for row in rows) == list(range(100, 300))
    assert all(row.stat.startswith(b"%d (a) S" % row.thread) for rows in seen for row in rows)
    times = [parse_tasks(tick.entries["target:7:task-schedstat"]) for tick in ticks]
    assert [len(rows) for rows in times][:4] == [32, 32, 32, 32]
    assert {row.schedstat for row in times[0]} == {b"%d 0 1\n" % row.thread for row in times[0]}
    assert {tick.entries["target:7:threads"] for tick in ticks} == {b"200\n"}
    switches = parse_tasks(ticks[0].entries["target:7:task-status"])
    assert [len(row.stat) for row in switches] == [256]
    assert procfs.parse_process_status(switches[0].stat).voluntary_switches == 5


@pytest.mark.parametrize("threads", [3, 50])
def test_every_thread_is_asked_in_turn_where_it_sleeps(tree: Path, recording: Recording, threads: int) -> None:
    for thread in range(100 + threads, 300):
        shutil.rmtree(tree / f"proc/7/task/{thread}")
    files = follow(tree, recording, Descriptors())
    for _ in range(100):
        recording.tick(files)
    rows = [row for tick in recording.ticks() for row in parse_tasks(tick.entries["target:7:tasks"])]
    asked = Counter(row.thread for row in rows if row.wchan)
    assert len(asked) == threads
    assert max(asked.values()) <= 2 * min(asked.values())


def test_without_descriptors_to_spare_the_same_is_read(tree: Path, recording: Recording) -> None:
    descriptors = Descriptors()
    descriptors.free = 10
    files = follow(tree, recording, descriptors)
    recording.tick(files)
    recording.tick(files)
    rows = [row for tick in recording.ticks() for row in parse_tasks(tick.entries["target:7:tasks"])]
    assert len({row.thread for row in rows}) == 40
    assert all(row.stat for row in rows)
    recording.end(files)
    assert descriptors.free == 10


def test_what_is_followed_is_recorded_however_many_threads_hold_files(tree: Path, recording: Recording) -> None:
    lay(tree, "group/memory.current", "4096\n")
    descriptors = Descriptors()
    descriptors.free = 0
    recording.tick(
        follow(tree, recording, descriptors),
        recording.of(CgroupFiles(tree, "target", ["/group"], recording.writer)),
    )
    entries = recording.ticks()[0].entries
    assert {f"target:7:/proc/7/{name}" for name in ("stat", "io", "status", "limits")} <= entries.keys()
    assert entries["target:cgroup:/group/memory.current"] == b"4096\n"


def test_where_no_descriptor_is_left_a_thread_is_passed_over_and_not_taken_for_ended(
    tree: Path, recording: Recording
) -> None:
    descriptors = Descriptors()
    files = follow(tree, recording, descriptors)
    recording.tick(files)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    recording.tick(files)
    with pytest.raises(OSError, match="Too many open files"):
        follow(tree, recording, descriptors)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    for _ in range(10):
        recording.tick(files)
    ticks = recording.ticks()
    seen = [parse_tasks(tick.entries["target:7:tasks"]) for tick in ticks]
    assert not seen[1]
    assert {row.thread for rows in seen for row in rows} == set(range(100, 300))
    times = [row for tick in ticks[2:] for row in parse_tasks(tick.entries["target:7:task-schedstat"])]
    assert times
    assert all(row.schedstat for row in times)


def test_open_files_are_listed_only_where_the_kernel_does_not_count_them() -> None:
    release = tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2])
    assert size_counts_open_files(Path("/")) == (release >= (6, 2))


def test_a_process_that_ends_while_its_files_are_opened_is_not_followed(tree: Path, recording: Recording) -> None:
    (tree / "proc/7/stat").unlink()
    with pytest.raises(ProcessLookupError):
        follow(tree, recording, Descriptors())


def test_a_pid_that_is_a_strangers_by_now_gives_no_cpu_time(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = subprocess.Popen(["sleep", "60"])
    files = follow(Path("/"), recording, Descriptors(), child.pid)
    recording.tick(files)
    child.kill()
    child.wait()
    monkeypatch.setattr(time, "clock_gettime_ns", lambda _clock: 10**12)
    recording.tick(files)
    first, last = recording.ticks()
    assert f"target:{child.pid}:cpu" in first.entries
    assert [*last.entries] == [f"target:{child.pid}:gone"]


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


ONE = {
    "cpuacct.usage": ("0", "50000000"),
    "cpu.cfs_quota_us": ("50000", "50000"),
    "cpu.cfs_period_us": ("100000", "100000"),
    "cpu.stat": (
        "nr_periods 0\nnr_throttled 0\nthrottled_time 0",
        "nr_periods 1\nnr_throttled 1\nthrottled_time 40000000",
    ),
    "memory.usage_in_bytes": ("4096", "8192"),
    "memory.max_usage_in_bytes": ("9000", "9000"),
    "memory.limit_in_bytes": ("1048576", "1048576"),
    "memory.failcnt": ("5", "15"),
    "memory.stat": ("total_workingset_refault_file 0", "total_workingset_refault_file 20"),
    "memory.oom_control": ("under_oom 0\noom_kill 0", "under_oom 0\noom_kill 1"),
    "blkio.throttle.io_service_bytes": (
        "8:0 Read 0\n8:0 Write 0\nTotal 0",
        "8:0 Read 100\n8:0 Write 0\n9:0 Read 50\n9:0 Write 10\nTotal 160",
    ),
    "blkio.throttle.io_serviced": ("Total 0", "8:0 Read 3\n8:0 Write 0\n9:0 Write 1\nTotal 4"),
    "blkio.throttle.read_bps_device": ("8:0 3000", "8:0 3000"),
    "blkio.throttle.write_bps_device": ("", ""),
    "blkio.throttle.read_iops_device": ("8:0 60\n9:0 50", "8:0 60\n9:0 50"),
    "blkio.throttle.write_iops_device": ("", ""),
    "pids.current": ("3", "4"),
    "pids.max": ("20", "20"),
    "pids.events": ("max 0", "max 6"),
}
TWO = {
    "cpu.stat": (
        "usage_usec 0\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0",
        "usage_usec 50000\nnr_periods 1\nnr_throttled 1\nthrottled_usec 40000",
    ),
    "cpu.max": ("50000 100000", "50000 100000"),
    "memory.current": ("4096", "8192"),
    "memory.peak": ("9000", "9000"),
    "memory.max": ("1048576", "1048576"),
    "memory.events": ("max 5\noom_kill 0", "max 15\noom_kill 1"),
    "memory.stat": ("workingset_refault_file 0", "workingset_refault_file 20"),
    "io.stat": ("", "8:0 rbytes=100 wbytes=0 rios=3 wios=0\n9:0 rbytes=50 wbytes=10 rios=0 wios=1"),
    "io.max": ("8:0 rbps=3000 wbps=max riops=60 wiops=max\n9:0 rbps=max wbps=max riops=50 wiops=max",) * 2,
    "pids.current": ("3", "4"),
    "pids.max": ("20", "20"),
    "pids.events": ("max 0", "max 6"),
}
USED = {
    "cpu": 0.05, "cpu.limit": 0.5, "cpu.utilization": 0.1, "cpu.throttled": 1, "cpu.throttled_share": 0.1,
    "cpu.throttled_time": 0.04, "memory.usage": 8192, "memory.peak": 9000, "memory.limit": 1048576, "memory.hits": 10,
    "memory.refaults": 20, "memory.oom_kills": 1, "read_bytes": 100, "read_bytes.limit": 3000,
    "read_bytes.utilization": 1 / 30, "write_bytes": 10, "reads": 3, "reads.limit": 60, "reads.utilization": 0.05,
    "writes": 1, "pids": 4, "pids.limit": 20, "pids.refused": 6,
}  # fmt: skip


@pytest.mark.parametrize("files", [ONE, TWO], ids=["v1", "v2"])
def test_what_a_cage_used_is_the_same_in_both_versions(
    tmp_path: Path, recording: Recording, files: dict[str, tuple[str, str]]
) -> None:
    root = tmp_path / "root"
    for name, (first, _) in files.items():
        lay(root, f"group/{name}", first + "\n")
    group = recording.of(CgroupFiles(root, "target", ["/group", "/group", "/absent"], recording.writer))
    recording.tick(group)
    for name, (_, last) in files.items():
        lay(root, f"group/{name}", last + "\n")
    for _ in range(10):  # what is read once per second is due again
        recording.tick(group)
    metrics = window_metrics(recording.ticks(), 0, 1.0)
    used = {name.removeprefix("target.cage."): value for name, value in metrics.items() if ".cage." in name}
    assert used == {name: pytest.approx(value) for name, value in USED.items()}


@pytest.mark.parametrize("files", [ONE, TWO], ids=["v1", "v2"])
def test_how_often_memory_ran_out_is_known_in_each_window_however_short(
    tmp_path: Path, recording: Recording, files: dict[str, tuple[str, str]]
) -> None:
    """They are what confirms a memory limit. Seen, read once per second: in a third of the windows of a second, and a
    gain of 5.4 times was not confirmed."""
    root = tmp_path / "root"
    for name, (first, _) in files.items():
        lay(root, f"group/{name}", first + "\n")
    group = recording.of(CgroupFiles(root, "target", ["/group"], recording.writer))
    for _ in range(9):
        recording.tick(group)
    metrics = window_metrics(recording.ticks(), 0.3, 0.7)
    assert (metrics["target.cage.memory.hits"], metrics["target.cage.memory.refaults"]) == (0, 0)


def test_a_disk_is_held_against_its_own_limit(tmp_path: Path, recording: Recording) -> None:
    root = tmp_path / "root"
    lay(root, "group/io.stat", "8:0 rios=0\n9:0 rios=0\n7:0 rios=0\n")
    lay(root, "group/io.max", "8:0 riops=100\n9:0 riops=40\n")
    group = recording.of(CgroupFiles(root, "target", ["/group"], recording.writer))
    recording.tick(group)
    lay(root, "group/io.stat", "8:0 rios=90\n9:0 rios=20\n7:0 rios=5000\n")
    for _ in range(10):
        recording.tick(group)
    metrics = window_metrics(recording.ticks(), 0, 1.0)
    assert metrics["target.cage.reads"] == pytest.approx(90)
    assert metrics["target.cage.reads.limit"] == 100
    assert metrics["target.cage.reads.utilization"] == pytest.approx(0.9)


def test_limits_that_are_not_set_are_absent(tmp_path: Path, recording: Recording) -> None:
    root = tmp_path / "root"
    lay(root, "two/cpu.max", "max 100000\n")
    lay(root, "two/memory.max", "max\n")
    lay(root, "two/pids.max", "max\n")
    lay(root, "one/cpu.cfs_quota_us", "-1\n")
    lay(root, "one/cpu.cfs_period_us", "100000\n")
    lay(root, "one/memory.limit_in_bytes", "9223372036854771712\n")
    two = recording.of(CgroupFiles(root, "target", ["/two"], recording.writer))
    one = recording.of(CgroupFiles(root, "driver", ["/one"], recording.writer))
    recording.tick(two, one)
    recording.tick(two, one)
    metrics = window_metrics(recording.ticks(), 0, 0.1)
    assert not [name for name in metrics if ".cage." in name]


def test_what_is_no_longer_followed_is_no_longer_named(tree: Path, recording: Recording) -> None:
    files = follow(tree, recording, Descriptors())
    recording.tick(files)
    recording.end(files)
    recording.writer.write_block()
    named = len(recording.writer.buffer)
    recording.tick()
    recording.writer.write_block()
    assert named and b"target:7" not in recording.writer.buffer[: recording.writer.end or 64]
    assert [list(tick.entries) for tick in recording.ticks()][1] == []
