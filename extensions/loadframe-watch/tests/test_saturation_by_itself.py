"""What grows by itself is told with the hour it ends; what follows the load, or fills up and stays, is not."""

from __future__ import annotations

import math
import random

import pytest

from loadframe_watch.leaks import leak

MIB = 2.0**20
LEVEL = 1e-4


def minutes(count: int) -> list[float]:
    return [60.0 * at for at in range(count)]


def loads(times: list[float], seed: int = 1) -> list[float | None]:
    noise = random.Random(seed)
    return [50 + 40 * math.sin(2 * math.pi * at / 86400) + noise.gauss(0, 5) for at in times]


@pytest.mark.parametrize("hours", [2, 8, 24])
def test_a_leak_of_a_mib_a_minute_is_told_with_its_hour(hours: int) -> None:
    noise, times = random.Random(2), minutes(60 * hours)
    given = loads(times)
    uses = [300 * MIB + 0.5 * MIB * (load or 0) + MIB / 60 * at + noise.gauss(0, 3 * MIB)
            for at, load in zip(times, given, strict=True)]  # fmt: skip
    ceiling = 2048 * MIB
    found = leak(times, uses, given, ceiling, level=LEVEL)
    assert found is not None
    assert found.slope * 60 == pytest.approx(MIB, rel=0.15)
    left_s = (ceiling - uses[-1]) / (MIB / 60)
    assert found.ends.low * 0.9 < left_s < found.ends.high * 1.1
    assert found.ends.low <= found.ends.load <= found.ends.high


def test_memory_that_follows_the_load_is_no_leak() -> None:
    noise, times = random.Random(3), minutes(8 * 60)
    given = loads(times)
    uses = [300 * MIB + 2 * MIB * (load or 0) + noise.gauss(0, 3 * MIB) for load in given]
    assert leak(times, uses, given, 2048 * MIB, level=LEVEL) is None


def test_a_morning_is_no_leak_where_a_few_loads_are_missing() -> None:
    """A source that did not answer for some minutes must not make a leak of what follows the load."""
    noise, times = random.Random(5), minutes(8 * 60)
    given: list[float | None] = [20 + at / 400 + noise.gauss(0, 12) for at in times]
    uses = [300 * MIB + 2 * MIB * (load or 0) + noise.gauss(0, 3 * MIB) for load in given]
    assert leak(times, uses, given, 2048 * MIB, level=LEVEL) is None
    without = [None if 100 <= at < 110 else load for at, load in enumerate(given)]
    assert leak(times, uses, without, 2048 * MIB, level=LEVEL) is None
    unknown = leak(times, uses, [None] * len(times), 2048 * MIB, level=LEVEL)
    assert unknown is not None and not unknown.load_known


def test_a_cache_that_fills_is_no_leak() -> None:
    noise, times = random.Random(4), minutes(12 * 60)
    uses = [300 * MIB + 700 * MIB * (1 - math.exp(-at / 7200)) + noise.gauss(0, MIB) for at in times]
    assert leak(times, uses, loads(times), 4096 * MIB, level=LEVEL) is None


def test_quiet_memory_gives_none_in_many_looks() -> None:
    told = 0
    for seed in range(60):
        noise, deviation, uses = random.Random(seed), 0.0, []
        times = minutes(6 * 60)
        for _ in times:
            deviation = 0.95 * deviation + noise.gauss(0, MIB)
            uses.append(300 * MIB + deviation)
        told += leak(times, uses, loads(times, seed), 2048 * MIB, level=LEVEL) is not None
    assert told == 0


def test_what_carries_no_line_gives_none() -> None:
    times = minutes(40)
    assert leak(times[:10], [1.0] * 10, [None] * 10, 100.0, level=LEVEL) is None
    assert leak(times, [100.0] * 40, [None] * 40, 100.0, level=LEVEL) is None
    assert leak(times, [50.0] * 40, [None] * 40, 100.0, level=LEVEL) is None
    rising = [float(at) for at in range(40)]
    assert leak(times, rising, list(rising), 100.0, level=LEVEL) is None, "the load has risen as straight"
    assert leak(times, rising, [None] * 40, 100.0, level=LEVEL) is not None
