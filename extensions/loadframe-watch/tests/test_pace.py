"""How often a watch does a part of its work, and which limits a sample judges."""

from __future__ import annotations

import pytest

from loadframe_watch.ledger import Ledger, Part

PLACES = {"name": "places", "use": "in_use", "ceiling": "size", "title": "", "loud": False}


@pytest.mark.parametrize(
    ("cpu_s", "waits_s"),
    [
        (0.0, 10.0),
        (0.0008, 20.0),  # the smaller share
        (0.008, 60.0),  # no rarer than once a minute, as long as it is below the larger share
        (0.04, 100.0),  # the larger share
    ],
)
def test_what_costs_more_is_done_less_often(cpu_s: float, waits_s: float) -> None:
    part = Part(10.0, 0.0004, thrifty_share=0.00004, thrifty_s=60.0)
    assert part.due(100.0)
    part.cost(100.0, cpu_s)
    assert not part.due(100.0 + waits_s - 0.01)
    assert part.due(100.0 + waits_s + 0.01)


def test_a_sample_judges_the_limits_whose_use_it_has() -> None:
    ledger = Ledger([PLACES], ["service"])
    first = ledger.quick({"service.in_use": 3.0, "service.size": 4.0})
    assert first == ({"service.places": 0.75}, {})
    assert ledger.quick({"target.open_files": 5.0}) == ({}, {})
    both = {"service.in_use": 4.0, "service.size": 4.0, "target.open_files": 5.0, "target.open_files.limit": 20.0}
    assert ledger.quick(both)[0] == {"service.places": 1.0, "process.open_files": 0.25}
    assert ledger.quick({**both, "service.size": 8.0})[0] == {"service.places": 0.5, "process.open_files": 0.25}


def test_a_ceiling_that_a_sample_lacks_is_the_one_of_the_last_look_at_all_limits() -> None:
    ledger = Ledger([], ["process"])
    values = {"target.cpu.cores": 1.0}
    assert ledger.quick(values) == ({}, {})
    ledger.slow = {"target.cpus.allowed": 4.0}
    assert set(ledger.quick(values)[0].values()) == {0.25}
