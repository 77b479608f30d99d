"""Four drivers and two targets, each a namespace with an agent, a state folder and an address of its own, one driver
reached by a real SSH daemon: what is said of a step is said of the right hosts, and four drivers load as one does."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import network
import pytest
from daemons import SSHD, ssh_daemon
from network import Network
from stations import Laboratory, Station, paced

DRIVERS = ("one", "two", "three", "four")
TARGETS = ("north", "south")
BESIDE_ONE = Path(__file__).with_name("beside_one.py")

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(not network.possible(), reason="no network namespaces may be made here"),
    pytest.mark.skipif(SSHD is None, reason="no sshd is installed"),
]


@contextmanager
def laboratory(folder: Path, loaded: str, pace_s: float, size: int = 100, rate: str = "") -> Iterator[Laboratory]:
    """A service on the target `loaded`; rate: of the link of that target. The driver four is reached by ssh."""
    with ExitStack() as stack:
        lan = stack.enter_context(Network(["coordinator", *TARGETS, *DRIVERS]))
        if rate:
            lan.slow_down(loaded, rate)
        keys = folder / "ssh"
        keys.mkdir(mode=0o700)
        config = stack.enter_context(ssh_daemon(lan, "four", keys))
        stations = [Station(name, folder / name, address=lan.address(name), by=lan.within(name)) for name in DRIVERS]
        stations[-1].ssh = "laboratory-four"
        stations += [Station(name, folder / name, ["target"], lan.address(name), lan.within(name)) for name in TARGETS]
        port = stack.enter_context(paced(pace_s, lan.address(loaded), lan.within(loaded), size))
        lab = Laboratory(folder, stations, lan.address(loaded), port, lan.within("coordinator"))
        lab.about = f'ssh_config = "{config}"'
        stack.callback(lab.close)
        yield lab


@pytest.mark.measures
def test_four_drivers_give_what_one_gives_with_four_times_the_connections(open_folder: Path) -> None:
    with laboratory(open_folder, "north", 0.03) as lab:
        words = [*lab.within, sys.executable, BESIDE_ONE, lab.study("[8]", "700ms", blocks=4), lab.fleet()]
        done = subprocess.run([*words, lab.folder / "runs"], capture_output=True, text=True, timeout=180, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        found = json.loads(done.stdout)
        assert found["found"]["drivers"] == list(DRIVERS) and found["found"]["fewer"] == ["one"]
        assert found["low"] <= 1 <= found["high"], found
        assert found["found"]["limit"] in ("target", "not proven"), "in company four blocks may not tell"
        for step in found["steps"]:
            requests = {each["host"]: each["requests"] for each in step["drivers"]}
            assert set(requests) in ({"one"}, set(DRIVERS))
            shares = [each * len(requests) / sum(requests.values()) for each in requests.values()]
            assert shares == pytest.approx([1] * len(shares), rel=0.4), "each gave its part"
            assert step["target"] == "north" and set(step["metrics"]) == {*requests, *TARGETS}
            assert step["metrics"]["north"]["target.cpu.cores"] > 0
            assert "target.cpu.cores" not in step["metrics"]["south"], "the other target is not it"
        lab.await_as_before()
