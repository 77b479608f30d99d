"""A forecast as text: one limit has one figure, and no figure contradicts what was seen."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from loadframe.model import Estimate, Forecast, ForecastCapacity, Observation, Observations, ResourceForecast
from loadframe.prediction.forecasting import forecast
from loadframe.prediction.library import Bounds
from loadframe.prediction.saturating import estimated
from loadframe.reporting import rounding
from loadframe.reporting.forecasts import render_forecast


def seen(use: float, *, top: float = 204.0, blocks: int = 3) -> Observations:
    """A rate up to `top` requests/s, of which a share `use` of one CPU is used there, in proportion."""
    loads = [top * share for share in (0.2, 0.4, 0.6, 0.8, 1.0)]
    rows = tuple(
        Observation(load, load * (1 + 0.01 * (block - 1)), utilizations={"cpu": use * load / top})
        for load in loads
        for block in range(blocks)
    )
    return Observations("seen", rows, axis="rate")


def told(found: Forecast) -> str:
    return " ".join(render_forecast(found, unit="requests/s").split())


@pytest.mark.parametrize("use", [0.15, 0.3, 0.5, 0.7])
def test_the_headline_and_the_resource_give_one_figure(use: float) -> None:
    said = told(forecast(seen(use), [300.0, 400.0]))
    headline = re.search(r"cpu saturates first, at (.*?); that allows", said)
    line = re.search(r"Saturates at cpu .*? ms (.*?\))", said)
    assert headline is not None and line is not None
    assert headline[1] == line[1]


def test_no_other_resource_saturates_before_the_first() -> None:
    rows = tuple(
        replace(row, utilizations={**row.utilizations, "disk": 0.95 * row.utilizations["cpu"]})
        for row in seen(0.4).rows
    )
    found = forecast(replace(seen(0.4), rows=rows))
    assert found.capacity is not None
    loads = [one.at_load.value for one in found.saturation if one.at_load is not None]
    assert len(loads) == 2 and min(loads) == found.capacity.load.value


@pytest.mark.parametrize("use", [0.06, 0.15, 0.3, 0.6, 0.8])
def test_nothing_saturates_below_a_load_that_was_seen_with_room_left(use: float) -> None:
    found = forecast(seen(use))
    assert found.capacity is not None
    for estimate in (found.capacity.load, *(one.at_load for one in found.saturation)):
        assert estimate is not None and 204 <= estimate.low <= estimate.value < estimate.high
    assert found.capacity.throughput.low >= 204


def test_what_was_seen_is_not_rounded_away() -> None:
    """What is allowed, "200 requests/s (200 to 600)", is below the 204 that were served."""
    capacity = ForecastCapacity(Estimate(204.0, 204.0, 612.0), Estimate(310.0, 204.0, 950.0), "cpu")
    cpu = ResourceForecast("cpu", 0.003, 0.003, 0.003, 1.0, 0.6, None, Estimate(310.0, 204.0, 950.0))
    found = Forecast("x", "rate", "rate", (51.0, 204.0), capacity=capacity, saturation=(cpu,), at_least=204.0)
    said = told(found)
    assert "at 310 requests/s (204 to 950); that allows 204 requests/s (204 to 610)" in said
    assert "3 ms 310 requests/s (204 to 950)" in said


@pytest.mark.parametrize("use", [0.15, 0.3, 0.5, 0.7])
def test_no_forecast_is_above_what_is_stated_as_the_most(use: float) -> None:
    """Seen: "at most 210 requests/s (100 to 500)", and 270 at 600. 500 is the most, and 210 is expected."""
    clients = tuple(replace(row, throughput=row.load / (0.9 + row.load / 2000)) for row in seen(use).rows)
    found = forecast(replace(seen(use), rows=clients, axis="clients"), [300.0, 600.0, 1200.0], kind="closed")
    assert found.capacity is not None
    said = told(found)
    assert "at most" not in said
    assert all(point.throughput.high <= found.capacity.throughput.high for point in found.at)
    more = any(point.throughput.value > found.capacity.throughput.value for point in found.at)
    assert more == ("More is forecast than what saturates first is expected to allow" in said)
    if use == 0.5:
        assert more  # the case that was seen


def test_an_estimate_that_what_was_seen_refutes_has_no_high_end() -> None:
    """The interval of the laws ends at 150; 204 were served, so that 150 is no end."""
    refuted = estimated(Bounds(-1.0, 1.0), math.log(120), math.log(150 / 120), least=204.0)
    assert refuted == Estimate(204.0, 204.0, math.inf)
    capacity = ForecastCapacity(refuted, refuted, "cpu")
    said = told(Forecast("x", "rate", "rate", (51.0, 204.0), capacity=capacity, at_least=204.0))
    assert "at 204 requests/s (204 or more); that allows 204 requests/s (204 or more)" in said


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ((1220.0, 1020.0, 2950.0), ("1,200", "1,000", "3,000")),
        ((520.0, 520.0, 1200.0), ("520", "520", "1,200")),
        ((146.0, 137.0, 155.0), ("146", "137", "155")),
        ((1.1, 0.9, 1.3), ("1.1", "0.9", "1.3")),
    ],
)
def test_a_value_does_not_look_like_its_nearer_end(
    ends: tuple[float, float, float], said: tuple[str, str, str]
) -> None:
    assert rounding.with_interval(*ends) == said
