"""The loads of a run: one window a step, or the slices of the largest load."""

from __future__ import annotations

import pytest

from loadframe.model import Latency, Step
from loadframe_watch.growth.loads import windows_of_steps


def step(level: float, throughput: float, *batches: float, reads: float | None = None) -> Step:
    return Step(
        number=1, round=1, block=1, treatment="A", level=level, started_s=0.0, ended_s=1.0, window_start_s=0.0,
        window_end_s=1.0, requests=int(level), errors=0, throughput=throughput, batches=batches or (throughput,),
        latency=Latency(1.0, 0.9, 2.0, 3.0, 40.0), waiting_share=0.0, operations=(),
        metrics={} if reads is None else {"mariadb.pool_reads": reads},
    )  # fmt: skip


def test_steps_of_several_sizes_are_a_load_each_with_its_reads() -> None:
    steps = [step(1000.0 * n, 500.0, reads=10.0) for n in (8, 7, 6, 5, 4, 3, 2, 1)]
    windows = windows_of_steps(steps)
    assert [(one.before, one.after) for one in windows] == [(0, 1000.0 * n) for n in range(1, 9)]
    assert [one.seconds for one in windows] == pytest.approx([2.0 * n for n in range(1, 9)])
    assert windows[0].reads == pytest.approx(20)


def test_few_steps_give_the_slices_of_the_largest_load() -> None:
    windows = windows_of_steps([step(1000.0, 100.0), step(6000.0, 2000.0, 3000.0, 2000.0, 1000.0)])
    assert [(one.before, one.after) for one in windows] == [(0, 3000), (3000, 5000), (5000, 6000)]
    assert [one.seconds for one in windows] == pytest.approx([1.0, 1.0, 1.0])


def test_sizes_that_were_taken_several_times_are_no_more_sizes() -> None:
    steps = [step(1000.0 * 3**n, 500.0, 700.0, 300.0) for n in range(4) for _ in range(2)]
    windows = windows_of_steps(steps)
    assert [one.after for one in windows] == pytest.approx([18_900, 27_000] * 2)


def test_the_time_of_a_slice_in_which_nothing_came_is_that_of_the_next_entries() -> None:
    """A commit that took a whole slice had taken no time: the load was said to be faster than it was."""
    windows = windows_of_steps([step(6000.0, 1000.0, 0.0, 2000.0, 0.0, 1000.0, 3000.0, 0.0)])
    assert [(one.before, one.after) for one in windows] == [(0, 2000), (2000, 3000), (3000, 6000)]
    assert [one.seconds for one in windows] == pytest.approx([2.0, 2.0, 2.0])
