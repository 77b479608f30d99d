"""The number of requests in service at once, with an interval that holds it."""

from __future__ import annotations

import numpy as np
import pytest

from loadframe.analysis.in_service import in_service


def sampled(
    size: int, *, service_s: float = 0.02, outside_s: float = 0.0, noise: float = 0.0, blocks: int = 3, seed: int = 1
) -> tuple[list[list[float]], list[list[float]]]:
    """Throughputs of two levels of the plateau and response times of four levels, of a pool that each request holds for
    service_s of its time."""
    random = np.random.default_rng(seed)

    def near(value: float) -> list[float]:
        return [float(each) for each in value * np.exp(random.normal(0, noise, blocks))]

    times = [service_s + outside_s, *(clients * service_s / size for clients in (2 * size, 4 * size, 8 * size))]
    return [near(size / service_s), near(size / service_s)], [near(each) for each in times]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("noise", [0.0, 0.01, 0.02])
def test_a_small_pool_is_a_whole_number(size: int, noise: float) -> None:
    assert in_service(*sampled(size, noise=noise)).whole == size


def test_time_outside_of_the_pool_widens_the_interval_downwards() -> None:
    """18 ms in a pool of 4, 2 ms elsewhere, of which 1 ms is CPU time: 4.4 would be a size of nothing."""
    found = in_service(*sampled(4, service_s=0.018, outside_s=0.0018), outside_s=0.001)
    assert found.value == pytest.approx(4.4)
    assert found.low <= 4.2
    much = in_service(*sampled(4, service_s=0.001, outside_s=0.001), outside_s=0.0011)
    assert much.value == pytest.approx(8)
    assert much.low <= 4 <= much.high
    assert much.whole is None
    assert not much.known, "between 3.6 and 8.4 is no size"


def test_where_no_whole_number_is_left_it_is_the_next_one_below() -> None:
    """What lies outside of the pool takes more than its CPU time: n is never above X R."""
    found = in_service(*sampled(1, service_s=0.005, outside_s=0.002), outside_s=0.0005)
    assert 1 < found.low < found.high < 2
    assert found.whole == 1
    assert found.holds(1)


def test_a_large_pool_has_no_name_and_a_size_in_its_interval() -> None:
    found = in_service(*sampled(32, noise=0.01), outside_s=0.0002)
    assert found.whole is None
    assert found.holds(32)
    assert not found.holds(48)


def test_noise_leaves_a_number_without_a_name() -> None:
    found = in_service(*sampled(4, noise=0.3))
    assert not found.known
    assert not found.holds(4)


def test_one_step_has_no_interval() -> None:
    found = in_service([[200.0], [201.0]], [[0.02]])
    assert not found.known
    assert found.high == float("inf")


def test_requests_that_queue_at_the_lowest_load_bound_it_from_above_only() -> None:
    found = in_service(*sampled(4), bounded=True)
    assert found.whole is None
    assert (found.low, found.known) == (1.0, False)


def test_waits_for_a_cpu_on_the_plateau_widen_it_upwards() -> None:
    slow = in_service(*sampled(4), waits_s=0.01)
    assert slow.high > 1.4 * in_service(*sampled(4)).high


@pytest.mark.parametrize("noise", [0.01, 0.03, 0.05])
def test_the_interval_holds_the_size_as_often_as_it_says(noise: float) -> None:
    held = sum(
        found.low <= 4 <= found.high
        for seed in range(400)
        for found in [in_service(*sampled(4, noise=noise, seed=seed), outside_s=0.0)]
    )
    assert held >= 0.95 * 400
