"""What a step costs its coordinator with 10 to 10,000 hosts: `python benchmarks/fleet.py [--hosts N,N] [--seeds N]
[--requests N] [--message-us T] [--recorded B] [--measured] [--json]`.

The coordinating code is the real one (loadframe_fleet: load, coordinator, clocks, merging); hosts, links and the clock
are simulated (fleet_simulated.py), with stragglers, slow links, clocks that are off and drift, and hosts that are lost.
What must hold is checked in each step: all begin within what is told of their clocks, the whole has the requests of all
hosts, what is lost voids the step and ends all load. Exponents are slopes of log(cost) over log(hosts) with 95 %
intervals (Student's t), from FROM hosts on: below, fixed costs hide how it grows. CPU is that of the coordinating code,
memory its peak (tracemalloc) without the simulated hosts.

Where the link is full, and what a tree of coordinators would give, is a model: arithmetic with the bytes and messages
that the simulation counted. --measured: 1 to 16 agents as processes, in network namespaces where these may be made, and
the simulation beside them, with the CPU time of a message that was measured with one. Ends with 1 where something that
must hold does not.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fleet_simulated import (
    BEGUN_S,
    LABORATORY,
    LOSSES,
    OPERATIONS,
    WIDE,
    Kind,
    Loss,
    Middle,
    Simulated,
    hosts_of,
)
from loadframe.analysis.student import quantile
from loadframe.errors import StepVoid
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.model import Endpoint
from loadframe.runs.histograms import BINS
from loadframe.study import validate
from loadframe.workloads import registry
from loadframe_fleet.coordinator import EXCHANGES, PACE_S, Coordinator
from loadframe_fleet.load import FleetDriver, FleetLoad, check_all_along

HOSTS = (10, 30, 100, 300, 1000, 3000, 10_000)
FROM = 100
WINDOW_S = 10.0
WARMUP_S = 1.0
POLL_S = 0.2
KINDS = {"laboratory": LABORATORY, "wide": WIDE}
LOST_AT = ("prepare", "clock", "start", "ended", "read", "flush")
LOST_OF = (10, 100, 1000)
LINKS = {"10 Gbit/s": 1.25e9, "1 Gbit/s": 125e6, "100 Mbit/s": 12.5e6, "10 Mbit/s": 1.25e6}
ASKED_AFTER = 5
"""Questions to each host after its load, beside the clock: its log, twice what it counted, its recording twice."""
BRANCHES = 100
"""Hosts of each coordinator in the tree that is modelled."""
STUDY = {
    "study": {"name": "simulated", "question": "What does a step cost?"},
    "target": {
        "kind": "url", "authorised": True, "owner": "this benchmark", "settings": {"url": "http://192.0.2.1"},
    },
    "workload": {"kind": "http"},
    "load": {"axis": "concurrency", "levels": [100]},
}  # fmt: skip
ENDPOINT = Endpoint("url", "192.0.2.1:80", {}, attached=True)


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one step. before_s: until the start, of it ready_s: until the slowest host is ready. after_s: from the end of
    the last load. unsure_ms: the largest bound of a clock. apart_ms: from the first host's beginning to the last one's,
    as it was. memory_bytes: 0 where it was not measured."""

    hosts: int
    before_s: float
    ready_s: float
    after_s: float
    out_bytes: int
    in_bytes: int
    messages: int
    cpu_s: float
    unsure_ms: float
    apart_ms: float
    memory_bytes: int = 0

    @property
    def coordinating_s(self) -> float:
        """What is neither the load nor the hosts' own work."""
        return self.before_s - self.ready_s + self.after_s


class Metered(Simulated):
    """Whose own CPU time is left out of the coordinating code's."""

    inside_s = 0.0

    def ask(self, host: str, question: str, values: Any) -> int:
        """See Simulated."""
        begun = time.process_time()
        try:
            return super().ask(host, question, values)
        finally:
            self.inside_s += time.process_time() - begun

    def arrived(self, until_s: float) -> Any:
        """See Simulated."""
        begun = time.process_time()
        try:
            return super().arrived(until_s)
        finally:
            self.inside_s += time.process_time() - begun


