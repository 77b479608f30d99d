"""What reading a watch folder takes grows with its bytes on the disk, whatever a stranger has put there: at most 64 MiB
of memory and 20 times these bytes, and a second of CPU time and one for each MiB."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard

MIB = 1 << 20
SLOWER = 4.0
"""A machine that is as much slower, or as busy, holds the bound on time, too."""
READERS = {
    "view": """
from loadframe_watch.page import WatchView
view = WatchView(opened(folder), "0/w")
def read():
    view.refresh()
    return [json.dumps(view.whole()), view.row(), view.refresh(), view.error]
""",
    "metrics": """
from loadframe_watch.page import WatchMetrics
def read():
    view = WatchMetrics(opened(folder), "0/w")
    return list(view.samples())
""",
    "fit": """
from loadframe_watch.days import observed
def read():
    return observed(folder)
""",
    "export": """
from loadframe.reporting.exports import exported
from loadframe_watch.exporting import WATCH_FORMATS
def read():
    names = "samples.csv", "alarms.csv", "gaps.csv", "openmetrics"
    return [exported(WATCH_FORMATS, folder, folder, name) for name in names]
""",
}
MEASURES = """
import json, sys, time
from pathlib import Path
from loadframe.errors import UserError
from loadframe_watch.days import opened
import zstandard
folder = Path(sys.argv[1])
def resident(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))
{reader}
Path("/proc/self/clear_refs").write_text("5")
before, began_s, said = resident("VmRSS:"), time.process_time(), ""
try:
    kept = read()
except UserError as error:
    said = error.fact
