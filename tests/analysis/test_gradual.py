"""A curve without a corner has no knee that other levels would confirm: it is told to bend gradually, and where."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from loadframe.analysis import curve as curves
from loadframe.model import Curve, LoadInterval, Observation, Observations
from loadframe.reporting.words import curve_facts, curve_phrase

LEVELS: dict[str, Sequence[float]] = {
    "doubled": [2.0**at for at in range(8)],
    "even": np.linspace(5, 100, 14).tolist(),
    "close": np.geomspace(1, 200, 20).tolist(),
}
SMOOTH: dict[str, Callable[[float], float]] = {
    "Michaelis-Menten": lambda n: 100 * n / (n + 20),
    "Amdahl": lambda n: n / (1 + 0.05 * (n - 1)),
    "scalability law": lambda n: n / (1 + 0.05 * (n - 1) + 0.0005 * n * (n - 1)),
    "exponential": lambda n: 100 * (1 - float(np.exp(-n / 20))),
}
CORNERS: dict[str, Callable[[float], float]] = {
    "corner": lambda n: min(3.3 * n, 100),
    "rounded corner": lambda n: 100 * (n / 30) / (1 + (n / 30) ** 6) ** (1 / 6),
}


def measured(shape: Callable[[float], float], levels: Sequence[float], seed: int, noise: float = 0.02) -> Curve:
    random = np.random.default_rng(seed)
    rows = [Observation(n, shape(n) * float(np.exp(noise * random.normal()))) for n in levels for _ in range(5)]
    return curves.of(Observations("x", tuple(rows), axis="clients"))


@pytest.mark.long
@pytest.mark.parametrize("name", SMOOTH)
def test_the_interval_of_one_set_of_levels_holds_for_the_others(name: str) -> None:
    """Seen: 15.5 (12.3 to 19.6) from one set of levels, 5.5 (5.3 to 7.0) from another, of one hyperbola."""
    for seed in range(3):
        found = [measured(SMOOTH[name], levels, seed) for levels in LEVELS.values()]
        places = [one.knee for one in found if one.knee is not None]
        assert len(places) == 3 and all(one.gradual is not None for one in found)
        assert all(one.low <= other.load <= one.high for one in places for other in places)
        assert all("gradually" in curve_phrase(one, "clients") for one in found)
        assert all("no single load is its knee" in " ".join(curve_facts(one, "clients")) for one in found)


def test_it_bends_between_the_elasticities_that_are_named() -> None:
    """Those of 100 n / (n + 20) are 4/5 at 5 and 1/5 at 80."""
    found = measured(SMOOTH["Michaelis-Menten"], np.geomspace(1, 500, 20).tolist(), 1, 0.005).gradual
    assert found is not None
    assert 3.5 < found.low <= 5.3 and 75 <= found.high < 110


@pytest.mark.parametrize("name", CORNERS)
@pytest.mark.parametrize("noise", [0.005, 0.02, 0.05])
def test_a_corner_is_told_as_one(name: str, noise: float) -> None:
    for levels in LEVELS.values():
        found = measured(CORNERS[name], levels, 4, noise)
        assert found.gradual is None and found.knee is not None
        assert found.knee.low < 32 and found.knee.high > 28


def test_ends_that_are_those_of_the_levels_are_not_told_as_loads() -> None:
    whole = measured(SMOOTH["Michaelis-Menten"], np.geomspace(12, 60, 12).tolist(), 2, 0.002)
    assert whole.knee is not None and whole.gradual == LoadInterval(whole.knee.load, 12, 60)
    said = curve_phrase(whole, "clients")
    assert said.startswith("levels off gradually from the lowest load on, and still does at 60")
