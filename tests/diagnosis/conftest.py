"""Steps and limits made by hand, for reasoning without a machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from loadframe.model import Latency, Step

StepMaker = Callable[..., Step]


@pytest.fixture
def make_step() -> StepMaker:
    """A step at a level with a throughput and some metrics."""
    numbers = iter(range(1, 10_000))

    def make(
        level: float, throughput: float, metrics: Mapping[str, float], *, block: int = 1, treatment: str = "A"
    ) -> Step:
        return Step(
            number=next(numbers),
            round=1,
            block=block,
            treatment=treatment,
            level=level,
            started_s=0.0,
            ended_s=1.0,
            window_start_s=0.0,
            window_end_s=1.0,
            requests=int(throughput),
            errors=0,
            throughput=throughput,
            batches=(throughput,),
            latency=Latency(1.0, 1.0, 2.0, 3.0, 4.0),
            waiting_share=0.0,
            operations=(),
            metrics=metrics,
        )

    return make
