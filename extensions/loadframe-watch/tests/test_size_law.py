"""The cost of an entry as the database grows: the law is found, with where memory ends, and nothing is invented."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from loadframe_watch.growth import size_law
from loadframe_watch.growth.size_law import LoadWindow


def load(
    total: int, *, end: float = math.inf, step: float = 1.06, noise: float = 0.03, seed: int = 1, reads: bool = True
) -> list[LoadWindow]:
    """A load of 10 us an entry, and of 90 us more for each that lies beyond memory; four reads for each of these."""
    random = np.random.default_rng(seed)
    edges = np.concatenate([[0.0], np.geomspace(total / 200, total, int(math.log(200) / math.log(step)))])
    windows = []
    for before, after in itertools.pairwise(edges):
        middle = np.linspace(before, after, 50)
        outside = float(np.mean(np.maximum(0.0, 1 - end / np.maximum(middle, 1.0)))) * (after - before)
        seconds = (1e-5 * (after - before) + 9e-5 * outside) * math.exp(noise * random.standard_normal())
        counted = 4 * outside * math.exp(noise * random.standard_normal()) if reads else None
        windows.append(LoadWindow(float(before), float(after), seconds, counted))
    return windows


def test_the_end_of_memory_is_found_by_the_cost_and_by_the_reads() -> None:
    law = size_law.fit(load(1_000_000, end=100_000))
    reads = size_law.fit(load(1_000_000, end=100_000), of_reads=True)
    for found in (law, reads):
        assert found is not None
        assert found.end is not None
        assert found.end.low <= 100_000 <= found.end.high
        assert found.end.high < 1.5 * found.end.low


def test_the_interval_of_the_end_holds_in_most_loads() -> None:
    held = 0
    for seed in range(40):
        law = size_law.fit(load(1_000_000, end=100_000, noise=0.1, seed=seed))
        assert law is not None
        held += law.end is not None and law.end.low <= 100_000 <= law.end.high
    assert held >= 32


@pytest.mark.parametrize("noise", [0.1, 0.5, 1.0])
def test_slow_windows_count_as_much_as_quick_ones(noise: float) -> None:
    """As shares of what each of them took, the slow ones hardly counted: the cost came out at a sixth of the mean."""
    found = []
    for seed in range(25):
        law = size_law.fit(load(1_000_000, noise=noise, seed=seed))
        assert law is not None
        found.append(float(np.median(law.costs(500_000))))
    assert 0.8 <= float(np.median(found)) / (1e-5 * math.exp(noise**2 / 2)) <= 1.2


@pytest.mark.long
def test_a_load_within_memory_has_no_end() -> None:
    said = [size_law.fit(load(1_000_000, noise=0.1, seed=seed)) for seed in range(40)]
    assert sum(law is not None and law.end is not None for law in said) <= 2


def test_the_cost_far_beyond_memory_levels_off() -> None:
    law = size_law.fit([one for one in load(4_000_000, end=100_000) if one.after <= 1_000_000])
    assert law is not None
    told = float(np.median(law.costs(4_000_000)))
    assert told == pytest.approx(1e-5 + 9e-5 * (1 - 100_000 / 4_000_000), rel=0.05)


def test_loads_of_several_sizes_tell_the_same_as_one_long_load() -> None:
    """Each from an empty database: their windows overlap, and each is the mean of all that was cheap before."""
    ends = np.geomspace(20_000, 1_000_000, 12)
    windows = []
    for end in ends:
        middle = np.linspace(1, end, 20_000)
        outside = float(np.mean(np.maximum(0.0, 1 - 100_000 / middle))) * end
        windows.append(LoadWindow(0.0, float(end), 1e-5 * end + 9e-5 * outside))
    law = size_law.fit(windows)
    assert law is not None
    assert float(np.median(law.costs(1_000_000))) == pytest.approx(1e-5 + 9e-5 * 0.9, rel=0.1)


def test_neighbouring_windows_are_joined_and_nothing_is_lost() -> None:
    windows = [LoadWindow(1000.0 * i, 1000.0 * (i + 1), 0.1, 5.0) for i in range(500)]
    joined = size_law.joined(windows)
    assert len(joined) < 80
    assert (joined[0].before, joined[-1].after) == (0, 500_000)
    assert sum(one.seconds for one in joined) == pytest.approx(50)
    assert sum(one.reads or 0 for one in joined) == pytest.approx(2500)


def test_too_few_windows_carry_no_law_and_impossible_ones_are_refused() -> None:
    assert size_law.fit(load(1000)[:4]) is None
    assert size_law.fit(load(1_000_000, reads=False), of_reads=True) is None
    with pytest.raises(ValueError, match="is none"):
        size_law.fit([LoadWindow(5.0, 5.0, 1.0)])
