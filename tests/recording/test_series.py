"""A recording as a table: every tick's numbers, worked out by hand."""

from __future__ import annotations

import contextlib
import json
import tempfile
from pathlib import Path

import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadframe.errors import RecordingError
from loadframe.metrics import METRICS
from loadframe.model import CounterSpec
from loadframe.recording.frame_writer import FrameWriter
from loadframe.recording.frames import TASK, UNRECORDED, Facts
from loadframe.recording.metrics import specs_text
from loadframe.recording.series import metric_series

FACTS = Facts(0.1, 100, 2, 4096, 0.5, 0.0, 1e9, "here")
DATA = Path(__file__).parent.parent / "data" / "proc"


def record(path: Path, ticks: list[tuple[float, dict[str, bytes]]]) -> Path:
    writer = FrameWriter(path, FACTS)
    for at_s, entries in ticks:
        writer.record(at_s, at_s + 1e9, [(writer.source(name), data) for name, data in entries.items()])
        writer.write_block()
    writer.close()
    return path


def table_of(path: Path) -> polars.DataFrame:
    """Of a recording without damage."""
    series = metric_series(path)
    assert series.warnings == ()
    assert series.table is not None
    return series.table


def values(table: polars.DataFrame, metric: str) -> list[tuple[float, float]]:
    return table.filter(polars.col("metric") == metric).select("at_s", "value").rows()


def stat(user: int, idle: int, switches: int) -> bytes:
    text = b"cpu  %d 0 0 %d 0 0 0 0 0 0\nctxt %d\nprocesses 9\nprocs_running 3\nprocs_blocked 0\n"
    return text % (user, idle, switches)


def process(pid: int, cpu_ns: int, faults: int, pages: int, files: int) -> dict[str, bytes]:
    text = b"%d (a) b) S 1 1 1 0 -1 0 %d 0 0 0 5 5 0 0 20 0 1 0 9 0 %d 0\n" % (pid, faults, pages)
    return {
        f"target:{pid}:cpu": b"%d\n" % cpu_ns,
        f"target:{pid}:fd": b"%d\n" % files,
        f"target:{pid}:threads": b"2\n",
        f"target:{pid}:/proc/{pid}/stat": text,
    }


def test_counters_become_rates_and_levels_stay(tmp_path: Path) -> None:
    table = table_of(
        record(
            tmp_path / "a.lfr",
            [
                (1.0, {"system:/proc/stat": stat(0, 0, 100), "system:/proc/sys/fs/file-nr": b"7 0 99\n"}),
                (1.1, {"system:/proc/sys/fs/file-nr": b"8 0 99\n"}),
                (1.5, {"system:/proc/stat": stat(30, 70, 150)}),
                (2.0, {"system:/proc/stat": stat(30, 70, 20)}),
            ],
        )
    )
    assert values(table, "system.context_switches") == [(1.5, pytest.approx(100))]
    assert values(table, "system.cpu.utilization") == [(1.5, pytest.approx(0.3))]
    assert values(table, "system.processes.running") == [(1.0, 2), (1.5, 2), (2.0, 2)]
    assert values(table, "system.files.allocated") == [(1.0, 7), (1.1, 8)]
    assert [round(gap) for _, gap in values(table, "recorder.tick_gap")] == [100, 400, 500]
    assert set(table["host"]) == {"here"}


def test_the_processes_of_a_component_count_together_and_end_on_their_own(tmp_path: Path) -> None:
    table = table_of(
        record(
            tmp_path / "a.lfr",
            [
                (1.0, process(7, 10**9, 50, 10, 4) | process(8, 0, 0, 1, 9)),
                (2.0, process(7, 15 * 10**8, 60, 20, 5) | process(8, 10**8, 0, 2, 8)),
                (3.0, process(7, 16 * 10**8, 60, 20, 5)),
            ],
        )
    )
    assert values(table, "target.cpu.cores") == [(2.0, pytest.approx(0.6)), (3.0, pytest.approx(0.1))]
    assert values(table, "target.memory.rss") == [(1.0, 11 * 4096), (2.0, 22 * 4096), (3.0, 20 * 4096)]
    assert values(table, "target.paging.minor_faults") == [(2.0, 10), (3.0, 0)]
    assert values(table, "target.open_files") == [(1.0, 9), (2.0, 8), (3.0, 5)]
    assert values(table, "target.threads.count") == [(1.0, 4), (2.0, 4), (3.0, 2)]


