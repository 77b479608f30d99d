"""What must hold of every network: laws, bounds, limits, and that different methods give the same answer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from loadframe.analysis.queueing import convolution, laws, mva

some_demands = arrays(np.float64, st.integers(1, 5), elements=st.floats(0.001, 10))
populations = st.integers(1, 30)
think_times = st.one_of(st.just(0.0), st.floats(0.01, 50))
CLOSE = 1e-7


@given(some_demands, populations, think_times)
def test_the_laws_hold_in_every_solution(demands: np.ndarray, population: int, think_s: float) -> None:
    for found in (mva.exact(demands, population, think_s), mva.schweitzer(demands, population, think_s)):
        assert found.queue.sum() + float(found.throughput) * think_s == pytest.approx(population, rel=1e-6)
        assert found.utilization == pytest.approx(laws.utilization(found.throughput, demands))
        assert found.response_s == pytest.approx(population / found.throughput - think_s, abs=1e-6)
        assert found.residence_s == pytest.approx(found.queue / found.throughput), "Little's law"


@given(some_demands, populations, think_times, st.data())
def test_mean_values_and_convolution_agree(demands: np.ndarray, population: int, think_s: float, data: Any) -> None:
    servers = data.draw(arrays(np.float64, len(demands), elements=st.sampled_from([1.0, math.inf])))
    one = mva.exact(demands, population, think_s, servers)
    two = convolution.multi_server(demands, population, think_s, servers)
    assert float(one.throughput) == pytest.approx(two.throughput, rel=1e-8)
    assert one.queue == pytest.approx(two.queue, rel=1e-6, abs=1e-8)
    assert one.utilization == pytest.approx(two.utilization, rel=1e-8, abs=1e-12)
    assert convolution.throughputs(demands, population, think_s, servers)[-1] == pytest.approx(two.throughput)


@given(some_demands, populations, think_times, st.data())
def test_several_servers_lie_between_one_and_one_that_is_as_fast(
    demands: np.ndarray, population: int, think_s: float, data: Any
) -> None:
    servers = data.draw(arrays(np.float64, len(demands), elements=st.sampled_from([1.0, 2.0, 8.0, 300.0])))
    found = convolution.multi_server(demands, population, think_s, servers)
    assert found.queue.sum() + found.throughput * think_s == pytest.approx(population)
    assert found.utilization == pytest.approx(laws.utilization(found.throughput, demands, servers))
    assert float(mva.exact(demands, population, think_s).throughput) <= found.throughput * (1 + CLOSE)
    assert found.throughput <= float(mva.exact(demands / servers, population, think_s).throughput) * (1 + CLOSE)
    near = float(mva.schweitzer(demands, population, think_s, servers).throughput)
    assert near == pytest.approx(found.throughput, rel=0.25)


@given(some_demands, populations, think_times)
def test_one_server_is_the_plain_station(demands: np.ndarray, population: int, think_s: float) -> None:
    plain = mva.exact(demands, population, think_s)
    assert mva.exact(demands, population, think_s, np.ones(len(demands))).throughput == plain.throughput
    speeds = np.ones((len(demands), population))
    found = convolution.load_dependent(demands, speeds, population, think_s)
    assert found.throughput == pytest.approx(float(plain.throughput), rel=1e-9)
    assert found.utilization == pytest.approx(plain.utilization, rel=1e-6, abs=1e-12)


@given(some_demands, think_times)
def test_throughput_tends_to_the_slowest_station(demands: np.ndarray, think_s: float) -> None:
    many = 4000
    ceiling = 1 / demands.max()
    enough = (demands.sum() + think_s) / demands.max() < many / 20
    found = float(mva.schweitzer(demands, many, think_s).throughput)
    assert found <= ceiling * (1 + CLOSE)
    assert not enough or found == pytest.approx(ceiling, rel=0.02)


@given(some_demands, populations, think_times)
def test_more_requests_are_never_slower_and_more_work_never_faster(
    demands: np.ndarray, population: int, think_s: float
) -> None:
    found = float(mva.exact(demands, population, think_s).throughput)
    assert float(mva.exact(demands, population + 1, think_s).throughput) >= found * (1 - CLOSE)
    assert float(mva.exact(1.5 * demands, population, think_s).throughput) <= found * (1 + CLOSE)


@given(some_demands, populations, think_times)
def test_schweitzer_is_near(demands: np.ndarray, population: int, think_s: float) -> None:
    exact = float(mva.exact(demands, population, think_s).throughput)
    assert float(mva.schweitzer(demands, population, think_s).throughput) == pytest.approx(exact, rel=0.1)


def test_many_networks_at_once_are_the_same_as_each_alone() -> None:
    demands = np.random.default_rng(3).uniform(0.1, 2, (4, 2, 3))
    population = np.array([3, 11])
    servers = [1, 1, math.inf]
    together = mva.exact(demands, population, 1.5, servers)
    for draw in range(4):
        for level, count in enumerate(population):
            alone = mva.exact(demands[draw, level], int(count), 1.5, servers)
            assert together.throughput[draw, level] == pytest.approx(float(alone.throughput))
            assert together.queue[draw, level] == pytest.approx(alone.queue)


def test_an_empty_network_does_nothing() -> None:
    for method in (mva.exact, mva.schweitzer):
        found = method([1.0, 2.0], 0)
        assert (float(found.throughput), float(found.response_s)) == (0, 0)


@pytest.mark.parametrize("population", [50, 400])
def test_load_dependent_stations_stay_exact_where_subtraction_fails(population: int) -> None:
    """A station that works at its full speed only with many requests, and a long think time; probabilities sum to 1."""
    speeds = np.array([np.minimum(np.arange(1, population + 1), 40) ** 0.8, np.ones(population)])
    found = convolution.load_dependent([1.0, 0.02], speeds, population, 30.0)
    assert found.probabilities.sum(axis=1) == pytest.approx([1, 1])
    assert found.queue.sum() + 30 * found.throughput == pytest.approx(population)
    served = (found.probabilities[0, 1:] * speeds[0]).sum()
    assert served == pytest.approx(found.throughput)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: mva.exact([-1.0], 1),
        lambda: mva.exact([1.0], 1.5),
        lambda: mva.exact([1.0], 1, 0.0, [2]),
        lambda: mva.schweitzer([1.0], 1, 0.0, [0]),
        lambda: mva.exact([1.0], math.inf),
        lambda: mva.schweitzer([math.nan], 1),
        lambda: convolution.load_dependent([1.0], [[1.0]], 2),
        lambda: convolution.multi_server([1.0], 0),
    ],
)
def test_impossible_networks_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"\d"):
        wrong()
