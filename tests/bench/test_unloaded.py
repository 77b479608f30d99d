"""More requests at a time, or faster ones: the response time at the lowest level, of both states in the same blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, repeat

import pytest

import decoys
from loadframe.experiments.fresh import Unloaded, of_steps
from loadframe.model import Latency, Step, Verdict
from simulated import step

TWICE = Verdict(2.0, 1.9, 2.1, "better", 3, "")


def slower(each: float) -> Iterator[float]:
    """A machine that does so much less, in logarithms, with every step."""
    return (-each * number for number in count())


@pytest.mark.parametrize(("per_request", "status"), [(False, "confirmed"), (True, "helped")])
@pytest.mark.parametrize("noise", [lambda: repeat(0.0), lambda: slower(0.015)])
def test_faster_requests_are_no_more_at_a_time_on_a_machine_that_becomes_slower(
    noise: Callable[[], Iterator[float]], per_request: bool, status: str
) -> None:
    found = decoys.investigated(noise(), 1, 2.0, "600s", per_request=per_request)
    assert "workers" in found.kept
    assert dict(found.statuses)["service.parallelism"] == status


def at_lowest(before_ms: list[float], after_ms: list[float]) -> list[Step]:
    return [
        step(1.0, 50.0, block=block, treatment=treatment, latency=Latency(mean, mean, mean, mean, mean))
        for treatment, means in (("A", before_ms), ("B", after_ms))
        for block, mean in enumerate(means, 1)
    ]


@pytest.mark.parametrize(
    ("before_ms", "after_ms", "shown"),
    [
        ([20.0, 20.4, 19.8], [20.1, 20.2, 19.9], True),
        ([20.0, 20.4, 19.8], [10.1, 10.2, 9.9], False),
        ([20.0, 40.0, 20.0], [20.0, 12.0, 30.0], False),
        ([20.0, 30.0, 24.0], [20.2, 29.7, 24.2], True),
        ([20.0], [20.0], False),
    ],
    ids=["as long", "half as long", "not known", "loud on both sides alike", "one block"],
)
def test_more_at_a_time_are_shown_beyond_what_both_factors_are_known_to(
    before_ms: list[float], after_ms: list[float], shown: bool
) -> None:
    assert of_steps(at_lowest(before_ms, after_ms), "A", "B").shows_more(TWICE) == shown


def test_disturbed_steps_do_not_count_even_if_no_two_blocks_are_left() -> None:
    steps = at_lowest([20.0, 20.2, 90.0], [90.0, 20.1, 19.9])
    found = of_steps([replace(one, flags=("steal",)) if one.latency.mean_ms > 80 else one for one in steps], "A", "B")
    assert found.responses_s == {"A": pytest.approx(0.0201), "B": pytest.approx(0.02)}
    assert found.half < 0.05 and found.shows_more(TWICE)
    assert not of_steps(steps, "A", "B").shows_more(TWICE)


def test_without_a_response_time_nothing_is_shown() -> None:
    found = of_steps(at_lowest([0.0, 0.0], [20.0, 20.0]), "A", "B")
    assert not found.responses_s and not found.shows_more(TWICE)
    assert not Unloaded().shows_more(TWICE)
    assert not Unloaded(half=0.0).shows_more(Verdict(2.0, 0.0, math.inf, "better", 3, ""))
