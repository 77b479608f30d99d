"""All drivers of a fleet beside fewer of them, over namespaces that stand in for hosts: what is full is named."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import network
import pytest
from network import Network
from stations import Laboratory, Station, paced

from loadframe.model import Latency, Step
from loadframe.reporting.verdict_words import drivers_sentence
from loadframe_fleet.over import judge

NAMES = ("one", "two")
made_here = pytest.mark.skipif(not network.possible(), reason="no network namespaces may be made here")


@contextmanager
def laboratory(folder: Path, pace_s: float, size: int, rate: str = "") -> Iterator[Laboratory]:
    """Two drivers and a target, each in a namespace of its own. size: bytes of a page. rate: of the target's link."""
    with ExitStack() as stack:
        lan = stack.enter_context(Network(["coordinator", "target", *NAMES]))
        if rate:
            lan.slow_down("target", rate)
        address = lan.address("target")
        port = stack.enter_context(paced(pace_s, address, lan.within("target"), size))
        target = Station("target", folder / "target", ["target"], address, lan.within("target"))
        drivers = [Station(name, folder / name, by=lan.within(name)) for name in NAMES]
        lab = Laboratory(folder, [*drivers, target], address, port, lan.within("coordinator"), network=lan)
        stack.callback(lab.close)
        yield lab


@pytest.mark.server
@pytest.mark.measures
@made_here
def test_a_full_link_is_named_with_its_host(open_folder: Path) -> None:
    """The link is full at 200 pages a second, for which drivers and service need little of a CPU."""
    with laboratory(open_folder, 0.002, 10_000, rate="16mbit") as lab:
        whole = lab.measured("[3, 24]", "1s", blocks=3, verb="investigate")
        found = whole["drivers"]
        assert found["drivers"] == list(NAMES) and found["fewer"] == list(NAMES[:1])
        assert found["limit"] == "link", found
        assert 1.2e6 < found["moved_bytes_per_s"] < 2.2e6 and 1.5e6 < found["link_bytes_per_s"] < 2.5e6
        assert whole["outcome"]["kind"] == "link-full" and whole["next_limit"] is None
        assert not [trial for one in whole["rounds"] for trial in one["tried"]]
        seen = [each for each in whole["fleet_limits"] if each["limit"]["id"] != "network.others"]
        limits = {(each["host"], each["driver"], each["limit"]["id"]): each["limit"] for each in seen}
        hosts = {(host, "", name) for host in (*NAMES, "target") for name in ("cpu.saturated", "system.memory")}
        links = {("target", driver, "network.link") for driver in ("", *NAMES)}
        assert limits.keys() == hosts | links
        assert limits["target", "", "network.link"]["status"] in ("near", "reached")
        for driver in NAMES:
            assert limits["target", driver, "network.link"]["status"] == "free", "each has a half of what it carries"
        assert {finding["host"] for one in whole["rounds"] for finding in one["findings"]} <= {"target", *NAMES}
        lab.await_as_before()


SENDER = """
import socket, sys, time
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as link:
    while True:
        link.sendall(bytes(100_000))
        time.sleep(0.05)
"""
RECEIVER = """
import socket, sys
with socket.create_server((sys.argv[1], 0)) as server:
    print(server.getsockname()[1], flush=True)
    link, _ = server.accept()
    while link.recv(1 << 16):
        pass
"""


@contextmanager
def stranger(lan: Network, source: str, sink: str) -> Iterator[None]:
    """Nearly 2 MB/s from one host to another, which are not of any load."""
    words = [*lan.within(sink), sys.executable, "-c", RECEIVER, lan.address(sink)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as receives:
        assert receives.stdout is not None
        port = receives.stdout.readline().strip()
        words = [*lan.within(source), sys.executable, "-c", SENDER, lan.address(sink), port]
        with subprocess.Popen(words) as sends:
            try:
                yield
            finally:
                sends.kill()
                receives.kill()


@pytest.mark.server
@pytest.mark.measures
@made_here
def test_traffic_of_others_is_told_with_the_link_that_has_it(open_folder: Path) -> None:
    with laboratory(open_folder, 0.002, 20_000, rate="64mbit") as lab, stranger(lab.network, "target", "one"):
        found = lab.measured("[4]", "3s", blocks=2)
        rows = {each["driver"]: each for each in found["fleet_limits"] if each["id"] == "network.others"}
        assert rows.keys() == {"one", "two", ""} and not any(each["unseen"] for each in rows.values())
        for driver in ("one", ""):
            one = rows[driver]
            assert one["use"] - one["error"] < 2.0e6 and one["use"] + one["error"] > 1.2e6, one
        assert rows["two"]["use"] - rows["two"]["error"] <= 0.05e6, rows["two"]
        told = [words for words in found["warnings"] if "not of the load" in words]
        assert any("the link from target to one" in words for words in told)
        assert not any("to two" in words for words in told)


def steps(rates: dict[str, Sequence[float]], moved: float) -> list[Step]:
    """Of treatments by name, one step in each block."""
    return [
        Step(
            number=block, round=None, block=block, treatment=name, level=12.0, started_s=0.0, ended_s=1.0,
            window_start_s=0.0, window_end_s=1.0, requests=int(rate), errors=0, throughput=rate, batches=(rate,),
            latency=Latency(1.0, 0.9, 2.0, 3.0, 40.0), waiting_share=0.0, operations=(),
            metrics={"workload.bytes": moved}, purpose="proof",
        )
        for name, found in rates.items()
        for block, rate in enumerate(found, start=1)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("everyone", "link", "limit", "words"),
    [
        ([300, 302, 299], 2e6, "drivers", "add one"),
        ([200, 202, 199], 2e6, "target", "do not limit this curve"),
        ([200, 202, 199], 1.1e6, "link", "the link from the target is full"),
        ([205, 206, 204], 2e6, "target", "do not limit this curve"),
        ([200, 202, 199], None, "target", "do not limit this curve"),
        ([200, 320, 150], 1.1e6, "not proven", "not proven"),
    ],
)
def test_what_they_say(everyone: Sequence[float], link: float | None, limit: str, words: str) -> None:
    taken = steps({"A": everyone, "B": [200, 201, 200]}, 1e6)
    found = judge(taken, "A", "B", ("a", "b", "c"), ("a", "b"), link)
    assert found.limit == limit
    assert words in drivers_sentence(found).lower() and "times (95 % interval" in drivers_sentence(found)