def test_memory_that_processes_share_counts_once(tmp_path: Path) -> None:
    """What a process shares is recorded once per second: at the ticks between, what it said last holds on."""

    def shared(pid: int, files_kb: int, memory_kb: int) -> dict[str, bytes]:
        return {f"target:{pid}:/proc/{pid}/status": b"RssFile:\t%d kB\nRssShmem:\t%d kB\n" % (files_kb, memory_kb)}

    first = process(7, 0, 0, 100, 1) | shared(7, 20, 300) | process(8, 0, 0, 60, 1) | shared(8, 20, 180)
    second = process(7, 0, 0, 110, 1) | process(8, 0, 0, 60, 1) | process(9, 0, 0, 5, 1)
    table = table_of(record(tmp_path / "a.lfr", [(1.0, first), (2.0, second)]))
    assert values(table, "target.memory.rss") == [(1.0, (400 + 240 - 200) * 1024), (2.0, (440 + 240 + 20 - 200) * 1024)]


def test_the_servers_counters_are_there_between_the_notes_of_one_step(tmp_path: Path) -> None:
    path = tmp_path / "a.lfr"
    writer = FrameWriter(path, FACTS)
    specs = [CounterSpec("done", "mariadb.questions", cumulative=True)]
    specs += [CounterSpec("open", "mariadb.open_tables", cumulative=False)]
    specs += [CounterSpec("open", "nobodys.metric", cumulative=False)]
    notes = [(0.0, "note:counters", specs_text(specs))]
    counted = ((1.0, 10, 3), (2.0, 20, 4), (20.0, 500, 9), (21.0, 400, 9), (22.0, 450, 9))
    notes += [(at_s, "note:service", json.dumps({"done": done, "open": tables})) for at_s, done, tables in counted]
    notes += [(22.5, "note:service", "[")]
    for at_s, source, text in notes:
        writer.record(at_s, at_s + 1e9, [(writer.source(source), text.encode())], sample=False)
    writer.close()
    table = table_of(path)
    assert values(table, "mariadb.questions") == [(2.0, 10), (22.0, 50)]
    assert values(table, "mariadb.open_tables") == [(at_s, tables) for at_s, _, tables in counted]
    assert set(table["metric"]) <= METRICS.keys()


@pytest.mark.parametrize(
    ("memory", "cpu"),
    [
        ("memory.current", ("cpu.stat", b"usage_usec %d\n", 10**6)),
        ("memory.usage_in_bytes", ("cpuacct.usage", b"%d\n", 10**9)),
    ],
    ids=["v2", "v1"],
)
def test_cages_frequencies_and_flushes_are_there(tmp_path: Path, memory: str, cpu: tuple[str, bytes, int]) -> None:
    file, text, second = cpu
    disk = b"   8       0 sda 5 0 8 1 6 0 8 1 0 500 9 0 0 0 0 %d 7\n"
    speed = "system:/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq"

    def entries(count: int) -> dict[str, bytes]:
        return {
            f"target:cgroup:/sys/fs/cgroup/x/{memory}": b"%d\n" % (4096 + count),
            f"target:cgroup:/sys/fs/cgroup/x/{file}": text % (count * second),
            "system:/proc/diskstats": disk % (10 * count),
            speed.format(0): b"800000\n",
            speed.format(1): b"%d\n" % (3_000_000 - count),
        }

    table = table_of(record(tmp_path / "a.lfr", [(1.0, entries(0)), (3.0, entries(1))]))
    assert values(table, "target.cage.memory.usage") == [(1.0, 4096), (3.0, 4097)]
    assert values(table, "target.cage.cpu") == [(3.0, pytest.approx(0.5))]
    assert values(table, "system.disk.flushes") == [(3.0, 5)]
    assert values(table, "system.disk.reads") == [(3.0, 0)]
    assert values(table, "system.cpu.frequency") == [(1.0, 3e9), (3.0, pytest.approx(3e9 - 1000))]


def test_the_threads_that_were_looked_at_stand_for_all(tmp_path: Path) -> None:
    def rows(states: str) -> bytes:
        texts = [b"%d (a) b) %s 1" % (thread, state.encode()) for thread, state in enumerate(states)]
        return b"".join(TASK.pack(thread, len(text), 0, 0) + text for thread, text in enumerate(texts))

    ticks = [
        (1.0, {"target:7:tasks": rows("RDSS"), "target:7:threads": b"8\n", "target:8:tasks": rows("D")}),
        (2.0, {"target:7:tasks": rows("SS"), "target:7:threads": b"2\n"}),
        (3.0, {"target:7:tasks": rows("SS")[:-1], "target:7:threads": b"2\n"}),
    ]
    table = table_of(record(tmp_path / "a.lfr", ticks))
    assert values(table, "target.threads.running") == [(1.0, 2), (2.0, 0)]
    assert values(table, "target.threads.blocked") == [(1.0, 3), (2.0, 0)]
    assert values(table, "target.threads.sleeping") == [(1.0, 4), (2.0, 2)]