def load_over(world: Simulated) -> tuple[Coordinator, FleetLoad]:
    """The load of a study, driven by all hosts of this world."""
    study = validate(STUDY, name="simulated")
    options, axis = study.workload.options, study.load.axis
    inner = registry.make("http", options, Allowance(US), axis=axis, declared=study.workload.declared)
    coordinator = Coordinator(world, list(world.hosts))
    load = FleetLoad(study, inner, coordinator)
    load.expect(WARMUP_S)
    return coordinator, load


def step(world: Simulated) -> FleetDriver:
    """What the bench does in one step, until all that it needs has come. StepVoid."""
    coordinator, load = load_over(world)
    driver = load.start(ENDPOINT, float(len(world.hosts)), Path("step-1"), WINDOW_S)
    while not driver.wait(POLL_S):
        pass
    driver.requests()
    window_s = driver.begun.start_s + WARMUP_S, driver.begun.start_s + WINDOW_S
    driver.offered(*window_s)
    driver.moved_bytes(*window_s)
    for _ in coordinator.recorded(driver.begun.shares, {}):
        pass  # written to the disk
    return driver


def cost(kind: Kind, count: int, seed: int, middle: Middle, recorded: int, *, memory: bool = False) -> Cost:
    """Of a step over that number of hosts. AssertionError where what must hold does not."""
    hosts = hosts_of(kind, count, seed)
    for host in hosts:
        host.recorded_bytes = recorded
    world = Metered(hosts, middle, seed)
    if memory:
        tracemalloc.start()
    begun = time.process_time()
    try:
        driver = step(world)
        cpu_s = time.process_time() - begun - world.inside_s
        peak = tracemalloc.get_traced_memory()[1] if memory else 0
    finally:
        tracemalloc.stop()
    check(world, driver)
    starts = [host.start_s for host in hosts]
    over_s = max(host.start_s + WINDOW_S + host.over_s + host.back_s for host in hosts)
    clocks = [log.clock for log in driver.logs]
    return Cost(
        count, driver.begun.start_s - BEGUN_S, max(host.ready_s for host in hosts), world.time_s - over_s,
        world.counted.out_bytes, world.counted.in_bytes, 2 * world.counted.messages.total(), cpu_s,
        1000 * max(max(each.uncertainty_s, each.later_uncertainty_s) for each in clocks),
        1000 * (max(starts) - min(starts)), peak,
    )  # fmt: skip


def check(world: Simulated, driver: FleetDriver) -> None:
    """That what must hold of a step does. AssertionError."""
    merged, begun = driver.merged, driver.begun
    assert merged is not None
    assert set(begun.shares) == set(world.hosts) == {each.host for each in merged.drivers}, "all drive"
    for each in merged.drivers:
        host, clock = world.hosts[each.host], each.clock
        bound_s = max(clock.uncertainty_s, clock.later_uncertainty_s)
        drifted_s = abs(host.gains) * (begun.start_s - clock.at_s)
        assert abs(host.start_s - begun.start_s) <= clock.uncertainty_s + drifted_s + 1e-6, f"{host.name} begins then"
        assert abs(each.began_s - host.start_s) <= bound_s + 1e-6, f"{host.name} is seen to begin within its bound"
    check_all_along(merged, begun.start_s + WARMUP_S, begun.start_s + 0.9 * WINDOW_S)
    whole = np.concatenate([world.log(host) for host in world.hosts.values()])
    assert merged.operations == OPERATIONS
    assert np.array_equal(np.sort(merged.requests.latency_ms), np.sort(whole["latency_ms"])), "the requests of all"


