"""Slower tails are a price of a change, told where the steps show them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loadframe.experiments.proof import tail_price
from loadframe.model import Latency, Step

StepMaker = Callable[..., Step]


def side(make_step: StepMaker, p99_ms: Sequence[float], level: float = 8.0, requests: int = 1000) -> list[Step]:
    return [
        make_step(level, 100.0, {}, block=block, requests=requests, latency=Latency(5.0, 4.0, 9.0, tail, 2 * tail))
        for block, tail in enumerate(p99_ms, start=1)
    ]


def test_a_p99_that_doubles_in_every_block_is_a_price(make_step: StepMaker) -> None:
    before = [*side(make_step, (21, 23, 20)), *side(make_step, (1, 1, 1), level=4.0)]
    after = [*side(make_step, (47, 44, 49)), *side(make_step, (1, 1, 1), level=4.0)]
    said = tail_price(before, after)
    assert said == "the slowest requests wait longer: p99 at level 8 21.3 ms before, 46.6 ms after"
    assert tail_price(after, before) == "", "a shorter one is no price"


def test_a_tail_that_scatters_or_is_hardly_longer_is_none(make_step: StepMaker) -> None:
    assert tail_price(side(make_step, (21, 23, 20)), side(make_step, (20, 90, 25))) == "", "one block of three"
    assert tail_price(side(make_step, (20, 20, 20.1)), side(make_step, (22, 22, 22.1))) == "", "a tenth"
    assert tail_price(side(make_step, (21,)), side(make_step, (47,))) == "", "one block has no spread"
    few = [side(make_step, tails, requests=60) for tails in ((21, 23, 20), (47, 44, 49))]
    assert tail_price(*few) == "", "of 60 requests p99 is the slowest one"
