"""On simulated pipelines the stage that limits is the one that more workers help most."""

from __future__ import annotations

import stages


def test_the_stage_that_is_named_is_the_one_that_more_workers_help() -> None:
    """More of them, and the rules of thumb: benchmarks/stages.py."""
    found = stages.score(6, seed=1)
    assert found["ours"] == {"right": 6}
    assert found["longest queue"].get("right", 0) < 6
    assert found["longest operation"].get("right", 0) < 6
