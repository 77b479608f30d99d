"""How often sockets are looked at: each window of a step has a look, for a bounded share of one CPU."""

from __future__ import annotations

import pytest

from loadframe.recording.socket_sampling import CPU_SHARE, EVERY_S, LOADED_SHARE, LONGEST_S, LookSchedule

TICK_S = 0.1
STEPS = 20
BETWEEN_S = 0.25
"""From the end of a step to the next one's beginning."""


def looks_of(
    schedule: LookSchedule, until_s: float, spent_s: float, steps: list[tuple[float, float, float]]
) -> list[float]:
    """When a recorder with a tick every 0.1 s, each a little late, looks. steps: begin, warm-up and window."""
    begins, ends = list(steps), [sum(step) + BETWEEN_S / 2 for step in steps]
    found = []
    for tick in range(round(until_s / TICK_S)):
        now_s = tick * TICK_S + 0.001 * (tick % 3)
        if ends and ends[0] <= now_s:
            ends.pop(0)
            schedule.end_step()
        if begins and begins[0][0] <= now_s:
            schedule.begin_step(*begins.pop(0))
        if schedule.is_due(now_s):
            schedule.looked(now_s, spent_s)
            found.append(now_s)
    return found


@pytest.mark.parametrize("window_s", [0.3, 0.42, 0.5, 0.75, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("lag_s", [0.0, 0.07, 0.11, 0.19])
def test_each_window_of_a_step_has_a_look(window_s: float, lag_s: float) -> None:
    """2.5 ms of CPU: without a step there would be 1.7 s from one to the next. The driver begins late by some time that
    is not known before."""
    warmup_s = max(0.15, 0.2 * window_s)
    length_s = warmup_s + window_s + lag_s + BETWEEN_S
    steps = [(1.0 + number * 1.013 * length_s, warmup_s, window_s) for number in range(STEPS)]
    found = looks_of(LookSchedule(TICK_S), 1.0 + STEPS * 1.013 * length_s, 0.0025, steps)
    for at_s, _, _ in steps:
        begin_s = at_s + warmup_s + lag_s
        assert any(begin_s <= look <= begin_s + window_s for look in found), begin_s


def test_cheap_looks_come_twice_in_a_window() -> None:
    steps = [(1.0 + number, 0.15, 0.5) for number in range(STEPS)]
    found = looks_of(LookSchedule(TICK_S), 1.0 + STEPS, 0.0005, steps)
    for at_s, _, _ in steps:
        assert sum(at_s + 0.15 <= look <= at_s + 0.7 for look in found) >= 2


@pytest.mark.parametrize("spent_s", [0.0002, 0.001, 0.0025, 0.004, 0.02, 0.2])
def test_looks_cost_a_bounded_share_of_one_cpu(spent_s: float) -> None:
    """Within steps one percent; where not even one look for each window is in that, as without steps."""
    alone = looks_of(LookSchedule(TICK_S), 100.0, spent_s, [])
    assert len(alone) * spent_s <= 100.0 * max(1.1 * CPU_SHARE, spent_s / LONGEST_S) + 2 * spent_s
    steps = [(1.0 + number, 0.15, 0.5) for number in range(99)]
    loaded = looks_of(LookSchedule(TICK_S), 100.0, spent_s, steps)
    most = LOADED_SHARE if spent_s <= 0.5 * LOADED_SHARE else max(1.1 * CPU_SHARE, spent_s / LONGEST_S)
    assert len(loaded) * spent_s <= 100.0 * most + 2 * spent_s


def test_a_look_that_was_interrupted_does_not_cost_the_windows_after_it() -> None:
    schedule = LookSchedule(TICK_S)
    for place, spent_s in enumerate((0.001, 0.001, 0.05)):
        schedule.looked(float(place), spent_s)
    schedule.begin_step(3.0, 0.15, 0.5)
    assert schedule.is_due(3.6)


def test_no_look_is_spent_on_a_warm_up() -> None:
    schedule = LookSchedule(TICK_S)
    schedule.looked(0.0, 0.001)
    schedule.begin_step(10.0, 2.0, 1.0)
    assert not schedule.is_due(12.0)
    assert schedule.is_due(12.5)


def test_between_steps_looks_are_as_far_apart_as_without_them() -> None:
    schedule = LookSchedule(TICK_S)
    schedule.begin_step(0.0, 0.0, 0.3)
    schedule.looked(0.2, 0.0001)
    assert schedule.is_due(0.4)
    schedule.end_step()
    assert not schedule.is_due(0.2 + EVERY_S - TICK_S)
    assert schedule.is_due(0.2 + EVERY_S)
