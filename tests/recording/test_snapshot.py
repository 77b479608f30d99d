"""Snapshots of a machine and a process: every number, and a reason for every number that is not there."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadframe.errors import RecordingError
from loadframe.recording import procfs, snapshot_machine, snapshot_process
from loadframe.recording.snapshot import Pair, Place, Readings, Snapshot, Source, read, take
from loadframe.recording.socket_rows import DONE, HEADER, dump, listeners, unix_parts

DATA = Path(__file__).parent.parent / "data"
SOURCES = snapshot_process.EVERYTHING
FROM_PROC = {
    "stat": "stat",
    "meminfo": "meminfo",
    "vmstat": "vmstat",
    "diskstats": "diskstats",
    "loadavg": "loadavg",
    "pressure-cpu": "pressure/cpu",
    "pressure-io": "pressure/io",
    "pressure-memory": "pressure/memory",
    "process-limits": "42/limits",
    "process-status": "42/status",
    "process-stat": "42/stat",
}
LINKS = {"0": "/dev/null", "3": "anon_inode:[eventpoll]", "4": "anon_inode:inotify", "5": "/etc/hosts"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A machine with process 42, as files."""
    root = tmp_path / "machine"
    shutil.copytree(DATA / "ledger", root)
    (root / "proc/pressure").mkdir()
    for name, where in FROM_PROC.items():
        shutil.copy(DATA / "proc" / name, root / "proc" / where)
    for pid in (42, 43, 44):
        (root / f"proc/{pid}").mkdir(exist_ok=True)
        threads, uid = (3, 1000) if pid != 44 else (50, 7)
        (root / f"proc/{pid}/status").write_text(
            f"Name:\tx\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nVmRSS:\t 1024 kB\n"
            f"Threads:\t{threads}\nCpus_allowed_list:\t0-2,5\n"
        )
    (root / "proc/42/fd").mkdir()
    for number, leads_to in LINKS.items():
        (root / f"proc/42/fd/{number}").symlink_to(leads_to)
    return root


