"""Forecasts of growth: what is said of larger databases, and above all what is not."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from loadframe_watch.growth import size_forecast
from loadframe_watch.growth.size_law import LoadWindow


def load(
    total: int, *, end: float = math.inf, count: int = 120, reads: bool = True, rises: float = 9e-5
) -> list[LoadWindow]:
    """10 us an entry in memory, `rises` more beyond it, with 3 % of noise."""
    random = np.random.default_rng(7)
    edges = np.linspace(0, total, count + 1)
    windows = []
    for before, after in itertools.pairwise(edges):
        outside = float(np.mean(np.maximum(0.0, 1 - end / np.linspace(before + 1, after, 40)))) * (after - before)
        seconds = (1e-5 * (after - before) + rises * outside) * math.exp(0.03 * random.standard_normal())
        windows.append(LoadWindow(float(before), float(after), seconds, 4 * outside if reads else None))
    return windows


def test_beyond_memory_rate_and_time_are_told_and_hold_at_four_times_the_size() -> None:
    whole = load(2_000_000, end=60_000)
    seen = [one for one in whole if one.after <= 500_000]
    found = size_forecast.score(size_forecast.forecast(seen, [1_000_000, 2_000_000]), whole)
    assert found.end is not None
    assert found.end.confirmed
    assert found.end.entries.low <= 60_000 <= found.end.entries.high
    assert [one.rate_inside and one.seconds_inside for one in found.scored] == [True, True]
    assert all(point.rate.high < 3 * point.rate.low for point in found.at)


def test_the_further_the_wider() -> None:
    found = size_forecast.forecast(load(500_000, end=60_000), [1_000_000, 4_000_000])
    near, far = (math.log(point.rate.high / point.rate.low) for point in found.at)
    assert far > 1.5 * near


def test_nothing_is_said_beyond_a_memory_that_was_not_left() -> None:
    memories = {"buffer_pool": 1e6}
    found = size_forecast.forecast(load(300_000), [400_000, 600_000, 10_000_000], memories)
    assert [point.entries for point in found.at] == [400_000]
    assert found.walls == {"buffer_pool": pytest.approx(1e6)}
    assert [one.entries for one in found.not_at] == [600_000, 10_000_000]
    assert "Memory (buffer_pool) ends at about 1,000,000 entries; nothing beyond was seen" in found.not_at[0].because


def test_a_second_memory_behind_the_first_is_a_wall_as_well() -> None:
    memories = {"shared_buffers": 60_000.0, "cage": 1_500_000.0}
    found = size_forecast.forecast(load(500_000, end=60_000), [700_000, 1_000_000], memories)
    assert found.end is not None
    assert found.end.memory == "shared_buffers"
    assert list(found.walls) == ["cage"]
    assert [one.entries for one in found.not_at] == [1_000_000]


def test_a_memory_is_not_left_because_more_bytes_are_written_than_it_has() -> None:
    """The indexes of a wide table are a part of its bytes: PostgreSQL left 16 MiB at 3.6 times the entries that they
    hold whole, and a forecast from there had been off by 74 %."""
    memories = {"shared_buffers": 100_000.0}
    found = size_forecast.forecast(load(300_000), [600_000], memories)
    assert not found.at
    assert "no end of it was seen up to 300,000" in found.not_at[0].because
    assert "Load at least 400,000" in found.not_at[0].because
    assert size_forecast.forecast(load(500_000), [1_000_000], memories).at, "four times its size leaves it"
    cheap = load(300_000, end=30_000, rises=0.0)
    assert size_forecast.forecast(cheap, [600_000], memories).at, "reads that rise and cost nothing leave it, too"


def test_a_memory_is_not_left_before_its_bytes_are_written() -> None:
    """InnoDB with 16 MiB became slower at 33,000 entries, with reads; at 78,000, of 113,000, three times as slow."""
    memories = {"buffer_pool": 110_000.0}
    early = size_forecast.forecast(load(80_000, end=20_000), [160_000], memories)
    assert early.end is not None and early.end.confirmed
    assert [one.entries for one in early.not_at] == [160_000]
    assert size_forecast.forecast(load(300_000, end=20_000), [600_000], memories).at


def test_an_unknown_memory_allows_no_more_than_four_times() -> None:
    found = size_forecast.forecast(load(300_000), [1_000_000, 2_000_000])
    assert [point.entries for point in found.at] == [1_000_000]
    assert "its size is not known" in found.not_at[0].because
    assert "as long as the database stays in memory" in found.notes[0]


def test_a_hundred_times_is_refused_whatever_was_seen() -> None:
    found = size_forecast.forecast(load(1_000_000, end=60_000), [10_000_000, 100_000_000])
    assert [point.entries for point in found.at] == [10_000_000]
    assert "100 times the 1,000,000 entries that were seen" in found.not_at[0].because


def test_too_little_beyond_the_end_is_said() -> None:
    found = size_forecast.forecast(load(150_000, end=100_000, rises=5e-4), [300_000, 1_000_000])
    assert [one.entries for one in found.not_at] == [1_000_000]
    assert "too little beyond it" in found.not_at[0].because


def test_without_counted_reads_an_end_is_only_suspected() -> None:
    found = size_forecast.forecast(load(1_000_000, end=60_000, reads=False))
    assert found.end is not None
    assert not found.end.confirmed
    assert "suspected" in found.notes[0]


def test_reads_that_do_not_rise_with_the_cost_confirm_nothing() -> None:
    windows = [LoadWindow(one.before, one.after, one.seconds, 100.0) for one in load(1_000_000, end=60_000)]
    found = size_forecast.forecast(windows)
    assert found.end is not None
    assert not found.end.confirmed
    assert "not the memory that is counted" in found.notes[0]


def test_reads_that_cost_nothing_are_not_called_a_database_in_memory() -> None:
    """As an SQLite whose file is in the page cache: its own cache is left, and nothing climbs."""
    found = size_forecast.forecast(load(1_000_000, end=60_000, rises=0.0))
    assert found.end is None
    (note,) = found.notes
    assert note.startswith("Reads from beyond memory rise from ")
    assert "stays in memory" not in note


@pytest.mark.long
@pytest.mark.parametrize("noise", [0.3, 1.2, 3.0])
def test_times_that_scatter_give_finite_numbers_or_none(noise: float) -> None:
    """An entry that may cost nothing has no highest rate: "120,000 to nan" was said."""
    refused = 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        windows = [
            replace(one, seconds=one.seconds * math.exp(noise * random.standard_normal()))
            for one in load(500_000, count=30)
        ]
        found = size_forecast.forecast(windows, [100_000, 1_000_000])
        refused += found.refused is not None
        for one in (found.now, *(each for point in found.at for each in (point.rate, point.seconds))):
            assert one is None or (0 < one.low <= one.value <= one.high < math.inf), found
        assert all("scatter" in one.because for one in found.not_at)
        assert found.refused is None or "scatter" in found.refused
    assert not refused or noise > 1


def test_a_few_windows_are_no_forecast() -> None:
    found = size_forecast.forecast(load(1000, count=3))
    assert found.refused is not None
    assert not found.at
    with pytest.raises(ValueError, match="above zero"):
        size_forecast.forecast(load(1000), [0.0])


def test_sizes_that_were_seen_are_those_of_the_load() -> None:
    whole = load(1_000_000, end=60_000)
    found = size_forecast.score(size_forecast.forecast(whole, [500_000]), whole)
    assert found.scored[0].rate_inside
    assert found.scored[0].seconds == pytest.approx(sum(one.seconds for one in whole[:60]), rel=1e-6)


def test_loads_that_were_repeated_score_a_forecast_by_all_of_them() -> None:
    """A run takes each size at least twice: none of it was scored, as its windows overlap."""
    whole = load(600_000, end=60_000)
    slower = [
        replace(one, before=1.03 * one.before, after=1.03 * one.after, seconds=1.1 * one.seconds) for one in whole
    ]
    seen = [one for one in (*whole, *slower) if one.after <= 200_000]
    found = size_forecast.score(size_forecast.forecast(seen, [300_000, 610_000]), [*whole, *slower])
    assert [one.entries for one in found.scored] == [300_000, 610_000]
    middle = [sum(one.seconds for one in whole[:60]), 1.1 * sum(one.seconds for one in whole[:60])]
    assert middle[0] < found.scored[0].seconds < middle[1]
    assert found.scored[1].seconds == pytest.approx(1.1 * sum(one.seconds for one in whole) * 610 / 618, rel=0.01)


def test_loads_of_which_only_the_whole_is_known_score_nothing_and_that_is_said() -> None:
    windows = [LoadWindow(0.0, 1e4 * 2**number, 0.1 * 2**number) for number in range(10)]
    found = size_forecast.score(size_forecast.forecast(windows[:9], [windows[9].after]), windows)
    assert found.at and not found.scored
    assert any(note.startswith("Not scored: ") for note in found.notes)
