"""The parsers understand what kernels write, and are never surprised by anything else."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.errors import RecordingError
from loadframe.recording import procfs
from loadframe.recording.cage_metrics import parse_cgroup_io
from loadframe.recording.frames import TASK
from loadframe.recording.process_metrics import POLLING, census, parse_tasks

DATA = Path(__file__).parent.parent / "data" / "proc"


def recorded(name: str) -> bytes:
    return (DATA / name).read_bytes()


def test_stat() -> None:
    stat = procfs.parse_stat(recorded("stat"))
    assert stat.all_cpus == procfs.CpuTimes(71235, 64, 16374, 366268, 3079, 0, 1023, 7624)
    assert sorted(stat.cpus) == ["cpu0", "cpu1"]
    assert (stat.context_switches, stat.processes_created, stat.running, stat.blocked) == (6271692, 21184, 4, 0)


def test_memory_and_paging_counters() -> None:
    memory = procfs.parse_meminfo(recorded("meminfo"))
    assert memory["MemTotal"] == 24684096 * 1024
    assert memory["MemAvailable"] == 23945916 * 1024
    assert {"pgmajfault", "pswpin", "workingset_refault_file"} <= procfs.parse_vmstat(recorded("vmstat")).keys()


def test_the_virtual_machine_has_one_disk() -> None:
    disks = procfs.parse_diskstats(recorded("diskstats"))
    assert list(disks) == ["vda"]
    assert disks["vda"] == procfs.DiskCounters(115870, 6509458, 798560, 16192808, 0, 51360, 150151, 44709, 296063, 8283)


def test_partitions_and_stacked_devices_are_not_counted_twice() -> None:
    disks = procfs.parse_diskstats(recorded("diskstats-physical"))
    assert sorted(disks) == ["mmcblk0", "nvme0n1", "nvme0n10", "sda", "sdaa"]
    assert disks["sda"].flushes == 50
    assert disks["sdaa"].flushes is None


def test_pressure_load_and_files() -> None:
    assert procfs.parse_pressure(recorded("pressure-io")) == {"some": 30.187456, "full": 25.329252}
    assert procfs.parse_threads(recorded("loadavg")) == 142
    assert procfs.parse_file_numbers(recorded("file-nr")) == {"allocated": 1082, "limit": 2466183}


def test_a_process_with_an_odd_name() -> None:
    stat = procfs.parse_process_stat(recorded("process-stat"))
    assert (stat.pid, stat.command, stat.state) == (21182, "odd (name) x", "S")
    assert (stat.minor_faults, stat.major_faults, stat.user_ticks, stat.system_ticks) == (8436, 0, 2, 2)
    assert (stat.threads, stat.started_ticks, stat.rss_pages) == (2, 231243, 9783)


@given(st.binary(max_size=16).filter(lambda name: b"\0" not in name))
def test_no_name_of_a_process_can_shift_its_numbers(name: bytes) -> None:
    plain = recorded("process-stat")
    odd = plain.replace(b"odd (name) x", name)
    expected = procfs.parse_process_stat(plain)
    found = procfs.parse_process_stat(odd)
    assert (found.state, found.user_ticks, found.started_ticks) == (expected.state, 2, 231243)


def test_the_rest_of_a_process() -> None:
    status = procfs.parse_process_status(recorded("process-status"))
    assert status.rss_bytes == 39256 * 1024
    assert (status.voluntary_switches, status.involuntary_switches) == (4, 11)
    tail = procfs.parse_process_status(recorded("process-status")[-80:])
    assert (tail.rss_bytes, tail.voluntary_switches, tail.involuntary_switches) == (None, 4, 11)
    assert procfs.by_name(recorded("process-io"), "io")["write_bytes"] == 106496
    assert procfs.parse_schedstat(recorded("process-schedstat")) == procfs.SchedStat(58943410, 3673699)
    limits = procfs.parse_limits(recorded("process-limits"))
    assert limits["Max open files"].soft == 20000
    assert limits["Max cpu time"].hard == math.inf


def test_threads_and_where_they_sleep() -> None:
    stat, schedstat = recorded("process-stat"), b"5 6 7\n"
    functions = [b"hrtimer_nanosleep", b"do_nanosleep.isra.0", b"futex_wait_queue", b"0", b""]
    rows = [
        TASK.pack(thread, len(stat), len(schedstat), len(wchan)) + stat + schedstat + wchan
        for thread, wchan in enumerate(functions)
    ]
    data = b"".join(rows)
    tasks = parse_tasks(data)
    assert [task.thread for task in tasks] == [0, 1, 2, 3, 4]
    assert {task.state for task in tasks} == {"S"}
    counted, unknown = (census([{"tasks": text}]) for text in (data, rows[3] + rows[4]))
    assert counted is not None and counted.states is not None and unknown is not None
    assert counted.states[POLLING] == pytest.approx(5 * 2 / 4), "of those whose function was read"
    assert (counted.where_known, unknown.where_known) == (True, False)
    with pytest.raises(RecordingError):
        parse_tasks(data[:-1])


def test_lists_of_cpus_and_limits_of_cgroups() -> None:
    assert procfs.parse_cpu_list(b"0-3,8\n") == 5
    assert procfs.parse_process_status(recorded("process-status")).cpus_allowed == 2
    assert procfs.parse_maximum(b"max\n") == math.inf
    assert procfs.parse_maximum(b"4096\n") == 4096
    both = {"8:0": {"Read": 5, "Write": 6}, "253:0": {"Read": 1}}
    assert parse_cgroup_io(b"8:0 Read 5\n8:0 Write 6\n253:0 Read 1\nTotal 12\n") == both
    assert parse_cgroup_io(b"8:0 rbps=7 wbps=max\n") == {"8:0": {"rbps": 7, "wbps": math.inf}}
    assert parse_cgroup_io(b"8:0 60\n9:0 50\n") == {"8:0": {"": 60}, "9:0": {"": 50}}
    assert parse_cgroup_io(b"") == {}
    with pytest.raises(RecordingError, match="list of CPUs"):
        procfs.parse_cpu_list(b"3-1")


@given(st.binary(max_size=80))
def test_garbage_is_no_cgroup_and_no_socket(data: bytes) -> None:
    protocol = partial(procfs.parse_protocol, protocol="Tcp")
    for parse in (procfs.parse_cpu_list, procfs.parse_maximum, parse_cgroup_io, protocol):
        with contextlib.suppress(RecordingError):
            parse(data)


PARSERS: dict[str, Callable[[bytes], object]] = {
    "stat": procfs.parse_stat,
    "meminfo": procfs.parse_meminfo,
    "vmstat": procfs.parse_vmstat,
    "diskstats": procfs.parse_diskstats,
    "pressure-cpu": procfs.parse_pressure,
    "loadavg": procfs.parse_threads,
    "file-nr": procfs.parse_file_numbers,
    "process-stat": procfs.parse_process_stat,
    "process-status": procfs.parse_process_status,
    "process-io": lambda text: procfs.by_name(text, "io"),
    "process-limits": procfs.parse_limits,
    "process-schedstat": procfs.parse_schedstat,
}


@pytest.mark.parametrize("name", PARSERS)
@given(data=st.data())
def test_garbage_is_ignored_or_refused_in_our_own_words(name: str, data: st.DataObject) -> None:
    text = recorded(name)
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, len(text)))
    damaged = text[:begin] + data.draw(st.binary(max_size=40)) + text[end:]
    for garbage in (damaged, data.draw(st.binary(max_size=200))):
        try:
            PARSERS[name](garbage)
        except RecordingError as error:
            assert error.fact


@given(st.binary(max_size=200))
def test_garbage_is_no_list_of_threads(data: bytes) -> None:
    try:
        tasks = parse_tasks(data)
    except RecordingError:
        return
    assert sum(TASK.size + len(task.stat) + len(task.schedstat) + len(task.wchan) for task in tasks) == len(data)
