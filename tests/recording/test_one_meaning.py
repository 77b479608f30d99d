"""A metric has one meaning: what the ledger reads at a moment, what the recording of a step says and what the series of
the whole recording has of the same texts are the same number."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from loadframe.ledger.reading import counter_metrics
from loadframe.model import CounterSpec
from loadframe.recording import snapshot_machine, snapshot_process
from loadframe.recording.cage_metrics import cage_metrics
from loadframe.recording.derivation import put_together, window_of
from loadframe.recording.frame_writer import FrameWriter
from loadframe.recording.frames import TASK, Facts, Tick
from loadframe.recording.held_files import Descriptors
from loadframe.recording.metrics import specs_text, window_metrics
from loadframe.recording.readers import RecordingReader
from loadframe.recording.sampling import HALF_SYSTEM_FILES, SLOW_SYSTEM_FILES, SYSTEM_FILES, ProcessFiles
from loadframe.recording.series import metric_series
from loadframe.recording.snapshot import Pair, Place, read, take
from loadframe.recording.system_metrics import system_metrics

DATA = Path(__file__).parent.parent / "data"
SOURCES = snapshot_machine.SOURCES
FACTS = Facts(1.0, 100, 2, 4096, boottime_offset_s=0.0, started_s=0.0, started_wall_s=1e9)
ELAPSED_S = 10.0
LATER = {
    "proc/stat": (("cpu  ", 500), ("cpu0 ", 400), ("cpu1 ", 100), ("ctxt ", 9000), ("processes ", 40)),
    "proc/vmstat": (
        *(("allocstall_dma ", 5), ("pgpgin ", 4000)),
        *(("pgmajfault ", 70), ("pgscan_direct ", 30), ("pgscan_kswapd ", 50), ("allocstall_normal ", 20)),
        *(
            ("workingset_refault_file ", 60),
            ("pswpin ", 10),
            ("pswpout ", 30),
            ("nr_dirty ", 7),
            ("nr_writeback ", 900),
        ),
    ),
}
"""What grew between the two moments: the first number after these words."""
DISKS = (
    "   8       0 sda {0} 0 {1} 0 0 0 0 0 0 {2} {3} 0 0 0 0 0 0\n"
    "   8      16 sdb {4} 0 {5} 0 0 0 0 0 0 {6} {7} 0 0 0 0 0 0\n"
)
"""sda is the busier one, sdb, which queues fewer, the fuller."""


def grown(text: str, word: str, by: int) -> str:
    lines = text.splitlines(keepends=True)
    for place, line in enumerate(lines):
        if line.startswith(word):
            first, _, rest = line[len(word) :].partition(" ")
            lines[place] = f"{word}{int(first) + by}{' ' if rest else chr(10)}{rest}"
    return "".join(lines)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A machine as files, with two disks."""
    root = tmp_path / "machine"
    shutil.copytree(DATA / "ledger", root)
    (root / "proc/pressure").mkdir()
    for name in ("stat", "meminfo", "vmstat", "loadavg"):
        shutil.copy(DATA / "proc" / name, root / "proc" / name)
    for name in ("cpu", "io", "memory"):
        shutil.copy(DATA / f"proc/pressure-{name}", root / "proc/pressure" / name)
    (root / "proc/diskstats").write_text(DISKS.format(0, 0, 0, 0, 0, 0, 0, 0))
    for name, requests in (("sda", 1024), ("sdb", 32)):
        (root / f"sys/block/{name}/queue").mkdir(parents=True, exist_ok=True)
        (root / f"sys/block/{name}/queue/nr_requests").write_text(f"{requests}\n")
    return root


def recorded(root: Path, at_s: float) -> Tick:
    entries = {}
    for name in (*SYSTEM_FILES, *HALF_SYSTEM_FILES, *SLOW_SYSTEM_FILES):
        path = root / name.removeprefix("/").replace("proc/net", "proc/42/net")
        if path.exists():
            entries[f"system:{name}"] = path.read_bytes()
    return Tick(at_s, 1e9 + at_s, entries, FACTS)


def ticks_of(path: Path) -> list[Tick]:
    with RecordingReader(path) as reader:
        return reader.all_ticks()


