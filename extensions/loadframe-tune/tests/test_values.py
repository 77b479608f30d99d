"""What may be searched: values of every setting, and what must fit into memory together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe_tune.search import STEPS, Space, dimension, spread

MB = 1 << 20
POOL = dimension("pool", [32 * MB, 64 * MB, 128 * MB, 256 * MB], 64 * MB, ordered=True, bytes_each=1)
SORT = dimension("sort", [MB, 4 * MB, 16 * MB], MB, ordered=True, bytes_each=10)
FLUSH = dimension("flush", ["fsync", "direct"], "fsync", ordered=False)
SPACE = Space((POOL, SORT, FLUSH), memory_bytes=300 * MB)


def test_what_the_settings_take_together_must_fit() -> None:
    """128 MiB and 16 MiB for each of ten connections do; 256 MiB and the same do not."""
    assert SPACE.takes((2, 2, 0)) == 288 * MB and SPACE.fits((2, 2, 0))
    assert SPACE.takes((3, 2, 0)) == 416 * MB and not SPACE.fits((3, 2, 0))


def test_the_start_fits_whatever_it_takes_and_nothing_larger_does() -> None:
    tight = Space((POOL, SORT, FLUSH), memory_bytes=MB)
    assert tight.fits(tight.start) and tight.fits((0, 0, 1))
    assert not tight.fits((2, 0, 0))


def test_changes_and_points_are_the_same_thing() -> None:
    changes = {"pool": 256 * MB, "flush": "direct"}
    assert SPACE.changes(SPACE.point(changes)) == changes
    assert SPACE.changes(SPACE.start) == {}


def test_a_value_between_two_is_taken_for_the_nearest_in_ratio() -> None:
    assert SPACE.point({"pool": 95 * MB})[0] == 2
    assert SPACE.point({"pool": 85 * MB})[0] == 1


def test_the_value_at_the_start_is_one_of_the_values() -> None:
    odd = dimension("pool", [32 * MB, 128 * MB], 100 * MB, ordered=True)
    assert odd.values == (32 * MB, 100 * MB, 128 * MB) and odd.start == 1


def test_a_setting_with_one_value_is_no_dimension() -> None:
    with pytest.raises(ValueError, match="one value"):
        dimension("pool", [MB], MB, ordered=True)


@given(low=st.integers(0, 10**6), factor=st.integers(1, 10**6))
def test_values_rise_from_end_to_end(low: int, factor: int) -> None:
    values = spread(low, low + factor)
    assert values[0] == low and values[-1] == low + factor
    assert list(values) == sorted(set(values)) and len(values) <= STEPS
    assert all(isinstance(value, int) for value in values)


def test_sizes_are_whole_numbers_of_mib() -> None:
    assert all(value % MB == 0 for value in spread(32 * MB, 512 * MB))


def test_powers_of_two_stay_what_they_are() -> None:
    assert spread(32 * MB, 2048 * MB) == tuple(MB << shift for shift in (5, 6, 7, 8, 9, 10, 11))