print(json.dumps([resident("VmHWM:") - before, time.process_time() - began_s, said]))
"""


def text(*lines: dict[str, object]) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def sample(n: int, **fields: object) -> dict[str, object]:
    return {"n": n, "kind": "sample", "at_s": 1.8e9 + n, "up_s": n, "load": 1.0, **fields}


def minutes() -> Iterator[bytes]:
    """Of as many minutes as there are samples, each with a hundred uses."""
    for n in range(1, 10_000):
        yield text(sample(n, at_s=60.0 * n, use={f"limit.{at}": 0.5 for at in range(100)}))


def names() -> Iterator[bytes]:
    """Limits, metrics and kinds of alarms that no two lines share."""
    for n in range(1, 2000):
        both = {f"{n}.{at}": 0.5 for at in range(100)}
        yield text(sample(n, use=both, values=both))
        yield text({"n": n, "kind": "ledger", "at_s": 1.8e9, "up_s": 1, "limits": [{"id": name} for name in both]})
        yield text({"n": n, "kind": "alarm", "at_s": 1.8e9, "up_s": 1, "alarm": f"{n}", "title": f"{n}"})


def one_minute() -> Iterator[bytes]:
    """All samples of one minute."""
    for n in range(1, 10_000):
        yield text(sample(n, at_s=1.8e9, use={f"limit.{at}": 0.5 for at in range(100)}))


def alarms() -> Iterator[bytes]:
    """What an alarm has is kept: as large as a line may be."""
    for n in range(1, 150):
        yield text({"n": n, "kind": "alarm", "at_s": 1.8e9 + n, "up_s": n, "evidence": [[]] * 60_000})
        yield text({"n": n, "kind": "gap", "at_s": 1.8e9 + n, "up_s": n, "words": [{}] * 4000})


def texts() -> Iterator[bytes]:
    """Alarms of which an export keeps all."""
    for n in range(1, 20_000):
        evidence = [{"text": f"{n} " * 300}]
        yield text({"n": n, "kind": "alarm", "at_s": 1.8e9 + n, "up_s": n, "alarm": "leak", "evidence": evidence})


def short_lines() -> Iterator[bytes]:
    yield b'{"n":1,"kind":"sample","at_s":1,"up_s":1}\n' * 1_000_000


def numbers() -> Iterator[bytes]:
    yield (b'{"n":1,"kind":"sample","at_s":1,"up_s":1,"x":[' + b"1," * 100_000 + b"1]}\n") * 100


def nested() -> Iterator[bytes]:
    for n in range(1, 100):
        yield text({"n": n, "kind": "model", "at_s": 1.8e9, "up_s": n, "limits": [[[]] * 5] * 8000})


def wide() -> Iterator[bytes]:
    """A table of it would have 2,000 columns, of which all rows but one have none."""
    yield text(sample(1, values={f"metric.{at}": 1.0 for at in range(1900)}))
    yield b"".join(text(sample(n)) for n in range(2, 50_000))


def blank() -> Iterator[bytes]:
    yield b"\n" * (300 * MIB)


def one_line() -> Iterator[bytes]:
    yield b" " * (300 * MIB)


HOSTILE: tuple[Callable[[], Iterator[bytes]], ...] = (
    minutes, names, one_minute, alarms, texts, short_lines, numbers, nested, wide, blank, one_line,
)  # fmt: skip


def cost(folder: Path, reader: str) -> tuple[float, float, str]:
    """(bytes, seconds of CPU, what was refused) of a child that reads the folder."""
    command = [sys.executable, "-c", MEASURES.format(reader=READERS[reader]), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    taken, cpu_s, said = json.loads(done.stdout)
    return taken, cpu_s, said


def check(folder: Path, reader: str) -> str:
    on_disk = sum(file.stat().st_size for file in folder.iterdir())
    taken, cpu_s, said = cost(folder, reader)
    assert taken <= 64 * MIB + 20 * on_disk, f"{taken / MIB:.0f} MiB for {on_disk:,} bytes"
    assert cpu_s <= SLOWER * (1 + on_disk / MIB), f"{cpu_s:.1f} s for {on_disk:,} bytes"
    return said


@pytest.mark.long
@pytest.mark.timeout(240)
@pytest.mark.parametrize("made", HOSTILE, ids=lambda made: made.__name__)
def test_a_compressed_folder_takes_no_more_than_its_size_allows(
    tmp_path: Path, made: Callable[[], Iterator[bytes]]
) -> None:
    packing = zstandard.ZstdCompressor(level=3, write_checksum=True).compressobj()
    with (tmp_path / "2027-01-14.jsonl.zst").open("wb") as file:
        for piece in made():
            file.write(packing.compress(piece))
        file.write(packing.flush())
    for reader in READERS:
        check(tmp_path, reader)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("reader", READERS)
def test_many_small_days_take_no_more_than_one(tmp_path: Path, reader: str) -> None:
    day = zstandard.compress(b"".join(short_lines())[: 4 * MIB])
    for number in range(1, 1000):
        (tmp_path / f"{2000 + number // 28}-01-{number % 28 + 1:02}.jsonl.zst").write_bytes(day)
    check(tmp_path, reader)


@pytest.mark.long
@pytest.mark.timeout(240)
@pytest.mark.parametrize("made", [short_lines, alarms, nested, wide], ids=lambda made: made.__name__)
def test_nor_does_a_folder_that_is_not_compressed(tmp_path: Path, made: Callable[[], Iterator[bytes]]) -> None:
    size = 0
    with (tmp_path / "2027-01-14.jsonl").open("wb") as file:
        for piece in made():
            size += file.write(piece[: 2 * MIB])
            if size > 2 * MIB:
                break
    for reader in READERS:
        check(tmp_path, reader)


@pytest.mark.long
@pytest.mark.timeout(240)
@pytest.mark.parametrize("reader", READERS)
def test_a_real_watch_of_three_days_is_read_whole(tmp_path: Path, reader: str) -> None:
    """A sample every ten seconds, compacted: nothing of it is refused."""
    import random

    draw = random.Random(1)
    metrics = [f"target.metric_{at}" for at in range(36)]
    for day in range(3):
        lines = []
        for n in range(1, 8641):
            values = {name: round(draw.gauss(10, 1) * 10**at, 4) for at, name in enumerate(metrics[:12])}
            values |= dict.fromkeys(metrics[12:], 7.0)
            lines.append(sample(n, at_s=1.8e9 + day * 86400 + 10 * n, values=values, use={"a": 0.25, "b": 0.5}))
        name = f"2027-01-{15 + day}.jsonl.zst"
        (tmp_path / name).write_bytes(zstandard.compress(text(*lines), 9))
    assert check(tmp_path, reader) == ""
