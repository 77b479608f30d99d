"""What the driver of http, access-log and har costs: python benchmarks/http_cost.py [--seconds S] [--blocks N]

CPU time of wrk per request, on a private nginx with pages of 1 KB and four connections, with what the script does in
each way of asking: objects of ours, paths of a server known by its address, a hundred declared requests with ten
headers each, users who think for 1 ms, and the replay of a log. The ways take turns; the median of the blocks is
printed, with how many times the first way's it is. Ends with 1 where a way without pauses costs more than twice the
first.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from loadframe.host.leases import Lease
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance, Resources
from loadframe.kinds import registry as targets
from loadframe.model import Declared, Endpoint, Request, TargetState, Think
from loadframe.workloads import registry
from loadframe.workloads.base import Workload
from loadframe.workloads.objects import path_of

CONNECTIONS, SIZE, PAGES = 4, 1000, 10
GOAL = 2.0
SETTLED_S = 0.3
PATHS = " ".join(path_of(number) for number in range(PAGES))
HEADERS = tuple((f"X-Header-{number}", "some value") for number in range(10))
REQUESTS = tuple(
    Request(f"r{number}", "GET", f"{path_of(number % PAGES)}?n={number}", HEADERS) for number in range(100)
)


def ways(log: Path) -> Mapping[str, tuple[Callable[[], Workload], float]]:
    """How each is made, and at which level it runs."""

    def http(paths: str = "", **declared: object) -> Callable[[], Workload]:
        return lambda: registry.make(
            "http", {"paths": paths} if paths else {}, Allowance(US), declared=Declared(**declared)
        )  # type: ignore[arg-type]

    return {
        "objects": (
            lambda: registry.make("http", {"objects": PAGES, "smallest_bytes": SIZE}, Allowance(US)),
            CONNECTIONS,
        ),
        "paths": (http(PATHS), CONNECTIONS),
        "100 requests": (http(request=REQUESTS), CONNECTIONS),
        "thinking 1 ms": (http(PATHS, think_time=Think(1e-3, "exponential")), CONNECTIONS),
        "access-log": (
            lambda: registry.make(
                "access-log", {"file": str(log), "connections": CONNECTIONS}, Allowance(US), axis="speed"
            ),
            10,
        ),
    }


def write_log(path: Path) -> None:
    """Two minutes at 200 requests a second."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(24_000):
            second = number // 200
            at = f"24/Nov/2026:12:{second // 60:02d}:{second % 60:02d} +0000"
            file.write(f'- - - [{at}] "GET {path_of(number % PAGES)}?n={number % 500} HTTP/1.1" 200 {SIZE}\n')


def cpu_s(pid: int) -> float:
    """Of a process and all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cost_us(workload: Workload, endpoint: Endpoint, level: float, seconds: float) -> tuple[float, float]:
    """CPU time of the driver per request (us), and requests per second."""
    with tempfile.TemporaryDirectory() as folder:
        driver = workload.start(endpoint, level, Path(folder), seconds + 2 * SETTLED_S)
        try:
            pid = driver.pids()[0]
            time.sleep(SETTLED_S)
            before_s, begin = cpu_s(pid), time.monotonic()
            time.sleep(seconds)
            spent_s, end = cpu_s(pid) - before_s, time.monotonic()
            driver.wait(10)
        finally:
            driver.kill()
        requests = driver.requests()
        assert not requests.outcome.any(), "nginx answers all of it"
        inside = int(np.sum((requests.end_s > begin) & (requests.end_s <= end)))
    return 1e6 * spent_s / inside, inside / (end - begin)


def main() -> int:
    """The table; 1 where a way costs too much."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--blocks", type=int, default=3)
    given = parser.parse_args()
    found: dict[str, list[tuple[float, float]]] = {}
    with Lease.acquire("what the driver of http costs") as lease, tempfile.TemporaryDirectory() as place:
        write_log(log := Path(place) / "access.log")
        target = targets.kind_named("nginx").make(lease, Resources())
        try:
            target.create()
            target.start(TargetState({}))
            ours = target.endpoint()
            known = Endpoint("url", ours.address, {"paths": PATHS}, attached=True)
            made = {name: (make(), level) for name, (make, level) in ways(log).items()}
            for name, (workload, _) in made.items():
                workload.install(ours if name == "objects" else known)
            for _ in range(given.blocks):
                for name, (workload, level) in made.items():
                    endpoint = ours if name == "objects" else known
                    found.setdefault(name, []).append(cost_us(workload, endpoint, level, given.seconds))
        finally:
            target.destroy()
    costs = {name: statistics.median(cost for cost, _ in each) for name, each in found.items()}
    print(f"{'way':<16} {'us of CPU':>10} {'times':>6} {'requests/s':>11}")
    for name, each in found.items():
        rate = statistics.median(rate for _, rate in each)
        print(f"{name:<16} {costs[name]:>10.1f} {costs[name] / costs['objects']:>6.2f} {rate:>11,.0f}")
    missed = [name for name in ("paths", "100 requests") if costs[name] > GOAL * costs["objects"]]
    for name in missed:
        print(f"missed: {name} costs more than {GOAL:g} times as much as objects")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
