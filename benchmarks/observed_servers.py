"""Real servers under a wandering load, sampled as a monitor would, and the same servers measured level by level.

Private instances on loopback: redis (SORT of a list), nginx (gzip of a page, one worker), a Python service behind one
interpreter lock, and SQLite behind a line protocol (a commit for every request). The load is a random walk: Poisson
arrivals at a wandering rate, or a wandering number of clients with think time. A request that waited for a second is
given up, as clients do. The server is bound to one CPU and the driver to another.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from loadframe.host.environment import SYSTEM, located

SAMPLE_S = 0.5
GIVEN_UP_S = 1.0
CONNECTIONS = 24
THINK_S = 0.02
MOST_CLIENTS = 64
STEP = 0.12
"""Of the random walk, in half a second, as a share of its range."""

PAGE = "nginx gzips this page again for every request; its words are not all alike. "

PYTHON = """
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = str(sum(sorted((i * 7919) % 10007 for i in range(9000))[:9])).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *arguments):
        pass
ThreadingHTTPServer.request_queue_size = 128
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""

SQLITE = """
import asyncio, sqlite3, sys, time
base = sqlite3.connect(sys.argv[2], isolation_level=None)
base.execute("PRAGMA journal_mode = delete")
base.execute("PRAGMA synchronous = full")
base.execute("CREATE TABLE jobs (id INTEGER PRIMARY KEY, body TEXT, done REAL)")
busy = 0.0
async def serve(reader, writer):
    global busy
    while line := await reader.readline():
        if line == b"busy\\n":
            writer.write(b"%f\\n" % busy)
            continue
        begun = time.perf_counter()
        base.execute("INSERT INTO jobs (body, done) VALUES (?, ?)", ("x" * 200, begun))
        busy += time.perf_counter() - begun
        writer.write(b"ok\\n")
async def main():
    async with await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1])) as server:
        await server.serve_forever()
asyncio.run(main())
"""


@dataclass(frozen=True, slots=True)
class Kind:
    """A server. command: by port and folder; request: bytes that are sent; ends: what an answer ends with, or after how
    many lines. busy: whether it counts its own busy time (its use is that, not its CPU time). clients: whether the load
    is a number of clients."""

    command: Callable[[int, Path], list[str]]
    request: bytes
    ends: bytes = b""
    lines: int = 0
    setup: tuple[bytes, ...] = ()
    busy: bool = False
    clients: bool = False


def _redis(port: int, folder: Path) -> list[str]:
    program = located("redis-server", SYSTEM) or "redis-server"
    return [
        program,
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
        "--dir",
        str(folder),
    ]


def _nginx(port: int, folder: Path) -> list[str]:
    words = random.Random(3)
    text = " ".join(words.choice(PAGE.split()) + str(words.randrange(1000)) for _ in range(14_000))
    (folder / "page.html").write_text(text, encoding="utf-8")
    paths = "".join(
        f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; worker_processes 1; pid {folder}/pid; error_log /dev/null; user root;\n"
        "events { worker_connections 256; }\n"
        f"http {{ access_log off; gzip on; gzip_comp_level 6; keepalive_requests 1000000; {paths}\n"
        f"server {{ listen 127.0.0.1:{port}; root {folder}; }} }}\n",
        encoding="utf-8",
    )
    return [located("nginx", SYSTEM) or "nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]


def _own(program: str) -> Callable[[int, Path], list[str]]:
    return lambda port, folder: [sys.executable, "-P", "-c", program, str(port), str(folder / "jobs.sqlite")]


GET = b"GET /%s HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n"
FILL = b"RPUSH numbers %s\r\n" % b" ".join(b"%d" % (number * 7919 % 100_003) for number in range(12_000))
KINDS: Mapping[str, Kind] = {
    "redis": Kind(_redis, b"SORT numbers LIMIT 0 1\r\n", lines=3, setup=(FILL,)),
    "nginx": Kind(_nginx, GET % b"page.html", ends=b"\r\n0\r\n\r\n"),
    "python": Kind(_own(PYTHON), GET % b"", lines=-1),
    "sqlite": Kind(_own(SQLITE), b"put\n", lines=1, busy=True),
    "redis, clients": Kind(_redis, b"SORT numbers LIMIT 0 1\r\n", lines=3, setup=(FILL,), clients=True),
}


@dataclass
class Sample:
    """One window: load, throughput (1/s), mean response (s; NaN without an answer), use (0..1)."""

    time_s: float
    load: float
    throughput: float
    response_s: float
    use: float


@dataclass
class Driver:
    """What offers the load. want: the rate (1/s), or the number of clients, right now."""

    kind: Kind
    port: int
    random: random.Random
    want: float = 0.0
    arrived: int = 0
    active_s: float = 0.0
    latencies: list[float] = field(default_factory=list)
    waiting: deque[float] = field(default_factory=deque)
    _bell: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def begin(self) -> None:
        """Connect, and begin to offer what is wanted."""
        for number in range(MOST_CLIENTS if self.kind.clients else CONNECTIONS):
            streams = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
            work = self._client(number, *streams) if self.kind.clients else self._worker(*streams)
            self._tasks.append(asyncio.create_task(work))
        if not self.kind.clients:
            self._tasks.append(asyncio.create_task(self._arrivals()))

    async def end(self) -> None:
        """Stop everything."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _arrivals(self) -> None:
        due = time.perf_counter()
        while True:
            if self.want <= 0:
                await asyncio.sleep(0.005)
                due = time.perf_counter()
                continue
            due += self.random.expovariate(self.want)
            if (pause := due - time.perf_counter()) > 0:
                await asyncio.sleep(pause)
            self.arrived += 1
            self.waiting.append(due)
            self._bell.release()

    async def _worker(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await self._bell.acquire()
            if not self.waiting:
                continue
            due = self.waiting.popleft()
            if time.perf_counter() - due > GIVEN_UP_S:
                continue
            await answered(self.kind, reader, writer)
            self.latencies.append(time.perf_counter() - due)

    async def _client(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            if number >= self.want:
                await asyncio.sleep(0.005)
                continue
            begun = time.perf_counter()
            await answered(self.kind, reader, writer)
            self.latencies.append(time.perf_counter() - begun)
            await asyncio.sleep(self.random.expovariate(1 / THINK_S))


async def answered(kind: Kind, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send a request, and read the whole answer."""
    writer.write(kind.request)
    if kind.ends:
        await reader.readuntil(kind.ends)
    elif kind.lines > 0:
        for _ in range(kind.lines):
            await reader.readline()
    else:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)


