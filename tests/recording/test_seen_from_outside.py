"""What real processes wait for, and with whom they talk, as the recorder process sees them."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from loadframe.recording.control import Recorder
from loadframe.recording.frames import Tick
from loadframe.recording.metrics import window_metrics
from loadframe.recording.readers import RecordingReader
from waiting import await_that


@contextmanager
def running(code: str, *arguments: object) -> Iterator[tuple[int, int]]:
    """The pid of a Python program, and the number that it prints once it is ready; it ends with its stdin."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdin is not None
    try:
        yield process.pid, int(process.stdout.readline())
    finally:
        process.kill()
        process.stdin.close()
        process.stdout.close()
        process.wait()


def recorded(path: Path, pid: int, *, enough: Callable[[list[Tick]], bool]) -> dict[str, float]:
    """The metrics of a process over a recording that goes on until there is enough of it."""
    with Recorder(path, interval_s=0.02) as recorder:
        recorder.follow("target", [pid])

        def seen() -> list[Tick]:
            recorder.flush()
            with RecordingReader(path) as reader:
                ticks = reader.all_ticks()
            return ticks if enough(ticks) else []

        ticks = await_that(seen, "the recorder sees it")
    followed = [tick.monotonic_s for tick in ticks if f"target:{pid}:tasks" in tick.entries]
    return window_metrics(ticks, followed[0], followed[-1])


def looks(ticks: list[Tick], source: str = "sockets") -> int:
    return sum(any(name.endswith(f":{source}") for name in tick.entries) for tick in ticks)


POOL = """
import queue, sys, threading, time
work = queue.Queue()
for _ in range(5):
    threading.Thread(target=work.get, daemon=True).start()
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
print(0, flush=True)
sys.stdin.read()
"""


@pytest.mark.long
def test_an_idle_pool_of_threads_is_in_a_futex(tmp_path: Path) -> None:
    with running(POOL) as (pid, _):
        found = recorded(tmp_path / "a.lfr", pid, enough=lambda ticks: looks(ticks) >= 3)
    assert found["target.waits.futex"] == pytest.approx(5, abs=0.3)
    assert found["target.waits.sleeping"] == pytest.approx(1, abs=0.3)
    together = sum(value for name, value in found.items() if name.startswith("target.waits."))
    assert together == pytest.approx(7, abs=0.1)
    assert found["target.waits.unknown"] == 0


UPSTREAM = """
import socket, sys, threading
port, timeout = int(sys.argv[1]), float(sys.argv[2]) or None
listener = socket.create_server(("127.0.0.1", 0))
def serve(client):
    peer = socket.create_connection(("127.0.0.1", port))
    peer.settimeout(timeout)
    while client.recv(64):
        peer.sendall(b"ask")
        peer.recv(64)
        client.sendall(b"answer")
def accept():
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client,), daemon=True).start()
threading.Thread(target=accept, daemon=True).start()
print(listener.getsockname()[1], flush=True)
sys.stdin.read()
"""


@pytest.mark.long
@pytest.mark.parametrize("timeout_s", [0, 30], ids=["recv", "poll"])
def test_threads_that_wait_for_a_peer_are_counted_by_its_address(tmp_path: Path, timeout_s: int) -> None:
    """The peer takes the requests of three clients and answers none; a fourth client asks nothing."""
    with ExitStack() as stack:
        peer = stack.enter_context(closing(socket.create_server(("127.0.0.1", 0))))
        port = peer.getsockname()[1]
        pid, own = stack.enter_context(running(UPSTREAM, port, timeout_s))
        clients = [stack.enter_context(closing(socket.create_connection(("127.0.0.1", own)))) for _ in range(4)]
        asked = [stack.enter_context(closing(peer.accept()[0])) for _ in clients]
        for client in clients[:3]:
            client.sendall(b"request")
        by_port = {each.getpeername()[1]: each for each in asked}
        await_that(lambda: sum(bool(_peek(each)) for each in by_port.values()) == 3, "three requests at the peer")
        found = recorded(tmp_path / "a.lfr", pid, enough=lambda ticks: looks(ticks) >= 3)
    name = f"target.peer.127.0.0.1:{port}"
    assert found[f"{name}.connections"] == found[f"{name}.connections_most"] == 4
    assert found[f"{name}.busy"] == pytest.approx(3)
    assert found[f"{name}.waiting"] == found["target.waits.network"] == pytest.approx(3, abs=0.3)
    assert found["target.waits.idle"] == pytest.approx(2, abs=0.3), "it accepts, and the fourth client asks nothing"


