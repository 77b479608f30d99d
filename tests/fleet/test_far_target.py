"""A study whose servers are started on another host: in its cages there, on the one address that the fleet file names,
loaded by drivers over the network."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import network
import pytest
from network import Network
from stations import Laboratory, Station

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


def test_it_is_started_there_and_measured_over_the_network(lab: Laboratory) -> None:
    found = lab.measured("[4]", verb="measure", study=STUDY)
    assert [each["load"] for each in found["points"]] == [4, 8]
    lab.await_as_before()
