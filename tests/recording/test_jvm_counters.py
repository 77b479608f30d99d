"""The counters of a Java process are read where they are its own, and nothing that was put there to mislead."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from loadframe.recording.frames import Facts, Tick
from loadframe.recording.jvm_sampling import MOST_BYTES, JvmCounters
from loadframe.recording.metrics import window_metrics

FACTS = Facts(0.1, 100, 2, 4096, 0.0, 0.0, 1e9)
MIB = 2**20


def entry(name: str, value: int | bytes) -> bytes:
    """A PerfDataEntry: its head, its name, then its data at a multiple of eight bytes."""
    text = name.encode() + b"\0"
    data_at = (20 + len(text) + 7) // 8 * 8
    data = struct.pack("<q", value) if isinstance(value, int) else value
    kind, vector = (ord("J"), 0) if isinstance(value, int) else (ord("B"), len(value))
    length = (data_at + len(data) + 7) // 8 * 8
    head = struct.pack("<iiiBBBBi", length, 20, vector, kind, 0, 1, 1, data_at)
    return (head + text).ljust(data_at, b"\0") + data.ljust(length - data_at, b"\0")


def perf_data(*entries: bytes, count: int | None = None) -> bytes:
    body = b"".join(entries)
    head = b"\xca\xfe\xc0\xc0" + bytes([1, 2, 0, 1])
    return head + struct.pack("<iiqii", 32 + len(body), 0, 0, 32, len(entries) if count is None else count) + body


COUNTERS = perf_data(
    entry("sun.gc.collector.0.time", 500),
    entry("sun.gc.policy.name", b"Copy:MSC\0"),
    entry("sun.os.hrt.frequency", 1000),
    entry("java.rt.vmArgs", b"-Dpassword=secret\0"),
)


@pytest.fixture
def process(tmp_path: Path) -> Path:
    """The folder in /proc of process 7, which is 70 in its own namespace, of our own user."""
    folder = tmp_path / "proc/7"
    (folder / "root/tmp/hsperfdata_app").mkdir(parents=True)
    (folder / "status").write_text(f"Name:\tjava\nPid:\t7\nUid:\t0\t{os.geteuid()}\t0\t0\nNSpid:\t7\t70\n")
    (folder / "root/tmp/hsperfdata_app/70").write_bytes(COUNTERS)
    return folder


@contextmanager
def counters(process: Path) -> Iterator[JvmCounters | None]:
    directory = os.open(process, os.O_RDONLY)
    found = JvmCounters.of(directory)
    try:
        yield found
    finally:
        if found is not None:
            found.close()
        os.close(directory)


def test_what_is_wanted_is_read_and_no_more(process: Path) -> None:
    with counters(process) as found:
        assert found is not None
        assert found.read() == b"sun.gc.collector.0.time 500\nsun.gc.policy.name Copy:MSC\nsun.os.hrt.frequency 1000\n"


def test_a_link_is_not_followed(process: Path, tmp_path: Path) -> None:
    file, elsewhere = process / "root/tmp/hsperfdata_app/70", tmp_path / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    with counters(process) as found:
        assert found is None
    folder = process / "root/tmp/hsperfdata_app"
    file.unlink()
    elsewhere.rename(tmp_path / "70")
    folder.rmdir()
    folder.symlink_to(tmp_path)
    with counters(process) as found:
        assert found is None
    folder.unlink()
    (process / "root/tmp").rmdir()
    (process / "root/tmp").symlink_to(tmp_path)
    (tmp_path / "hsperfdata_app").mkdir()
    (tmp_path / "70").rename(tmp_path / "hsperfdata_app/70")
    with counters(process) as found:
        assert found is None


def test_what_is_of_another_user_is_not_read(process: Path) -> None:
    (process / "status").write_text(f"Pid:\t7\nUid:\t0\t{os.geteuid() + 1}\t0\t0\nNSpid:\t7\t70\n")
    with counters(process) as found:
        assert found is None


def test_a_pipe_or_a_large_file_is_none(process: Path) -> None:
    file = process / "root/tmp/hsperfdata_app/70"
    with file.open("ab") as longer:
        longer.truncate(MOST_BYTES + 1)
    with counters(process) as found:
        assert found is None
    file.unlink()
    os.mkfifo(file)
    with counters(process) as found:
        assert found is None


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xca\xfe\xc0\xc0",
        b"\0" * 64,
        COUNTERS[:5] + b"\x09" + COUNTERS[6:],
        perf_data(entry("sun.gc.collector.0.time", 1), count=2_000_000_000),
        perf_data(struct.pack("<iiiBBBBi", 0, 20, 0, 74, 0, 1, 1, 40)),
        perf_data(struct.pack("<iiiBBBBi", 1_000_000, 20, 0, 74, 0, 1, 1, 40)),
        perf_data(struct.pack("<iiiBBBBi", 24, -20, 0, 74, 0, 1, 1, -40) + b"abcd"),
    ],
)
def test_a_file_that_is_none_is_left_alone(process: Path, text: bytes) -> None:
    (process / "root/tmp/hsperfdata_app/70").write_bytes(text)
    with counters(process) as found:
        assert found is None


def test_a_file_that_shrinks_meanwhile_says_nothing_more(process: Path) -> None:
    with counters(process) as found:
        assert found is not None
        (process / "root/tmp/hsperfdata_app/70").write_bytes(b"")
        assert found.read() == b""


def told(collected: int, old: int, *, policy: str = "Copy:MSC") -> bytes:
    rows = {
        "sun.gc.collector.0.time": collected,
        "sun.gc.collector.1.time": 2 * collected,
        "sun.os.hrt.frequency": 1000,
        "sun.gc.generation.0.maxCapacity": 20 * MIB,
        "sun.gc.generation.0.space.0.used": 5 * MIB,
        "sun.gc.generation.1.maxCapacity": 44 * MIB,
        "sun.gc.generation.1.space.0.used": old,
        "sun.gc.policy.name": policy,
    }
    return "".join(f"{name} {value}\n" for name, value in rows.items()).encode()


def window(*texts: bytes) -> dict[str, float]:
    ticks = [
        Tick(float(at), 1e9, {"target:7:threads": b"1\n", "target:7:jvm": text}, FACTS) for at, text in enumerate(texts)
    ]
    found = window_metrics(ticks, 0.0, float(len(texts) - 1))
    return {name.removeprefix("target.runtime."): value for name, value in found.items() if ".runtime." in name}


def test_time_of_all_collectors_and_what_the_heap_holds_at_least() -> None:
    found = window(told(1000, 30 * MIB), told(1100, 40 * MIB), told(1200, 25 * MIB))
    assert found["gc_share"] == pytest.approx((200 + 400) / 1000 / 2)
    assert (found["heap_use"], found["heap_live"]) == (45 * MIB, 25 * MIB)
    assert found["heap_ceiling"] == 64 * MIB


def test_both_generations_of_g1_share_one_heap() -> None:
    text = told(1000, 30 * MIB, policy="GarbageFirst")
    assert window(text, text)["heap_ceiling"] == 44 * MIB


def test_a_counter_that_went_back_or_is_none_has_no_rate() -> None:
    assert "gc_share" not in window(told(1000, MIB), told(900, MIB))
    assert window(b"nonsense\n", b"sun.gc.collector.0.time x\n") == {}
