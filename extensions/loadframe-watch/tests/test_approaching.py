"""A load on its way to a limit is told, a load that breathes is not."""

from __future__ import annotations

import json
import math
import random

import pytest

from loadframe_watch.approaching import DAY_S, Days
from loadframe_watch.records import as_json, of_json

LIMIT = 100.0


def told(loads: list[tuple[float, float]]) -> list[tuple[float, float, float]]:
    """(time, load, seconds until the limit) whenever it is on its way."""
    days, found = Days(), []
    for at_s, load in loads:
        days.take(at_s, load)
        coming = days.approach(LIMIT, LIMIT - 2, LIMIT + 2)
        if coming is not None:
            assert coming.ends.low <= coming.ends.load <= coming.ends.high
            found.append((at_s, load, coming.ends.load))
    return found


def breathing(days: int, peak: float, growth: float = 0.0) -> list[tuple[float, float]]:
    """Every five minutes."""
    found = []
    for at in range(288 * days):
        day = at / 288
        top = peak * (1 + growth * day)
        found.append((1e6 * DAY_S + 300.0 * at, top * (0.55 - 0.45 * math.cos(2 * math.pi * day))))
    return found


def test_jobs_that_are_added_within_an_hour_are_told_before_four_fifths() -> None:
    loads = [(1e9 + 60 * at, 10 + 90 * at / 60) for at in range(60)]
    at_s, load, in_s = told(loads)[0]
    assert load < 0.8 * LIMIT
    assert in_s == pytest.approx(3600 - (at_s - 1e9), rel=0.2)


def test_a_rise_of_half_an_hour_from_a_busy_level_is_told_before_four_fifths() -> None:
    loads = [(1e9 + 60 * at, 40 + 60 * max(0, at - 20) / 30) for at in range(50)]
    assert told(loads)[0][1] < 0.8 * LIMIT


def test_a_rise_that_has_ended_is_not_told() -> None:
    loads = [(1e9 + 60 * at, 40 + min(25.0, 5.0 * max(0, at - 20))) for at in range(120)]
    assert told(loads) == []


@pytest.mark.parametrize("peak", [40.0, 65.0, 80.0])
def test_a_load_that_breathes_is_not_told(peak: float) -> None:
    assert told(breathing(10, peak)) == []


@pytest.mark.parametrize("factor", [1.3, 1.5])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_load_that_was_moved_once_is_not_told(factor: float, seed: int) -> None:
    """From two days after it on a line through the daily maxima rises, and is proven to."""
    draw = random.Random(seed)
    days = [draw.uniform(0.97, 1.03) * (factor if day >= 8 else 1.0) for day in range(24)]
    assert told([(at_s, load * days[at // 288]) for at, (at_s, load) in enumerate(breathing(24, 45.0))]) == []


@pytest.mark.parametrize("growth", [0.1, 0.2, 0.35])
def test_a_peak_that_grows_from_day_to_day_is_told_days_before(growth: float) -> None:
    found = told(breathing(14, 35.0, growth))
    assert found
    at_s, load, in_s = found[0]
    assert load < 0.8 * LIMIT
    crossing = next(at for at, load in breathing(24, 35.0, growth) if load >= LIMIT)
    assert in_s == pytest.approx(crossing - at_s, rel=0.1, abs=DAY_S)


def test_a_first_day_without_its_high_hours_says_nothing_of_the_growth() -> None:
    """A watch that begins in the evening: its first day has no peak, and a line through it would not be one."""
    rows = [
        (
            1e6 * DAY_S + DAY_S * (2 / 3 + day),
            50 * (1 + 0.12 * day) * (0.55 - 0.45 * math.cos(2 * math.pi * (day - 0.2))),
        )
        for day in (at / 288 for at in range(288 * 8))
    ]
    at_s = told(rows)[0][0]
    assert max(before for until_s, before in rows if until_s <= at_s) < 0.72 * LIMIT
    assert at_s - rows[0][0] < 4 * DAY_S


def test_it_goes_on_after_it_was_written_down() -> None:
    days = Days()
    for at_s, load in breathing(3, 40.0):
        days.take(at_s, load)
    again = of_json(Days, json.loads(json.dumps(as_json(days))))
    assert again == days
    with pytest.raises(ValueError, match="other fields"):
        of_json(Days, {})
