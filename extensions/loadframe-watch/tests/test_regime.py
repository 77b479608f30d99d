"""A change of regime is told once, and quiet data give none, also with a daily cycle and a memory."""

from __future__ import annotations

import json
import math
import random

import pytest

from loadframe_watch.approaching import Rhythm
from loadframe_watch.records import as_json, of_json
from loadframe_watch.regime import FEWEST, Series, autoregression, widening

ROW_S, DAY = 300.0, 288
MONTH = 30 * DAY


def rows(
    seed: int, count: int, *, memory: float, cycle: float, shift_at: int = 10**9, shift: float = 0.0
) -> list[tuple[float, float]]:
    """(load, logarithm of the response) every five minutes."""
    noise = random.Random(seed)
    deviation, found = 0.0, []
    for at in range(count):
        deviation = memory * deviation + noise.gauss(0, math.sqrt(1 - memory**2))
        phase = 2 * math.pi * at / DAY
        load = 50 + 30 * math.sin(phase) + noise.gauss(0, 3)
        outlier = 0.5 if noise.random() < 0.01 else 0.0
        value = 0.004 * load + cycle * math.sin(phase + 1) + 0.2 * deviation + outlier
        found.append((load, value + (shift if at >= shift_at else 0.0)))
    return found


def told(given: list[tuple[float, float]], series: Series | None = None, begin: int = 0) -> list[int]:
    series = series or Series(MONTH)
    return [at for at, (load, value) in enumerate(given, begin) if series.take(load, value, ROW_S * at) is not None]


@pytest.mark.parametrize(("memory", "cycle"), [(0.0, 0.0), (0.5, 0.3), (0.9, 0.0)])
def test_a_month_of_quiet_data_gives_no_alarm(memory: float, cycle: float) -> None:
    """Chance is part of it: benchmarks/watch.py counts the alarms of many months."""
    assert told(rows(3, MONTH, memory=memory, cycle=cycle)) == []


@pytest.mark.parametrize("shift", [math.log(1.6), -math.log(1.6)])
def test_a_shift_is_told_once_with_what_was_expected(shift: float) -> None:
    at = 5 * DAY
    series, found = Series(MONTH), []
    for number, (load, value) in enumerate(rows(5, 8 * DAY, memory=0.3, cycle=0.0, shift_at=at, shift=shift)):
        change = series.take(load, value, ROW_S * number)
        if change is not None:
            found.append((number, change))
    assert len(found) == 1
    number, change = found[0]
    assert at < number < at + DAY // 4
    assert change.found - change.expected == pytest.approx(shift, abs=0.2)
    assert change.evidence > change.threshold


def test_nothing_is_said_while_it_learns_and_of_loads_that_were_not_seen() -> None:
    series = Series(MONTH)
    assert told(rows(1, FEWEST - 1, memory=0.0, cycle=0.0), series) == []
    assert series.needed == 1
    told(rows(2, FEWEST, memory=0.0, cycle=0.0), series, FEWEST - 1)
    assert told([(1000.0, 50.0)] * 20, series, 2 * FEWEST) == []


def test_what_was_learned_goes_on_after_it_was_written_down() -> None:
    given = rows(7, 7 * DAY, memory=0.3, cycle=0.0, shift_at=5 * DAY, shift=0.6)
    whole = told(given)
    series = Series(MONTH)
    first = told(given[: 4 * DAY], series)
    again = of_json(Series, json.loads(json.dumps(as_json(series))))
    second = told(given[4 * DAY :], again, 4 * DAY)
    assert first + second == whole != []
    with pytest.raises(ValueError, match="other fields"):
        of_json(Series, {"values": []})


def test_an_autoregression_finds_its_weights() -> None:
    noise = random.Random(4)
    values = [0.0, 0.0]
    for _ in range(20_000):
        values.append(0.5 * values[-1] - 0.3 * values[-2] + noise.gauss(0, 1))
    assert autoregression(values, 2) == pytest.approx([-0.3, 0.5], abs=0.03)
    assert autoregression([1.0] * 100, 3) == []


def test_scores_that_follow_one_another_are_widened() -> None:
    noise = random.Random(4)
    independent = [noise.gauss(0, 1) for _ in range(4000)]
    assert widening(independent) < 1.3
    alike = [sum(independent[at : at + 9]) / 3 for at in range(3990)]
    assert widening(alike) > 2


