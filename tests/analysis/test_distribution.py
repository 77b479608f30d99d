"""Latencies of several steps are merged by their counts, and what is drawn of them is bounded and goes nowhere down."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.analysis import window
from loadframe.analysis.window import MOST_POINTS

MOST_USUAL = 14
HISTOGRAMS = st.lists(st.integers(0, 10**9), min_size=1, max_size=40).filter(any)


def latencies(bins: int) -> np.ndarray:
    return np.geomspace(0.01, 1000, bins)


def test_the_percentiles_are_those_of_the_requests() -> None:
    """Of 1 to 1,000 ms, once each."""
    found = window.of_histogram(np.arange(1.0, 1001.0), np.ones(1000, dtype=np.int64))
    assert (found.p50_ms, found.p95_ms, found.p99_ms, found.p999_ms, found.max_ms) == (500, 950, 990, 999, 1000)
    assert found.mean_ms == pytest.approx(500.5)


def test_a_slow_step_counts_by_its_requests() -> None:
    """990 requests of 1 ms and 10 of 100 ms: the mean of both p99 would be 50 ms."""
    one, other = np.array([990, 0]), np.array([0, 10])
    found = window.of_histogram(np.array([1.0, 100.0]), one + other)
    assert (found.p99_ms, found.p999_ms, found.mean_ms) == (1, 100, pytest.approx(1.99))


@given(counts=HISTOGRAMS)
def test_the_points_rise_from_the_shortest_to_the_longest(counts: list[int]) -> None:
    at, counted = latencies(len(counts)), np.array(counts)
    points = window.points(at, counted)
    assert len(points) <= MOST_POINTS + MOST_USUAL
    assert (points[0].one_in, points[-1].one_in) == (1, sum(counts))
    assert points[-1].latency_ms == at[counted > 0].max()
    if sum(counts) > 1:
        assert points[0].latency_ms == at[counted > 0].min()
    for before, after in itertools.pairwise(points):
        assert before.one_in < after.one_in and before.latency_ms <= after.latency_ms


@given(counts=HISTOGRAMS)
def test_no_more_requests_lie_above_a_point_than_it_says(counts: list[int]) -> None:
    """And no shorter latency would do."""
    at, counted = latencies(len(counts)), np.array(counts)
    for point in window.points(at, counted)[:-1]:
        may = sum(counts) / point.one_in + 1e-6
        assert counted[at > point.latency_ms].sum() <= may
        assert counted[at >= point.latency_ms].sum() > may - 1


@given(counts=HISTOGRAMS)
def test_the_points_go_through_the_percentiles_of_the_table(counts: list[int]) -> None:
    at, counted = latencies(len(counts)), np.array(counts)
    found, drawn = window.of_histogram(at, counted), window.points(at, counted)
    told = {2.0: found.p50_ms, 100.0: found.p99_ms, 1000.0: found.p999_ms}
    through = {point.one_in: point.latency_ms for point in drawn[:-1]}
    assert all(through[one_in] == value for one_in, value in told.items() if one_in < sum(counts))
