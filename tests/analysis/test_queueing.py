"""Published answers to the digits that were printed, and what must hold of every network: laws, bounds, limits, and
that different methods give the same answer."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from loadframe.analysis.queueing import schweitzer, throughputs

ANSWERS: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "queueing.json").read_text())
some_demands = arrays(np.float64, st.integers(1, 5), elements=st.floats(0.001, 10))
populations = st.integers(1, 30)
think_times = st.one_of(st.just(0.0), st.floats(0.01, 50))
CLOSE = 1e-7


def exact(
    demands: np.ndarray, population: int, think_s: float = 0.0, servers: np.ndarray | float = 1.0
) -> tuple[float, np.ndarray]:
    """Throughput and residence times by mean value analysis (Reiser and Lavenberg 1980); servers: 1, or inf (a
    delay)."""
    queue, rate, spent = np.zeros_like(demands), 0.0, demands
    for n in range(1, population + 1):
        spent = np.where(np.isinf(servers), demands, demands * (1 + queue))
        rate = n / (think_s + spent.sum())
        queue = rate * spent
    return float(rate), spent


# --- published ---


def of(case: dict[str, Any]) -> np.ndarray:
    return np.array(case["service_s"]) * np.array(case["visits"])


def agrees(value: Any, printed: Any, digits: int) -> bool:
    """Whether a value rounds to what was printed; half of the last digit either way."""
    return bool((np.abs(np.asarray(value) - np.asarray(printed)) <= 0.5000001 * 10.0**-digits).all())


def test_schweitzer_and_exact() -> None:
    case = ANSWERS["lazowska_117"]
    demands, population, think_s = (case["demands_s"], case["population"], case["think_s"])
    near = schweitzer(demands, population, think_s)
    whole = float(throughputs(demands, population, think_s)[-1])
    assert agrees(near.throughput, case["schweitzer"]["throughput"], 4)
    assert agrees(near.residence_s.sum(), case["schweitzer"]["response_s"], 2)
    assert agrees(near.throughput * near.residence_s, case["schweitzer"]["queue"], 4)
    assert agrees(whole, case["exact"]["throughput"], 5)
    assert agrees(population / whole - think_s, case["exact"]["response_s"], 3)


def test_think_time_and_visits() -> None:
    case = ANSWERS["jain_34_2"]
    rate, residence = exact(of(case), case["population"], case["think_s"])
    assert agrees(residence / case["visits"], case["response_per_visit_s"], 3)
    assert agrees(rate * residence, case["queue"], 3)
    assert throughputs(of(case), case["population"], case["think_s"])[-1] == pytest.approx(rate)


def test_several_servers_and_a_delay() -> None:
    case = ANSWERS["bolch_8_4"]
    servers = [math.inf if count is None else count for count in case["servers"]]
    found = throughputs(of(case), case["population"], 0.0, servers)[-1]
    # Printed from steps that were rounded on the way: the last digit may differ by one.
    assert np.abs(found * np.array(case["visits"]) - case["station_throughput"]).max() < 0.0011


def test_four_single_servers() -> None:
    case = ANSWERS["bolch_8_3"]
    found = throughputs(of(case), case["population"])[-1]
    assert np.abs(found * of(case) - case["utilization"]).max() < 0.0011
    assert agrees(found * np.array(case["visits"]), case["station_throughput"], 3)


def test_many_servers_do_not_lose_digits() -> None:
    case = ANSWERS["many_servers"]
    found = throughputs([case["service_s"]], case["population"], 0.0, [case["servers"]])[-1]
    assert agrees(found, case["throughput"], 4)
    assert agrees(case["population"] / found, case["response_s"], 4)


# --- of every network ---


@given(some_demands, populations, think_times)
def test_every_request_thinks_or_is_at_a_station(demands: np.ndarray, population: int, think_s: float) -> None:
    found = schweitzer(demands, population, think_s)
    assert float(found.throughput) * (found.residence_s.sum() + think_s) == pytest.approx(population, rel=1e-6)


@given(some_demands, populations, think_times, st.data())
def test_mean_values_and_convolution_agree(demands: np.ndarray, population: int, think_s: float, data: Any) -> None:
    servers = data.draw(arrays(np.float64, len(demands), elements=st.sampled_from([1.0, math.inf])))
    every = throughputs(demands, population, think_s, servers)
    assert every[0] == 0
    assert every[1:] == pytest.approx([exact(demands, n, think_s, servers)[0] for n in range(1, population + 1)])


@given(some_demands, populations, think_times, st.data())
def test_several_servers_lie_between_one_and_one_that_is_as_fast(
    demands: np.ndarray, population: int, think_s: float, data: Any
) -> None:
    servers = data.draw(arrays(np.float64, len(demands), elements=st.sampled_from([1.0, 2.0, 8.0, 300.0])))
    found = throughputs(demands, population, think_s, servers)[-1]
    assert exact(demands, population, think_s)[0] <= found * (1 + CLOSE)
    assert found <= exact(demands / servers, population, think_s)[0] * (1 + CLOSE)
    assert float(schweitzer(demands, population, think_s, servers).throughput) == pytest.approx(found, rel=0.25)


@given(some_demands, think_times)
def test_throughput_tends_to_the_slowest_station(demands: np.ndarray, think_s: float) -> None:
    many = 4000
    ceiling = 1 / demands.max()
    enough = (demands.sum() + think_s) / demands.max() < many / 20
    found = float(schweitzer(demands, many, think_s).throughput)
    assert found <= ceiling * (1 + CLOSE)
    assert not enough or found == pytest.approx(ceiling, rel=0.02)


@given(some_demands, populations, think_times)
def test_more_requests_are_never_slower_and_more_work_never_faster(
    demands: np.ndarray, population: int, think_s: float
) -> None:
    found = throughputs(demands, population + 1, think_s)
    assert (np.diff(found) >= -CLOSE * found[1:]).all()
    assert (throughputs(1.5 * demands, population + 1, think_s) <= found * (1 + CLOSE)).all()


@given(some_demands, populations, think_times)
def test_schweitzer_is_near(demands: np.ndarray, population: int, think_s: float) -> None:
    whole = float(throughputs(demands, population, think_s)[-1])
    assert float(schweitzer(demands, population, think_s).throughput) == pytest.approx(whole, rel=0.1)


def test_many_networks_at_once_are_the_same_as_each_alone() -> None:
    demands = np.random.default_rng(3).uniform(0.1, 2, (4, 2, 3))
    population = np.array([3, 11])
    servers = [1, 1, math.inf]
    together = schweitzer(demands, population, 1.5, servers)
    for draw in range(4):
        for level, count in enumerate(population):
            alone = schweitzer(demands[draw, level], int(count), 1.5, servers)
            assert together.throughput[draw, level] == pytest.approx(float(alone.throughput))
            assert together.residence_s[draw, level] == pytest.approx(alone.residence_s)


def test_an_empty_network_does_nothing() -> None:
    found = schweitzer([1.0, 2.0], 0)
    assert (float(found.throughput), found.residence_s.tolist()) == (0, [0, 0])
