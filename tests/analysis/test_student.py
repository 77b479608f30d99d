"""Our quantiles of Student's t and Fisher's F are scipy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import f, t

from loadframe.analysis import student


@given(st.floats(1e-6, 1 - 1e-6), st.integers(1, 1000))
def test_whole_degrees_of_freedom(probability: float, freedom: int) -> None:
    assert student.quantile(probability, freedom) == pytest.approx(
        float(t.ppf(probability, freedom)), rel=1e-7, abs=1e-9
    )


@given(st.floats(1e-5, 1 - 1e-5), st.floats(1.0, 1e5))
def test_fractions_of_degrees_of_freedom(probability: float, freedom: float) -> None:
    assert student.quantile(probability, freedom) == pytest.approx(
        float(t.ppf(probability, freedom)), rel=1e-6, abs=1e-8
    )


def test_arrays() -> None:
    freedom, probability = np.array([1.0, 1.5, 2.0, 30.0, 1e9]), np.array([[0.975], [0.05], [0.5]])
    assert student.quantile(probability, freedom) == pytest.approx(t.ppf(probability, freedom), rel=1e-6, abs=1e-8)


@given(st.floats(0.01, 0.999), st.integers(1, 50), st.integers(1, 1000))
def test_quantiles_of_f(probability: float, first: int, second: int) -> None:
    assert student.quantile_of_f(probability, first, second) == pytest.approx(
        float(f.ppf(probability, first, second)), rel=1e-6
    )


def test_the_ends_are_infinite() -> None:
    assert (student.quantile(0.0, 3), student.quantile(1.0, 3)) == (-math.inf, math.inf)
    assert math.isnan(student.quantile(1.5, 3))
