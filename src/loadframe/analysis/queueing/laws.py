"""The utilisation law (Denning and Buzen 1978), true of every measured window, whatever distributions are."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def utilization(throughput: ArrayLike, demands_s: ArrayLike, servers: ArrayLike = 1.0) -> Floats:
    """Utilisation law: U = X D / m, the share of m servers in use. Arguments broadcast together."""
    return np.asarray(np.asarray(throughput) * np.asarray(demands_s) / np.asarray(servers), dtype=np.float64)


def positive(values: ArrayLike, what: str) -> Floats:
    """The values as an array. ValueError where one is negative or not a number; zeros are allowed."""
    array = np.asarray(values, dtype=np.float64)
    if not (array >= 0).all():
        raise ValueError(f"{what} must be 0 or more, got {values!r}")
    return array