def _peek(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return b""


TINY = """
import socket, sys
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(2)
print(listener.getsockname()[1], flush=True)
sys.stdin.read()
"""


@pytest.mark.long
def test_a_full_accept_queue_is_seen_and_the_drops_of_that_moment(tmp_path: Path) -> None:
    """A length of 2 lets three in."""
    with ExitStack() as stack:
        pid, own = stack.enter_context(running(TINY))
        for _ in range(3):
            stack.enter_context(closing(socket.create_connection(("127.0.0.1", own))))

        def enough(ticks: list[Tick]) -> bool:
            if looks(ticks) == 1 and not late:
                one = stack.enter_context(closing(socket.socket()))
                one.setblocking(False)
                one.connect_ex(("127.0.0.1", own))
                late.append(one)
            return looks(ticks) >= 3 and looks(ticks, "listeners") >= 3

        late: list[socket.socket] = []
        found = recorded(tmp_path / "a.lfr", pid, enough=enough)
    assert (found["target.accept_queue"], found["target.accept_queue.limit"]) == (3, 2)
    assert found["target.accept_queue.waiting"] == 3
    assert found["system.network.listen_overflows"] > 0


ELSEWHERE = """
import ctypes, fcntl, socket, struct, sys, threading
assert ctypes.CDLL(None).unshare(0x40000000) == 0
with socket.socket() as any:
    fcntl.ioctl(any, 0x8914, struct.pack("16sH14x", b"lo", 1))  # SIOCSIFFLAGS: up
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(2)
port = listener.getsockname()[1]
waiting = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
def knock():
    while True:
        with socket.socket() as late:
            late.settimeout(0.05)
            late.connect_ex(("127.0.0.1", port))
threading.Thread(target=knock, daemon=True).start()
print(port, flush=True)
sys.stdin.read()
"""


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="another network namespace is for root to make and to enter")
def test_a_process_in_another_network_namespace_is_asked_about_there(tmp_path: Path) -> None:
    ours = Path("/proc/self/ns/net").stat().st_ino
    with running(ELSEWHERE) as (pid, _):
        assert Path(f"/proc/{pid}/ns/net").stat().st_ino != ours
        found = recorded(tmp_path / "a.lfr", pid, enough=lambda ticks: looks(ticks) >= 4)
    assert (found["target.accept_queue"], found["target.accept_queue.limit"]) == (3, 2)
    assert found["system.network.listen_overflows"] > 0, "counted in its own network"


BUSY = """
import sys, threading
def spin():
    while True:
        pass
for _ in range(3):
    threading.Thread(target=spin, daemon=True).start()
print(0, flush=True)
sys.stdin.read()
"""


@pytest.mark.long
def test_threads_under_one_interpreter_lock_are_seen_to_take_turns(tmp_path: Path) -> None:
    with running(BUSY) as (pid, _):
        found = recorded(tmp_path / "a.lfr", pid, enough=lambda ticks: looks(ticks) >= 3)
    assert found["target.cpu.one_at_a_time"] == 1
    assert 1.5 < found["target.cpu.busiest_threads"] <= 3.1
    assert found["target.cpu.busiest_process"] == found["target.cpu.cores"] <= 1.2
    assert found["target.waits.running"] <= 1.2


JAVA = """
public class Garbage {
    public static void main(String[] none) throws Exception {
        byte[][] live = new byte[60][];
        for (int i = 0; i < live.length; i++) live[i] = new byte[500_000];
        for (long i = 0; ; i++) {
            live[(int) (i % 10)] = new byte[500_000];
            if (i == 1000) System.out.println("ready");  // after collections that found all of them live
        }
    }
}
"""


@pytest.mark.long
@pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java here")
def test_a_java_heap_and_its_collectors_are_read_from_its_own_counters(tmp_path: Path) -> None:
    source = tmp_path / "Garbage.java"
    source.write_text(JAVA)
    command = ["java", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", str(source)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            found = recorded(
                tmp_path / "a.lfr",
                process.pid,
                enough=lambda ticks: sum(f"target:{process.pid}:jvm" in tick.entries for tick in ticks) >= 50,
            )
        finally:
            process.kill()
    mib = 2**20
    assert found["target.runtime.heap_ceiling"] == pytest.approx(64 * mib, rel=0.05)
    assert 20 * mib < found["target.runtime.heap_live"] <= found["target.runtime.heap_use"]
    assert 0 < found["target.runtime.gc_share"] < 1
    assert 0 < found["target.runtime.gc_cpu_share"] < 1
    assert found["target.cpu.one_at_a_time"] == 0


PORTS = """
import ctypes, fcntl, socket, struct, sys
from pathlib import Path
from loadframe.recording.frame_writer import FrameWriter
from loadframe.recording.frames import Facts
from loadframe.recording.socket_sampling import SocketSampler
assert ctypes.CDLL(None).unshare(0x40000000) == 0
with socket.socket() as any:
    fcntl.ioctl(any, 0x8914, struct.pack("16sH14x", b"lo", 1))  # SIOCSIFFLAGS: up
Path("/proc/sys/net/ipv4/ip_local_port_range").write_text("40000 40099")
listeners = [socket.create_server(("127.0.0.1", port)) for port in (8001, 8002)]
open_yet = []
def connect(listener):
    client = socket.create_connection(listener.getsockname())
    return client, listener.accept()[0]
for number in range(60):
    for each in connect(listeners[number % 3 == 0]):
        each.close()
open_yet = [connect(listeners[0]) for _ in range(5)]
writer = FrameWriter(Path(sys.argv[1]), Facts(0.1, 100, 2, 4096, 0.0, 0.0, 1e9))
sampler = SocketSampler(Path("/"), writer)
for at_s in (0.5 * tick for tick in range(9)):
    writer.begin(at_s, 1e9 + at_s)
    sampler.sample(at_s, [])
    writer.end_record()
    open_yet += [connect(listeners[0]) for _ in range(3)]
writer.close()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a range of ports of its own is for root to make")
def test_local_ports_are_counted_for_the_destination_that_takes_most_of_them(tmp_path: Path) -> None:
    """40 in TIME_WAIT and 5 open to one port, 20 to another; those of the server's side take none."""
    path = tmp_path / "a.lfr"
    subprocess.run([sys.executable, "-c", PORTS, str(path)], check=True)
    with RecordingReader(path) as reader:
        ticks = list(reader.all_ticks())
    counted = [tick.entries[name] for tick in ticks if (name := "system:local-ports") in tick.entries]
    assert counted[0] == b"45\n"
    assert len(counted) > 1 and int(counted[1]) > 45, "a few are counted often"
