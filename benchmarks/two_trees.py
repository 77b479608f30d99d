"""Whether two checkouts measure the same: python benchmarks/two_trees.py OLD NEW [--seconds S] [--levels 1,2,4]

A bench of each takes steps of the job queue in one SQLite file, in turns: in each block two of one and two of the
other, in random order. Per level and together: the ratio of new to old for throughput, median and 99th percentile of
the latency, with a 95 % interval of the mean over blocks; the same of the old one's second steps and its first, which
must hold 1; and how much of the time of a step is without load.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

NORMAL_95 = 1.96
SETTINGS = {"journal_mode": "WAL", "synchronous": "OFF", "busy_timeout": 5000}  # no disk is waited for
Steps = dict[str, list[dict[str, Any]]]


def take_steps(window_s: float) -> None:
    """One of the benches: a step at each level that it reads, a line of JSON for it."""
    from loadframe.bench.bench import RealBench
    from loadframe.model import StepRequest
    from loadframe.runs.folder import RunFolder
    from loadframe.study.reading import validate

    tables = {
        "study": {"name": "two-trees", "question": "How many?"},
        "target": {"kind": "sqlite", "settings": SETTINGS},
        "workload": {"kind": "job-queue"},
        "load": {"axis": "concurrency", "levels": [1, 2]},
        "measure": {"window": f"{window_s}s", "budget": "1h"},
    }
    study = validate(tables, name="two-trees")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bench = stack.enter_context(RealBench(study, RunFolder.create(folder, "two-trees")))
        bench.declare("A", "as given", bench.start_state)
        for line in sys.stdin:
            began_s = time.monotonic()
            step = bench.take_step(StepRequest("A", float(line)))
            idle_ms = 1e3 * (time.monotonic() - began_s - (step.ended_s - step.started_s))
            measured = {"throughput": step.throughput, "p50": step.latency.p50_ms, "p99": step.latency.p99_ms}
            print(json.dumps({**measured, "idle_ms": idle_ms}), flush=True)


def bench_of(tree: str, window_s: float) -> subprocess.Popen[str]:
    places = [Path(tree) / "src", *sorted(Path(tree).glob("extensions/*/src"))]
    return subprocess.Popen(
        [sys.executable, __file__, "--take", str(window_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(place.resolve()) for place in places)},
    )


def ask(bench: subprocess.Popen[str], level: str) -> dict[str, Any]:
    assert bench.stdin is not None and bench.stdout is not None, "asked for"
    print(level, file=bench.stdin, flush=True)
    answer: dict[str, Any] = json.loads(bench.stdout.readline())
    return answer


def ratio(logs: Sequence[float]) -> str:
    mean, half = statistics.mean(logs), NORMAL_95 * statistics.stdev(logs) / math.sqrt(len(logs))
    return f"{math.exp(mean):.4f} ({math.exp(mean - half):.4f} to {math.exp(mean + half):.4f})"


def show(blocks: Sequence[Steps]) -> None:
    for name in ("throughput", "p50", "p99"):
        means = [{tree: statistics.mean(step[name] for step in block[tree]) for tree in block} for block in blocks]
        among = [math.log(block["old"][1][name] / block["old"][0][name]) for block in blocks]
        new = ratio([math.log(mean["new"] / mean["old"]) for mean in means])
        print(f"  {name:10} new / old {new}; old / old {ratio(among)}")
    idle = {tree: statistics.mean(step["idle_ms"] for block in blocks for step in block[tree]) for tree in blocks[0]}
    print(f"  without load: old {idle['old']:.0f} ms a step, new {idle['new']:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", nargs="?", default=".")
    parser.add_argument("new", nargs="?", default=".")
    parser.add_argument("--seconds", type=float, default=160.0)
    parser.add_argument("--levels", default="1,2,4")
    parser.add_argument("--window", type=float, default=0.5)
    parser.add_argument("--take", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.take is not None:
        return take_steps(options.take)
    benches = {"old": bench_of(options.old, options.window), "new": bench_of(options.new, options.window)}
    levels = options.levels.split(",")
    for level in levels:
        for bench in benches.values():
            ask(bench, level)
    blocks: dict[str, list[Steps]] = {level: [] for level in levels}
    until_s = time.monotonic() + options.seconds
    while time.monotonic() < until_s:
        for level, before in blocks.items():
            first, second = random.sample(sorted(benches), 2)
            steps: Steps = {tree: [] for tree in benches}
            for tree in (first, second, second, first):
                steps[tree].append(ask(benches[tree], level))
            before.append(steps)
    for bench in benches.values():
        bench.communicate()
    for level, taken in blocks.items():
        print(f"{level} workers, {len(taken)} blocks")
        show(taken)
    print("all")
    show([block for taken in blocks.values() for block in taken])
    return None


if __name__ == "__main__":
    main()
