"""One step over 1 to 16 agents that are processes, and the simulation beside it, for benchmarks/fleet.py --measured.

Each agent is in a network namespace of its own where these may be made (network.py of the extension's tests), with its
worker, its recorder and a driver of one connection; the target answers each request after PACE_S. The coordinator
speaks to them through pipes, so that no link of its own is measured. The simulation is told what was measured with one
agent: round trip, CPU time of a message, bytes of the log and of the recording. With more it predicts.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path += [str(Path(__file__).parents[1] / "tests" / each) for each in ("fleet", "commands")]

from network import Network, possible
from stations import Station, paced

from fleet_simulated import BEGUN_S, Kind, Middle, Simulated, hosts_of
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.model import Endpoint
from loadframe.study import Study, validate
from loadframe.workloads import registry
from loadframe_fleet.connection import Agent
from loadframe_fleet.coordinator import Coordinator
from loadframe_fleet.declaration import HostTable
from loadframe_fleet.load import FleetDriver, FleetLoad
from loadframe_fleet.transport import Arrived, OverAgents, Transport
from loadframe_fleet.wire import written

COUNTS = (1, 2, 4, 8, 16)
PACE_S = 0.02
WINDOW_S = 3.0
WARMUP_S = 0.5
EXCHANGES_MEASURED = 300
"""For the CPU time of a message."""
SET_UP_WITHIN_S = 120.0
LOCAL_BYTES_PER_S = 1e9
"""Of a pipe."""


class Noted:
    """A transport that also notes when each question was asked and answered, and its bytes."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self._asked: dict[int, str] = {}
        self.asked_s: dict[str, list[float]] = {}
        self.answered_s: dict[str, list[float]] = {}
        self.out_bytes = self.in_bytes = 0

    def now_s(self) -> float:
        """See Transport."""
        return self._inner.now_s()

    def ask(self, host: str, question: str, values: Mapping[str, Any]) -> int:
        """See Transport."""
        self.asked_s.setdefault(question, []).append(self._inner.now_s())
        number = self._inner.ask(host, question, values)
        self._asked[number] = question
        self.out_bytes += len(written({"id": number, "ask": question, **values}))
        return number

    def arrived(self, until_s: float) -> Arrived | None:
        """See Transport."""
        came = self._inner.arrived(until_s)
        if came is not None and came.answer is not None:
            self.answered_s.setdefault(self._asked[came.number], []).append(came.at_s)
            self.in_bytes += len(written({"id": came.number, "answer": dict(came.answer)}))
        return came


@dataclass(frozen=True, slots=True)
class Point:
    """Of one step. clocks_s: of the exchanges before it; after_s: from the last driver's end until all has come.
    message_s: CPU time of this process for one message; 0 in the simulation."""

    hosts: int
    clocks_s: float
    after_s: float
    out_bytes: int
    in_bytes: int
    unsure_ms: float
    apart_ms: float
    message_s: float


def study_of(url: str) -> Study:
    """One connection for each host."""
    target = {"kind": "url", "authorised": True, "owner": "this benchmark", "settings": {"url": url}}
    return validate(
        {
            "study": {"name": "measured", "question": "What does a step cost?"}, "target": target,
            "workload": {"kind": "http"}, "load": {"axis": "concurrency", "levels": [1]},
        },
        name="measured",
    )  # fmt: skip


def step(study: Study, noted: Noted, coordinator: Coordinator, endpoint: Endpoint, name: str) -> FleetDriver:
    """As of the bench, with what was recorded since the last one."""
    inner = registry.make(
        "http", study.workload.options, Allowance(US), axis="concurrency", declared=study.workload.declared
    )
    load = FleetLoad(study, inner, coordinator)
    load.expect(WARMUP_S)
    driver = load.start(endpoint, float(len(coordinator.drivers)), Path(name), WINDOW_S)
    while not driver.wait(0.2):
        pass
    driver.requests()
    return driver


def point(noted: Noted, driver: FleetDriver, message_s: float) -> Point:
    """From what was noted of a step."""
    start_s = noted.asked_s["start"][0]
    before = [at for at in noted.answered_s["clock"] if at <= start_s]
    merged = driver.merged
    assert merged is not None
    unsure_s = max(max(log.clock.uncertainty_s, log.clock.later_uncertainty_s) for log in driver.logs)
    return Point(
        len(driver.logs), max(before) - noted.asked_s["clock"][0],
        max(noted.answered_s["read"]) - max(noted.answered_s["ended"]), noted.out_bytes, noted.in_bytes,
        1000 * unsure_s, 1000 * merged.apart_s, message_s,
    )  # fmt: skip


