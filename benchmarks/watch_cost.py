"""What `loadframe watch` takes of this machine, beside atop, sadc and prometheus-node-exporter (Debian's packages), for
benchmarks/watch.py --cost [--minutes M] [--interval S].

All of them run at the same time, on the same machine, at the same interval, and the CPU time of each counts, its
children's too. Three watches: of a process; of a service with its metrics in Prometheus' format, a declared limit and a
request a minute as the unit of work; of a private MariaDB with its counters. The exporter is scraped at the interval
by this program, whose own CPU time is left out. Counted is from WARM_UP_S after the start on; what the start takes,
all imports, is told by itself. What a watch does now and then (all limits, the fit, the compaction of a day) falls
into the time only if that is long enough: with --minutes 60 most of it does.
"""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from loadframe.host.environment import located
from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.kinds import registry as targets
from loadframe.model import TargetState
from loadframe_watch.child import compact
from loadframe_watch.days import lines
from recorder import SADC, cpu_s, peak_bytes
from watch_live import HELD_S, POOL, STUDY

WARM_UP_S = 15.0
SHARE_GOAL, ATOP_GOAL, MEMORY_GOAL = 0.001, 0.1, 50 * 2**20
EXPORTER = "prometheus-node-exporter"
OURS = ("watch of a process", "watch of a service", "watch of MariaDB")
HERE = Path(__file__).parent


@dataclass
class Meter:
    """One of those that run. written: files that grow with it, whole folders too."""

    name: str
    process: subprocess.Popen[bytes]
    written: Path | None
    start_s: float = 0.0
    cpu_s: float = 0.0
    memory_bytes: int = 0
    day_bytes: float = 0.0

    def spent_s(self) -> float:
        """CPU time of the process and of the children that it has waited for."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return cpu_s(self.process.pid) + (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")

    def size(self) -> int:
        if self.written is None:
            return 0
        files = self.written.iterdir() if self.written.is_dir() else [self.written]
        return sum(file.stat().st_size for file in files if file.name != "state.json" and file.exists())


# --- those that run ---


@contextmanager
def running(command: Sequence[str], **options: int) -> Iterator[subprocess.Popen[bytes]]:
    quiet: dict[str, int] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **{**quiet, **options}) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def watched(folder: Path, interval_s: float) -> Iterator[list[Meter]]:
    """The three watches with what they watch; without MariaDB where it is not installed."""
    loadframe = str(Path(sys.executable).with_name("loadframe"))
    with ExitStack() as stack:
        farm = stack.enter_context(
            running([sys.executable, str(HERE / "watch_pool.py"), str(POOL), str(HELD_S)],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        )  # fmt: skip
        assert farm.stdout is not None
        port = int(farm.stdout.readline())
        study = folder / "study.toml"
        study.write_text(STUDY.format(pid=farm.pid, port=port))
        what = {OURS[0]: ["--pid", str(farm.pid)], OURS[1]: [str(study)]}
        if located("mariadbd") is not None:
            lease = stack.enter_context(Lease.acquire("benchmarks/watch", run=None))
            server = targets.kind_named("mariadb").make(lease, Resources())
            stack.callback(server.destroy)
            server.create()
            server.start(TargetState())
            options = server.endpoint().options
            account = folder / "account.cnf"
            account.touch(mode=0o600)
            account.write_text(f"[client]\nuser={options['user']}\npassword={options['password']}\n")
            what[OURS[2]] = ["--attach", f"mariadb:{options['socket']}", "--option-file", str(account)]
        meters = []
        for name, words in what.items():
            place = folder / name.replace(" ", "-")
            command = [loadframe, "watch", *words, "--interval", f"{interval_s:g}s", "--folder", str(place)]
            process = stack.enter_context(running(command, stderr=subprocess.PIPE))
            assert process.stderr is not None
            said = process.stderr.readline().decode()
            if not said.startswith("Watching "):
                raise RuntimeError(f"{name}: {said}{process.stderr.read().decode()}")
            meters.append(Meter(name, process, place))
        yield meters


@contextmanager
def rivals(folder: Path, interval_s: float) -> Iterator[tuple[list[Meter], int]]:
    """Those that are installed, and the port of the exporter (0: it is not there)."""
    every, port = f"{interval_s:.0f}", 0
    with ExitStack() as stack:
        meters = []
        for name, program, command in (
            ("atop", located("atop"), ["-w", str(folder / "atop.raw"), every]),
            ("sadc", shutil.which(SADC), ["-S", "DISK", every, str(folder / "sa")]),
        ):
            if program is not None:
                process = stack.enter_context(running([program, *command]))
                meters.append(Meter(name, process, Path(command[1] if name == "atop" else command[3])))
        program = located(EXPORTER)
        if program is not None:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            process = stack.enter_context(running([program, f"--web.listen-address=127.0.0.1:{port}"]))
            _await(port, process)
            meters.append(Meter("node_exporter, scraped", process, None))
        for name in {"atop", "sadc", "node_exporter, scraped"} - {one.name for one in meters}:
            print(f"  {name} is not installed, and is left out")
        yield meters, port


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    """Until it answers."""
    until_s = time.monotonic() + WARM_UP_S
    while True:
        try:
            scrape(port)
            return
        except ConnectionRefusedError:
            if process.poll() is not None or time.monotonic() > until_s:
                raise RuntimeError(f"{EXPORTER} does not answer on port {port}") from None
            time.sleep(0.05)


def scrape(port: int) -> int:
    """Bytes of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/metrics", headers={"Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"the exporter answered {answer.status}")
        return len(answer.read())
    finally:
        connection.close()


