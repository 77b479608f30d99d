"""What a file of a stranger costs: its reader's memory and CPU time, against the bytes that the file has on the disk.

A file costs at most FREE_BYTES and PER_BYTE times its size, and FREE_CPU_S and CPU_S_PER_MIB. Each is read in a process
of its own, forked from one that has imported everything: what it has grown by is the file's."""

import gzip
import io
import json
import os
import re
import resource
import signal
import struct
import tempfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import zstandard

from fuzzing import api
from fuzzing.corpus import Corpus
from loadframe.errors import UserError
from loadframe.recording.frames import (
    BLOCK_HEADER,
    BLOCK_MAGIC,
    ENTRY,
    RECORD,
    SAMPLE,
    SOURCE,
    SOURCE_ID,
    TIMES,
    parse_header,
)
from loadframe.runs.folder import RunFolder
from loadframe.workloads import request_log

FREE_BYTES, PER_BYTE = 64 << 20, 20
FREE_CPU_S, CPU_S_PER_MIB = 1.0, 1.0
MOST_CPU_S, MOST_BYTES = 60, 3 << 30
"""Of a child: it is ended there, which is a fault in itself."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one reading. ended: in words, where its process was ended."""

    memory_bytes: int
    cpu_s: float
    file_bytes: int
    ended: str = ""

    @property
    def most_bytes(self) -> int:
        """Of memory."""
        return FREE_BYTES + PER_BYTE * self.file_bytes

    @property
    def most_s(self) -> float:
        """Of CPU time."""
        return FREE_CPU_S + CPU_S_PER_MIB * self.file_bytes / (1 << 20)

    @property
    def excess(self) -> str:
        """In words, what is beyond the bound; "" for nothing."""
        if self.memory_bytes > self.most_bytes:
            return f"{self.memory_bytes >> 20:,} MiB of memory, more than {self.most_bytes >> 20:,}"
        if self.cpu_s > self.most_s:
            return f"{self.cpu_s:.1f} s of CPU time, more than {self.most_s:.1f}"
        return self.ended


def measured(call: Callable[[], object], file_bytes: int) -> Cost:
    """What a call costs, in a process of its own. Errors for users are answers; others end it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES + _now("VmSize"), MOST_BYTES + _now("VmSize")))
        said = ""
        Path("/proc/self/clear_refs").write_text("5")
        before, began_s = _now("VmRSS"), _cpu_s()
        try:
            call()
        except UserError:
            pass
        except BaseException as error:  # noqa: BLE001 - it is what is told
            said = f"{type(error).__name__}: {str(error)[:100]}"
        os.write(writing, json.dumps([max(0, _now("VmHWM") - before), _cpu_s() - began_s, said]).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        told = file.read()
    _, status = os.waitpid(child, 0)
    if not told:
        word = signal.Signals(status & 127).name if status & 127 else f"exit {status >> 8}"
        return Cost(0, MOST_CPU_S if word == "SIGXCPU" else 0.0, file_bytes, f"ended by {word}")
    memory_bytes, cpu_s, said = json.loads(told)
    return Cost(memory_bytes, cpu_s, file_bytes, said)


def _now(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.M)
    return int(found[1]) * 1024 if found else 0


def _cpu_s() -> float:
    return sum(os.times()[:4])


# --- files that have far more in them than their size ---


def _packed(pieces: Sequence[tuple[bytes, int]]) -> bytes:
    """Pieces, each so many times, as one zstd frame that says its size."""
    size = sum(len(piece) * times for piece, times in pieces)
    data = io.BytesIO()
    with zstandard.ZstdCompressor(level=3).stream_writer(data, size=size, closefd=False) as writer:
        for piece, times in pieces:
            several = max(1, (1 << 20) // max(1, len(piece)))
            for at in range(0, times, several):
                writer.write(piece * min(several, times - at))
    return data.getvalue()


def _recording(source: bytes, *pieces: tuple[bytes, int], blocks: int = 1) -> bytes:
    """A recording whose blocks hold these records."""
    _, start = parse_header(source, Path("x.lfr"))
    frame, size = _packed(pieces), sum(len(piece) * times for piece, times in pieces)
    whole = source[:start]
    for number in range(blocks):
        head = BLOCK_HEADER.pack(BLOCK_MAGIC, len(frame), size, 100.0 + number, 101.0 + number, 0)[:-4]
        whole += head + struct.pack("<I", zlib.crc32(head)) + frame
    return whole


NAMED = SOURCE_ID.pack(0) + b"stat"
NAMED = RECORD.pack(SOURCE, len(NAMED)) + NAMED


def _sample(entries: int) -> bytes:
    body = TIMES.pack(100.0, 1.7e9) + (ENTRY.pack(0, 0) * entries)
    return RECORD.pack(SAMPLE, len(body)) + body


@dataclass(frozen=True, slots=True)
class Bomb:
    """name: the file's. read: takes its path."""

    name: str
    data: Callable[[int], bytes]
    read: Callable[[Path], object]


def _requests(path: Path) -> None:
    (path.parent / "raw").mkdir()
    path.rename(path.parent / "raw/requests-00001.zst")
    request_log.from_bytes(RunFolder(path.parent).requests(1))


def _watch(path: Path) -> None:
    api.read_watch(path.parent)


def _watch_view(path: Path) -> None:
    api.read_watch_view(path.parent)


def _reads(read: Callable[[bytes], object]) -> Callable[[Path], object]:
    return lambda path: read(path.read_bytes())