def series_of(path: Path, ticks: Sequence[Tick]) -> dict[str, list[float]]:
    """What the table of a recording of these ticks has, by metric, in the order of time."""
    writer = FrameWriter(path, ticks[0].facts)
    for tick in ticks:
        entries = [(writer.source(name), text) for name, text in tick.entries.items()]
        writer.record(tick.monotonic_s, tick.wall_s, entries, sample=tick.sample)
    writer.close()
    series = metric_series(path)
    assert series.warnings == ()
    assert series.table is not None
    found: dict[str, list[float]] = {}
    for metric, value in series.table.select("metric", "value").iter_rows():
        found.setdefault(metric, []).append(value)
    return found


def put_together_as_a_step(series: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Of two ticks: a rate has one value, a level two."""
    return {metric: put_together(metric.removeprefix("target."), values) for metric, values in series.items()}


def test_the_ledger_and_a_step_and_the_series_say_the_same_of_the_same_texts(tree: Path, tmp_path: Path) -> None:
    moments = iter((0.0, ELAPSED_S))
    place = Place(tree, 42)
    first = take(place, SOURCES, lambda: next(moments))
    ticks = [recorded(tree, 0.0)]
    for name, words in LATER.items():
        for word, by in words:
            (tree / name).write_text(grown((tree / name).read_text(), word, by))
    (tree / "proc/diskstats").write_text(DISKS.format(900, 7200, 9000, 20000, 100, 800, 3000, 15000))
    now = read(first, take(place, SOURCES, lambda: next(moments)), SOURCES).values
    ticks.append(recorded(tree, ELAPSED_S))
    window = window_of(ticks, 0.0, ELAPSED_S)
    assert window is not None
    step = system_metrics(window)
    both = sorted(now.keys() & step.keys())
    assert {"system.disk.busy", "system.cpu.busy_cores", "system.paging.refaults"} <= {*both}
    assert {"system.network.time_wait", "system.network.tcp_memory", "system.files.allocated"} <= {*both}
    assert {name: now[name] for name in both} == pytest.approx({name: step[name] for name in both})
    series = put_together_as_a_step(series_of(tmp_path / "a.lfr", ticks))
    of_windows_alone = {"system.clock.step", "system.cpu.frequency_drop", "system.disk.stall_ms"}
    assert step.keys() - series.keys() <= of_windows_alone
    assert {name: series[name] for name in step.keys() & series.keys()} == pytest.approx(
        {name: step[name] for name in step.keys() & series.keys()}
    )


def of_a_process(
    pid: int, count: int, *, parent: int = 1, started_s: float = 0.0, inherited: int = 0
) -> dict[str, bytes]:
    """At a tick, everything of a process with two threads; `count` is what grew."""
    counters = f"{7 * count} {10 * inherited} {count} 0 {count} {count} {inherited} 0"
    stat = f"{pid} (a) b) S {parent} 1 1 0 -1 0 {counters} 20 0 1 0 {100 * started_s:.0f} 0 {500 + count}\n".encode()
    row = b"%d (a) b) R 1" % pid
    return {
        f"target:{pid}:/proc/{pid}/stat": stat,
        f"target:{pid}:/proc/{pid}/io": b"syscw: %d\nread_bytes: %d\nwrite_bytes: 0\n" % (count, 512 * count),
        f"target:{pid}:/proc/{pid}/limits": b"Limit   Soft\nMax open files   %d   9999   files\n" % (pid * 100),
        f"target:{pid}:/proc/{pid}/status": b"RssFile:\t8 kB\nRssShmem:\t%d kB\n" % (pid * 4),
        f"target:{pid}:cpu": b"%d\n" % (20_000_000 * count + 5),
        f"target:{pid}:fd": b"%d\n" % (pid + count % 10),
        f"target:{pid}:threads": b"2\n",
        f"target:{pid}:tasks": TASK.pack(pid, len(row), 0, 0) + row,
    }


def test_a_step_and_the_series_say_the_same_of_processes_that_come_and_go(tmp_path: Path) -> None:
    """7 stays, 8 is its child and ends, 9 is born, 10 is older but was not followed before."""
    first = of_a_process(7, 100, inherited=50) | of_a_process(8, 20, parent=7)
    last = of_a_process(7, 160, inherited=90) | of_a_process(9, 30, started_s=1.5) | of_a_process(10, 900)
    ticks = [Tick(1.0, 1e9, first, FACTS), Tick(2.0, 1e9 + 1, last, FACTS)]
    step = {name: value for name, value in window_metrics(ticks, 1.0, 2.0).items() if name.startswith("target.")}
    assert step["target.cpu.cores"] == pytest.approx(0.02 * 60 + (40 - 2 * 20) / 100 + 0.02 * 30)
    assert step["target.paging.minor_faults"] == 7 * 60 + (400 - 7 * 20) + 7 * 30
    assert (step["target.open_files"], step["target.open_files.limit"]) == (10, 1000)
    series = put_together_as_a_step(series_of(tmp_path / "a.lfr", ticks))
    of_windows = {name for name in step if name.startswith("target.waits.")} | {"target.threads.polling"}
    of_windows |= {"target.cpu.busiest_process"}
    assert step.keys() - series.keys() == of_windows, "a few threads are asked at each tick where they sleep"
    assert {name: series[name] for name in step.keys() & series.keys()} == pytest.approx(
        {name: step[name] for name in step.keys() & series.keys()}
    )


def test_a_component_of_any_name_is_in_the_series_as_in_a_step(tmp_path: Path) -> None:
    """A service's database, say, that its study names."""
    ticks = [
        Tick(
            at_s,
            1e9,
            {name.replace("target", "database"): text for name, text in of_a_process(7, count).items()},
            FACTS,
        )
        for at_s, count in ((1.0, 100), (2.0, 160))
    ]
    series = series_of(tmp_path / "a.lfr", ticks)
    step = window_metrics(ticks, 1.0, 2.0)
    assert series["database.cpu.cores"] == [pytest.approx(step["database.cpu.cores"])]
    assert step["database.paging.minor_faults"] == 7 * 60


def write_process(root: Path, pid: int, count: int) -> None:
    """Everything of a process with two threads, as files."""
    folder = root / f"proc/{pid}"
    for thread in (pid, pid + 100):
        (folder / f"task/{thread}").mkdir(parents=True, exist_ok=True)
        (folder / f"task/{thread}/stat").write_text(f"{thread} (a) R 1\n")
        (folder / f"task/{thread}/schedstat").write_text(f"{10_000_000 * count * thread} {1_000_000 * count} 1\n")
    (folder / "fd").mkdir(exist_ok=True)
    for number in range(pid + count):
        (folder / f"fd/{number}").touch()
    counters = f"0 0 0 0 {3 * count} {count} 0 0"
    (folder / "stat").write_text(f"{pid} (a) S 1 1 1 0 -1 0 {counters} 20 0 2 0 9 0 {1000 * pid + count}\n")
    status = f"VmRSS:\t{4 * (1000 * pid + count)} kB\nRssFile:\t80 kB\nRssShmem:\t{pid * 40} kB\n"
    (folder / "status").write_text(f"{status}Cpus_allowed_list:\t0-2,5\n")
    (folder / "limits").write_text(f"Limit   Soft\nMax open files   {pid * 100}   9999   files\n")


def test_the_ledger_and_a_step_say_the_same_of_a_server_with_two_processes(tmp_path: Path) -> None:
    """Read by the recorder and by the ledger, from the same files."""
    root, path, found = tmp_path / "machine", tmp_path / "a.lfr", Descriptors()
    place, sources = Place(root, 7, others=(8,)), snapshot_process.SOURCES
    moments = iter((100.0, 101.0))
    looks = []
    writer = FrameWriter(path, FACTS)
    with closing(writer), ExitStack() as stack:
        for at_s, count in ((100.0, 5), (101.0, 9)):
            for pid in (7, 8):
                write_process(root, pid, count)
            if not looks:
                followed = [
                    stack.enter_context(closing(ProcessFiles(root, "target", pid, writer, found, interval_s=1.0)))
                    for pid in (7, 8)
                ]
            writer.begin(at_s, 1e9 + at_s)
            for files in followed:
                assert files.sample(at_s)
            writer.end_record()
            looks.append(take(place, sources, lambda: next(moments)))
    now = read(*looks, sources).values
    step = window_metrics(ticks_of(path), 100.0, 101.0)
    both = now.keys() & step.keys()
    assert both >= {f"target.{name}" for name in ("cpu.cores", "cpu.run_delay", "cpu.hottest_thread", "cpus.named")}
    assert both >= {f"target.{name}" for name in ("open_files", "open_files.limit", "memory.rss", "memory.shared")}
    assert {name: now[name] for name in both} == pytest.approx({name: step[name] for name in both})


def test_what_a_server_counts_is_the_same_in_all_three(tmp_path: Path) -> None:
    specs = [CounterSpec("done", "mariadb.questions", True), CounterSpec("open", "mariadb.open_tables", False)]
    counted = [{"done": 10.0, "open": 5.0}, {"done": 30.0, "open": 9.0}]
    ticks = [
        Tick(at_s, 1e9, {"note:service": json.dumps(each).encode()}, FACTS, sample=False)
        for at_s, each in zip((1.0, 2.0), counted, strict=True)
    ]
    step = window_metrics(ticks, 1.0, 2.0, service=specs)
    now, _ = counter_metrics(*counted, 1.0, specs)
    meaning = Tick(0.5, 1e9, {"note:counters": specs_text(specs).encode()}, FACTS, sample=False)
    series = put_together_as_a_step(series_of(tmp_path / "a.lfr", [meaning, *ticks]))
    assert step == now == series == {"mariadb.questions": 20, "mariadb.open_tables": 9}


def test_what_older_kernels_count_is_counted_at_a_moment_too() -> None:
    source = next(one for one in SOURCES if "system.paging.refaults" in one.metrics)
    texts = [b"workingset_refault %d\nallocstall %d\n" % (count, 2 * count) for count in (0, 50)]
    values = source.parse(Pair(*texts, ELAPSED_S))
    assert values == {"system.paging.refaults": 5, "system.paging.direct_stalls": 10}


CAGES = {
    "v2": {
        "cpu.stat": "usage_usec {0}000\nnr_periods {0}\nnr_throttled {0}\nthrottled_usec {0}00\n",
        "cpu.max": "150000 100000\n",
        "memory.current": "{0}\n",
        "memory.max": "9000000\n",
        "memory.events": "low 0\nmax {0}\noom 0\noom_kill 0\n",
        "memory.stat": "anon 5\nworkingset_refault_file {0}\n",
        "io.stat": "8:0 rbytes={0} wbytes=0 rios={0} wios=0\n8:16 rbytes={0}00 wbytes={0} rios=3 wios=4\n",
        "io.max": "8:0 rbps=500 wbps=max riops=max wiops=max\n",
        "pids.current": "7\n",
        "cpu.pressure": "some avg10=0 total={0}000\n",
        "memory.pressure": "some avg10=0 total={0}00000\n",
    },
    "v1": {
        "cpuacct.usage": "{0}000000\n",
        "cpu.stat": "nr_periods {0}\nnr_throttled {0}\nthrottled_time {0}00000\n",
        "cpu.cfs_quota_us": "50000\n",
        "cpu.cfs_period_us": "100000\n",
        "memory.usage_in_bytes": "{0}\n",
        "memory.limit_in_bytes": "9000000\n",
        "memory.failcnt": "{0}\n",
        "memory.stat": "workingset_refault_file 0\ntotal_workingset_refault_file {0}\n",
        "blkio.throttle.io_service_bytes": "8:0 Read {0}\n8:0 Write 0\n8:16 Read {0}00\n8:16 Write {0}\nTotal 5\n",
        "blkio.throttle.io_serviced": "8:0 Read {0}\n8:0 Write 3\nTotal 5\n",
        "blkio.throttle.read_bps_device": "8:0 500\n",
        "pids.current": "7\n",
    },
}


@pytest.mark.parametrize("version", CAGES)
def test_a_step_and_the_series_say_the_same_of_a_cage(tmp_path: Path, version: str) -> None:
    """With a limit on one disk of two, and pressure that grew by more than the time that passed."""
    ticks = []
    for at_s, count in ((0.0, 1000), (1.0, 21000)):
        entries = {f"target:cgroup:/x/{name}": text.format(count).encode() for name, text in CAGES[version].items()}
        ticks.append(Tick(at_s, 1e9 + at_s, entries, FACTS))
    window = window_of(ticks, 0.0, 1.0)
    assert window is not None
    step = {f"target.{name}": value for name, value in cage_metrics("target", window).items()}
    assert (step["target.cage.read_bytes"], step["target.cage.read_bytes.limit"]) == (20000, 500)
    assert step["target.cage.write_bytes"] == 20000
    assert step["target.cage.memory.refaults"] == 20000
    series = put_together_as_a_step(series_of(tmp_path / "a.lfr", ticks))
    assert step.keys() - series.keys() == {"target.cage.cpu.utilization"}, "of what is there at different ticks"
    assert {name: series[name] for name in step.keys() & series.keys()} == pytest.approx(
        {name: step[name] for name in step.keys() & series.keys()}
    )
