"""From production rows to the load at which a limit is reached, and where the response bends."""

from __future__ import annotations

import math
import random

import pytest

from loadframe_watch.saturation_of_rows import bend, of_rows


def days(seed: int, count: int = 2000) -> tuple[list[float | None], random.Random]:
    noise = random.Random(seed)
    cycle = [100 * (0.55 - 0.45 * math.cos(2 * math.pi * at / 288)) for at in range(count)]
    return [load * math.exp(noise.gauss(0, 0.05)) for load in cycle], noise


def test_a_limit_is_told_at_its_load_with_an_interval() -> None:
    loads, noise = days(1)
    use: list[float | None] = [(load or 0) / 250 * math.exp(noise.gauss(0, 0.1)) for load in loads]
    use[10] = loads[20] = None
    found = of_rows(loads, use).at
    assert of_rows(loads, [0.01] * len(loads)).at is None
    assert found is not None and found.how == "extrapolated"
    assert found.low < 250 < found.high
    assert found.high - found.low < 60


def told_of_days(count: float, hours: float, *, behind: float = 0.0) -> tuple[int, int]:
    """(told, held) of 60 watches of so many days, in rows of five minutes, of a limit that is full at 250. hours: for
    how long deviations of the use last; behind: noise from row to row in front of them."""
    told = held = 0
    stays = math.exp(-1 / 12 / hours) if hours else 0.0
    for seed in range(60):
        (loads, noise), deviation = days(seed, int(288 * count)), 0.0
        use: list[float | None] = []
        for load in loads:
            deviation = stays * deviation + math.sqrt(1 - stays**2) * noise.gauss(0, 0.02)
            use.append((load or 0) / 250 + deviation + behind * noise.gauss(0, 1))
        found = of_rows(loads, use).at
        told += found is not None
        held += found is not None and found.low <= 250 <= found.high
        assert found is None or found.load == pytest.approx(250, rel=0.25)
    return told, held


@pytest.mark.parametrize(("hours", "fewest"), [(0.0, 60), (0.8, 50), (2.7, 30)])
def test_the_interval_of_a_limit_holds_also_where_deviations_last_for_hours(hours: float, fewest: int) -> None:
    """Three days: a deviation that lasts moves neighbouring loads together, and their scatter does not show it."""
    told, held = told_of_days(3, hours)
    assert held >= 0.9 * told
    assert told >= fewest


@pytest.mark.parametrize(
    ("hours", "behind", "fewest"), [(0.0, 0.0, 55), (0.25, 0.0, 50), (0.8, 0.0, 30), (2.7, 0.0, 0), (2.7, 0.03, 35)]
)
def test_after_one_day_a_limit_is_told_surely_or_not_yet(hours: float, behind: float, fewest: int) -> None:
    """Of one day nothing shows how long deviations last, if they last for hours: then it is too early to tell."""
    told, held = told_of_days(1, hours, behind=behind)
    assert held >= 0.85 * told
    assert told >= fewest


@pytest.mark.parametrize("seed", range(20, 26))
def test_a_use_that_rises_ever_faster_is_full_before_its_straight_line(seed: int) -> None:
    """Two weeks with loads up to 100; the use is (load / 140)^2. Its straight line is 1 at about 190."""
    loads, noise = days(seed, 288 * 14)
    use: list[float | None] = [((load or 0) / 140) ** 2 * math.exp(noise.gauss(0, 0.05)) for load in loads]
    found = of_rows(loads, use).at
    assert found is not None and found.method == "curve"
    assert found.low <= 140 <= found.high
    assert 140 <= found.load < 180


@pytest.mark.parametrize("seed", range(30, 36))
def test_a_use_that_flattens_below_its_ceiling_is_not_told_as_full(seed: int) -> None:
    """A cache that fills: 0.9 of it at most, however high the load. Its straight line is 1 at a load that was seen."""
    loads, noise = days(seed, 288 * 14)
    use: list[float | None] = [
        0.9 * (1 - math.exp(-(load or 0) / 25)) * math.exp(noise.gauss(0, 0.02)) for load in loads
    ]
    assert of_rows(loads, use).at is None


def test_a_use_that_does_not_follow_the_load_is_not_told() -> None:
    loads, noise = days(2)
    assert of_rows(loads, [0.5 + noise.gauss(0, 0.05) for _ in loads]).at is None
    assert of_rows([50.0] * 500, [noise.random() for _ in range(500)]).at is None


def test_the_bend_of_the_response_lies_between_two_loads() -> None:
    loads, noise = days(3)
    response: list[float | None] = [
        (0.5 + max(0.0, (load or 0) - 70) * 0.2) * math.exp(noise.gauss(0, 0.2)) for load in loads
    ]
    found = bend(loads, response)
    assert found is not None
    assert 65 < found.low < found.high < 90
    assert bend(loads, [0.5 * math.exp(noise.gauss(0, 0.2)) for _ in loads]) is None


def minutes_of_a_rise(seed: int, alike: float) -> tuple[list[float | None], list[float | None]]:
    """Twelve minutes at 40 and five more up to 112, every ten seconds; a pool that is full at 160. alike: how much of
    one reading's deviation is in the next."""
    noise, deviation = random.Random(seed), 0.0
    loads: list[float | None] = [40.0 + 14.4 * max(0, at - 72) / 6 for at in range(102)]
    uses: list[float | None] = []
    for load in loads:
        deviation = alike * deviation + math.sqrt(1 - alike**2) * noise.gauss(0, 0.12)
        uses.append((load or 0) / 160 + deviation)
    return loads, uses


@pytest.mark.parametrize("alike", [0.0, 0.8])
def test_of_few_minutes_a_limit_is_told_with_an_interval_that_holds(alike: float) -> None:
    told = held = 0
    for seed in range(60):
        loads, uses = minutes_of_a_rise(seed, alike)
        found = of_rows(loads, uses, fine=True).at
        told += found is not None
        held += found is not None and found.low <= 160 <= found.high
    assert held >= 0.9 * told
    assert told > (50 if not alike else 5)
