"""Latencies of 40 ms are a mode only where there are none beside it."""

from __future__ import annotations

import numpy as np
import pytest

from loadframe.analysis.window import DELAYED_ACK_MS, HIGHEST_CONTRAST, Band, band


def of(*latencies_ms: float) -> Band | None:
    return band(np.array(latencies_ms, np.float32), *DELAYED_ACK_MS)


def test_a_mode_of_44_ms_stands_out() -> None:
    found = of(*[44.0] * 90, *[2.0] * 10)
    assert found is not None
    assert found.share == pytest.approx(0.9)
    assert found.contrast == HIGHEST_CONTRAST


def test_a_broad_distribution_around_40_ms_is_none() -> None:
    latencies = np.random.default_rng(1).gamma(4.0, 11.0, 4000).astype(np.float32)
    found = band(latencies, *DELAYED_ACK_MS)
    assert found is not None
    assert 0.1 < found.share < 0.4
    assert found.contrast < 1.5


def test_what_is_a_little_late_belongs_to_the_mode_and_what_is_below_it_does_not() -> None:
    late, early = of(*[44.0] * 60, *[50.0] * 40), of(*[33.0] * 50, *[43.0] * 10)
    assert late is not None and early is not None
    assert late.contrast == HIGHEST_CONTRAST
    assert early.contrast == pytest.approx(0.2)


def test_the_band_has_its_lower_end_and_not_its_upper_one() -> None:
    found = of(38.0, 48.0, 37.9, 58.0, 68.0)
    assert found is not None
    assert (found.share, found.contrast) == (0.2, 1.0)
    assert of() is None
