"""Candidates are weighed by what they foretold."""

from __future__ import annotations

import math

import numpy as np
import pytest

from loadframe.analysis import scalability
from loadframe.model import Observation, Observations
from loadframe.prediction import candidates, pool
from loadframe.prediction.candidates import ALONE, WITH_RESOURCES, Seen

LIBRARY = dict.fromkeys((*ALONE, *WITH_RESOURCES), 0.2)


def seen(
    loads: list[float], throughputs: list[float], used: list[float] | None = None, limit: float = math.inf
) -> Seen:
    rows = tuple(
        Observation(load, value, utilizations={"disk": used[index]} if used else {})
        for index, (load, value) in enumerate(zip(loads, throughputs, strict=True))
    )
    observations = Observations("x", rows, axis="concurrency")
    return candidates.seen(observations, "closed", ("disk",) if used else (), limit)


def test_what_foretold_the_last_loads_from_the_first_counts_most() -> None:
    rising = seen([1, 2, 4, 8, 16], [10, 20, 40, 80, 160])
    still = seen([1, 2, 4, 8, 16], [100, 100, 100, 100, 100])
    for data, best in ((rising, "line"), (still, "flat")):
        weights = pool.weigh(pool.backtests(data, ("flat", "law", "line")), LIBRARY).weights
        assert max(weights, key=lambda name: weights[name]) == best
        assert sum(weights.values()) == pytest.approx(1)


def test_without_backtests_the_library_decides() -> None:
    two = seen([1, 2], [10, 20])
    assert pool.backtests(two, ALONE) == {name: [] for name in ALONE}
    weighed = pool.weigh(pool.backtests(two, ALONE), {**LIBRARY, "law": 0.05})
    assert max(weighed.weights, key=lambda name: weighed.weights[name]) == "law"


def test_where_candidates_part_and_farther_away_less_is_known() -> None:
    data = seen([1, 2, 4, 8], [10, 19, 35, 60])
    weighed = pool.weigh(pool.backtests(data, ALONE), LIBRARY)
    loads = np.array([16.0, 64.0])
    found = pool.pooled(candidates.forecasts(data, loads, ALONE), np.log2(loads / 8), weighed)
    assert found.scale[1] > found.scale[0] > pool.FLOOR
    alike = {name: np.zeros(1) for name in ALONE}
    assert pool.pooled(alike, np.ones(1), weighed).scale[0] < found.scale[0]


def test_the_forecast_lies_between_the_law_and_what_the_candidates_have_in_common() -> None:
    data = seen([1, 2, 4, 8, 16], [10, 19, 35, 60, 85])
    weighed = pool.weigh(pool.backtests(data, ALONE), LIBRARY)
    loads = np.array([32.0, 64.0])
    each, law = candidates.forecasts(data, loads, ALONE), candidates.least_squares(data, loads)
    fitted = scalability.fit(data.loads, data.throughputs)
    assert np.exp(law) == pytest.approx(scalability.predict(loads, fitted.lambda_, fitted.sigma, fitted.kappa))
    common = pool.pooled(each, np.log2(loads / 16), weighed).log_x
    assert pool.pooled(each, np.log2(loads / 16), weighed, law).log_x == pytest.approx((common + law) / 2)


def test_few_loads_have_the_law_that_the_library_helps_to_fit() -> None:
    data, loads = seen([1, 2, 4], [10, 19, 35]), np.array([8.0, 16.0])
    assert candidates.least_squares(data, loads) == pytest.approx(candidates.forecasts(data, loads, ("law",))["law"])


def test_a_need_that_falls_with_the_load_leaves_room_for_more() -> None:
    """U = 0.002 sqrt X, as batches make it: all is used at 250,000/s."""
    loads = [1.0, 2.0, 4.0, 8.0]
    x = [1000 * load for load in loads]
    data = seen(loads, x, [0.002 * math.sqrt(value) for value in x])
    straight, falling = (math.exp(candidates.ceiling(data, grows=grows)) for grows in (False, True))
    assert straight < 60_000 < falling < 260_000
    growing = seen(loads, x, [1e-6 * value**1.3 for value in x])
    assert candidates.ceiling(growing, grows=True) < candidates.ceiling(growing, grows=False)


def test_no_candidate_expects_less_than_was_seen() -> None:
    """A resource that is used up while more and more is served: the most is at least what was."""
    data = seen([1, 2, 4, 8], [1000, 2000, 3000, 4000], [0.5, 0.9, 0.95, 1.0])
    assert min(candidates.ceilings(data).values()) >= math.log(4000)


def test_beyond_a_limit_nothing_grows() -> None:
    data = seen([1, 2, 4, 8], [10, 20, 40, 80], [0.01, 0.02, 0.04, 0.08], limit=10)
    for values in candidates.forecasts(data, np.array([10.0, 40.0]), WITH_RESOURCES).values():
        assert values[1] == pytest.approx(values[0])
    law = candidates.least_squares(data, np.array([10.0, 40.0]))
    assert law[1] == pytest.approx(law[0])
    assert candidates.forecasts(data, np.array([40.0]), ("line",))["line"][0] == pytest.approx(math.log(100), rel=0.02)
