"""What threads wait for, from recorded texts: the classes add up to the threads, and what is not told is unknown."""

from __future__ import annotations

import platform
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from loadframe.metrics import METRICS
from loadframe.recording.frame_writer import FrameWriter
from loadframe.recording.frames import MACHINE, TASK, Facts, Tick
from loadframe.recording.held_files import Descriptors
from loadframe.recording.metrics import window_metrics
from loadframe.recording.process_metrics import parse_tasks
from loadframe.recording.readers import RecordingReader
from loadframe.recording.sampling import ProcessFiles
from loadframe.recording.socket_rows import LISTEN
from loadframe.recording.thread_sampling import polled_span
from loadframe.recording.wait_classes import CALLS, CLASSES, by_descriptors, by_function, descriptors_of

FACTS = Facts(0.1, 100, 2, 4096, 0.0, 0.0, 1e9)


def thread(number: int, state: str, call: str | None, *, wchan: str = "", polled: bytes = b"") -> tuple[bytes, bytes]:
    """Its rows in `tasks` and `task-syscall`."""
    stat, where = f"{number} (a) {state} 1".encode(), wchan.encode()
    row = TASK.pack(number, len(stat), 0, len(where)) + stat + where
    if call is None:
        return row, b""
    return row, TASK.pack(number, len(call), len(polled), 0) + call.encode() + polled


def window_of(
    threads: Sequence[tuple[bytes, bytes]],
    sockets: bytes | None = None,
    *,
    running: Mapping[int, tuple[float, float]] | None = None,
    machine: bytes = b"x86_64",
    others: Mapping[str, bytes] | None = None,
) -> dict[str, float]:
    """The metrics of a window of a second. running: seconds on a CPU and waiting for one, by thread."""
    ticks = []
    for at_s in (0.0, 0.5, 1.0):
        times = [
            (number, f"{run * at_s * 1e9:.0f} {wait * at_s * 1e9:.0f} 1".encode())
            for number, (run, wait) in (running or {}).items()
        ]
        entries = {
            MACHINE: machine,
            "target:7:threads": b"%d\n" % len(threads),
            "target:7:tasks": b"".join(row for row, _ in threads),
            "target:7:task-syscall": b"".join(row for _, row in threads),
            **(others or {}),
        }
        if running:
            entries["target:7:task-schedstat"] = b"".join(TASK.pack(n, 0, len(t), 0) + t for n, t in times)
        if sockets is not None:
            entries["target:7:sockets"] = sockets
        ticks.append(Tick(at_s, 1e9 + at_s, entries, FACTS))
    return window_metrics(ticks, 0.0, 1.0)


def waits(found: Mapping[str, float]) -> dict[str, float]:
    return {
        name.removeprefix("target.waits."): round(value, 6)
        for name, value in found.items()
        if name.startswith("target.waits.") and value
    }


FUTEX, SLEEP, ACCEPT = "202 0x7f 0x189 0x0 0x0 0x0 0x0 0x1 0x2", "230 0x1 0x1", "288 0x3 0x0 0x0"
RECV, EPOLL, POLL = "45 0x{:x} 0x7f 0x10", "232 0x4 0x7f 0x10", "7 0x7f00 0x{:x} 0x1388"


@pytest.fixture(scope="module")
def sockets(connection: Callable[..., bytes]) -> bytes:
    """3 listens, 5 is served, 6 leads to a peer."""
    return connection(3, 80, 0, state=LISTEN) + connection(5, 80, 51000) + connection(6, 41000, 5432)


def test_each_thread_is_in_one_class_and_all_of_them_add_up(sockets: bytes) -> None:
    """Two run or could run, as the scheduler counts; of the sleeping ones each says where."""
    threads = [
        thread(1, "R", "running"),
        thread(2, "S", FUTEX),
        thread(3, "S", SLEEP),
        thread(4, "S", ACCEPT),
        thread(5, "S", RECV.format(5)),
        thread(6, "S", RECV.format(6)),
        thread(7, "D", "17 0x9 0x0"),
        thread(8, "S", EPOLL),
        thread(9, "S", "61 0x1 0x0"),
    ]
    found = window_of(
        threads, sockets, running={number: (0.6, 0.4) if number == 1 else (0, 0) for number in range(1, 10)}
    )
    assert waits(found) == {
        "running": 0.6,
        "runnable": 0.4,
        "futex": 1,
        "sleeping": 1,
        "idle": 3,
        "network": 1,
        "disk": 1,
        "other": 1,
    }
    assert sum(found[f"target.waits.{wait}"] for wait in CLASSES) == pytest.approx(9)
    assert found["target.peer.127.0.0.1:5432.waiting"] == pytest.approx(1)


def test_what_the_kernel_does_not_tell_is_unknown_and_never_nothing() -> None:
    found = window_of(
        [thread(number, "S", None, wchan="0") for number in (1, 2, 3)], running=dict.fromkeys((1, 2, 3), (0, 0))
    )
    assert waits(found) == {"unknown": 3}
    assert "target.waits.running" not in window_of([], running={})


def test_without_the_right_to_trace_the_kernel_function_tells_less() -> None:
    """Of a thread that polls or receives it does not say on what."""
    places = ("futex_do_wait", "hrtimer_nanosleep", "ep_poll", "inet_csk_accept", "do_poll.constprop.0", "wait_woken")
    threads = [thread(number, "S", None, wchan=name) for number, name in enumerate(places, start=1)]
    found = window_of(threads, running=dict.fromkeys(range(1, 7), (0, 0)))
    assert waits(found) == {"futex": 1, "sleeping": 1, "idle": 2, "socket": 2}


