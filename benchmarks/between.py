"""How much of a run's wall time lies between its steps: python benchmarks/between.py RUN

From the first request of the first step to the last one of the last step, in s and as a share:

    ended_s to started_s    no step was planned to run (docs/journal/2026-11-30-between-steps.md)
    in flight               of that, requests that had begun before the time of their step was up: they are waited for
    profiled                of that, the windows of sampled steps, which are not in steps.jsonl
    the rest                no request was in flight: workers start, state and data of the next level, evaluation
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path

import loadframe
from loadframe.workloads.request_log import from_bytes


def main() -> int:
    """Print the shares of one run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN")
    run = loadframe.open_run(parser.parse_args().run)
    steps = sorted(run.steps(), key=lambda step: step.started_s)
    last_s = {step.number: float(from_bytes(run.requests(step.number)).end_s[-1]) for step in steps}
    wall_s = last_s[steps[-1].number] - steps[0].started_s
    between_s = sum(max(0.0, after.started_s - step.ended_s) for step, after in pairwise(steps))
    in_flight_s = sum(max(0.0, last_s[step.number] - step.ended_s) for step in steps[:-1])
    profiled_s = sum(step.seconds for step in run.profiled())
    print(f"{len(steps)} steps and {len(run.profiled())} profiled ones in {wall_s:.1f} s")
    for name, seconds in (
        ("ended_s to started_s", between_s),
        ("in flight", in_flight_s),
        ("profiled", profiled_s),
        ("the rest", between_s - in_flight_s - profiled_s),
    ):
        print(f"{name:22} {seconds:6.1f} s {seconds / wall_s:7.1%}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
