"""MariaDB, MySQL and MySQL Cluster under the same load: python benchmarks/alternatives.py [--rounds N] [--script S...]

For each of sysbench's scripts the servers are started one after another, in random order in each round, with the same
tables, rows and number of threads, and memory for all data; each is private, fresh, and measured at one level. MariaDB
flushes its redo log with each commit and has no binary log; MySQL is measured as it comes (with one) and without; the
cluster has one data node, or two with the same data, and one SQL node. It keeps commits in memory, and on disk within
TimeBetweenGlobalCheckpoints: that is another promise, and the table says so.

Prints transactions per second (median of the rounds, lowest, highest) and the ratio to MariaDB of the same round, with
the 95 % interval of its mean over the rounds (Student's t, of logarithms). Kinds whose programs are missing are named.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from scipy import stats

import loadframe
from loadframe.errors import MissingTool
from loadframe.study import parse

SCRIPTS = ("oltp_point_select", "oltp_read_only", "oltp_read_write")
CLUSTER = 'NoOfFragmentLogFiles = 4\nFragmentLogFileSize = "16M"\nSharedGlobalMemory = "32M"\nDataMemory = "80M"\n'
SERVERS: Mapping[str, tuple[str, str, str]] = {
    "MariaDB": ('kind = "mariadb"', 'innodb_buffer_pool_size = "128M"', "each commit on disk"),
    "MySQL": ('kind = "mysql"', 'innodb_buffer_pool_size = "128M"', "each commit on disk, and in the binary log"),
    "MySQL, no binary log": (
        'kind = "mysql"', 'innodb_buffer_pool_size = "128M"\nlog_bin = false', "each commit on disk",
    ),
    "cluster, one copy": ('kind = "ndb-sql"\nshards = 1', f"NoOfReplicas = 1\n{CLUSTER}", "commits in memory"),
    "cluster, two copies": (
        'kind = "ndb-sql"\nshards = 2', f"NoOfReplicas = 2\n{CLUSTER}", "commits in the memory of two nodes",
    ),
}  # fmt: skip
"""By name: the target, its settings, what a commit waits for."""
STUDY = """
[study]
name = "alternatives"
question = "How many transactions a second?"
[target]
{target}
[target.settings]
{settings}
[workload]
kind = "sysbench"
[workload.options]
script = "{script}"
tables = 2
table_size = {rows}
rand-type = "uniform"
[load]
axis = "threads"
levels = [{threads}]
[measure]
window = "{window}"
warmup = "2s"
budget = "120s"
blocks = {{ min = 2, max = 2 }}
"""


def measured(server: str, script: str, arguments: argparse.Namespace, runs: Path) -> float:
    """Transactions per second of a fresh one."""
    target, settings, _ = SERVERS[server]
    text = STUDY.format(
        target=target,
        settings=settings,
        script=script,
        rows=arguments.rows,
        threads=arguments.threads,
        window=arguments.window,
    )
    return loadframe.measure(parse(text), runs).curve.points[0].throughput


def ratio(pairs: Sequence[tuple[float, float]]) -> str:
    """Of the second to the first of each pair."""
    logs = [math.log(second / first) for first, second in pairs]
    middle = statistics.fmean(logs)
    if len(logs) < 2:
        return f"{math.exp(middle):.2f}"
    half = float(stats.t.ppf(0.975, len(logs) - 1)) * statistics.stdev(logs) / math.sqrt(len(logs))
    return f"{math.exp(middle):5.2f} ({math.exp(middle - half):.2f} to {math.exp(middle + half):.2f})"


def table(script: str, found: Mapping[str, Sequence[float]]) -> None:
    base = found.get("MariaDB", [])
    print(f"\n{script}")
    for name, values in found.items():
        if not values:
            continue
        beside = ratio(list(zip(base, values, strict=True))) if base and name != "MariaDB" else ""
        spread = f"{min(values):.0f} to {max(values):.0f}"
        print(f"{name:22} {statistics.median(values):8.0f}/s  {spread:>16}  {beside:24} {SERVERS[name][2]}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--script", action="append", choices=SCRIPTS, help="one of them, instead of all")
    parser.add_argument("--server", action="append", choices=list(SERVERS), help="one of them, instead of all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--rows", type=int, default=10000, help="of each of two tables")
    parser.add_argument("--window", default="4s")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    order = random.Random(arguments.seed)
    servers = list(arguments.server or SERVERS)
    for script in arguments.script or SCRIPTS:
        found: dict[str, list[float]] = {name: [] for name in servers}
        with tempfile.TemporaryDirectory(prefix="alternatives-") as folder:
            for _ in range(arguments.rounds):
                for name in order.sample(servers, len(servers)):
                    try:
                        found[name].append(measured(name, script, arguments, Path(folder)))
                        print(f"{script}, {name}: {found[name][-1]:.0f}/s", file=sys.stderr, flush=True)
                    except MissingTool as error:
                        print(f"{name}: {error.fact}. {error.remedy}", file=sys.stderr)
                        servers.remove(name)
        table(script, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