def test_counters_of_protocols_are_found_by_their_names(tmp_path: Path) -> None:
    def entries(count: int) -> dict[str, bytes]:
        return {
            "system:/proc/net/snmp": b"Tcp: MaxConn RetransSegs InErrs\nTcp: -1 %d 9\n" % count,
            "system:/proc/net/netstat": b"TcpExt: ListenOverflows ListenDrops\nTcpExt: %d 7\n" % (2 * count),
            "system:/proc/net/sockstat": b"sockets: used 9\nTCP: inuse 3 orphan 0 tw 5 alloc 3 mem 2\nUDP: mem 0\n",
        }

    table = table_of(record(tmp_path / "a.lfr", [(1.0, entries(10)), (3.0, entries(14))]))
    assert values(table, "system.network.retransmits") == [(3.0, 2)]
    assert values(table, "system.network.listen_overflows") == [(3.0, 4)]
    assert values(table, "system.network.listen_drops") == [(3.0, 0)]
    assert values(table, "system.network.time_wait") == [(1.0, 5), (3.0, 5)]
    assert values(table, "system.network.tcp_memory") == [(1.0, 8192), (3.0, 8192)]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (
            "io.stat",
            "8:0 rbytes={read} wbytes=4 rios=1 wios=1 dbytes=0 dios=0\n8:16 rbytes=100 wbytes=0 rios=1 wios=1\n",
        ),
        ("blkio.throttle.io_service_bytes", "8:0 Read {read}\n8:0 Write 4\n8:16 Read 100\n8:16 Write 0\nTotal 5\n"),
    ],
    ids=["v2", "v1"],
)
def test_what_a_cage_reads_is_the_sum_over_its_disks(tmp_path: Path, file: str, text: str) -> None:
    source = f"target:cgroup:/sys/fs/cgroup/x/{file}"
    ticks = [(float(at_s), {source: text.format(read=read).encode()}) for at_s, read in ((1, 1000), (2, 1500))]
    table = table_of(record(tmp_path / "a.lfr", ticks))
    assert values(table, "target.cage.read_bytes") == [(2.0, 500)]
    assert values(table, "target.cage.write_bytes") == [(2.0, 0)]


def test_what_real_kernels_write_is_understood(tmp_path: Path) -> None:
    names = {"stat": "stat", "meminfo": "meminfo", "vmstat": "vmstat", "diskstats": "diskstats-physical"}
    entries = {f"system:/proc/{name}": (DATA / file).read_bytes() for name, file in names.items()}
    entries |= {f"system:/proc/pressure/{name}": (DATA / f"pressure-{name}").read_bytes() for name in ("io", "cpu")}
    table = table_of(record(tmp_path / "a.lfr", [(1.0, entries), (2.0, entries)]))
    assert values(table, "system.memory.available")[0] == (1.0, 23945916 * 1024)
    still = {name for name in set(table["metric"]) if values(table, name)[-1][1] == 0}
    assert {"system.disk.reads", "system.disk.busy", "system.pressure.io.full", "system.paging.swap_in"} <= still
    assert set(table["metric"]) <= METRICS.keys()


def test_of_a_long_recording_there_are_moments_evenly_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """60 s at 10 Hz, of which 12 moments may be read: rates are right between them, also of what is read or asked once
    per second."""
    monkeypatch.setattr("loadframe.recording.series.MOST_ENTRIES", 76)
    path = tmp_path / "a.lfr"
    writer = FrameWriter(path, FACTS)
    specs = [CounterSpec("done", "mariadb.questions", cumulative=True)]
    writer.record(0.0, 1e9, [(writer.source("note:counters"), specs_text(specs).encode())], sample=False)
    for at in range(600):
        entries = {"system:/proc/stat": stat(at, at, 7 * at)}
        entries |= {"system:/proc/net/snmp": b"Tcp: RetransSegs\nTcp: %d\n" % (3 * at)} if at % 10 == 4 else {}
        writer.record(at / 10, 1e9 + at / 10, [(writer.source(name), text) for name, text in entries.items()])
        if at % 10 == 9:
            writer.record(at / 10, 1e9, [(writer.source("note:service"), b'{"done": %d}' % (5 * at))], sample=False)
            writer.write_block()
    writer.close()
    series = metric_series(path)
    assert series.table is not None
    switches = values(series.table, "system.context_switches")
    assert [at_s for at_s, _ in switches] == list(range(5, 60, 5))
    assert [rate for _, rate in switches] == pytest.approx([70.0] * 11)
    assert values(series.table, "system.network.retransmits")[0] == (5.4, pytest.approx(30))
    rates = values(series.table, "mariadb.questions")
    assert [rate for _, rate in rates] == pytest.approx([50.0] * 12)
    assert values(series.table, "recorder.tick_gap") == [], "what lies between was not looked at"
    (warning,) = series.warnings
    assert "a moment every 5 s" in warning