@pytest.mark.parametrize("seed", [17, 22])
def test_a_load_that_grows_day_by_day_is_no_change_of_a_response_that_stays(seed: int) -> None:
    """Loads above those of the last fit have no line yet: one that is drawn on to them is off by more each day."""
    noise, deviation, given = random.Random(seed), 0.0, []
    for at in range(6 * DAY):
        deviation = 0.9 * deviation + 0.013 * noise.gauss(0, 1)
        cycle = 0.55 - 0.45 * math.cos(2 * math.pi * (at / DAY - 0.2))
        given.append((260 * (1 + 0.12 * at / DAY) * (cycle + deviation), noise.gauss(0.7, 0.2)))
    assert told(given, Series(2 * MONTH)) == []


@pytest.mark.parametrize("seed", range(1, 7))
def test_a_weekend_says_little_of_the_loads_of_a_monday(seed: int) -> None:
    """It was learned on one evening and a weekend, with a quarter of the load: the line through the weekend, drawn on
    to the loads of the evening, gave half of the usual response for a Monday."""
    draw, given = random.Random(seed), list[tuple[float, float]]()
    for at in range(int(0.9 * DAY), 9 * DAY):
        weekend = at // DAY in (1, 2)
        load = (0.25 if weekend else 1.0) * (110 - 90 * math.cos(2 * math.pi * (at / DAY - 0.2))) + draw.gauss(0, 4)
        given.append((max(1.0, load), math.log(2 + 0.0004 * load) + draw.gauss(0, 0.2)))
    assert told(given) == []


def nightly(seed: int, days: int, *, bursts: dict[int, float], shift_at: int = 10**9) -> list[tuple[float, float]]:
    """Rows of which those of an hour at the beginning of some days are so much higher: by days, by how much."""
    draw, given = random.Random(seed), list[tuple[float, float]]()
    for at in range(days * DAY):
        later = draw.randrange(3)  # no job begins on the second
        burst = bursts.get(at // DAY, 0.0) if later <= at % DAY < 12 + later else 0.0
        given.append((100.0 + draw.gauss(0, 1), burst + (0.5 if at >= shift_at else 0.0) + draw.gauss(0, 0.2)))
    return given


@pytest.mark.parametrize("seed", range(1, 5))
def test_what_takes_longer_each_night_is_no_change(seed: int) -> None:
    assert told(nightly(seed, 10, bursts=dict.fromkeys(range(10), 0.9))) == []


@pytest.mark.parametrize("seed", range(1, 4))
def test_what_begins_is_told_in_its_first_night_and_on_its_first_sunday_alone(seed: int) -> None:
    first = told(nightly(seed, 14, bursts=dict.fromkeys(range(5, 14), 0.9)))
    assert [at // DAY for at in first] == [5]
    weekly = told(nightly(seed, 28, bursts=dict.fromkeys((6, 13, 20, 27), 0.9)))
    assert [at // DAY for at in weekly] == [6]


@pytest.mark.parametrize("hour", [0.2, 6, 18])
def test_a_shift_that_stays_is_told_where_nights_are_slow_too(hour: float) -> None:
    """Also one that begins in the night, behind what takes longer each night."""
    at = 6 * DAY + int(hour * 12)
    given = nightly(3, 9, bursts=dict.fromkeys(range(9), 0.9), shift_at=at)
    (found,) = told(given)
    assert at < found < at + DAY // 3


def test_a_night_that_is_much_slower_than_the_others_is_told() -> None:
    (found,) = told(nightly(4, 8, bursts={**dict.fromkeys(range(8), 0.5), 6: 1.5}))
    assert found // DAY == 6


def test_a_clock_that_is_set_back_forgets_what_it_told_of_later() -> None:
    rhythm = Rhythm()
    for t_s in (0.0, 300.0, 600.0, 200.0):
        rhythm.add(t_s, None, t_s)
    assert rhythm.times_s == rhythm.values == [0.0, 200.0]
    with pytest.raises(ValueError, match="do not rise"):
        of_json(Rhythm, {"times_s": [1, 1], "loads": [None, None], "values": [0, 0]})
    with pytest.raises(ValueError, match="fit together"):
        of_json(Rhythm, {"times_s": [1, 2], "loads": [None], "values": [0, 0]})
