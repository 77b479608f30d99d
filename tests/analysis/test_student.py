"""Our quantiles of Student's t are scipy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t

from loadframe.analysis import student


@given(st.floats(1e-6, 1 - 1e-6), st.integers(1, 1000))
def test_whole_degrees_of_freedom(probability: float, freedom: int) -> None:
    assert student.quantile(probability, freedom) == pytest.approx(
        float(t.ppf(probability, freedom)), rel=1e-7, abs=1e-9
    )


def test_arrays_and_fractions() -> None:
    freedom = np.array([1.5, 2.0, 30.0])
    assert student.quantile(0.975, freedom) == pytest.approx(t.ppf(0.975, freedom))
    assert student.quantile(0.9, 2.5) == pytest.approx(float(t.ppf(0.9, 2.5)))


def test_the_ends_are_infinite() -> None:
    assert (student.quantile(0.0, 3), student.quantile(1.0, 3)) == (-math.inf, math.inf)
    assert math.isnan(student.quantile(1.5, 3))
