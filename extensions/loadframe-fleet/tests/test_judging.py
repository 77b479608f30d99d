"""What speaks against a fleet."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadframe_fleet.check import fleet_json, problems, render_fleet
from loadframe_fleet.records import FleetCheck, FleetLink, HostCheck, HostClock, HostFacts, HostUse

FACTS = HostFacts("1.0", "3.11.7", "6.1", "x86_64", 4, 8 << 30, "boot-a", "c0de")
CLOCK = HostClock(0.001, 0.0002, 0.0004, 1e-6, -1e-5, 1.2e-5)
USE = HostUse(0.1, 0.0, "cron", 0.05)
A = HostCheck("a", ("driver",), "", FACTS, CLOCK, USE)
B = HostCheck("b", ("target",), "", replace(FACTS, boot="boot-b"), CLOCK, USE)
LINK = FleetLink("a", "b", "", 0.0001, 0.0002, 0.001, 200, 1e8, 1e8, 0.5, 0.95)


def test_nothing_speaks_against_a_quiet_fleet_of_one_version() -> None:
    assert problems([A, B], [LINK], FACTS) == ()


@pytest.mark.parametrize(
    ("host", "told", "refuses"),
    [
        (replace(B, facts=replace(B.facts, loadframe="0.9")), "Loadframe is 0.9 there and 1.0 on this machine", True),
        (
            replace(B, facts=replace(B.facts, python="3.13.1")),
            "Python is 3.13.1 there and 3.11.7 on this machine",
            True,
        ),
        (
            replace(B, facts=replace(B.facts, code="1e55")),
            "has the same version there as on this machine (1.0), but",
            True,
        ),
        (replace(B, facts=FACTS), "they run on one kernel", False),
        (replace(B, use=HostUse(1.0, 0.0, "make", 0.9)), "others use 25 % of its 4 CPUs, 'make' most", False),
        (replace(B, use=HostUse(0.0, 0.5, "", 0.0)), "other guests of its hardware take 12.5 %", False),
        (replace(B, clock=replace(CLOCK, offset_s=-3.0)), "its wall clock is 3 s behind", False),
        (replace(B, clock=replace(CLOCK, uncertainty_s=0.1, round_trip_s=0.2)), "known to 100 ms only", False),
        (
            replace(B, clock=replace(CLOCK, drift=0.01, drift_low=0.009, drift_high=0.011)),
            "its monotonic clock is 10,000 millionths off",
            True,
        ),
        (HostCheck("b", ("target",), "it is down\nTry it by hand"), "it is down", True),
    ],
)
def test_what_speaks_against_it_is_told(host: HostCheck, told: str, refuses: bool) -> None:
    (found,) = problems([A, host], [], FACTS)
    assert (told in found.fact, found.refuses, bool(found.remedy)) == (True, refuses, True)
    checked = FleetCheck("lab", (A, host), (), (found,))
    assert checked.fit is not refuses
    text = " ".join(render_fleet(checked).split())
    assert found.fact in text
    assert fleet_json(checked)["problems"][0]["fact"] == found.fact


def test_hosts_that_are_alike_among_themselves_and_not_with_this_machine_are_refused() -> None:
    """The verbs that measure refuse them, too: what coordinates is a part of it."""
    (found,) = problems([A, B], [], replace(FACTS, loadframe="1.1"))
    assert found.refuses and found.about == "a, b" and "Loadframe is 1.0 there and 1.1 on this machine" in found.fact


def test_a_fleet_that_drives_nothing_is_refused_and_one_without_a_target_is_told_what_it_lacks() -> None:
    (found,) = problems([B], [], FACTS)
    assert found.refuses and found.about == "b" and "no host has the role driver" in found.fact, "measure refuses it"
    (found,) = problems([A], [], FACTS)
    assert not found.refuses and "no host has the role target" in found.fact and "no link" in found.fact
    alone = replace(A, roles=("driver", "target"))
    assert problems([alone], [], FACTS) == ()


def test_an_offset_that_may_be_none_is_not_told() -> None:
    """200 ms there and back leave the clock unsure; a second off is not proved by 1.05 s give or take 0.1 s."""
    clock = replace(CLOCK, offset_s=1.04, uncertainty_s=0.045)
    assert problems([A, replace(B, clock=clock)], [], FACTS) == ()


def test_a_link_that_was_not_measured_refuses() -> None:
    (found,) = problems([A, B], [FleetLink("a", "b", "Connection refused")], FACTS)
    assert found.refuses and found.about == "a to b"


def test_the_text_says_where_encryption_has_set_the_figure() -> None:
    text = render_fleet(FleetCheck("lab", (A, B), (LINK,), ()))
    assert "fit to be loaded" in text and "95.4 MiB/s*" in text and "encryption used nearly a whole CPU" in text