SOURCES = [
    *("system:/proc/stat", "system:/proc/diskstats", "system:/proc/meminfo", "system:/proc/pressure/io"),
    *("note:service", "note:counters", "target:cgroup:/x/cpu.stat", "target:cgroup:/x/memory.current"),
    *("target:7:/proc/7/stat", "target:7:cpu", "target:7:fd", "target:x:cpu", "target:7:threads", "target:7:tasks"),
    *("system:/proc/net/snmp", "system:/proc/net/sockstat", "target:cgroup:/x/io.stat"),
]
texts = st.one_of(st.binary(max_size=40), st.just(stat(1, 2, 3)), st.just(b"9" * 400))


@settings(max_examples=25)
@given(st.lists(st.dictionaries(st.sampled_from(SOURCES), texts, max_size=4), max_size=4))
def test_garbage_has_no_values_and_does_no_harm(entries: list[dict[str, bytes]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = record(Path(folder, "a.lfr"), [(float(at_s), each) for at_s, each in enumerate(entries)])
        table = table_of(path)
    assert set(table["metric"]) <= METRICS.keys()
    assert table["value"].is_finite().all()


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.lfr").write_bytes(b"PAR1 of somebody else")
    with pytest.raises(RecordingError, match="not a recording"):
        metric_series(tmp_path / "a.lfr")
    with contextlib.suppress(RecordingError):
        metric_series(tmp_path / "absent")


def test_what_is_missing_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.lfr"
    ticks = [(at_s, {"system:/proc/stat": stat(0, 0, 100)}) for at_s in (1.0, 2.0, 3.0)]
    size = record(path, ticks).stat().st_size
    path.unlink()
    told = b"The process 7 of the target could not be recorded: Too many open files."
    content = record(path, [*ticks, (4.0, {UNRECORDED: told}), (5.0, {UNRECORDED: told})]).read_bytes()
    path.write_bytes(content[: size - 20] + b"!" + content[size - 19 : -1])
    series = metric_series(path)
    assert series.table is not None
    assert values(series.table, "system.context_switches") == [(2.0, 0.0)]
    lost, torn, unrecorded = series.warnings
    assert lost.startswith("In the recording a.lfr: The block at offset ")
    assert torn.startswith("In the recording a.lfr: The last ")
    assert unrecorded == told.decode()


def test_what_a_service_exposes_is_in_the_table_and_what_is_missing_of_it_is_told(tmp_path: Path) -> None:
    names = [f'service.took_seconds_bucket{{le="{bound}"}}' for bound in ("0.1", "+Inf")]
    specs = [CounterSpec(name, name, True) for name in names]
    later = [CounterSpec("service.in_use", "service.in_use", False)]
    notes = [dict.fromkeys(names, 0), dict(zip(names, (3, 4), strict=True)) | {"service.in_use": 2}]
    told = [{"note:missing": json.dumps([sentence]).encode()} for sentence in ("1 of 2 failed.", "1 of 9 failed.")]
    path = record(
        tmp_path / "recording",
        [
            (0.0, {"note:counters": specs_text(specs).encode()}),
            *((at_s, {"note:service": json.dumps(each).encode()}) for at_s, each in enumerate(notes, start=1)),
            (2.1, {"note:counters": specs_text(later).encode()}),
            *((at_s, each) for at_s, each in enumerate(told, start=3)),
        ],
    )
    series = metric_series(path)
    assert series.warnings == ("1 of 9 failed.",), "the last note has all before it"
    assert series.table is not None
    assert values(series.table, "service.took_seconds_p50") == [(2.0, 0.1)]
    assert values(series.table, "service.in_use") == [(2.0, 2.0)]
    assert set(series.table["metric"]) == {"service.took_seconds_p50", "service.in_use", "recorder.tick_gap"}
