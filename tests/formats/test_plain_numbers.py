"""Numbers from text: a number, or None. Nothing raises."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.formats.plain_numbers import finite, whole


@given(st.integers(-(2**64) + 1, 2**64 - 1))
def test_whole_numbers_are_read_back(number: int) -> None:
    assert whole(str(number)) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_finite_numbers_are_read_back(number: float) -> None:
    assert finite(repr(number)) == number


@given(st.text())
def test_no_text_raises(text: str) -> None:
    assert whole(text) is None or isinstance(whole(text), int)
    number = finite(text)
    assert number is None or math.isfinite(number)


@pytest.mark.parametrize("text", ["", "-", "--5", "+5", "5 ", "1.5", "²", "٣", "9" * 21, "9" * 5000, "0x10", "5\n"])
def test_what_is_no_whole_number(text: str) -> None:
    assert whole(text) is None


@pytest.mark.parametrize("text", ["", "nan", "-inf", "1e400", "9" * 5000, "one", "1e308*10"])
def test_what_is_no_finite_number(text: str) -> None:
    assert finite(text) is None
