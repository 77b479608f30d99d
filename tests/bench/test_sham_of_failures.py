"""What a restart alone says of a change that was kept because failures ended: nothing, where that may be chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from loadframe.analysis.comparison import verdict_at_end
from loadframe.experiments.controls import of_failures
from loadframe.model import Step

StepMaker = Callable[..., Step]


@pytest.mark.parametrize(
    ("before", "after", "holds", "because"),
    [
        ((100, 100, 100), (100, 100, 100), True, "does not end"),
        ((100, 100, 100), (0, 0, 0), False, "ends the failures, too"),
        ((40, 0, 0), (0, 0, 0), None, "may be chance"),
        ((0, 1, 0), (0, 0, 0), None, "shows nothing"),
    ],
)
def test_a_restart_alone_ends_failures_or_not_or_cannot_be_told(
    make_step: StepMaker, before: Sequence[int], after: Sequence[int], holds: bool | None, because: str
) -> None:
    """Failures of 1,000 requests in each of three blocks, with the same throughput."""
    one, two = (
        [make_step(4, 900.0, block=block, requests=900, errors=failed) for block, failed in enumerate(each, 1)]
        for each in (before, after)
    )
    told, why = of_failures(verdict_at_end({4: [900.0] * 3}, {4: [900.0] * 3}), one, two)
    assert (told, because in why) == (holds, True), why