def measured(count: int, folder: Path) -> tuple[Point, Mapping[str, float]]:
    """A step over that number of agents, and what the simulation is to be told of them."""
    names = [f"h{number}" for number in range(count)]
    with ExitStack() as stack:
        lan = stack.enter_context(Network(["target", *names])) if possible() else None
        address, within = (lan.address("target"), lan.within("target")) if lan else ("127.0.0.1", [])
        port = stack.enter_context(paced(PACE_S, address, within))
        stations = [Station(name, folder / name, by=lan.within(name) if lan else ("env",)) for name in names]
        tables = [HostTable(**tomllib.loads(each.row())["host"][0]) for each in stations]
        agents = {table.name: stack.enter_context(Agent(table)) for table in tables}
        study, transport = study_of(f"http://{address}:{port}"), OverAgents(agents)
        endpoint = Endpoint("url", f"{address}:{port}", {}, attached=True)
        told = {"study": study.resolved(), "folder": "/", "drives": True, "environment": {}}
        first = Coordinator(transport, names)
        for name in names:  # one machine has all of them: at once they would keep each other from beating
            first.ask_all({name: ("set_up", {**told, "name": name})}, SET_UP_WITHIN_S, "not-ready")
        step(study, Noted(transport), first, endpoint, "warm")
        offsets = dict.fromkeys(names, 0)
        for name, piece in first.recorded(names, offsets):
            offsets[name] += len(piece)
        begun_s = time.process_time()
        first.clocks(names, EXCHANGES_MEASURED)
        message_s = (time.process_time() - begun_s) / (2 * EXCHANGES_MEASURED * count)
        noted = Noted(transport)
        coordinator = Coordinator(noted, names)
        driver = step(study, noted, coordinator, endpoint, "step-1")
        recorded = sum(len(piece) for _, piece in coordinator.recorded(names, offsets)) / count
        found = point(noted, driver, message_s)
        trips = [log.clock.round_trip_s for log in driver.logs]
        return found, {
            "round_trip_s": sorted(trips)[count // 2], "requests": sum(len(log.compressed) for log in driver.logs),
            "made": len(driver.requests()) / count, "recorded": recorded,
        }  # fmt: skip


def simulated(count: int, alone: Mapping[str, float], message_s: float) -> Point:
    """The same step over simulated hosts like the one that was measured."""
    kind = Kind(
        round_trip_s=max(1e-6, alone["round_trip_s"] - 2 * message_s), spread=0.0, jitter=1.0,
        requests=round(alone["made"]), bytes_per_s=LOCAL_BYTES_PER_S,
    )  # fmt: skip
    hosts = hosts_of(kind, count, 1)
    for host in hosts:
        host.recorded_bytes = round(alone["recorded"])
    noted = Noted(Simulated(hosts, Middle(message_s, LOCAL_BYTES_PER_S), 1))
    coordinator = Coordinator(noted, [host.name for host in hosts])
    endpoint = Endpoint("url", "10.77.0.1:40000", {}, attached=True)
    driver = step(study_of("http://10.77.0.1:40000"), noted, coordinator, endpoint, "step-1")
    for _ in coordinator.recorded(coordinator.drivers, {}):
        pass
    assert driver.begun.start_s > BEGUN_S
    return point(noted, driver, 0.0)


def beside(*, as_json: bool) -> int:
    """Measure, simulate, and print both."""
    points: list[tuple[Point, Point]] = []
    alone: Mapping[str, float] = {}
    message_s = 0.0
    for count in COUNTS:
        with tempfile.TemporaryDirectory(prefix="loadframe-fleet-") as name:
            Path(name).chmod(0o755)
            found, of_them = measured(count, Path(name))
        if not alone:
            alone, message_s = of_them, found.message_s
        points.append((found, simulated(count, alone, message_s)))
        print(f"{count} measured", file=sys.stderr, flush=True)
    if as_json:
        rows = [{"measured": asdict(one), "simulated": asdict(other)} for one, other in points]
        print(json.dumps({"schema": "loadframe.fleet-measured/1", "alone": alone, "message_s": message_s, "of": rows}))
        return 0
    where = "network namespaces" if possible() else "processes on one address"
    about = f"round trip {1e6 * alone['round_trip_s']:.0f} us, {1e6 * message_s:.0f} us of CPU for a message"
    print(f"Agents in {where}, and simulated with what was measured of one agent: {about}, "
          f"{alone['recorded'] / WINDOW_S:,.0f} bytes/s recorded\n")  # fmt: skip
    print("| hosts | clocks (ms) | simulated | after the load (ms) | simulated | out (kB) | simulated | in (kB) "
          "| simulated | clocks within (ms) | simulated | apart (ms) |")  # fmt: skip
    print(f"|{'---|' * 12}")
    for one, other in points:
        print(row(one, other))
    return 0


def row(one: Point, other: Point) -> str:
    """Of the table."""
    pairs: Sequence[tuple[str, float, int]] = (
        ("clocks_s", 1e3, 1), ("after_s", 1e3, 1), ("out_bytes", 1e-3, 1), ("in_bytes", 1e-3, 1), ("unsure_ms", 1, 3),
    )  # fmt: skip
    cells = [f"{factor * getattr(each, name):.{digits}f}" for name, factor, digits in pairs for each in (one, other)]
    return f"| {one.hosts} | {' | '.join(cells)} | {one.apart_ms:.2f} |"
