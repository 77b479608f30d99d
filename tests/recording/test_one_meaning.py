"""A metric has one meaning: what the ledger reads at a moment and what the recording of a step says of the same texts
are the same number."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from loadframe.recording import snapshot_kernel, snapshot_machine
from loadframe.recording.frames import Facts, Tick
from loadframe.recording.sampling import SLOW_SYSTEM_FILES, SYSTEM_FILES
from loadframe.recording.snapshot import Place, read, take
from loadframe.recording.system_metrics import system_metrics
from loadframe.recording.windows import window_of

DATA = Path(__file__).parent.parent / "data"
SOURCES = (*snapshot_machine.SOURCES, *snapshot_kernel.SOURCES)
FACTS = Facts(1.0, 100, 2, 4096, boottime_offset_s=0.0, started_s=0.0, started_wall_s=1e9)
ELAPSED_S = 10.0
LATER = {
    "proc/stat": (("cpu  ", 500), ("cpu0 ", 400), ("cpu1 ", 100), ("ctxt ", 9000), ("processes ", 40)),
    "proc/vmstat": (
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
    for name in (*SYSTEM_FILES, *SLOW_SYSTEM_FILES):
        path = root / name.removeprefix("/").replace("proc/net", "proc/42/net")
        if path.exists():
            entries[f"system:{name}"] = path.read_bytes()
    return Tick(at_s, 1e9 + at_s, entries, FACTS)


def test_the_ledger_and_a_step_say_the_same_of_the_same_texts(tree: Path) -> None:
    moments = iter((0.0, ELAPSED_S))
    place = Place(tree, 42)
    first = take(place, SOURCES, lambda: next(moments))
    ticks = [recorded(tree, 0.0)]
    for name, words in LATER.items():
        for word, by in words:
            (tree / name).write_text(grown((tree / name).read_text(), word, by))
    (tree / "proc/diskstats").write_text(DISKS.format(900, 7200, 9000, 20000, 100, 800, 3000, 15000))
    now = read(first, take(place, SOURCES, lambda: next(moments)), SOURCES).values
    window = window_of([*ticks, recorded(tree, ELAPSED_S)], 0.0, ELAPSED_S)
    assert window is not None
    step = system_metrics(window)
    both = sorted(now.keys() & step.keys())
    assert {"system.disk.busy", "system.cpu.busy_cores", "system.paging.refaults"} <= {*both}
    assert {name: now[name] for name in both} == pytest.approx({name: step[name] for name in both})