class Server:
    """A server that was started, and how busy it has been."""

    def __init__(self, kind: Kind, port: int, process: subprocess.Popen[bytes]) -> None:
        self.kind, self.port, self.process = kind, port, process
        self._status: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def busy_s(self) -> float:
        """Seconds that it was busy so far: its own count, or the CPU time of its processes."""
        if not self.kind.busy:
            return sum(cpu_s(pid) for pid in (self.process.pid, *children(self.process.pid)))
        if self._status is None:
            self._status = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self._status
        writer.write(b"busy\n")
        return float(await reader.readline())


def cpu_s(pid: int) -> float:
    """CPU time of all threads, in nanoseconds' steps."""
    total = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):
            total += int(path.read_text(encoding="ascii").split()[0])
    return total / 1e9


def children(pid: int) -> list[int]:
    """Of a process."""
    with contextlib.suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    return []


@contextlib.contextmanager
def started(kind: Kind) -> Iterator[Server]:
    """A private server on a free port, bound to the last CPU; it ends with the block."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    cpus = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="loadframe-observed-") as folder:
        process = subprocess.Popen(
            kind.command(port, Path(folder)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder
        )
        try:
            os.sched_setaffinity(process.pid, {cpus[-1]})
            _await(port, process)
            for pid in children(process.pid):
                os.sched_setaffinity(pid, {cpus[-1]})
            os.sched_setaffinity(0, set(cpus[:-1]) or set(cpus))
            yield Server(kind, port, process)
        finally:
            os.sched_setaffinity(0, set(cpus))
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"{process.args} does not listen on {port}")


async def sampled(driver: Driver, server: Server, seconds: float, want: Callable[[float], float]) -> list[Sample]:
    """Windows of SAMPLE_S while the load follows want(seconds since the beginning)."""
    begun = last = time.perf_counter()
    busy = await server.busy_s()
    driver.arrived, driver.latencies = 0, []
    found = []
    while last - begun < seconds:
        driver.want = want(last - begun)
        await asyncio.sleep(max(0.0, begun + (len(found) + 1) * SAMPLE_S - time.perf_counter()))
        now, now_busy = time.perf_counter(), await server.busy_s()
        took, done = now - last, driver.latencies
        load = driver.want if server.kind.clients else driver.arrived / took
        mean = sum(done) / len(done) if done else float("nan")
        found.append(Sample(now - begun, load, len(done) / took, mean, min((now_busy - busy) / took, 1.0)))
        driver.arrived, driver.latencies, last, busy = 0, [], now, now_busy
    return found


def walk(seconds: float, peak: float, whole: bool, chance: random.Random) -> Callable[[float], float]:
    """A random walk from a tenth of the peak to all of it, reflected at both ends, one step for each window."""
    place, steps = 0.3, []
    for _ in range(int(seconds / SAMPLE_S) + 2):
        place += chance.gauss(0, STEP)
        place = abs(place) % 2
        place = 2 - place if place > 1 else place
        steps.append(peak * (0.1 + 0.9 * place))
    return lambda at: max(1.0, round(steps[int(at / SAMPLE_S)])) if whole else steps[int(at / SAMPLE_S)]
