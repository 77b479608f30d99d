"""What the links of a step had beside the load, from readings of interfaces, and where that cannot be seen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from loadframe.model.fleet import ClockInStep
from loadframe.recording.frames import Facts, Tick
from loadframe.recording.snapshot_machine import INTERFACES
from loadframe_fleet.bench import Between, Loading, link_uses
from loadframe_fleet.hosts import Way
from loadframe_fleet.looking import interface_to

AHEAD = {"a": 1000.0, "b": -500.0, "north": 20.0}
HEAD = b"Inter-|   Receive |  Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes packets\n"
FACTS = Facts(0.1, 100, 2, 4096, 0.0, 0.0, 0.0)
ROUTES = """Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
eth1\t00004D0A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
eth2\t00004D0A\t00000000\t0000\t0\t0\t0\tFFFFFFFF\t0\t0\t0
"""


def dev(received: int, sent: int, packets: int) -> bytes:
    counts = f"{received} {packets} 0 0 0 0 0 0 {sent} {packets} 0 0 0 0 0 0"
    return HEAD + f"    lo: 9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0\n  eth0: {counts}\n".encode()


def clock(ahead_s: float) -> ClockInStep:
    return ClockInStep(ahead_s, 0.001, 0.002, 0.0, ahead_s, 0.001, 20.0, 12)


def ticks(host: str, received: int, sent: int, packets: int = 100) -> list[Tick]:
    """At 0.5, 1 and 4 s of our clock: as much each second, from 0.5 s on."""
    return [
        Tick(
            at_s + AHEAD[host], at_s,
            {INTERFACES: dev(7 + int(received * at_s), 7 + int(sent * at_s), 7 + int(packets * at_s))}, FACTS,
        )
        for at_s in (0.5, 1.0, 4.0)
    ]  # fmt: skip


def loading(more: Mapping[str, list[Tick]] | None = None) -> Loading:
    """From 0.9 to 4.1 s; 100 answers of 10 kB each second, which two drivers share; others send 3 MB/s to b."""
    seen = {"a": ticks("a", 530_000, 9), "b": ticks("b", 3_530_000, 9), "north": ticks("north", 9, 4_060_000)}
    return Loading(
        0.9, 4.1, 100.0, 2.0, {"a": 2, "b": 2}, {host: clock(ahead) for host, ahead in AHEAD.items()},
        {**seen, **(more or {})},
    )  # fmt: skip


def ways(**more: Way) -> dict[str, Way]:
    return {**{host: Way("eth0", host) for host in AHEAD}, **more}


def bodies(between: Between) -> dict[str, int]:
    """500 kB came to each driver in each second of our clock."""
    assert all(from_s - AHEAD[host] == pytest.approx(1.0) for host, (from_s, _) in between.items()), "between readings"
    return {host: int(500_000 * (to_s - from_s)) for host, (from_s, to_s) in between.items()}


def test_the_link_that_others_use_is_told_apart_from_those_that_carry_the_load_alone() -> None:
    found = link_uses(loading(), ways(), "north", bodies)
    assert not any(use.why_not for use in found.values())
    assert found["a"].load_bytes_per_s == pytest.approx(500_000)
    for host, others in (("a", 0.0), ("b", 3e6), ("north", 3e6)):
        use = found[host]
        assert abs(use.others_bytes_per_s - others) <= use.error_bytes_per_s + 25_000
    assert found["a"].others_bytes_per_s - found["a"].error_bytes_per_s <= 0
    assert found["b"].others_bytes_per_s - found["b"].error_bytes_per_s > 2.9e6


@pytest.mark.parametrize(
    ("way", "words"),
    [
        (Way("lo", "b"), "does not leave the machine"),
        (Way("", "b"), "is not known"),
        (Way("eth0", "a"), "other hosts of the fleet have the same interfaces"),
        (Way("eth7", "b"), "was read less than twice"),
    ],
)
def test_where_it_cannot_be_seen_it_is_said_why(way: Way, words: str) -> None:
    found = link_uses(loading(), ways(b=way), "north", bodies)
    assert words in found["b"].why_not and found["b"].others_bytes_per_s == 0


def test_a_driver_that_counts_no_bytes_and_an_interface_that_was_reset_say_nothing() -> None:
    found = link_uses(loading(), ways(), "north", lambda _: {})
    assert {use.why_not for use in found.values()} == {"a driver does not count the bytes of its answers"}
    reset = loading({"a": [*ticks("a", 530_000, 9)[:2], ticks("a", 1, 1)[2]]})
    assert "less than twice" in link_uses(reset, ways(), "north", bodies)["a"].why_not
    assert link_uses(loading(), ways(), None, bodies) == {}


def test_the_interface_is_that_of_the_narrowest_route_that_is_up(tmp_path: Path) -> None:
    (tmp_path / "proc/net").mkdir(parents=True)
    (tmp_path / "proc/net/route").write_text(ROUTES)
    assert interface_to("10.77.0.9", tmp_path) == "eth1"
    assert interface_to("10.77.0.0", tmp_path) == "eth1", "a route that is down is none"
    assert interface_to("192.0.2.1", tmp_path) == "eth0"
    assert interface_to("127.0.0.1", tmp_path) == "lo"
    assert interface_to("2001:db8::1", tmp_path) == "" and interface_to("192.0.2.1", tmp_path / "none") == ""
