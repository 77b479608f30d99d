"""Steps over some hundred hosts that are simulated (benchmarks/fleet.py has thousands): the coordinating code is the
real one, and what must hold on few hosts holds on many."""

from __future__ import annotations

import numpy as np
import pytest

import fleet
from fleet_simulated import (
    LABORATORY,
    LOSSES,
    OPERATIONS,
    WIDE,
    Host,
    Kind,
    Loss,
    Middle,
    Simulated,
    hosts_of,
)
from loadframe.errors import StepVoid, StudyError
from loadframe_fleet.coordinator import CLOCKS_WITHIN_S, PIECE_BYTES, Begun, Coordinator, LogOf, shares_of
from loadframe_fleet.load import merge
from waiting import await_that

MOST = 128 << 20
KINDS = [pytest.param(LABORATORY, id="laboratory"), pytest.param(WIDE, id="wide")]
QUESTIONS = ("prepare", "clock", "start", "ended", "read")


def stepped(world: Simulated) -> tuple[Coordinator, Begun, list[LogOf]]:
    coordinator = Coordinator(world, list(world.hosts))
    begun = coordinator.begin("step-1", shares_of(len(world.hosts), coordinator.drivers), 5.0)
    await_that(lambda: coordinator.wait(0.2), "the step ends", pause_s=0.0)
    return coordinator, begun, coordinator.collect(MOST)


