"""What recording costs on this machine: python benchmarks/recorder.py [--seconds S] [--blocks N] [--minutes M]
    [--service] [--processes]

Four tables, each from one run:

1. CPU per tick, CPU per second and memory of Loadframe's recorder beside the bare floor (a loop in the same language
   that preads the same files and writes them as they are) and beside atop, sadc, collectl and vmstat, which write what
   they have to say of the same machine, with a process of 80, 1,000 and 10,000 idle threads. The tools take turns in
   random order; the median of the blocks counts. Each ticks as fast as it can be told to, the recorder and the floor
   ten times a second; both also at one tick per second, the interval of the others, where each tick looks at all of up
   to 1,000 threads, as atop and collectl do at all numbers of them. sadc and vmstat know no processes.
2. The throughput of sysbench on a private MariaDB with the recorder stopped and running, in interleaved halves of a
   second, as an interval; and the same of halves without the recorder among themselves, which must hold 0. On a
   machine that others use as well that interval is wide. Beside it stands what does not depend on them: the share of
   all CPUs that the recorder took, and how many more or fewer statements the server and the driver did per second of
   CPU time of their own while it ran.

3. CPU per second of the recorder beside a service of 50 threads, without connections and with 200 of them (they cost
   what is read of sockets), and beside none. --service: this one alone.
4. CPU per second of the recorder beside 1, 10, 100 and 300 idle processes, and of a loop in C (reads.c, which cc
   compiles) that reads again what the recorder has read, as often and at the same ticks, and does nothing with it. How
   often each process was read in full is the table's last column. --processes: this one alone.

Then one line per goal: met, or missed and by how much. Ends with 1 where one was missed. Peers come from Debian's
packages (atop, sysstat, collectl, procps); one that is not installed is left out and named.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from loadframe.errors import RecordingError
from loadframe.host.environment import python
from loadframe.host.leases import Lease
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance, Resources, spawn
from loadframe.kinds import registry as targets
from loadframe.model import Endpoint, TargetState
from loadframe.recording import socket_rows as diag
from loadframe.recording.control import Recorder
from loadframe.recording.process_metrics import parse_tasks, split_source
from loadframe.recording.readers import RecordingReader

THREADS = (80, 1_000, 10_000)
PROCESSES = (1, 10, 100, 300)
SERVICE_THREADS, SERVICE_CONNECTIONS = 50, (0, 200)
HELPERS = str(Path(__file__).with_name("floor.py"))
READS = Path(__file__).with_name("reads.c")
WARM_UP_S = 2.5
STARTED_S = 15.0
FLOOR_GOAL, ATOP_GOAL, THROUGHPUT_GOAL, MEMORY_GOAL_BYTES = 1.5, 0.1, 0.005, 25 * 2**20
C_GOAL = 3.0
HALF_S = 0.5
GUARD_S = 0.05
RESAMPLES = 4000


# --- the first table ---


@dataclass(frozen=True)
class Cost:
    """Of one tool in one block: CPU per tick and per second of running, peak resident memory, bytes written per s."""

    tick_us: float
    second_ms: float
    memory_bytes: int
    written_bytes: float


Start = Callable[[int, Path], subprocess.Popen[bytes]]


@dataclass(frozen=True)
class Tool:
    """name, seconds between its ticks, how it is started (pid to follow, folder to write into), its program."""

    name: str
    interval_s: float
    start: Start
    program: str = sys.executable


def _run(command: list[str], **options: object) -> subprocess.Popen[bytes]:
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, **{**quiet, **options})  # type: ignore[call-overload, no-any-return]


def _recorder(interval_s: float) -> Start:
    def start(pid: int, folder: Path) -> subprocess.Popen[bytes]:
        command = python("loadframe.recording.recorder", str(folder / "raw.lfr"))
        process = _run([*command, "--interval", str(interval_s)], stdin=subprocess.PIPE)
        assert process.stdin is not None
        process.stdin.write(f'{{"do": "follow", "component": "target", "pids": [{pid}]}}\n'.encode())
        process.stdin.flush()
        return process

    return start


def _floor(interval_s: float) -> Start:
    return lambda pid, folder: _run([sys.executable, HELPERS, str(pid), str(folder / "raw"), str(interval_s)])


def _vmstat(_pid: int, folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "vmstat.txt").open("wb") as file:
        return _run(["vmstat", "-n", "-t", "1"], stdout=file)


def _collectl(_pid: int, folder: Path) -> subprocess.Popen[bytes]:
    options = ["-i1:1", "-s+ZDCmjst", "--procopts", "t", "-f", str(folder), "--nohup"]
    return _run(["collectl", *options])


SADC = next((str(path) for path in map(Path, ("/usr/lib/sysstat/sadc", "/usr/lib64/sa/sadc")) if path.exists()), "sadc")
TOOLS = (
    Tool("bare floor", 0.1, _floor(0.1)),
    Tool("loadframe", 0.1, _recorder(0.1)),
    Tool("bare floor, 1 s", 1.0, _floor(1.0)),
    Tool("loadframe, 1 s", 1.0, _recorder(1.0)),
    Tool("atop", 1.0, lambda _pid, folder: _run(["atop", "-w", str(folder / "atop.raw"), "1"]), "atop"),
    Tool("sadc", 1.0, lambda _pid, folder: _run([SADC, "-S", "XALL", "1", str(folder / "sa")]), SADC),
    Tool("collectl", 1.0, _collectl, "collectl"),
    Tool("vmstat", 1.0, _vmstat, "vmstat"),
)


def cpu_s(pid: int) -> float:
    """CPU time of a process, to the nanosecond; children that it waited for are not in it."""
    return time.clock_gettime((~pid << 3) | 2)


def peak_bytes(pid: int) -> int:
    """VmHWM."""
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


def block(tool: Tool, pid: int, seconds: float) -> Cost:
    """Run a tool for so long after its warm-up."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name)
        process = tool.start(pid, folder)
        try:
            until_s = time.monotonic() + STARTED_S
            while not _size(folder) and time.monotonic() < until_s:
                time.sleep(0.05)
            time.sleep(WARM_UP_S)
            before_s, began_s, had = cpu_s(process.pid), time.monotonic(), _size(folder)
            time.sleep(seconds)
            used_s, elapsed_s = cpu_s(process.pid) - before_s, time.monotonic() - began_s
            return Cost(
                tick_us=used_s / (elapsed_s / tool.interval_s) * 1e6,
                second_ms=used_s / elapsed_s * 1e3,
                memory_bytes=peak_bytes(process.pid),
                written_bytes=(_size(folder) - had) / elapsed_s,
            )
        finally:
            if process.stdin is not None:
                process.stdin.close()
            process.terminate()
            process.wait()


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@contextmanager
def threads_idling(count: int) -> Iterator[int]:
    """The pid of a process with `count` threads."""
    command = [sys.executable, HELPERS, "idle", str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdin is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.stdin.close()


def costs(tools: list[Tool], blocks: int, seconds: float) -> dict[tuple[int, str], Cost]:
    """The median cost of each tool at each number of threads; prints the table as it goes."""
    print(f"{'threads':>7}  {'tool':16} {'CPU/tick':>10} {'of floor':>8} {'CPU/s':>9} {'memory':>8} {'written/s':>10}")
    found: dict[tuple[int, str], Cost] = {}
    order = random.Random(1)
    for threads in THREADS:
        samples: dict[str, list[Cost]] = {tool.name: [] for tool in tools}
        with threads_idling(threads) as pid:
            for _ in range(blocks):
                for tool in order.sample(tools, len(tools)):
                    samples[tool.name].append(block(tool, pid, seconds))
        for tool in tools:
            found[threads, tool.name] = cost = _median(samples[tool.name])
            base = found[threads, "bare floor, 1 s" if tool.interval_s == 1.0 else "bare floor"]
            print(
                f"{threads:>7,}  {tool.name:16} {cost.tick_us:>7,.0f} us {cost.tick_us / base.tick_us:>8.2f} "
                f"{cost.second_ms:>6.1f} ms {cost.memory_bytes / 2**20:>4.1f} MiB "
                f"{cost.written_bytes / 1024:>6.1f} KiB",
                flush=True,
            )
    return found


def _median(samples: list[Cost]) -> Cost:
    return Cost(*(statistics.median(getattr(cost, name) for cost in samples) for name in Cost.__annotations__))


# --- the third table ---


@contextmanager
def serving(threads: int, connections: int) -> Iterator[int]:
    """The pid of a process with so many threads that serves so many connections, of ours."""
    command = [sys.executable, HELPERS, "serve", str(threads), str(connections)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process, ExitStack() as stack:
        assert process.stdout is not None and process.stdin is not None
        port = int(process.stdout.readline())
        for _ in range(connections):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.stdin.close()


def service_costs(blocks: int, seconds: float) -> None:
    """Print what the recorder takes beside a service, and beside nothing that it follows."""
    tool = next(tool for tool in TOOLS if tool.name == "loadframe")
    with ExitStack() as stack:
        pids = {"nothing followed": 0} | {
            f"{SERVICE_THREADS} threads, {count} connections": stack.enter_context(serving(SERVICE_THREADS, count))
            for count in SERVICE_CONNECTIONS
        }
        samples: dict[str, list[Cost]] = {name: [] for name in pids}
        order = random.Random(4)
        for _ in range(blocks):
            for name in order.sample(list(pids), len(pids)):
                samples[name].append(block(tool, pids[name], seconds))
    for name, costs_there in samples.items():
        cost = _median(costs_there)
        print(f"  {name}: {cost.second_ms:.1f} ms of CPU per second, {cost.written_bytes / 1024:.1f} KiB written")


# --- the fourth table ---


def process_costs(blocks: int, seconds: float) -> bool:
    """Print what the recorder takes beside so many processes, and what the loop in C does; whether the goal is met."""
    print(f"{'processes':>9}  {'recorder':>12} {'loop in C':>12} {'ratio':>6}  each process in full")
    ratios = {}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        program = Path(name) / "reads"
        subprocess.run(["cc", "-O2", "-o", program, READS], check=True)
        for count in PROCESSES:
            command = [sys.executable, HELPERS, "processes", str(count)]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
                assert process.stdout is not None and process.stdin is not None
                pids = process.stdout.readline().decode().split()
                pairs = [_both(program, pids, seconds) for _ in range(blocks)]
                process.stdin.close()
            ours, bare, looks = (statistics.median(values) for values in zip(*pairs, strict=True))
            ratios[count] = statistics.median(recorder / loop for recorder, loop, _ in pairs)
            shown = f"{ours:>9.2f} ms {bare:>9.2f} ms {ratios[count]:>6.2f}  {looks:.1f} times per second"
            print(f"{count:>9}  {shown}", flush=True)
    met = True
    for count, ratio in ratios.items():
        met &= goal(f"{count} processes, CPU over that of the loop in C", ratio, C_GOAL, _plain)
    return met


def _both(program: Path, pids: list[str], seconds: float) -> tuple[float, float, float]:
    """ms of CPU per second of the recorder and of the loop, and how often per second each process was read in full."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        path = Path(name) / "raw.lfr"
        recorder = _run(python("loadframe.recording.recorder", str(path)), stdin=subprocess.PIPE)
        assert recorder.stdin is not None
        recorder.stdin.write(f'{{"do": "follow", "component": "target", "pids": [{", ".join(pids)}]}}\n'.encode())
        recorder.stdin.flush()
        ours = _second_ms(recorder, seconds)
        recorder.stdin.close()
        recorder.wait()
        with RecordingReader(path) as reader:
            ticks = [[*_reads(tick.entries)] for tick in reader.all_ticks() if tick.sample]
    ticks = ticks[-round(10 * seconds) :]
    things = {thing: number for number, thing in enumerate(dict.fromkeys(thing for tick in ticks for thing in tick))}
    lines = [f"100000000 {len(things)}", *things, str(len(ticks))]
    lines += [" ".join(map(str, (len(tick), *(things[thing] for thing in tick)))) for tick in ticks]
    loop = _run([str(program)], stdin=subprocess.PIPE)
    assert loop.stdin is not None
    loop.stdin.write("\n".join(lines).encode())
    loop.stdin.close()
    bare = _second_ms(loop, seconds)
    loop.kill()
    loop.wait()
    stats = {f"r /proc/{pid}/stat" for pid in pids}
    looks = sum(thing in stats for tick in ticks for thing in tick) / len(pids)
    return ours, bare, looks / len(ticks) * 10


def _second_ms(process: subprocess.Popen[bytes], seconds: float) -> float:
    time.sleep(WARM_UP_S)
    before_s, began_s = cpu_s(process.pid), time.monotonic()
    time.sleep(seconds)
    return (cpu_s(process.pid) - before_s) / (time.monotonic() - began_s) * 1e3


def _reads(entries: Mapping[str, bytes]) -> Iterator[str]:
    """What was read for the entries of a tick: kind (as in reads.c) and path."""
    if any(source.endswith(":sockets") for source in entries):
        yield from _REQUESTS
    for source, text in entries.items():
        if (process := split_source(source)) is None:
            path = source.partition(":")[2]
            if path.startswith("/"):
                yield f"r {path}"
            continue
        _, pid, word = process
        if word in _KINDS:
            yield _KINDS[word].format(pid)
        elif word in _OF_THREADS:
            for row in parse_tasks(text):
                files = zip(_OF_THREADS[word], (row.stat, row.schedstat, row.wchan), strict=True)
                yield from (f"r /proc/{pid}/task/{row.thread}/{file}" for file, read in files if file and read)
        elif f":/proc/{pid}/" in source:
            yield f"r /proc/{pid}/{word}"


_STATES = 1 << diag.ESTABLISHED | 1 << diag.SYN_SENT | 1 << diag.CLOSE_WAIT | 1 << diag.LISTEN
_MESSAGES = [diag.inet_request(family, _STATES, extensions=1 << 1) for family in diag.FAMILIES]
_REQUESTS = [
    "d " + (diag.HEADER.pack(diag.HEADER.size + len(message), diag.BY_FAMILY, diag.DUMP, 1, 0) + message).hex()
    for message in (*_MESSAGES, diag.unix_request(1 << diag.ESTABLISHED | 1 << diag.LISTEN))
]
"""The kernel lists all sockets."""
_KINDS = {"cpu": "c /proc/{}", "fd": "s /proc/{}/fd", "threads": "s /proc/{}/task", "exe": "l /proc/{}/exe"}
_OF_THREADS = {
    "tasks": ("stat", "", "wchan"),
    "task-schedstat": ("", "schedstat", ""),
    "task-status": ("status", "", ""),
    "task-syscall": ("syscall", "", ""),
}
"""By the last word of a source: what is read for it."""


# --- the second table ---


@dataclass(frozen=True)
class Change:
    """Throughput with over without the recorder, less one, with its interval; halves: pairs of halves of a second."""

    change: float
    low: float
    high: float
    halves: int


def throughput_change(minutes: float) -> dict[str, Change]:
    """What changed between halves, by name; the throughput with the recorder against without comes first."""
    with ExitStack() as stack:
        lease = stack.enter_context(Lease.acquire("benchmarks/recorder", run=None))
        target = targets.kind_named("mariadb").make(lease, Resources())
        stack.callback(target.destroy)
        target.create()
        target.start(TargetState())
        sysbench = _sysbench(target.endpoint(), lease.folder)
        subprocess.run([*sysbench, "prepare"], check=True, stdout=subprocess.DEVNULL)
        recorder = stack.enter_context(Recorder(lease.folder / "raw.lfr"))
        quiet = stack.enter_context(Path(os.devnull).open("wb"))
        driver = stack.enter_context(_ended(spawn([*sysbench, "run"], Allowance(US), stdout=quiet, stderr=None)))
        recorder.follow("target", target.pids())
        recorder.follow("driver", [driver.pid])
        time.sleep(5)
        before_s = cpu_s(recorder.pid)
        halves = _alternate(
            recorder.pid,
            60 * minutes,
            lambda: (target.counters()["Questions"], cpu_s(target.pids()[0]) + cpu_s(driver.pid)),
        )
        recorded_s = sum(half.until_s - half.from_s + GUARD_S for half in halves if half.recording)
        share = (cpu_s(recorder.pid) - before_s) / recorded_s
    count = os.cpu_count() or 1
    print(f"  the recorder took {share:.2%} of one CPU while it ran, {share / count:.2%} of all {count}")
    print(f"  {statistics.median(half.rate for half in halves):,.0f} statements per second")
    rates, per_cpu = _by_kind(halves, "rate"), _by_kind(halves, "per_cpu_s")
    return {
        "throughput with the recorder": _change(rates[False], rates[True]),
        "throughput without against without": _change(rates[False][0::2], rates[False][1::2]),
        "statements per CPU-second with the recorder": _change(per_cpu[False], per_cpu[True]),
        "statements per CPU-second without against without": _change(per_cpu[False][0::2], per_cpu[False][1::2]),
    }


def _by_kind(halves: list[Half], value: str) -> dict[bool, list[float]]:
    return {kind: [getattr(half, value) for half in halves if half.recording == kind] for kind in (True, False)}


def _sysbench(endpoint: Endpoint, folder: Path) -> list[str]:
    """sysbench's own point selects, four threads; the password in a file of our own."""
    config = folder / "sysbench.conf"
    config.touch(mode=0o600)
    options = endpoint.options
    lines = {"socket": options["socket"], "user": options["user"], "password": options["password"]}
    config.write_text("".join(f"mysql-{name}={value}\n" for name, value in lines.items()))
    command = ["sysbench", f"--config-file={config}", f"--mysql-db={options['schema']}", "--db-driver=mysql"]
    return [*command, "--threads=4", "--time=0", "--events=0", "--table-size=10000", "oltp_point_select"]


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@dataclass(frozen=True)
class Half:
    """A half of a second with or without the recorder: statements per second, and per second of CPU time."""

    recording: bool
    from_s: float
    until_s: float
    rate: float
    per_cpu_s: float


def _alternate(recorder: int, seconds: float, read: Callable[[], tuple[float, float]]) -> list[Half]:
    """Stop and continue the recorder, in pairs of random order."""
    order = random.Random(2)
    halves = []
    ends_s = time.monotonic() + seconds
    try:
        while time.monotonic() < ends_s:
            for recording in order.sample([True, False], 2):
                os.kill(recorder, signal.SIGCONT if recording else signal.SIGSTOP)
                time.sleep(GUARD_S)
                (before, cpu_before_s), from_s = read(), time.monotonic()
                time.sleep(HALF_S)
                (after, cpu_after_s), until_s = read(), time.monotonic()
                done = after - before
                halves.append(
                    Half(recording, from_s, until_s, done / (until_s - from_s), done / (cpu_after_s - cpu_before_s))
                )
    finally:
        os.kill(recorder, signal.SIGCONT)
    return halves


def _change(before: list[float], after: list[float]) -> Change:
    """Median of the pairs' ratios, with the 95 % interval of its bootstrap: pairs lie side by side in time, in random
    order, and a hypervisor that takes the CPU away for a moment makes outliers."""
    pairs = min(len(before), len(after))
    ratios = np.log(np.array(after[:pairs]) / np.array(before[:pairs]))
    draws = np.random.default_rng(3).choice(ratios, (RESAMPLES, pairs))
    low, high = np.quantile(np.median(draws, axis=1), [0.025, 0.975])
    return Change(float(np.expm1(np.median(ratios))), float(np.expm1(low)), float(np.expm1(high)), pairs)


# --- goals ---


def goal(what: str, value: float, limit: float, shown: Callable[[float], str]) -> bool:
    """Print whether a goal is met."""
    met = value <= limit
    text = "met" if met else f"missed by {shown(value - limit)}"
    print(f"  {what}: {shown(value)}, goal {shown(limit)}: {text}")
    return met


def judge(found: dict[tuple[int, str], Cost]) -> bool:
    """Whether all goals of the first table are met."""
    met = True
    for threads in THREADS:
        costs_of = {name: cost for (count, name), cost in found.items() if count == threads}
        ours, bare = costs_of["loadframe"], costs_of["bare floor"]
        where = f"{threads:,} threads"
        met &= goal(f"{where}, CPU per tick over the floor's", ours.tick_us / bare.tick_us, FLOOR_GOAL, _plain)
        if "atop" in costs_of:
            atop = costs_of["atop"].tick_us
            met &= goal(f"{where}, CPU per tick over atop's", ours.tick_us / atop, ATOP_GOAL, _plain)
            same, least = costs_of["loadframe, 1 s"].tick_us / atop, costs_of["bare floor, 1 s"].tick_us / atop
            met &= goal(f"{where}, the same with ticks of 1 s (the floor: {least:.2f})", same, ATOP_GOAL, _plain)
        met &= goal(f"{where}, memory", ours.memory_bytes, MEMORY_GOAL_BYTES, lambda size: f"{size / 2**20:.1f} MiB")
    return met


def _plain(value: float) -> str:
    return f"{value:.3f}"


def judge_change(changes: dict[str, Change]) -> bool:
    """Whether the throughput is proved to change by no more than the goal."""
    for name, one in changes.items():
        print(f"  {name}: {one.change:+.2%} ({one.low:+.2%} to {one.high:+.2%}), {one.halves} pairs")
    change = next(iter(changes.values()))
    worst = max(abs(change.low), abs(change.high))
    if worst <= THROUGHPUT_GOAL:
        print(f"  throughput within {THROUGHPUT_GOAL:.1%}: met")
        return True
    if change.high < -THROUGHPUT_GOAL:
        how = f"missed by {-change.high - THROUGHPUT_GOAL:.2%} at least"
    else:
        how = f"neither shown nor refuted: the interval reaches {worst:.2%}"
    print(f"  throughput within {THROUGHPUT_GOAL:.1%}: {how}")
    return False


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="length of one block of one tool")
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--service", action="store_true", help="the third table alone")
    parser.add_argument("--processes", action="store_true", help="the fourth table alone")
    parser.add_argument("--minutes", type=float, default=4.0, help="length of the sysbench run; 0: none")
    arguments = parser.parse_args()
    if arguments.processes:
        return 0 if process_costs(max(1, arguments.blocks), arguments.seconds) else 1
    if arguments.service or arguments.blocks:
        service_costs(max(1, arguments.blocks), arguments.seconds)
    if arguments.service:
        return 0
    tools = [tool for tool in TOOLS if shutil.which(tool.program)]
    for tool in TOOLS:
        if not shutil.which(tool.program):
            print(f"{tool.name} is not installed: left out (apt-get install atop sysstat collectl procps)")
    met = judge(costs(tools, arguments.blocks, arguments.seconds)) if arguments.blocks else True
    if arguments.blocks:
        met &= process_costs(arguments.blocks, arguments.seconds)
    if arguments.minutes:
        try:
            met &= judge_change(throughput_change(arguments.minutes))
        except RecordingError as error:
            print(error)
            return 1
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