def _exposed(path: Path) -> None:
    for strict in (False, True):
        api.read_expositions([path], strict=strict)


MIB = 1 << 20
LOGGED = b'127.0.0.1 - - [25/Nov/2026:01:02:03 +0000] "GET /a HTTP/1.1" 200 5\n'
SEEN = b'{"n":1,"kind":"sample","at_s":1764000010.0,"values":{"a":0.5},"use":{"pool":0.25},"load":4}\n'
TOLD = b'{"stage": "SCAN", "time": 1.5, "done": 10}\n'
LARGEST_ANSWER_MIB = 8
"""Of a service's counters (kinds/exposed.py)."""


def _filled(line: bytes, size_mib: int) -> bytes:
    return line * (size_mib * MIB // len(line))


def _driver(kind: str, text: str) -> Bomb:
    """What a driver of the user's own prints: its first line, and the others over and over."""
    first, _, rest = text.encode().partition(b"\n")
    return Bomb(
        "x.txt",
        lambda size: first + b"\n" + _filled(rest.rstrip(b"\n") + b"\n", size),
        _reads(lambda data: api.read_driver(kind, data, False)),
    )


def bombs(given: Corpus) -> Mapping[str, Bomb]:
    """By name; each takes a size in MiB: of what it holds, in small pieces where it is compressed."""
    sound = given.recordings[0]
    day, log, read_recording = "2025-11-24.jsonl.zst", "access.log", api.read_recording
    ticks, entries = ((NAMED, 1), (_sample(1), 4_900)), ((NAMED, 1), (_sample(5_000), 9))

    def counters(data: Callable[[int], bytes]) -> Bomb:
        return Bomb("x.txt", lambda size: data(min(size, LARGEST_ANSWER_MIB)), _exposed)

    found = {
        "recording, zeros": Bomb("x.lfr", lambda size: _recording(sound, (bytes(MIB), size)), read_recording),
        "recording, ticks": Bomb("x.lfr", lambda size: _recording(sound, *ticks, blocks=size), read_recording),
        "recording, entries": Bomb("x.lfr", lambda size: _recording(sound, *entries, blocks=size), read_recording),
        "requests": Bomb("x.zst", lambda size: _packed([(bytes(MIB), size)]), _requests),
        "access log, empty lines": Bomb(log, lambda size: gzip.compress(b"\n" * (size * MIB)), api.read_access_log),
        "access log, requests": Bomb(log, lambda size: gzip.compress(_filled(LOGGED, size)), api.read_access_log),
        "access log, one line": Bomb(log, lambda size: gzip.compress(b"x" * (size * MIB)), api.read_access_log),
        "watch day, samples": Bomb(day, lambda size: _packed([(SEEN, size * MIB // len(SEEN))]), _watch),
        "watch day, one line": Bomb(day, lambda size: _packed([(b"[" * MIB, size)]), _watch),
        "watch view, samples": Bomb(day, lambda size: _packed([(SEEN, size * MIB // len(SEEN))]), _watch_view),
        "watch view, one line": Bomb(day, lambda size: _packed([(b"[" * MIB, size)]), _watch_view),
        "counters, one name": counters(lambda size: b"a{" + b"b" * (size * MIB) + b" 1\n"),
        "counters, names": counters(lambda size: b"".join(b'a{x="%d"} 1\n' % at for at in range(size * 70_000))),
        "counters, JSON": counters(lambda size: b"[" + _filled(b"[],", size) + b"1]"),
        "HAR": Bomb(
            "x.har", lambda size: b'{"log":{"entries":[' + _filled(b"{},", size) + b"{}]}}", _reads(api.read_har)
        ),
        "stages": Bomb("x.txt", lambda size: _filled(TOLD, size), api.read_stages),
        "hsperfdata": Bomb("7", lambda _: hsperfdata(5_000), api.read_hsperfdata),
    }
    return found | {f"driver, {kind}": _driver(kind, text) for kind, text in sorted(given.drivers.items())}


def hsperfdata(count: int) -> bytes:
    """What a Java virtual machine keeps, with so many counters of one name."""
    name = b"sun.gc.collector.0.time\0"
    entry = struct.pack("<iiiBBBBi", 20 + len(name) + 8, 20, 0, ord("J"), 0, 0, 0, 20 + len(name)) + name + bytes(8)
    return b"\xca\xfe\xc0\xc0" + bytes([1, 2, 0, 1]) + bytes(16) + struct.pack("<ii", 32, count) + entry * count


def cost_of(bomb: Bomb, size_mib: int) -> Cost:
    """What its reader takes for one of this size."""
    with tempfile.TemporaryDirectory(prefix="loadframe-cost-", dir="/var/tmp") as folder:
        path = Path(folder) / bomb.name
        path.write_bytes(bomb.data(size_mib))
        return measured(partial(bomb.read, path), path.stat().st_size)


def show(costs: Mapping[str, Cost]) -> None:
    """A line for each."""
    print(f"{'file':26}{'KiB on disk':>12}{'MiB':>8}{'at most':>9}{'CPU s':>8}{'at most':>9}")
    for name, cost in costs.items():
        sizes = f"{cost.file_bytes / 1024:>12,.0f}{cost.memory_bytes >> 20:>8,}{cost.most_bytes >> 20:>9,}"
        print(f"{name:26}{sizes}{cost.cpu_s:>8.1f}{cost.most_s:>9.1f}  {cost.excess}")
