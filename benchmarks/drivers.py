"""Simulated load drivers beside their targets, for benchmarks/sceptic.py: what they cost is known exactly.

A request is worked on by the driver and by the target, in turn, and may wait elsewhere (a disk, a client that thinks).
On common CPUs both are one station with m servers; apart the target has the m CPUs to itself and the driver delays
nobody. Closed networks, solved exactly (convolution).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loadframe.analysis import queueing
from loadframe.bench.evaluation import shared
from loadframe.diagnosis.signatures import DRIVER_LIMITED, is_seen
from loadframe.model import DRIVER_BESIDE

NOISE = 0.03
"""Each counter is off by so much, as a share."""
LIGHT, HEAVY = 1.1, 1.5
"""Apart the target would do less than a tenth more, or half as much again and more."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A step. worth: throughput with the driver elsewhere, over that beside it; flagged: by the shipped rule; limited:
    by the rule for drivers that are the bottleneck; share: of the CPUs, the driver's."""

    worth: float
    flagged: bool
    limited: bool
    share: float


def one(random: np.random.Generator) -> Seen:
    """A drawn machine, target, driver and load; every third driver is bound to CPUs of its own."""
    cpus = int(random.choice([1, 2, 4, 8]))
    target_s = 1e-3
    driver_s = target_s * 10 ** random.uniform(-1.5, 0.7)
    think_s = target_s * random.choice([0.0, 1.0, 10.0]) * random.uniform(0.5, 2)
    clients = int(random.integers(1, 12 * cpus + 1))
    bound_apart = random.random() < 1 / 3
    alone = float(queueing.throughputs([target_s], clients, think_s + driver_s, cpus)[-1])
    if bound_apart:
        x, waiting_s, worth = alone, clients / alone - think_s - driver_s - target_s, 1.0
    else:
        both_s = target_s + driver_s
        x = float(queueing.throughputs([both_s], clients, think_s, cpus)[-1])
        waiting_s = (clients / x - think_s - both_s) * target_s / both_s
        worth = alone / x
    share = x * driver_s / cpus
    own = frozenset(range(cpus))
    theirs = frozenset(range(cpus, 2 * cpus)) if bound_apart else own
    everywhere = 2 * cpus if bound_apart else cpus
    seen = {
        "target.cpu.cores": x * target_s,
        "driver.cpu.cores": x * driver_s,
        "target.cpu.run_delay": x * max(waiting_s, 0.0),
        "system.cpu.utilization": min(x * (target_s + driver_s) / everywhere, 1.0),
        "driver.saturation": min(share, 1.0),
        "target.saturation": x * target_s / cpus,
    }
    seen = {name: value * float(np.exp(NOISE * random.standard_normal())) for name, value in seen.items()}
    seen["system.cpu.count"] = everywhere
    found = seen | shared(seen, own, theirs)
    return Seen(worth, is_seen(DRIVER_BESIDE, found), is_seen(DRIVER_LIMITED, found), share)


def many(count: int, seed: int) -> list[Seen]:
    """Drawn steps."""
    random = np.random.default_rng(seed)
    return [one(random) for _ in range(count)]
