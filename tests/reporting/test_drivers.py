"""What an investigation says where the drivers of a fleet, or the link to them, are the limit, and where not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadframe.diagnosis import conclusion
from loadframe.model import DriversLimit, FleetDrivers, Investigation, Verdict
from loadframe.reporting.json_shapes import investigation_json
from loadframe.reporting.reports import render_page, render_text


def beside(limit: DriversLimit) -> FleetDrivers:
    verdict = Verdict(1.49, 1.46, 1.52, "better", 5, "paired blocks")
    return FleetDrivers(24.0, ("a", "b", "c"), ("a", "b"), limit, 1.8e6, 2e6, verdict=verdict)


def ended(inv: Investigation, limit: DriversLimit) -> Investigation:
    """As it is told where that was compared and no change was tried."""
    untried = tuple(replace(one, tried=()) for one in inv.rounds[:1])
    outcome = conclusion.outcome(untried, drivers=beside(limit))
    return replace(
        inv, rounds=untried, after=None, variants=(), ladder=(), next_limit=None, outcome=outcome, drivers=beside(limit)
    )


@pytest.mark.parametrize(
    ("limit", "kind", "first", "then"),
    [
        ("drivers", "driver-limited", "The 3 drivers are the bottleneck", "Add a driver to the fleet"),
        ("link", "link-full", "The link from the target is full", "Give the target a faster link"),
    ],
)
def test_what_limits_before_the_target_is_the_answer(
    farm: Investigation, limit: DriversLimit, kind: str, first: str, then: str
) -> None:
    inv = ended(farm, limit)
    assert inv.outcome.kind == kind
    said = " ".join(render_text(inv, details=True).split())
    assert said.startswith(first) and then in said
    for finding in inv.rounds[0].findings:
        assert f"Cause {finding.title}" not in said, "what the curve shows is not the target's"
    assert first in render_page(inv)
    assert investigation_json(inv)["drivers"]["limit"] == limit


def test_drivers_that_do_not_limit_are_told_and_change_nothing_else(farm: Investigation) -> None:
    told = replace(farm, drivers=beside("target"))
    assert conclusion.outcome(told.rounds, drivers=told.drivers) == conclusion.outcome(told.rounds)
    said, before = render_text(told, details=True), render_text(farm, details=True)
    assert "The drivers do not limit this curve" in " ".join(said.split())
    assert said.splitlines()[0] == before.splitlines()[0]
