"""The scalability law gives the published parameters, and says what the data do not prove."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student

from loadframe.analysis.scalability import fit, predict

CURVES: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "curves.json").read_text())


def standard_error(interval: tuple[float, float], points: int) -> float:
    return (interval[1] - interval[0]) / 2 / float(student.ppf(0.975, points - 3))


def test_specsdm91_is_reproduced_with_its_standard_errors() -> None:
    data = CURVES["specsdm91"]
    published = data["published_fit"]
    found = fit(np.array(data["N"]), np.array(data["X"]))
    points = len(data["N"])
    assert round(found.lambda_, 1) == published["lambda"]
    assert round(found.sigma, 5) == published["sigma"]
    assert round(found.kappa, 7) == published["kappa"]
    assert round(standard_error(found.lambda_interval, points), 1) == published["lambda_se"]
    assert round(standard_error(found.sigma_interval, points), 5) == published["sigma_se"]
    assert round(standard_error(found.kappa_interval, points), 7) == published["kappa_se"]
    assert found.peak_load == pytest.approx(published["peak_load"], abs=0.005)
    top = predict(np.array([found.peak_load]), found.lambda_, found.sigma, found.kappa)[0]
    assert round(top) == published["peak_throughput"]


def test_raytracer_is_reproduced() -> None:
    data = CURVES["raytracer_first6"]
    found = fit(np.array(data["N"]), np.array(data["X"]))
    published = data["published_fit"]
    assert round(found.sigma, 5) == published["sigma"]
    assert round(found.kappa, 5) == published["kappa"]
    assert round(found.lambda_, 3) == published["lambda"]


def test_the_truth_behind_synthetic_data_is_found() -> None:
    data = CURVES["synthetic"]
    found = fit(np.array(data["N"]), np.array(data["X"]))
    truth = data["truth"]
    assert [found.lambda_, found.sigma, found.kappa] == pytest.approx(
        [truth["lambda"], truth["sigma"], truth["kappa"]], abs=2e-5
    )
    assert found.peak_load == pytest.approx(math.sqrt((1 - truth["sigma"]) / truth["kappa"]), abs=1e-3)


def test_proportional_growth_has_no_peak() -> None:
    load = np.array([1.0, 2, 4, 8, 16, 32])
    found = fit(load, 3 * load)
    assert (found.sigma, found.kappa, found.peak_load) == (0.0, 0.0, None)
    assert found.lambda_ == pytest.approx(3)


def test_superlinear_growth_stays_within_the_bounds() -> None:
    load = np.array([1.0, 2, 4, 8, 16])
    found = fit(load, load**1.2)
    assert found.sigma >= 0
    assert found.kappa >= 0


@pytest.mark.long
def test_intervals_cover_the_truth() -> None:
    load = np.array([1.0, 2, 4, 8, 16, 32, 64, 128])
    truth = predict(load, 100.0, 0.05, 2e-4)
    random = np.random.default_rng(11)
    covered = 0
    for _ in range(100):
        found = fit(load, truth + random.normal(0, 10, len(load)))
        covered += found.sigma_interval[0] <= 0.05 <= found.sigma_interval[1]
    assert covered >= 90
