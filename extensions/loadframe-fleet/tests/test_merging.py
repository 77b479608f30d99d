"""Request logs of several hosts as one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import zstandard

from loadframe.errors import StepVoid
from loadframe.workloads.request_log import RECORD
from loadframe_fleet.clocks import ClockInStep
from loadframe_fleet.coordinator import LogOf
from loadframe_fleet.load import check_all_along, merge

CLOCK = ClockInStep(0.0, 0.001, 0.002, 0.0, 0.0, 0.001, 10.0, 12)


def log(
    host: str, *rows: tuple[float, float, int], clock: ClockInStep = CLOCK, names: tuple[str, ...] = ("get",)
) -> LogOf:
    """rows: end (s, of its clock), latency (ms), operation."""
    data = b"".join(RECORD.pack(end_s, latency_ms, 0.0, operation, 0) for end_s, latency_ms, operation in rows)
    return LogOf(host, 1, clock, zstandard.compress(data), len(data), {"operations": list(names)})


def test_requests_come_in_the_order_of_one_clock() -> None:
    ahead = replace(CLOCK, offset_s=3.0, later_s=3.0)
    found = merge([log("a", (1.0, 10, 0), (3.0, 10, 0)), log("b", (5.0, 20, 0), clock=ahead)], ())
    assert found.requests.end_s.tolist() == [1.0, 2.0, 3.0]
    assert found.requests.latency_ms.tolist() == [10, 20, 10]
    assert [(each.requests, round(each.began_s, 6)) for each in found.drivers] == [(2, 0.99), (1, 1.98)]
    assert found.apart_s == pytest.approx(0.99)


def test_a_quantile_of_all_is_no_mean_of_quantiles() -> None:
    fast = log("a", *((0.01 * number, 1.0, 0) for number in range(1, 991)))
    slow = log("b", *((0.1 * number, 100.0, 0) for number in range(1, 11)))
    assert np.quantile(merge([fast, slow], ()).requests.latency_ms, 0.95) == 1.0


def test_a_clock_that_drifts_is_mapped_between_its_two_offsets() -> None:
    drifting = replace(CLOCK, later_s=0.01)
    found = merge([log("a", (5.005, 1, 0), clock=drifting)], ())
    assert found.requests.end_s[0] == pytest.approx(5.0, abs=1e-5)
    assert drifting.theirs_s(drifting.ours_s(7.3)) == pytest.approx(7.3)


def test_operations_of_hosts_that_name_them_otherwise_are_one_list() -> None:
    found = merge([log("a", (1, 1, 1), names=("get", "put")), log("b", (2, 1, 0), names=("put",))], ("get",))
    assert (found.operations, found.requests.operation.tolist()) == (("get", "put"), [1, 1])


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (replace(log("a", (1, 1, 0)), compressed=b"nonsense"), "cannot be unpacked"),
        (replace(log("a", (1, 1, 0)), size=48), "48 were reported"),
        (replace(log("a", (1, 1, 0), (1, 1, 0)), size=24), "24 were reported"),
        (log("a", (1, 1, 5)), "names a kind of request"),
        (log("a", (float("nan"), 1, 0)), "are no numbers"),
        (log("a", (1, float("inf"), 0)), "are no numbers"),
    ],
)
def test_what_is_no_log_voids_the_step(wrong: LogOf, told: str) -> None:
    with pytest.raises(StepVoid, match=told) as error:
        merge([wrong], ())
    assert (error.value.reason, error.value.host) == ("log-refused", "a")


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([(0.5, 10, 0), (9.9, 10, 0)], ""),
        ([(1.5, 10, 0), (9.9, 10, 0)], "late-start"),
        ([(0.5, 10, 0), (5.0, 10, 0)], "load-failed"),
        ([(0.5, 10, 0), (5.0, 2000, 0)], ""),  # one of two seconds may be under way
        ([], "load-failed"),
    ],
)
def test_a_driver_that_did_not_drive_all_along_voids_the_step(
    rows: list[tuple[float, float, int]], reason: str
) -> None:
    whole = log("a", (0.2, 10, 0), (10.0, 10, 0))
    merged = merge([whole, log("b", *rows)], ())
    if not reason:
        check_all_along(merged, 1.0, 10.0)
        return
    with pytest.raises(StepVoid) as error:
        check_all_along(merged, 1.0, 10.0)
    assert (error.value.reason, error.value.host) == (reason, "b")


class Compared(str):
    """A name that counts how often one is compared with another."""

    __slots__ = ()
    count = 0

    def __str__(self) -> str:
        return self

    def __eq__(self, other: object) -> bool:
        Compared.count += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_many_names_cost_no_more_for_each() -> None:
    """URLs of their own on each host: each name is looked up, not searched for."""
    Compared.count = 0
    hosts = [[Compared(f"/{host}/{number}") for number in range(1000)] for host in range(3)]
    logs = [log(str(number), (1, 1, 999), names=tuple(names)) for number, names in enumerate(hosts)]
    found = merge(logs, ("get",))
    assert len(found.operations) == 3001 and found.requests.operation.tolist() == [1000, 2000, 3000]
    assert Compared.count < 3 * 3001