def lost(kind: Kind, count: int, seed: int, question: str, how: str, middle: Middle) -> str:
    """What is wrong where a host is lost; "" where the step is void, as it must be, and all others have ended."""
    hosts = hosts_of(kind, count, seed)
    for host in hosts:
        host.recorded_bytes = 1000
    gone = hosts[count // 3]
    what = f"{count} hosts, {gone.name} {how} at {question}"
    try:
        step(Simulated(hosts, middle, seed, Loss(gone.name, question, how)))
    except StepVoid as error:
        if (error.host, error.reason) != (gone.name, "agent-lost"):
            return f"{what}: {error.reason} of {error.host}"
        left = [host.name for host in hosts if host is not gone and not host.cancelled]
        return f"{what}: {len(left)} were not told to end, {left[:3]}" if left else ""
    return f"{what}: the step was not void"


@dataclass(frozen=True, slots=True)
class Exponent:
    """cost ~ hosts ** value, with its 95 % interval."""

    value: float
    low: float
    high: float


def exponent(hosts: Sequence[int], costs: Sequence[float]) -> Exponent:
    """By least squares of the logarithms."""
    x, y = np.log(np.asarray(hosts, dtype=float)), np.log(np.asarray(costs, dtype=float))
    away = x - x.mean()
    slope = float((away * y).sum() / (away**2).sum())
    left = y - y.mean() - slope * away
    freedom = len(x) - 2
    error = math.sqrt(float((left**2).sum()) / freedom / float((away**2).sum()))
    half = float(quantile(0.975, freedom)) * error
    return Exponent(slope, slope - half, slope + half)


@dataclass(frozen=True, slots=True)
class Full:
    """The model of a link alone, or of messages alone: from `hosts` on, what comes after a window takes longer
    than the window. simulated_s: what the real code took after the load of these hosts, with both, 0 where these are
    too many to simulate; window_s: what the model says of it."""

    link: str
    hosts: int
    window_s: float
    simulated_s: float


def full(kind: Kind, of: Cost, middle: Middle, recorded: int, most: int) -> list[Full]:
    """Of messages, and of each link. Bytes that come per host do not depend on the number of hosts, nor do messages."""
    found = []
    each_s = EXCHANGES * PACE_S + 2 * ASKED_AFTER * middle.message_s
    bounds = {"messages": (math.inf, WINDOW_S / each_s)}
    bounds |= {name: (rate, WINDOW_S * rate / (of.in_bytes / of.hosts)) for name, rate in LINKS.items()}
    for name, (rate, bound) in bounds.items():
        hosts = math.floor(bound)
        simulated_s = 0.0
        if hosts <= most:
            simulated_s = cost(kind, hosts, 1, Middle(middle.message_s, rate), recorded).after_s
        found.append(Full(name, hosts, WINDOW_S, simulated_s))
    return found


@dataclass(frozen=True, slots=True)
class Tree:
    """The model of coordinators under a coordinator, each of `branches` hosts or fewer, beside one for all. messages,
    in_bytes: at the root, of one step; seconds: the CPU time of these messages, of one level after the other in the
    tree. histograms: what each sends up are merged histograms of `bins` bins and the recordings stay with it; else all
    request logs and recordings go through."""

    way: str
    hosts: int
    messages: int
    in_bytes: int
    seconds: float
    clocks_times: float


def trees(of: Cost, middle: Middle) -> list[Tree]:
    """One coordinator, a tree that passes everything on, and one that merges."""
    per_host, bytes_per_host = of.messages / of.hosts, of.in_bytes / of.hosts
    below = math.ceil(of.hosts / BRANCHES)
    root, branch = round(below * per_host), round(min(BRANCHES, of.hosts) * per_host)
    levels_s = (root + branch) * middle.message_s
    merged_bytes = below * len(OPERATIONS) * BINS * 2  # 16 bits a bin, before they are compressed
    return [
        Tree("one coordinator", of.hosts, of.messages, of.in_bytes, of.messages * middle.message_s, 1.0),
        Tree("tree, all logs pass", of.hosts, root, round(of.hosts * bytes_per_host), levels_s, 2.0),
        Tree("tree, histograms merged", of.hosts, root, merged_bytes, levels_s, 2.0),
    ]


def told(costs: Sequence[Cost], memory: Sequence[Cost]) -> None:
    """A table of the medians of the seeds, and the exponents."""
    print("| hosts | coordinating (s) | slowest host ready (s) | out (MB) | in (MB) | CPU (s) | memory (MiB) "
          "| clocks within (ms) | apart (ms) |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|")
    peaks = {each.hosts: each.memory_bytes / 2**20 for each in memory}
    for count in sorted({each.hosts for each in costs}):
        these = [each for each in costs if each.hosts == count]
        row = [float(np.median([getattr(each, name) for each in these])) for name in
               ("coordinating_s", "ready_s", "out_bytes", "in_bytes", "cpu_s", "unsure_ms", "apart_ms")]  # fmt: skip
        wait, ready, out, came, cpu, unsure, apart = row
        print(f"| {count:,} | {wait:.2f} | {ready:.1f} | {out / 1e6:.2f} | {came / 1e6:.2f} | {cpu:.2f} "
              f"| {peaks[count]:.1f} | {unsure:.2f} | {apart:.2f} |")  # fmt: skip


def exponents(costs: Sequence[Cost], memory: Sequence[Cost]) -> dict[str, Exponent]:
    """From FROM hosts on, by what it costs."""
    many = [each for each in costs if each.hosts >= FROM]
    if len({each.hosts for each in many}) < 3:
        return {}
    found = {
        name: exponent([each.hosts for each in many], [float(getattr(each, name)) for each in many])
        for name in ("coordinating_s", "out_bytes", "in_bytes", "cpu_s", "unsure_ms")
    }
    those = [each for each in memory if each.hosts >= FROM]
    return found | {"memory_bytes": exponent([each.hosts for each in those], [each.memory_bytes for each in those])}


def main() -> int:
    """1 where something that must hold does not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=lambda text: tuple(int(each) for each in text.split(",")), default=HOSTS)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--requests", type=int, default=200, help="of each host in a step, on the average")
    parser.add_argument("--message-us", type=float, default=1e6 * Middle().message_s)
    parser.add_argument("--recorded", type=int, default=150_000, help="bytes of each host's recording in a step")
    parser.add_argument("--measured", action="store_true", help="agents as processes, and the simulation beside them")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.measured:
        from fleet_measured import beside

        return beside(as_json=given.json)
    middle, result, wrong = Middle(given.message_us * 1e-6), dict[str, Any](), []
    for name, usual in KINDS.items():
        kind = Kind(**(asdict(usual) | {"requests": given.requests}))
        costs = [cost(kind, count, seed, middle, given.recorded) for count in given.hosts
                 for seed in range(given.seeds)]  # fmt: skip
        memory = [cost(kind, count, 0, middle, given.recorded, memory=True) for count in given.hosts]
        largest = max(costs, key=lambda each: each.hosts)
        links = full(kind, largest, middle, given.recorded, largest.hosts)
        grown, wide = exponents(costs, memory), trees(largest, middle)
        for count in LOST_OF:
            wrong += [lost(kind, count, seed, question, how, middle) for seed, question in enumerate(LOST_AT)
                      for how in LOSSES if count <= largest.hosts]  # fmt: skip
        result[name] = {
            "steps": [asdict(each) for each in costs], "memory": [asdict(each) for each in memory],
            "exponents": {what: asdict(each) for what, each in grown.items()},
            "links": [asdict(each) for each in links], "trees": [asdict(each) for each in wide],
        }  # fmt: skip
        if not given.json:
            print(f"\n{name}\n")
            told(costs, memory)
            say_models(grown, links, wide)
    tried, failed = len(wrong), [each for each in wrong if each]
    if given.json:
        print(json.dumps({"schema": "loadframe.fleet-cost/1", "kinds": result, "losses": tried, "failed": failed}))
    else:
        print(f"\nHosts lost in {tried} steps: {tried - len(failed)} void, the host named and all others ended.")
        print("\n".join(failed))
    return int(bool(failed))


def say_models(grown: dict[str, Exponent], links: Sequence[Full], wide: Sequence[Tree]) -> None:
    """What was fitted, and what is modelled."""
    for what, each in grown.items():
        print(f"  {what} ~ hosts ^ {each.value:.2f} (95 % interval {each.low:.2f} to {each.high:.2f}, from {FROM} on)")
    print("  Model: what comes after the load takes as long as its window from this number of hosts on:")
    for link in links:
        seen = f"; the real code took {link.simulated_s:.1f} s" if link.simulated_s else ""
        print(f"    {link.link} alone: {link.hosts:,} hosts ({link.window_s:g} s{seen})")
    print(f"  Model: coordinators of {BRANCHES} hosts each under one, {wide[0].hosts:,} hosts in all:")
    for tree in wide:
        print(f"    {tree.way}: {tree.messages:,} messages, {tree.in_bytes / 1e6:.1f} MB in, {tree.seconds:.1f} s "
              f"of CPU for messages, clocks within {tree.clocks_times:g} times as much")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
