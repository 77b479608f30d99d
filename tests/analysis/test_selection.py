"""Disturbed steps do not count where there are enough others, and are all there is where there are not. What all steps
of a state have at a load is an effect of these, and disturbs none of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from loadframe.analysis.selection import select


@dataclass(frozen=True)
class Taken:
    level: float
    flags: tuple[str, ...] = ()
    window_start_s: float = 0.2
    started_s: float = 0.0
    window_end_s: float = 1.2
    treatment: str = "A"
    metrics: Mapping[str, float] = field(default_factory=dict)
    number: int = 0
    purpose: str = "curve"

    @property
    def counts(self) -> bool:
        return self.purpose != "warming" and "too-few" not in self.flags


def chosen(steps: list[Any]) -> list[Any]:
    return select(steps).steps


def test_at_each_level_by_itself() -> None:
    steps: list[Any] = [
        *(Taken(1), Taken(1, ("steal",)), Taken(1, ("errors",))),
        *(Taken(2), Taken(2, ("stranger",)), Taken(2, ("steal", "not-settled"))),
        *(Taken(4, ("clock-step",)), Taken(4, ("frequency",))),
    ]
    assert chosen(steps) == [steps[0], *steps[2:5], *steps[6:]]
    assert chosen([]) == []


def test_steps_whose_warm_up_had_not_ended_do_not_count_where_others_have_settled() -> None:
    """They are too low, and blocks do not make that up."""
    steps: list[Any] = [
        *(Taken(1, ("not-settled",)), Taken(1), Taken(1, ("not-settled",)), Taken(1)),
        *(Taken(2, ("not-settled",)), Taken(2, ("not-settled",)), Taken(2)),
    ]
    assert chosen(steps) == [steps[1], *steps[3:]]


def test_where_longer_warm_ups_were_given_the_steps_with_them_count() -> None:
    """A step whose noise hides that it climbs is as low as one that shows it."""
    long = Taken(1, window_start_s=2.4, window_end_s=3.4)
    steps: list[Any] = [Taken(1), long, Taken(1), long, Taken(2), Taken(2, window_start_s=2.4, window_end_s=3.4)]
    assert chosen(steps) == [long, long, *steps[4:]]


def stolen(*shares: float, level: float = 1.0) -> list[Any]:
    flags = [("steal",) if share > 0.1 else () for share in shares]
    return [Taken(level, flag, metrics={"system.cpu.steal": share}) for flag, share in zip(flags, shares, strict=True)]


def test_what_every_step_of_a_state_has_at_a_load_disturbs_none_of_them() -> None:
    """The hypervisor's threads that read for the target: two of five steps happen to stay below the threshold."""
    steps = stolen(0.16, 0.147, 0.135, 0.083, 0.08)
    assert chosen([*stolen(0.0, 0.01, 0.0, level=2.0), *steps])[3:] == steps


def test_a_neighbour_that_comes_and_goes_beside_an_effect_is_left_out() -> None:
    steps = stolen(0.14, 0.42, 0.15, 0.13)
    assert chosen(steps) == [steps[0], *steps[2:]]
