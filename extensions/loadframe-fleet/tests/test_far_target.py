"""A study whose servers are started on another host: in its cages there, on the one address that the fleet file names,
loaded by drivers over the network."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import network
import pytest
from network import Network
from stations import Laboratory, Station

from waiting import await_that

DRIVERS = ("one", "two")
pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(not network.possible(), reason="no network namespaces may be made here"),
]
STUDY = """
[study]
name = "cache"
question = "How much does it serve?"
[target]
kind = "varnish"
[target.settings]
storage_kind = "file"
storage_size = "256MiB"
vsl_space = "8MiB"
[cage]
memory = "256MiB"
[workload]
kind = "http"
[workload.options]
smallest_bytes = 65536
connections = 5
compared = 4
[load]
axis = "working_set"
levels = [4, 8]
[measure]
window = "600ms"
blocks = { min = 2, max = 2 }
budget = "90s"
profile = "off"
[[alternative]]
name = "nginx"
target = { kind = "nginx-cache" }
"""


@pytest.fixture
def lan() -> Iterator[Network]:
    with Network(["coordinator", "north", *DRIVERS]) as made:
        yield made


@pytest.fixture
def lab(lan: Network) -> Iterator[Laboratory]:
    """In a folder with a short name: sockets of servers are in it."""
    with tempfile.TemporaryDirectory(prefix="lf", dir="/var/tmp") as place:
        folder = Path(place)
        folder.chmod(0o755)
        stations = [Station("north", folder / "north", ["target"], lan.address("north"), lan.within("north"))]
        stations += [Station(name, folder / name, by=lan.within(name)) for name in DRIVERS]
        made = Laboratory(folder, stations, within=lan.within("coordinator"))
        yield made
        made.close()


OWN = {"127.0.0.1", "[::1]"}


def listening(lan: Network, host: str) -> set[str]:
    """Addresses on which something listens there."""
    said = subprocess.run([*lan.within(host), "ss", "-Hltn"], check=True, capture_output=True, text=True).stdout
    return {line.split()[3].rpartition(":")[0] for line in said.splitlines()}


@pytest.mark.long
def test_it_is_started_there_and_measured_over_the_network(lab: Laboratory) -> None:
    found = lab.measured("[4]", verb="measure", study=STUDY)
    assert [each["load"] for each in found["points"]] == [4, 8]
    (*_, run) = sorted((lab.folder / "runs").iterdir())
    steps = [json.loads(line) for line in (run / "steps.jsonl").read_text(encoding="utf-8").splitlines()]
    for step, of_fleet in zip(steps, lab.steps, strict=True):
        assert step["errors"] == 0 and step["requests"] > 0, "every byte of an answer is known on the driver"
        shares = {each["host"]: each["share"] for each in of_fleet["drivers"]}
        assert shares in ({"one": 3, "two": 2}, {"one": 5}), "the connections are shared out"
        assert of_fleet["target"] == "north" and set(of_fleet["metrics"]) == {"north", *shares}
    recorded = [step["metrics"] for step in steps if "recorder-late" not in step["flags"]]
    assert recorded, "the recorder had a CPU in some window"
    assert {each["target.cage.memory.limit"] for each in recorded} == {256 << 20}, "it is in its cage there"
    assert all(each["target.cpu.cores"] > 0 for each in recorded)
    assert any("varnish.requests" in step["metrics"] for step in steps)
    lab.await_as_before()


@pytest.mark.measures
def test_nothing_is_left_after_ten_seconds_where_the_coordinator_is_killed(lab: Laboratory, lan: Network) -> None:
    process = lab.begin("[4]", study=STUDY.replace("600ms", "60s"))
    lab.await_load()
    assert listening(lan, "north") == {lan.address("north"), "127.0.0.1"}, "the origin is its host's alone"
    assert all(not listening(lan, name) - OWN for name in (*DRIVERS, "coordinator"))
    assert [bool(each.processes("varnishd")) for each in lab.stations] == [True, False, False]
    lab.kill(process)
    await_that(lambda: not listening(lan, "north"), "no server on north, nor an origin", 1.0)


@pytest.mark.long
def test_a_server_that_dies_there_is_told_with_its_host(lab: Laboratory) -> None:
    process = lab.begin("[4]", study=STUDY.replace("600ms", "60s"))
    lab.await_load()
    for pid in lab.stations[0].processes("varnishd"):
        os.kill(pid, signal.SIGKILL)
    out, said = process.communicate(timeout=90)
    assert process.returncode == 1, out + said
    error = json.loads(out)
    assert error["kind"] == "TargetError" and "host 'north': Varnish" in error["message"]
    lab.await_as_before()


@pytest.mark.long
def test_its_agent_cleans_up_after_a_worker_that_is_killed(lab: Laboratory, lan: Network) -> None:
    process = lab.begin("[4]", study=STUDY.replace("600ms", "60s"))
    lab.await_load()
    (worker,) = lab.stations[0].processes("loadframe_fleet.worker")
    os.kill(worker, signal.SIGKILL)
    out, said = process.communicate(timeout=90)
    assert process.returncode == 1, out + said
    assert "host 'north'" in json.loads(out)["message"]
    lab.await_as_before()
    await_that(lambda: not listening(lan, "north"), "no server on north, nor an origin")