class Clock:
    """Two moments, ten seconds apart."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 10.0
        return self.now_s


def between(root: Path, change: Callable[[Path], object] = lambda root: None, pid: int | None = 42) -> Readings:
    clock = Clock()
    place = Place(root, pid)
    first = take(place, SOURCES, clock)
    change(root)
    return read(first, take(place, SOURCES, clock), SOURCES)


def edit(root: Path, name: str, old: str, new: str) -> None:
    path = root / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


# --- what is read ---


def test_the_tables_of_the_kernel(tree: Path) -> None:
    values = between(tree).values
    assert values["system.files.per_process_limit"] == 1048576
    assert values["system.threads.limit"] == 192731
    assert values["system.threads.count"] == 142
    assert values["system.pids.limit"] == 32768
    assert (values["system.network.conntrack"], values["system.network.conntrack.limit"]) == (1234, 262144)
    assert values["system.network.tcp_memory.limit"] == 575802 * os.sysconf("SC_PAGE_SIZE")


def test_reserved_ports_are_not_there_for_connections(tree: Path) -> None:
    assert between(tree).values["system.network.local_ports.limit"] == 60999 - 32768 + 1 - 11


def test_connections_that_were_opened_per_second(tree: Path) -> None:
    values = between(tree, lambda root: edit(root, "proc/42/net/snmp", " 700 ", " 6700 ")).values
    assert values["system.network.connections_opened"] == 600


def test_only_own_connections_take_local_ports_and_time_wait_counts(tree: Path) -> None:
    values = between(tree).values
    assert values["system.network.local_ports"] == 2, "one open and one in TIME_WAIT to 10.0.0.3:3306"
    assert values["system.network.syn_received"] == 1
    tcp = tree / "proc/42/net/tcp"
    tcp.write_text("".join(line for line in tcp.read_text().splitlines(keepends=True) if "0200000A" not in line))
    assert between(tree).values["system.network.local_ports"] == 0, "what others opened takes none of our ports"


def test_files_threads_and_watches_of_the_process(tree: Path) -> None:
    def later(root: Path) -> None:
        edit(root, "proc/42/task/43/schedstat", "1000 2000", "5000001000 2000")
        edit(root, "proc/42/stat", " 0 2 2 0 0 ", " 0 402 302 0 0 ")

    values = between(tree, later).values
    assert (values["target.open_files"], values["target.open_files.limit"]) == (4, 20000)
    assert values["target.mappings"] == 3
    assert (values["target.epoll_watches"], values["target.inotify_watches"]) == (2, 1)
    assert values["target.inotify_instances"] == 1
    assert values["target.memory.rss"] == 1024 * 1024
    assert values["target.cpus.named"] == 4
    assert values["target.cpu.hottest_thread"] == pytest.approx(0.5)
    assert values["target.cpu.cores"] == pytest.approx(0.7), "with threads that ended"


def test_the_threads_of_the_user_are_those_of_all_its_processes(tree: Path) -> None:
    values = between(tree).values
    assert values["user.threads"] == 6
    assert values["user.threads.limit"] == 96365


def test_root_is_exempt_from_the_limit_on_threads(tree: Path) -> None:
    edit(tree, "proc/42/status", "Uid:\t1000", "Uid:\t0")
    assert "root" in between(tree).missing["user.threads"]


def test_rates_come_from_two_moments(tree: Path) -> None:
    def later(root: Path) -> None:
        edit(root, "proc/42/net/dev", "5000000", "630000000")
        for cpu in ("cpu0", "cpu1"):
            file = root / f"sys/devices/system/cpu/{cpu}/thermal_throttle/core_throttle_total_time_ms"
            file.write_text("1500\n" if cpu == "cpu1" else "500\n")
        edit(root, "proc/diskstats", "51360 150151", "56360 162651")

    values = between(tree, later).values
    assert values["system.network.link"] == 62_500_000
    assert values["system.network.link.limit"] == 125_000_000
    assert values["system.cpu.throttled"] == pytest.approx(0.1)
    assert values["system.cpu.frequency_missing"] == pytest.approx(0.75)
    assert values["system.disk.busy"] == pytest.approx(0.5)
    assert (values["system.disk.queue_fullest"], values["system.disk.queue_limit"]) == (pytest.approx(1.25), 256)


def test_overflows_of_the_accept_queue_and_drops_of_packets(tree: Path) -> None:
    def later(root: Path) -> None:
        names, numbers = (root / "proc/42/net/netstat").read_text().splitlines()[:2]
        fields = numbers.split()
        fields[names.split().index("ListenOverflows")] = "30"
        edit(root, "proc/42/net/netstat", numbers, " ".join(fields))
        edit(root, "proc/42/net/softnet_stat", " 00000000 ", " 00000014 ")

    values = between(tree, later).values
    assert values["system.network.listen_overflows"] == 3
    assert values["system.network.backlog_drops"] == 2
    assert values["system.network.backlog"] == 0


def test_time_spent_in_reclaim_and_rereading(tree: Path) -> None:
    def later(root: Path) -> None:
        lines = (root / "proc/vmstat").read_text().splitlines()
        grown = {"pgscan_direct": 300, "pgscan_kswapd": 100, "workingset_refault_file": 1000, "pgpgin": 8000}
        rows = [line.split() for line in lines]
        text = "".join(f"{name} {int(value) + grown.get(name, 0)}\n" for name, value in rows)
        (root / "proc/vmstat").write_text(text)

    values = between(tree, later).values
    assert values["system.paging.direct_share"] == pytest.approx(0.75)
    assert values["system.paging.refault_share"] == pytest.approx(0.5)


def test_the_fullest_file_system_and_none_of_the_network(tree: Path) -> None:
    contents = take(Place(tree, None), snapshot_machine.SOURCES).contents
    assert "filesystems" not in contents, "self has no mounts in this tree"
    (tree / "proc/42/root").symlink_to(tree)
    assert [*take(Place(tree, 42), snapshot_machine.SOURCES).contents["filesystems"]] == [b"/"]
    values = between(tree).values
    assert 0 < values["system.filesystem.space"] < 1


def test_a_file_system_counts_as_df_counts() -> None:
    source = next(one for one in snapshot_machine.SOURCES if one.name == "filesystems")
    mounted = {
        b"/": SimpleNamespace(f_blocks=1000, f_bfree=400, f_bavail=300, f_files=100, f_favail=20),
        b"/btrfs": SimpleNamespace(f_blocks=1000, f_bfree=900, f_bavail=900, f_files=0, f_favail=0),
    }
    values = source.parse(Pair(mounted, mounted, 1.0))
    assert values == {"system.filesystem.space": 600 / 900, "system.filesystem.inodes": 0.8}


# --- control groups ---


def test_the_tightest_group_above_the_process_holds_it(tree: Path) -> None:
    def later(root: Path) -> None:
        edit(root, "sys/fs/cgroup/server.slice/cpu.stat", "usage_usec 1000000", "usage_usec 5000000")
        edit(root, "sys/fs/cgroup/server.slice/cpu.stat", "nr_throttled 4", "nr_throttled 54")
        edit(root, "sys/fs/cgroup/server.slice/db.service/memory.events", "max 7", "max 17")
        edit(root, "sys/fs/cgroup/server.slice/db.service/io.stat", "rbytes=4096", f"rbytes={4096 + 10 * 1048576}")

    values = between(tree, later).values
    assert (values["target.cgroup.memory"], values["target.cgroup.memory.limit"]) == (400_000_000, 536_870_912)
    assert values["target.cgroup.memory.hits"] == 1
    assert (values["target.cgroup.cpu"], values["target.cgroup.cpu.limit"]) == (pytest.approx(0.4), 0.5)
    assert values["target.cgroup.cpu.throttled_share"] == 0.5
    assert (values["target.cgroup.pids"], values["target.cgroup.pids.limit"]) == (90, 100)
    assert (values["target.cgroup.read_bytes"], values["target.cgroup.read_bytes.limit"]) == (1048576, 1048576)
    assert values["target.cgroup.write_bytes.limit"] == float("inf")
    assert values["target.cgroup.writes.limit"] == 120


def test_groups_of_version_1_are_found_where_they_are_mounted(tree: Path) -> None:
    (tree / "proc/42/cgroup").write_text("4:memory:/db\n2:cpu,cpuacct:/db\n8:pids:/\n")
    mounts = [("memory", "memory"), ("cpu,cpuacct", "cpu,cpuacct"), ("pids", "pids")]
    lines = [f"3{at} 31 0:3{at} / /sys/fs/cgroup/{folder} rw - cgroup cgroup rw,{options}\n"
             for at, (folder, options) in enumerate(mounts)]  # fmt: skip
    (tree / "proc/self/mountinfo").write_text("".join(lines))
    files = {
        "memory/db/memory.limit_in_bytes": "1000000\n",
        "memory/db/memory.usage_in_bytes": "900000\n",
        "memory/db/memory.stat": "inactive_file 1\ntotal_inactive_file 400000\n",
        "memory/memory.limit_in_bytes": f"{2**63 - 4096}\n",
        "memory/memory.usage_in_bytes": "5000000\n",
        "cpu,cpuacct/db/cpu.cfs_quota_us": "-1\n",
        "cpu,cpuacct/db/cpu.cfs_period_us": "100000\n",
        "cpu,cpuacct/db/cpu.stat": "nr_periods 1\nnr_throttled 0\n",
        "cpu,cpuacct/db/cpuacct.usage": "1000000000\n",
    }
    for name, text in files.items():
        path = tree / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    usage = "sys/fs/cgroup/cpu,cpuacct/db/cpuacct.usage"
    readings = between(tree, lambda root: edit(root, usage, "1000000000", "6000000000"))
    assert (readings.values["target.cgroup.memory"], readings.values["target.cgroup.memory.limit"]) == (500_000, 1e6)
    assert (readings.values["target.cgroup.cpu"], readings.values["target.cgroup.cpu.limit"]) == (0.5, float("inf"))
    assert "pids controller is off" in readings.missing["target.cgroup.pids"]


def test_groups_that_are_mounted_nowhere_give_a_reason(tree: Path) -> None:
    (tree / "proc/self/mountinfo").write_text("")
    assert between(tree).missing["target.cgroup.memory"] == snapshot_process.OUT_OF_SIGHT


# --- reasons ---


def test_every_metric_of_every_source_has_a_value_or_a_reason(tree: Path) -> None:
    readings = between(tree)
    for source in SOURCES:
        for metric in source.metrics:
            assert (metric in readings.values) != bool(readings.missing.get(metric)), metric


def test_an_empty_machine_gives_reasons_only(tmp_path: Path) -> None:
    readings = between(tmp_path)
    assert readings.values == {}
    assert set(readings.missing) == {metric for source in SOURCES for metric in source.metrics}
    assert readings.missing["system.pressure.io.full"] == "it needs Linux 4.20 with CONFIG_PSI, booted with psi=1"


def test_without_a_process_the_reason_is_the_given_one(tree: Path) -> None:
    place = Place(tree, None, no_process="nobody runs")
    moment = take(place, SOURCES)
    assert read(moment, moment, SOURCES).missing["target.open_files"] == "nobody runs"


def test_what_we_may_not_read_is_said_with_the_way_out() -> None:
    def forbidden(place: Place, path: str) -> bytes:
        raise PermissionError(13, "Permission denied")

    source = Source("proc/{pid}/fd", ("target.open_files",), lambda pair: {}, forbidden)
    moment = take(Place(Path("/"), 42), [source])
    reason = read(moment, moment, [source]).missing["target.open_files"]
    assert "/proc/42/fd" in reason
    assert "run as root" in reason


def test_a_counter_that_went_back_gives_a_reason(tree: Path) -> None:
    readings = between(tree, lambda root: edit(root, "proc/pressure/io", "total=30187456", "total=1"))
    assert "went back" in readings.missing["system.pressure.io.some"]


def test_a_process_in_another_network_is_not_given_our_sysctls(tree: Path) -> None:
    for pid, name in (("42", "net:[2]"), ("self", "net:[1]")):
        (tree / f"proc/{pid}/ns").mkdir()
        (tree / f"proc/{pid}/ns/net").symlink_to(name)
    readings = between(tree)
    assert "nsenter --target 42 --net" in readings.missing["system.network.somaxconn"]
    assert "another network namespace" in readings.missing["target.accept_queue"]
    assert "system.network.listen_overflows" in readings.values, "the counters are the process's own"


# --- listening sockets ---


def test_our_own_accept_queues_are_seen(tmp_path: Path) -> None:
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as unix, socket.socket(socket.AF_UNIX) as client:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen(7)
        unix.bind(str(tmp_path / "s"))
        unix.listen(5)
        client.connect(str(tmp_path / "s"))
        queues = listeners()
        ours = [queues[os.fstat(one.fileno()).st_ino] for one in (tcp, unix)]
        place = Place(Path("/"), os.getpid())
        sources = [one for one in snapshot_process.SOURCES if one.name == "accept queues"]
        values = read(*[take(place, sources)] * 2, sources).values
    assert ours == [(0, 7), (1, 5)]
    assert (values["target.accept_queue"], values["target.accept_queue.limit"]) == (1, 5)


@given(st.binary(max_size=200))
def test_garbage_from_netlink_is_skipped(data: bytes) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    buffer = bytearray(256)
    with ours, theirs, suppress(RecordingError):
        theirs.send(data)
        theirs.send(HEADER.pack(HEADER.size, DONE, 0, 0, 0))
        for begin, end in dump(ours, buffer, b""):
            unix_parts(bytes(buffer[begin:end]))
    unix_parts(data)


# --- damage ---


def contents(source: Source, text: bytes) -> list[object]:
    """What a snapshot has of a source whose files all have this text; nothing of what is counted, not read."""
    names = [name.removesuffix("_recursive") for names in snapshot_process.FILES.values() for name in names]
    collected: dict[str, object] = {
        "queues": (text, {"sda": [text]}),
        "proc/{pid}/net/dev": (text, {"eth0": [text]}),
        "rounds": (text, text),
        f"{snapshot_machine.PORTS}port_range": (text, text),
        "frequencies": {"cpu0": [text, text]},
        "throttling": {"cpu0": [text]},
        "proc/{pid}/task": {"7": [text]},
        "proc/{pid}/fd": {"fd": text, "limits": text},
        "proc/{pid}/stat": {"stat": text},
    }
    if source.name in ("filesystems", "proc/{pid}/maps", "proc/{pid}/fdinfo", "accept queues", "user"):
        return []
    if source.name.startswith("cgroup "):
        return [[dict.fromkeys(names, text)]]
    return [collected.get(source.name, text)]


@settings(max_examples=40)
@given(first=st.binary(max_size=120), last=st.binary(max_size=120))
def test_damage_gives_reasons_never_a_crash(first: bytes, last: bytes) -> None:
    for source in SOURCES:
        for before, after in zip(contents(source, first), contents(source, last), strict=True):
            moments = [Snapshot(at_s, {source.name: content}) for at_s, content in ((0.0, before), (1.0, after))]
            readings = read(*moments, [source])
            assert {*readings.values, *readings.missing} >= set(source.metrics), source.name


WORDS = st.sampled_from(
    ["TcpExt:", "TCP:", "tw", "mem", "max", "8:0", "rbps=max", "rbps=5", "Read", "0", "7", "-1", "x"]
)


@settings(max_examples=40)
@given(st.lists(st.lists(WORDS, max_size=5), max_size=5))
def test_half_right_tables_give_reasons_never_a_crash(rows: list[list[str]]) -> None:
    text = "\n".join(" ".join(row) for row in rows).encode()
    for source in SOURCES:
        for content in contents(source, text):
            readings = read(Snapshot(0.0, {source.name: content}), Snapshot(1.0, {source.name: content}), [source])
            assert {*readings.values, *readings.missing} >= set(source.metrics)


def test_names_without_numbers_are_refused() -> None:
    with pytest.raises(RecordingError, match="numbers for its names"):
        procfs.parse_protocol(b"TcpExt: A B\nTcpExt: 1\n", "TcpExt")


def test_of_a_server_with_several_processes_all_are_read(tree: Path) -> None:
    """CPU and memory added up, shared memory once, of open files the process that is nearest to its own limit; of a
    child that ended what was not seen of it."""
    for pid, shared in ((42, 400), (43, 300)):
        status = tree / f"proc/{pid}/status"
        status.write_text(status.read_text() + f"RssFile:\t0 kB\nRssShmem:\t{shared} kB\n")
        (tree / f"proc/{pid}/task/{pid}").mkdir(parents=True, exist_ok=True)
    (tree / "proc/44/task/44").mkdir(parents=True)
    (tree / "proc/43/fd").mkdir()
    for number in range(9):
        (tree / f"proc/43/fd/{number}").symlink_to("/dev/null")

    def spend(run_s: dict[int, float]) -> None:
        for pid, seconds in run_s.items():
            (tree / f"proc/{pid}/task/{pid}/schedstat").write_text(f"{seconds * 1e9:.0f} 0 1\n")
            inherited = 250 if pid == 42 and not (tree / "proc/44").exists() else 0
            numbers = f"0 0 0 0 {100 * seconds:.0f} 0 {inherited} 0 20 0 1 0 9 0 5"
            (tree / f"proc/{pid}/stat").write_text(f"{pid} (a) S {42 if pid == 44 else 1} 1 1 0 -1 0 {numbers}\n")

    clock = Clock()
    place = Place(tree, 42, others=(43, 44, 999))
    edit(tree, "proc/42/limits", "20000", "300")
    (tree / "proc/43/limits").write_bytes((DATA / "proc/process-limits").read_bytes())
    spend({42: 1, 43: 1, 44: 2})
    first = take(place, SOURCES, clock)
    shutil.rmtree(tree / "proc/44")
    spend({42: 3, 43: 7})
    found = read(first, take(place, SOURCES, clock), SOURCES).values
    assert found["target.cpu.cores"] == pytest.approx(0.2 + 0.6 + (2.5 - 2) / 10)
    assert found["target.cpu.hottest_thread"] == pytest.approx(0.6)
    assert (found["target.open_files"], found["target.open_files.limit"]) == (4, 300)
    assert found["target.memory.rss"] == (624 + 724 + 400) * 1024
    assert found["target.memory.shared"] == 400 * 1024
