"""How a bulk load goes on: forecast from its windows or from the steps of a run, scored by its later ones."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from loadframe.analysis.following import Followed, Following, by_rates, followed
from loadframe.analysis.size_law import FEWEST
from loadframe.errors import RunError, SampleError
from loadframe.experiments.reading import conclude
from loadframe.experiments.side_by_side import START
from loadframe.model import GrowthForecast, LoadWindow, Memories, Step
from loadframe.prediction import size_forecast
from loadframe.runs.folder import RunFolder

AXIS, CHANGES = "entries", "change_rate"
READS = ("mariadb.pool_reads", "mysql.pool_reads", "postgres.blocks_read")
"""Reads from beyond each database's own memory, 1/s."""


def windows_of_run(run: RunFolder) -> tuple[LoadWindow, ...]:
    """The loads of a run over the axis `entries`. RunError for another axis, and without a finished step."""
    axis = run.declared().load.axis
    if axis != AXIS:
        raise RunError(
            f"{run.path} has the load axis {axis!r}; growth is told from the axis {AXIS!r}",
            remedy="Measure a study whose steps load ever more entries: loadframe case show metadata-index.",
        )
    steps = [step for step in conclude(run).state(START).steps if step.throughput > 0]
    if not steps:
        raise RunError(f"{run.path} has no step of treatment {START!r} that loaded anything", remedy="Measure it.")
    return windows_of_steps(steps)


def following_of_run(run: RunFolder) -> tuple[tuple[Following, ...], Followed]:
    """How each step over the axis `change_rate` followed, and the highest rate that is. RunError for another axis."""
    axis = run.declared().load.axis
    if axis != CHANGES:
        raise RunError(
            f"{run.path} has the load axis {axis!r}; a change log is judged on the axis {CHANGES!r}",
            remedy="Measure a study whose load is a rate of changes.",
        )
    steps = conclude(run).state(START).steps
    following = tuple(by_rates(step.batches, step.level) for step in sorted(steps, key=lambda step: step.level))
    return following, followed(following)


def windows_of_steps(steps: Sequence[Step]) -> tuple[LoadWindow, ...]:
    """Steps as windows of a load: one each where there are enough sizes for a law, else slices of the largest."""
    if len({step.level for step in steps}) >= FEWEST:
        windows = []
        for step in sorted(steps, key=lambda step: step.level):
            seconds = step.level / step.throughput
            rate = next((step.metrics[name] for name in READS if name in step.metrics), None)
            windows.append(LoadWindow(0.0, step.level, seconds, None if rate is None else rate * seconds))
        return tuple(windows)
    most = max(step.level for step in steps)
    return tuple(window for step in steps if step.level == most for window in _slices(step))


def _slices(step: Step) -> list[LoadWindow]:
    """Batches take equal times, so each has entries in proportion to its rate. The time of those without an entry
    belongs to the next one, after the last entry to the last one: a commit took it."""
    seconds, total = step.level / step.throughput / len(step.batches), sum(step.batches)
    windows, before, passed_s = list[LoadWindow](), 0.0, 0.0
    for rate, after in zip(step.batches, accumulate(rate * step.level / total for rate in step.batches), strict=True):
        passed_s += seconds
        if rate > 0 and after > before:
            windows.append(LoadWindow(before, after, passed_s))
            before, passed_s = after, 0.0
    if windows and passed_s > 0:
        windows[-1] = replace(windows[-1], seconds=windows[-1].seconds + passed_s)
    return windows


def forecast_growth(
    windows: Sequence[LoadWindow],
    at: Sequence[float] = (),
    *,
    memories: Memories | None = None,
    up_to: float | None = None,
) -> GrowthForecast:
    """Rate and time at the sizes `at` (entries; default: the load's end, else 2 and 4 times what was seen), from the
    windows up to `up_to`, scored by later ones. SampleError where no window is left."""
    windows = sorted(windows, key=lambda window: (window.after, window.before))
    seen = [window for window in windows if up_to is None or window.after <= up_to]
    if not seen:
        raise SampleError(
            f"the load has no window up to {up_to:,.0f} entries; the first ends at {windows[0].after:,.0f}"
            if windows and up_to is not None
            else "a load without windows tells nothing",
            remedy="Choose a higher --up-to.",
        )
    if up_to is not None and not at and windows[-1].after > seen[-1].after:
        at = [windows[-1].after]
    return size_forecast.score(size_forecast.forecast(seen, at, memories), windows)
