"""Systems with a known truth, and what their measurement would have shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from loadframe.analysis import queueing
from loadframe.model import Observation, Observations

DEMANDS_S = {"cpu": 0.04, "disk": 0.008}
SERVERS = {"cpu": 8.0, "disk": 1.0}
THINK_S = 0.2
"""The disk saturates first, at (0.2 + 0.048) / 0.008 = 31 clients, with at most 125 requests per second."""

Measure = Callable[..., Observations]


def throughput(load: int, growth: float = 0.0, think_s: float = THINK_S) -> float:
    """Of the system with so many clients; growth: of the disk's demand per client."""
    demands = [DEMANDS_S["cpu"], DEMANDS_S["disk"] * (1 + growth * load)]
    return float(queueing.throughputs(demands, load, think_s, list(SERVERS.values()))[-1])


@pytest.fixture
def measure() -> Measure:
    """Windows at loads, with noise (a share) in all that is measured; seed: of the noise."""

    def made(
        loads: Sequence[int], *, noise: float = 0.0, seed: int = 1, growth: float = 0.0, blocks: int = 1
    ) -> Observations:
        random = np.random.default_rng(seed)
        rows = []
        for load in list(loads) * blocks:
            value = throughput(load, growth)
            used = {"cpu": value * DEMANDS_S["cpu"] / 8, "disk": value * DEMANDS_S["disk"] * (1 + growth * load)}
            rows.append(
                Observation(
                    float(load),
                    value * float(np.exp(random.normal(0, noise))),
                    utilizations={
                        name: min(1.0, share * float(np.exp(random.normal(0, noise)))) for name, share in used.items()
                    },
                )
            )
        return Observations("simulated", tuple(rows), axis="concurrency", servers=SERVERS)

    return made


@pytest.fixture
def true_throughput() -> Callable[..., float]:
    """What the same system does at any load."""
    return throughput
