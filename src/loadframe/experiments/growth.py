"""How a load goes on: forecast from its windows, scored by its later ones."""

from __future__ import annotations

from collections.abc import Sequence

from loadframe.errors import SampleError
from loadframe.model import GrowthForecast, LoadWindow, Memories
from loadframe.prediction import size_forecast


def forecast_growth(
    windows: Sequence[LoadWindow],
    at: Sequence[float] = (),
    *,
    memories: Memories | None = None,
    up_to: float | None = None,
) -> GrowthForecast:
    """The rate and the time at the sizes `at` (entries), from the windows up to `up_to` only where that is given; the
    later ones score it. Without `at`: up to the load's end, else 2 and 4 times what was seen. SampleError where no
    window is left to forecast from."""
    seen = [one for one in windows if up_to is None or one.after <= up_to]
    if not seen:
        raise SampleError(
            f"the load has no window up to {up_to:,.0f} entries; the first ends at {windows[0].after:,.0f}"
            if windows and up_to is not None
            else "a load without windows tells nothing",
            remedy="Choose a higher --up-to.",
        )
    if up_to is not None and not at and windows[-1].after > seen[-1].after:
        at = [windows[-1].after]
    return size_forecast.score(size_forecast.forecast(seen, at, memories), windows)
