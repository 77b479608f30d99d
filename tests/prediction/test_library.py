"""The curves in the package, and what is taken from them."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

import forecast_library
from loadframe.model import Limit, Saturation
from loadframe.prediction import library


def numbers(value: Any) -> dict[str, Any]:
    """Every number of a document by its path."""
    if not isinstance(value, dict):
        return {"": value}
    return {f"{name}.{path}": found for name, one in value.items() for path, found in numbers(one).items()}


@pytest.mark.long
def test_what_is_shipped_follows_from_the_curves() -> None:
    """benchmarks/server_curves.py --calibrate was run after the last change of curves or candidates."""
    again = numbers(json.loads(forecast_library.as_json(forecast_library.build(forecast_library.curves()))))
    shipped = numbers(json.loads(forecast_library.as_json(library.shipped())))
    assert again.keys() == shipped.keys()
    for path, value in again.items():
        assert shipped[path] == (None if value is None else pytest.approx(value, rel=0.02)), path


def test_the_curves_are_of_real_servers_with_their_source() -> None:
    curves = forecast_library.curves()
    recorded = [curve for curve in curves if curve.observations.resources]
    assert len({curve.kind for curve in recorded}) >= 6
    assert len(recorded) >= 20 and len(curves) - len(recorded) >= 15
    assert all(len(curve.observations.loads) >= 4 for curve in curves)
    assert all(row.throughput > 0 for curve in curves for row in curve.observations.rows)


def test_intervals_of_the_library_have_two_ends() -> None:
    for mine in (library.shipped().alone, library.shipped().explained):
        assert -math.inf < mine.points.low < 0 < mine.points.high < math.inf
        assert mine.scale.reach > 0 and mine.scale.spread > 0, "less is known farther away, and where candidates part"
    assert library.shipped().alone.points == library.shipped().explained.points
    assert math.isfinite(library.shipped().explained.most_throughput.high)
    assert not math.isfinite(library.shipped().alone.most_throughput.high), "a curve alone has no most"


def limit(unit: str, *, loud: bool, harm: str) -> Limit:
    return Limit("x", "x", 1, None, 1, 1, 0, loud, "", Saturation(1, 1, 1), unit=unit, thrash_metric=harm)


@pytest.mark.parametrize(
    ("one", "ends"),
    [
        (limit("count", loud=True, harm=""), True),
        (limit("count", loud=False, harm="mariadb.opened_tables"), True),
        (limit("count", loud=False, harm="system.pressure.cpu.some"), False),
        (limit("count", loud=False, harm=""), False),
        (limit("cores", loud=False, harm="cage.throttled"), False),
    ],
)
def test_limits_of_things_end_the_growth_queues_and_shares_do_not(one: Limit, ends: bool) -> None:
    assert library.binds(one) is ends
