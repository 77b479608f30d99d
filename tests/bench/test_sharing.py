"""What the driver has of its target's CPUs is known where both are measured, and nothing where they are bound apart."""

from __future__ import annotations

import os

import pytest

from loadframe.bench.evaluation import shared
from loadframe.diagnosis.signatures import is_seen
from loadframe.host.processes import bound_to, parse_cpus
from loadframe.model import DRIVER_BESIDE

TWO = frozenset({0, 1})
SEEN = {
    "target.cpu.cores": 0.76,
    "driver.cpu.cores": 1.2,
    "target.cpu.run_delay": 2.0,
    "system.cpu.count": 2.0,
    "system.cpu.utilization": 0.99,
}


def test_a_driver_with_most_of_two_cpus_is_seen() -> None:
    found = shared(SEEN, TWO, TWO)
    assert found["driver.cpu.beside"] == pytest.approx(0.6)
    assert found["target.cpus.busy"] == pytest.approx(0.99)
    assert found["target.cpus.wait"] == pytest.approx(2.0 / 2.76)
    assert is_seen(DRIVER_BESIDE, found)


def test_a_driver_that_is_bound_apart_takes_nothing() -> None:
    four = {**SEEN, "system.cpu.count": 4.0}
    found = shared(four, TWO, frozenset({2, 3}))
    assert found["driver.cpu.beside"] == 0
    assert not is_seen(DRIVER_BESIDE, found)


def test_what_it_can_have_had_on_cpus_of_its_own_is_not_counted() -> None:
    """Of three CPUs the target may use two, the driver all: one of the 1.2 may be the third."""
    found = shared({**SEEN, "system.cpu.count": 3.0}, TWO, frozenset({0, 1, 2}))
    assert found["driver.cpu.beside"] == pytest.approx(0.1)
    assert found["target.cpus.busy"] == pytest.approx((0.76 + 0.2) / 2)


def test_the_whole_machine_is_busy_with_others_too_a_part_of_it_is_not() -> None:
    assert shared({**SEEN, "driver.cpu.cores": 0.5}, TWO, TWO)["target.cpus.busy"] == pytest.approx(0.99)
    part = {**SEEN, "system.cpu.count": 8.0, "system.cpu.utilization": 0.25}
    assert shared(part, TWO, TWO)["target.cpus.busy"] == pytest.approx(0.98)


def test_cpus_that_are_not_short_are_no_finding() -> None:
    calm = {**SEEN, "target.cpu.cores": 0.4, "driver.cpu.cores": 0.9, "system.cpu.utilization": 0.66}
    assert not is_seen(DRIVER_BESIDE, shared(calm, TWO, TWO))
    assert not is_seen(DRIVER_BESIDE, shared({**SEEN, "target.cpu.run_delay": 0.01}, TWO, TWO))


@pytest.mark.parametrize("missing", ["target.cpu.cores", "driver.cpu.cores"])
def test_without_one_of_the_two_nothing_is_known(missing: str) -> None:
    found = shared({name: value for name, value in SEEN.items() if name != missing}, TWO, TWO)
    assert found == {}
    assert not is_seen(DRIVER_BESIDE, found)


def test_a_kernel_that_does_not_count_waits_leaves_the_two_others() -> None:
    found = shared({name: value for name, value in SEEN.items() if "run_delay" not in name}, TWO, TWO)
    assert found.keys() == {"driver.cpu.beside", "target.cpus.busy"}
    assert is_seen(DRIVER_BESIDE, found)


def test_the_cpus_of_a_process_are_what_the_kernel_says() -> None:
    assert parse_cpus(bound_to(os.getpid()) or "") == frozenset(os.sched_getaffinity(0))
    assert bound_to(2**22 + 1) is None