# --- measuring ---


def measure(minutes: float, interval_s: float) -> tuple[list[Meter], float]:
    """All of them, and for how long they were counted (seconds)."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name, ExitStack() as stack:
        folder = Path(name)
        ours = stack.enter_context(watched(folder, interval_s))
        others, port = stack.enter_context(rivals(folder, interval_s))
        meters = [*ours, *others]
        _scraping(port, interval_s, WARM_UP_S)
        for one in meters:
            one.start_s, one.day_bytes = one.spent_s(), -one.size()
        began_s = time.monotonic()
        _scraping(port, interval_s, minutes * 60)
        elapsed_s = time.monotonic() - began_s
        for one in meters:
            one.cpu_s = one.spent_s() - one.start_s
            one.memory_bytes = peak_bytes(one.process.pid)
            one.day_bytes = (one.day_bytes + one.size()) / elapsed_s * 86400
            if one.process.poll() is not None:
                raise RuntimeError(f"{one.name} has ended")
        stack.close()
        for one in ours:
            _told_by_itself(one)
        return meters, elapsed_s


def _scraping(port: int, interval_s: float, seconds: float) -> None:
    ends_s = time.monotonic() + seconds
    while (left_s := ends_s - time.monotonic()) > 0:
        if port:
            scrape(port)
        time.sleep(min(interval_s, left_s))


def _told_by_itself(one: Meter) -> None:
    """The lines of a watch, and by how much a day of them shrinks: longer days by a little more."""
    assert one.written is not None
    kinds: dict[str, int] = {}
    for line in lines(one.written):
        kinds[line.kind] = kinds.get(line.kind, 0) + 1
    (file, *_) = sorted(one.written.glob("*.jsonl"))
    size = file.stat().st_size
    compact(file)
    ratio = size / file.with_name(f"{file.name}.zst").stat().st_size
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    print(f"  {one.name}: {told}; compacted, its days are {ratio:.0f} times smaller")


def judge_cost(minutes: float, interval_s: float) -> bool:
    """Print the table; whether all goals are met."""
    processes = sum(entry.name.isdigit() for entry in Path("/proc").iterdir())
    print(f"Cost of a watch beside other tools: {minutes:g} minutes, every {interval_s:g} s, {processes} processes on "
          f"{os.cpu_count()} CPUs", flush=True)  # fmt: skip
    meters, elapsed_s = measure(minutes, interval_s)
    print(f"  {'':24} {'CPU':>9} {'per tick':>9} {'memory':>9} {'a day':>10} {'start':>8}")
    for one in meters:
        share, tick_s = one.cpu_s / elapsed_s, one.cpu_s / elapsed_s * interval_s
        disk = "kept by Prometheus" if one.written is None else f"{one.day_bytes / 2**20:.2f} MiB"
        print(f"  {one.name:24} {share:9.4%} {tick_s * 1e3:6.2f} ms {one.memory_bytes / 2**20:5.1f} MiB {disk:>10} "
              f"{one.start_s:6.2f} s")  # fmt: skip
    return judged(meters, elapsed_s)


def judged(meters: Sequence[Meter], elapsed_s: float) -> bool:
    """Print each goal, met or missed."""
    cpu = {one.name: one.cpu_s / elapsed_s for one in meters}
    met = True
    for one in meters:
        if one.name not in OURS:
            continue
        goals = [("of a core", SHARE_GOAL, 1.0)]
        goals += [("times node_exporter's", 1.0, cpu[name]) for name in cpu if name.startswith("node")]
        goals += [("times atop's", ATOP_GOAL, cpu["atop"])] if "atop" in cpu else []
        for words, goal, of in goals:
            met &= _goal(f"{one.name}: CPU {cpu[one.name] / of:.4g} {words}, goal {goal:g}", cpu[one.name] / of <= goal)
        right = one.memory_bytes <= MEMORY_GOAL
        met &= _goal(f"{one.name}: {one.memory_bytes / 2**20:.0f} MiB, goal {MEMORY_GOAL >> 20}", right)
    return met


def _goal(words: str, met: bool) -> bool:
    print(f"  {words}: {'met' if met else 'MISSED'}", flush=True)
    return met
