"""Measured levels: a use that flattens below its end saturates at no load, another is forecast as before."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from loadframe.experiments.forecasting import predict
from loadframe.model import Observation, Observations
from loadframe.prediction.saturating import flattening
from loadframe.reporting.forecasts import render_forecast

LOADS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)


def measured(use: Callable[[float], float], served: Callable[[float], float], seed: int = 1) -> Observations:
    random = np.random.default_rng(seed)

    def about(value: float) -> float:
        return value * float(np.exp(0.01 * random.normal()))

    rows = [
        Observation(load, about(served(load)), utilizations={"cache": min(1.0, about(use(load)))})
        for load in LOADS
        for _ in range(3)
    ]
    return Observations("levels", tuple(rows), axis="clients")


@pytest.mark.parametrize("seed", range(4))
def test_a_cache_that_fills_to_four_fifths_saturates_at_no_load(seed: int) -> None:
    """Seen: "cache saturates first, at 150 (130 to 310)" of levels from CSV."""
    found = measured(lambda n: 0.8 * n / (n + 20), lambda n: 10 * n, seed)
    assert flattening(found) == {"cache"}
    said = " ".join(render_forecast(predict(found)).split())
    assert "saturates first" not in said
    assert "flattens as the throughput rises" in said


@pytest.mark.parametrize(
    "use",
    [
        lambda n: 0.7 * n / 128,
        lambda n: 0.9 * (n / 128) ** 0.7,  # batches: each request needs less, with an end in sight
        lambda n: 1.2 * n / (n + 40),  # it flattens beyond its end
        lambda n: 0.4 * n / (n + 20),  # far from its end
    ],
)
def test_what_may_be_used_up_is_not_left_out(use: Callable[[float], float]) -> None:
    for seed in range(4):
        assert flattening(measured(use, lambda n: 10 * n, seed)) == frozenset()


def test_a_throughput_that_levels_off_is_no_use_that_does() -> None:
    """A lock holds the requests up: the use is straight over the throughput."""
    for seed in range(4):
        found = measured(lambda n: 0.8 * n / (n + 20), lambda n: 1000 * n / (n + 20), seed)
        assert flattening(found) == frozenset()


def test_nothing_flattens_where_nothing_was_served() -> None:
    assert flattening(measured(lambda n: 0.0, lambda n: 0.0)) == frozenset()
