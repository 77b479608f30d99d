"""On simulated pipelines the stage that limits is the one that more workers help most."""

from __future__ import annotations

from dataclasses import replace

import stages
from loadframe_pipelines.families import derived
from loadframe_pipelines.stages import Limiting, Stage, limiting, stages_in


def test_the_stage_that_is_named_is_the_one_that_more_workers_help() -> None:
    """More of them, and the rules of thumb: benchmarks/stages.py."""
    found = stages.score(6, seed=1)
    assert found["ours"] == {"right": 6}
    assert found["longest queue"].get("right", 0) < 6
    assert found["longest operation"].get("right", 0) < 6


def test_a_stage_that_takes_all_that_waits_keeps_up_however_busy_it_is() -> None:
    """Seen on a real pipeline: 200 entries a second come, and each operation of up to 50 takes the 5 that have come
    meanwhile; it is at work all the time, and would take 10 of them as fast."""
    read = Stage("READ", busy=0.99, idle=0.0, blocked=0.0, workers=1, batch=1, waiting=0)
    stat = Stage("STAT", busy=0.4, idle=0.6, blocked=0.0, workers=2, batch=1, waiting=0.1, room=0.0)
    apply = Stage("APPLY", busy=0.995, idle=0.0, blocked=0.0, workers=1, batch=5, waiting=2.6, room=0.01)
    assert limiting([read, stat, apply]) == Limiting("stage", 0, ())
    slow = Stage("READ", busy=0.5, idle=0.5, blocked=0.0, workers=1, batch=1, waiting=0)
    told = limiting([slow, stat, apply])
    assert isinstance(told, str) and "each operation takes all entries that wait" in told
    full = Stage("APPLY", busy=0.995, idle=0.0, blocked=0.0, workers=1, batch=50, waiting=480, room=0.96)
    assert limiting([read, stat, full]) == Limiting("stage", 2, ("queue",), also=0)


def test_a_queue_that_each_operation_empties_grows_by_chance_alone() -> None:
    """Seen on a real pipeline: WRITE passes on 500 a second, and ACK acknowledges in 50 ms all that have come, 27 of
    them. How many wait at both ends of a window is chance; operations are few, so that it is a large part of these."""
    read = Stage("READ", busy=0.5, idle=0.0, blocked=0.5, workers=2, batch=1)
    write = Stage(
        "WRITE", busy=0.99, idle=0.0, blocked=0.0, workers=2, batch=1, waiting=60, room=0.9, done=500, entries=500
    )
    ack = Stage(
        "ACK", busy=1.0, idle=0.0, blocked=0.0, workers=1, batch=27, waiting=14, growth=13, room=0.003, done=18.5,
        entries=500,
    )  # fmt: skip
    assert limiting([read, write, ack]) == Limiting("stage", 1, ("queue", "before"))
    batches = replace(ack, waiting=60, growth=13)
    assert limiting([read, write, batches]) == Limiting("stage", 2, ("queue", "before"), also=1), "it really fills"


def test_times_in_another_unit_name_no_stage() -> None:
    """All stages wait for entries, and milliseconds are printed as seconds: all would seem to be at work."""

    def told(name: str, busy: float, unit: float) -> Stage:
        own = {"busy_s": busy * unit, "idle_s": (2 - busy) * unit, "blocked_s": 0.0, "workers": 2.0, "waiting": 0.0}
        metrics = {f"pipeline.{name}.{end}": value for end, value in own.items()}
        (stage,) = stages_in({**metrics, **derived(metrics)})
        return stage

    assert limiting([told("READ", 0.2, 1), told("WRITE", 0.1, 1)]) == Limiting("source", 0)
    wrong = limiting([told("READ", 0.2, 1000), told("WRITE", 0.1, 1000)])
    assert isinstance(wrong, str) and "READ reports more worker-seconds in a second than it has workers" in wrong


def test_a_stage_at_work_without_workers_is_no_answer() -> None:
    read = Stage("READ", busy=0.1, idle=0.0, blocked=0.9, workers=2, spent=2)
    apply = Stage("APPLY", busy=1.0, idle=0.0, blocked=0.0, workers=0, waiting=10, room=1.0, spent=2)
    assert isinstance(limiting([read, apply]), str)
    ends_late = replace(apply, workers=2, spent=3)
    assert limiting([read, ends_late]) == Limiting("stage", 1, ("queue", "before")), "operations count as they end"