@pytest.mark.parametrize("count", [10, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_all_begin_within_what_is_told_of_their_clocks(kind: Kind, count: int) -> None:
    world = Simulated(hosts_of(kind, count, 1), Middle(), 1)
    _, begun, logs = stepped(world)
    for host in world.hosts.values():
        clock = begun.clocks[host.name]
        drifted_s = abs(host.gains) * (begun.start_s - clock.at_s) + 1e-9
        assert abs(clock.offset_s - (host.theirs(clock.at_s) - clock.at_s)) <= clock.uncertainty_s + 1e-9
        assert abs(host.start_s - begun.start_s) <= clock.uncertainty_s + drifted_s
    unsure_s = {log.host: max(log.clock.uncertainty_s, log.clock.later_uncertainty_s) for log in logs}
    merged = merge(logs, ())
    for driver in merged.drivers:
        # a latency is kept as a float32 of ms: the begin of a request is known to that
        assert abs(driver.began_s - world.hosts[driver.host].start_s) <= unsure_s[driver.host] + 1e-6
    begins = [host.start_s for host in world.hosts.values()]
    assert abs(merged.apart_s - (max(begins) - min(begins))) <= sum(sorted(unsure_s.values())[-2:]) + 2e-6


@pytest.mark.parametrize("count", [10, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_the_whole_is_that_of_all_requests_together(kind: Kind, count: int) -> None:
    world = Simulated(hosts_of(kind, count, 2), Middle(), 2)
    merged = merge(stepped(world)[2], ())
    all_of_them = np.concatenate([world.log(host) for host in world.hosts.values()])
    assert merged.operations == OPERATIONS
    assert len(merged.requests) == len(all_of_them) == sum(each.requests for each in merged.drivers)
    assert np.array_equal(np.sort(merged.requests.latency_ms), np.sort(all_of_them["latency_ms"]))
    for operation in range(len(OPERATIONS)):
        assert np.array_equal(
            np.sort(merged.requests.latency_ms[merged.requests.operation == operation]),
            np.sort(all_of_them["latency_ms"][all_of_them["operation"] == operation]),
        )
    assert (np.diff(merged.requests.end_s) >= 0).all()


@pytest.mark.parametrize("count", [10, 100])
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_host_that_is_lost_at_any_point_voids_the_step_and_ends_all_load(
    loss: str, question: str, count: int
) -> None:
    hosts = hosts_of(WIDE, count, 3)
    lost = hosts[count // 2]
    world = Simulated(hosts, Middle(), 3, Loss(lost.name, question, loss))
    with pytest.raises(StepVoid) as error:
        stepped(world)
    assert (error.value.host, error.value.reason) == (lost.name, "agent-lost")
    assert all(host.cancelled for host in hosts if host is not lost)


def test_what_bounds_a_clock_does_not_grow_with_the_number_of_hosts() -> None:
    alike = Kind(spread=0.0, jitter=0.0)
    bounds = {}
    for count in (10, 1000):
        world = Simulated(hosts_of(alike, count, 4), Middle(), 4)
        clocks = Coordinator(world, list(world.hosts)).clocks(world.hosts)
        bounds[count] = max(each.uncertainty_s for each in clocks.values())
    assert bounds[1000] < 1.5 * bounds[10]


def near(name: str, number: int, **more: float) -> Host:
    given = {"ready_s": 0.1, "over_s": 0.1, "requests": 50, "bytes_per_s": 1e9, "there_s": 0.001, **more}
    return Host(name, number, 5.0, 0.0, back_s=0.001, jitter_s=0.0, **given)  # type: ignore[arg-type]


def test_a_host_that_answers_once_in_ten_seconds_has_its_bounds() -> None:
    world = Simulated([near("far", 0, there_s=CLOCKS_WITHIN_S * 0.9), near("near", 1)], Middle())
    clocks = Coordinator(world, ["far", "near"]).clocks(["far", "near"])
    assert clocks["far"].uncertainty_s > 4 and clocks["near"].uncertainty_s < 0.01


def test_of_several_hosts_the_one_that_tells_no_time_is_named() -> None:
    """Another one, which is late as well, has told some before."""
    once = near("once", 0, there_s=CLOCKS_WITHIN_S * 0.9)
    never = near("never", 1, there_s=3 * CLOCKS_WITHIN_S)
    with pytest.raises(StepVoid, match="host 'never' has not reported the time") as error:
        Coordinator(Simulated([once, never], Middle()), ["once", "never"]).clocks(["once", "never"])
    assert error.value.reason == "agent-lost"


def test_slow_links_keep_no_other_host_from_sending() -> None:
    """Twenty hosts that take a second for their log, among a thousand: about a second for all, not twenty."""
    slow = {number for number in range(1000) if number % 50 == 0}
    hosts = [near(f"h{number}", number, bytes_per_s=1000.0 if number in slow else 1e9) for number in range(1000)]
    world = Simulated(hosts, Middle())
    *_, logs = stepped(world)
    took_s = world.time_s - max(host.start_s for host in hosts) - 5.0
    longest_s = max(2 * len(log.compressed) * 4 / 3 / 1000.0 for log in logs)
    assert took_s < longest_s + 6.0
    assert len(logs) == 1000


@pytest.mark.long
def test_the_start_leaves_time_to_tell_all_of_it() -> None:
    """Telling them takes 0.6 s, and their clocks are told in so short a time that it does not show there."""
    hosts = hosts_of(Kind(spread=0.0, jitter=0.0), 5000, 5)
    coordinator = Coordinator(Simulated(hosts, Middle(message_s=0.12e-3)), [host.name for host in hosts])
    begun = coordinator.begin("step-1", dict.fromkeys(coordinator.drivers, 1), 5.0)
    assert max(host.start_s for host in hosts) < begun.start_s + 0.01


@pytest.mark.long
def test_recordings_come_in_pieces_that_are_few_at_a_time() -> None:
    hosts = [near(f"h{number}", number) for number in range(40)]
    for host in hosts:
        host.recorded_bytes = 3 * PIECE_BYTES + 7
    world = Simulated(hosts, Middle())
    coordinator = Coordinator(world, list(world.hosts))
    sizes = dict.fromkeys(world.hosts, 0)
    for host, piece in coordinator.recorded(world.hosts, {"h3": PIECE_BYTES}):
        sizes[host] += len(piece)
    assert sizes == dict.fromkeys(world.hosts, 3 * PIECE_BYTES + 7) | {"h3": 2 * PIECE_BYTES + 7}
    assert world.counted.most_under_way <= 16 * PIECE_BYTES


@pytest.mark.parametrize("count", [10, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_a_step_of_a_study_over_them_holds_what_the_benchmark_checks(kind: Kind, count: int) -> None:
    found = fleet.cost(kind, count, 7, Middle(), 10_000)
    assert found.hosts == count and found.in_bytes > count * 10_000


def test_a_recording_that_cannot_be_read_voids_the_step() -> None:
    assert fleet.lost(LABORATORY, 10, 1, "flush", "silent", Middle()) == ""


def test_the_exponent_of_a_cost_is_found_with_its_interval() -> None:
    exact = fleet.exponent([10, 100, 1000], [2 * 10**1.5, 2 * 100**1.5, 2 * 1000**1.5])
    assert (exact.value, exact.low, exact.high) == pytest.approx((1.5, 1.5, 1.5))
    noisy = fleet.exponent([10, 100, 1000, 10_000], [9, 120, 950, 11_000])
    assert noisy.low < noisy.value < noisy.high and noisy.low < 1 < noisy.high


def test_a_level_may_be_more_than_one_driver_takes() -> None:
    _, load = fleet.load_over(Simulated(hosts_of(LABORATORY, 4, 1), Middle()))
    assert load.check_level(4000) == 4000 and load.check_level(2) == 2
    _, many = fleet.load_over(Simulated(hosts_of(LABORATORY, 3000, 1), Middle()))
    assert many.check_level(3000) == 3000
    with pytest.raises(StudyError, match="5000 over 4 drivers gives 1250 to one of them"):
        load.check_level(5000)
    with pytest.raises(StudyError, match="impossible"):
        load.check_level(10.5)
    with pytest.raises(StudyError, match="impossible"):
        load.check_level(0)