@pytest.mark.parametrize(
    ("descriptors", "wait"),
    [((6,), "network"), ((3,), "idle"), ((5,), "idle"), ((6, 5), "idle"), ((9,), "socket"), ((), "socket")],
)
def test_a_thread_that_polls_waits_for_what_its_descriptors_are(
    descriptors: tuple[int, ...], wait: str, sockets: bytes
) -> None:
    polled = b"".join(struct.pack("<ihh", number, 1, 0) for number in descriptors)
    found = window_of([thread(1, "S", POLL.format(len(descriptors)), polled=polled)], sockets, running={1: (0, 0)})
    assert waits(found) == {wait: 1}


def test_a_thread_that_selects_does_too(sockets: bytes) -> None:
    bits = struct.pack("<Q", 1 << 6)
    found = window_of([thread(1, "S", "23 0x7 0x7f00 0x0", polled=bits)], sockets, running={1: (0, 0)})
    assert waits(found) == {"network": 1}


def test_where_no_socket_was_looked_at_a_read_is_of_anything(sockets: bytes) -> None:
    found = window_of([thread(1, "S", "0 0x6 0x7f"), thread(2, "S", RECV.format(6))], running={1: (0, 0), 2: (0, 0)})
    assert waits(found) == {"unknown": 1, "socket": 1}
    found = window_of([thread(1, "S", "0 0x9 0x7f")], sockets, running={1: (0, 0)})
    assert waits(found) == {"other": 1}, "a pipe is no socket"


def test_numbers_of_system_calls_are_those_of_the_recorded_machine() -> None:
    on_arm = thread(1, "S", "98 0x7f 0x189")
    assert waits(window_of([on_arm], running={1: (0, 0)}, machine=b"aarch64")) == {"futex": 1}
    assert waits(window_of([on_arm], running={1: (0, 0)}, machine=b"mips")) == {"other": 1}


def test_a_component_of_any_name_has_these_metrics_and_its_name_stands_for_its_port(
    sockets: bytes, connection: Callable[..., bytes]
) -> None:
    database = {
        "database:9:threads": b"1\n",
        "database:9:tasks": thread(9, "S", None)[0],
        "database:9:sockets": connection(3, 5432, 0, state=LISTEN),
    }
    found = window_of([thread(1, "S", RECV.format(6))], sockets, running={1: (0, 0)}, others=database)
    assert found["target.peer.database.connections"] == 1
    assert found["target.peer.database.waiting"] == pytest.approx(1)
    assert found["database.waits.unknown"] == 1


@pytest.mark.parametrize("machine", CALLS)
def test_the_table_of_calls_knows_where_each_of_them_waits(machine: str) -> None:
    for number, call in CALLS[machine].items():
        assert call.number == number
        assert call.wait in CLASSES if call.wait is not None else by_descriptors(call.by, {"peer"}) == "network"
    assert {f"target.waits.{wait}" for wait in CLASSES} <= METRICS.keys()


def test_functions_and_descriptors_of_any_form_are_read() -> None:
    assert by_function("") == by_function("0") == "unknown"
    assert by_function("sigsuspend") == "other"
    calls = CALLS["x86_64"]
    assert descriptors_of(calls[7], [], struct.pack("<ihhihh", 4, 1, 0, -1, 1, 0) + b"rest") == [4]
    assert descriptors_of(calls[45], [6, 1], b"") == [6]
    assert descriptors_of(calls[45], [], b"") == []


@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of system calls of this machine")
def test_the_memory_that_a_poll_points_to_is_bounded() -> None:
    assert polled_span(b"202 0x1 0x2 0x3") is None
    assert polled_span(b"running\n") is None
    assert polled_span(b"7 zz\n") is None
    assert polled_span(b"7 0x7f00 0x1 0x0\n") == (0x7F00, 8)
    assert polled_span(b"7 0x7f00 0x11 0x0\n") is None, "an event loop"
    assert polled_span(b"23 0x41 0x7f00 0x0\n") == (0x7F00, 16)
    assert polled_span(b"23 0x41 0x0 0x7f00\n") is None, "it only writes"
    assert polled_span(b"23 0x7fffffff 0x7f00\n") is None


def test_where_the_system_call_is_not_told_the_kernel_function_is_asked_of_more(tmp_path: Path) -> None:
    """On a kernel, or of a user, without /proc/PID/syscall."""
    folder = tmp_path / "proc/7"
    for number in range(100, 120):
        (folder / f"task/{number}").mkdir(parents=True)
        (folder / f"task/{number}/stat").write_text(f"{number} (a) S 1")
        (folder / f"task/{number}/wchan").write_text("futex_do_wait")
    (folder / "fd").mkdir()
    (folder / "stat").write_text("7 (a) S 1")
    writer = FrameWriter(tmp_path / "a.lfr", FACTS)
    process = ProcessFiles(tmp_path, "target", 7, writer, Descriptors(), interval_s=0.1)
    for at_s in (0.0, 0.1, 0.2):
        writer.begin(at_s, 1e9 + at_s)
        process.sample(at_s)
        writer.end_record()
    process.close()
    writer.close()
    with RecordingReader(tmp_path / "a.lfr") as reader:
        rows = [parse_tasks(tick.entries["target:7:tasks"]) for tick in reader.all_ticks()]
    asked = [sum(row.wchan != b"" for row in each) for each in rows]
    assert asked[0] == 2
    assert asked[1] > 6
