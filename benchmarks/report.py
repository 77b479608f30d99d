"""What the report of a long run costs: python benchmarks/report.py [--hours H] [--hertz N] [--series N] [--keep FOLDER]

A recording of that length is made up (growing counters of a machine, of processes and of their control groups), put
into a run folder, and `loadframe report` is run on it in a process of its own: seconds, the most memory that it took,
and what became of the recording in metrics.parquet. 24 hours at 10 Hz with 500 series must stay under 20 s and 2 GB.

Prints one line per goal: met, or missed. Ends with 1 where one was missed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import polars

from loadframe.recording.frame_writer import FrameWriter
from loadframe.recording.frames import TASK, Facts

GOAL_S, GOAL_BYTES = 20.0, 2e9
DATA = Path(__file__).parents[1] / "tests" / "data"
RUN = DATA / "runs" / "investigation"
MACHINE_SERIES, COMPONENT_SERIES = 61, 24
"""What the table has of the machine, and of each component that has one process and one cage."""
COMPONENTS = ("target", "driver", "loader", *(f"shard{number}" for number in range(1, 17)))
FIRST_S, FIRST_WALL_S = 1000.0, 1.8e9


class Cost(NamedTuple):
    """Of one child: wall and CPU seconds, and the largest resident set."""

    seconds: float
    cpu_s: float
    most_bytes: float


class Machine:
    """The texts of a machine at a tick, from recorded ones: those that are read at each tick, and once per second."""

    def __init__(self) -> None:
        self._plain = {f"/proc/{name}": (DATA / "proc" / name).read_bytes() for name in ("meminfo", "vmstat")}
        self._stat = (DATA / "proc/stat").read_bytes().split(b"procs_running")[1]
        self._disk = (DATA / "proc/diskstats").read_bytes()

    def each_tick(self, at: int) -> Mapping[str, bytes]:
        vmstat = self._plain["/proc/vmstat"].replace(b"\npgmajfault ", b"\npgmajfault %d" % (at // 10 + 1), 1)
        return {
            "/proc/stat": b"cpu  %d 64 %d %d 3079 0 1023 7624 0 0\ncpu0 %d 17 %d %d 513 0 345 3920 0 0\n"
            b"cpu1 %d 46 %d %d 2566 0 677 3704 0 0\nctxt %d\nprocesses %d\nprocs_running%s"
            % (8 * at, 4 * at, 8 * at, *(3 * at, at, 6 * at), *(5 * at, 3 * at, 2 * at), 400 * at, at, self._stat),
            "/proc/meminfo": self._plain["/proc/meminfo"],
            "/proc/vmstat": vmstat,
            "/proc/diskstats": self._disk.replace(
                b"vda 115870", b"vdb %d 0 %d 0 %d 0 %d 0 0 %d %d 0 0 0 0 %d 7\n 254 0 vda 115870"
                % (3 * at, 24 * at, 5 * at, 80 * at, 60 * at, 90 * at, 2 * at), 1
            ),
            **{
                f"/proc/pressure/{name}": b"some avg10=0.00 avg60=0.17 avg300=0.75 total=%d\n"
                b"full avg10=0.00 avg60=0.12 avg300=0.55 total=%d\n" % (9000 * at, 400 * at)
                for name in ("cpu", "memory", "io")
            },
        }  # fmt: skip

    def each_second(self, at: int) -> Mapping[str, bytes]:
        return {
            "/proc/sys/fs/file-nr": b"%d\t0\t999999\n" % (2000 + at % 7),
            "/proc/net/snmp": b"Tcp: ActiveOpens RetransSegs\nTcp: %d %d\n" % (at, at // 3),
            "/proc/net/netstat": b"TcpExt: ListenOverflows ListenDrops\nTcpExt: %d %d\n" % (at // 9, at // 8),
            "/proc/net/sockstat": b"sockets: used 9\nTCP: inuse 3 orphan 0 tw %d alloc 3 mem 2\n" % (at % 50),
        }


PID = 1000


def of_a_process(at: int) -> Mapping[str, bytes]:
    """One process of four threads, at each tick, by the last words of its sources' names."""
    pid = PID
    stat = b"%d (server) S 1 1 1 0 -1 0 %d 0 %d 0 %d %d 0 0 20 0 4 0 9 0 %d 0 1 2 3 4 5 6 7 8 9\n"
    text = stat % (pid, 50 * at, at // 90, 3 * at, at, 9000 + at % 100)
    row, waited = b"%d (server) S 1" % pid, b"%d %d 9\n" % (1000 * at, 500 * at)
    return {
        "/proc/{pid}/stat": text,
        "/proc/{pid}/io": b"rchar: 5\nwchar: 6\nsyscr: 7\nsyscw: %d\nread_bytes: 0\nwrite_bytes: %d\n"
        % (at, 4096 * at),
        "cpu": b"%d\n" % (40_000_000 * at),
        "fd": b"%d\n" % (40 + at % 5),
        "threads": b"4\n",
        "tasks": b"".join(TASK.pack(pid + each, len(row), 0, 0) + row for each in range(4)),
        "task-schedstat": b"".join(TASK.pack(pid + each, 0, len(waited), 0) + waited for each in range(4)),
    }


def of_a_cage(at: int) -> Mapping[str, bytes]:
    """One control group, at each tick, by file."""
    return {
        "cpu.stat": b"usage_usec %d\nuser_usec 1\nsystem_usec 2\nnr_periods %d\nnr_throttled %d\nthrottled_usec %d\n"
        % (40_000 * at, at, at // 4, 900 * at),
        "memory.current": b"%d\n" % (10**8 + at % 1000),
        "io.stat": b"254:16 rbytes=%d wbytes=%d rios=%d wios=%d dbytes=0 dios=0\n" % (24 * at, 80 * at, 3 * at, 5 * at),
        "pids.current": b"4\n",
        **{
            f"{name}.pressure": b"some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n" % (5000 * at)
            for name in ("cpu", "memory", "io")
        },
    }


def write_recording(path: Path, seconds: float, hertz: int, series: int) -> int:
    """As the recorder writes it, a block per second; how many ticks it has."""
    machine, count = Machine(), round(seconds * hertz)
    components = COMPONENTS[: max(1, min(len(COMPONENTS), -(-(series - MACHINE_SERIES) // COMPONENT_SERIES)))]
    writer = FrameWriter(path, Facts(1 / hertz, 100, 2, 4096, 0.0, FIRST_S, FIRST_WALL_S, "bench-1"))

    @cache
    def of_all(kind: str, form: str) -> list[int]:
        """The sources of this kind, of each component."""
        names = []
        for number, component in enumerate(components):
            pid = PID + 10 * number
            names.append(form.format(component=component, pid=pid, kind=kind.format(pid=pid)))
        return [writer.source(name) for name in names]

    for at in range(1, count + 1):
        texts = {f"system:{name}": text for name, text in machine.each_tick(at).items()}
        if at % hertz == 1 % hertz:
            texts |= {f"system:{name}": text for name, text in machine.each_second(at).items()}
        entries = [(writer.source(name), text) for name, text in texts.items()]
        # Components are alike: what each of them says is made once.
        for kind, text in of_a_process(at).items():
            entries += [(number, text) for number in of_all(kind, "{component}:{pid}:{kind}")]
        for kind, text in of_a_cage(at).items():
            entries += [
                (number, text) for number in of_all(kind, "{component}:cgroup:/sys/fs/cgroup/{component}/{kind}")
            ]
        writer.record(FIRST_S + at / hertz, FIRST_WALL_S + at / hertz, entries)
        if at % hertz == 0:
            writer.write_block()
    writer.close()
    return count


def report(run: Path) -> Cost:
    """`loadframe report` of a run folder without a conclusion."""
    begun_s = time.monotonic()
    nothing = os.open(os.devnull, os.O_WRONLY)
    arguments = [sys.executable, "-c", "from loadframe.cli.entry import main; main()", "report", str(run)]
    pid = os.posix_spawn(sys.executable, arguments, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, nothing, 1)])
    _, status, used = os.wait4(pid, 0)
    os.close(nothing)
    if status != 0:
        raise SystemExit(f"loadframe report ended with {os.waitstatus_to_exitcode(status)}")
    return Cost(time.monotonic() - begun_s, used.ru_utime + used.ru_stime, 1024.0 * used.ru_maxrss)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--hertz", type=int, default=10)
    parser.add_argument("--series", type=int, default=500)
    parser.add_argument("--keep", type=Path, help="where the run folder is made and stays")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="loadframe-report-") as folder:
        run = (chosen.keep or Path(folder)) / "run"
        shutil.copytree(RUN, run)
        (run / "investigation.json").unlink()
        recording = run / "raw/host.lfr"
        recording.unlink()
        ticks = write_recording(recording, 3600 * chosen.hours, chosen.hertz, chosen.series)
        print(f"{ticks:,} ticks, {recording.stat().st_size / 1e6:,.0f} MB as recorded", flush=True)
        cost = report(run)
        table = polars.read_parquet(run / "metrics.parquet").filter(polars.col("at_s").is_not_null())
        moments = table["at_s"].n_unique()
        print(f"{table['metric'].n_unique()} series at {moments:,} moments, {len(table):,} values")
        print(f"{cost.seconds:.1f} s ({cost.cpu_s:.1f} s of CPU), {cost.most_bytes / 1e6:,.0f} MB at most")
    missed = [
        words
        for words, value, goal in (("s", cost.seconds, GOAL_S), ("bytes", cost.most_bytes, GOAL_BYTES))
        if value > goal
    ]
    print("met: under 20 s and 2 GB" if not missed else f"missed: {', '.join(missed)}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
