"""Loads of a database as windows, from a CSV file or from the steps of a run; how they go on, and whether a run's
change log is followed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from loadframe.errors import RunError, SampleError
from loadframe.experiments.reading import conclude
from loadframe.experiments.side_by_side import START
from loadframe.formats.csv_tables import Row, check_cells, header, name_of, number, read_text, rows
from loadframe.formats.plain_numbers import plausible
from loadframe.model import Step
from loadframe.progress import counted
from loadframe.runs.folder import RunFolder
from loadframe_watch.growth import size_forecast
from loadframe_watch.growth.lag import Followed, Following, by_rates, followed
from loadframe_watch.growth.size_forecast import UNKNOWN_MEMORIES, GrowthForecast
from loadframe_watch.growth.size_law import FEWEST, LoadWindow

OF_LOADS = ("entries", "seconds", "reads")
NAME_ENTRIES = (
    "The first line names the columns: entries,seconds[,reads]; entries in the database, seconds since the load "
    "began, pages that were read from beyond the database's memory so far."
)
FEWEST_ROWS = 2
MOST_ROWS = 200_000


def read_load(place: str) -> tuple[LoadWindow, ...]:
    """place: a path, "-" for standard input. SampleError, naming the wrong line and value."""
    return parse_load(read_text(place, remedy="Give a CSV file of entries,seconds[,reads]."), name_of(place))


def parse_load(text: str, name: str) -> tuple[LoadWindow, ...]:
    """Windows from each row to the next one with more entries. The load begins at 0 entries and 0 s unless the first
    row says otherwise. SampleError."""
    lines = rows(text, name)
    names = header(lines)
    for column in names:
        if column not in OF_LOADS or names.count(column) > 1:
            raise SampleError(
                f"{name}, line 1 has the column {column[:100]!r} twice, or it is unknown", remedy=NAME_ENTRIES
            )
    if "entries" not in names or "seconds" not in names:
        raise SampleError(f"{name}, line 1 must name entries and seconds", remedy=NAME_ENTRIES)
    body = lines[1:]
    if not FEWEST_ROWS <= len(body) <= MOST_ROWS:
        raise SampleError(
            f"{name} has {counted(len(body), 'row')}; a load has {FEWEST_ROWS} to {MOST_ROWS:,}",
            remedy="Note entries and seconds several times while the load runs.",
        )
    check_cells(names, body)
    points: list[Point] = []
    for row in body:
        by_column: dict[str, float] = {}
        for column, cell in zip(names, row.cells, strict=True):
            by_column[column] = number(cell, f"{row.where}: {column}")
            if not plausible(by_column[column]):
                raise SampleError(f"{row.where}: {column} is {cell[:100]}", remedy="A count or a time, 0 or more.")
        points.append((by_column["entries"], by_column["seconds"], by_column.get("reads")))
    for (before, after), row in zip(pairwise(points), body[1:], strict=True):
        _check(before, after, row)
    kept = [point for number, point in enumerate(points) if number == 0 or point[0] > points[number - 1][0]]
    if len(kept) < FEWEST_ROWS:
        raise SampleError(f"{name}: entries is {points[0][0]:g} in every row", remedy="Note a load while it goes on.")
    if kept[0][0] > 0 and kept[0][1] > 0:
        kept.insert(0, (0.0, 0.0, 0.0 if kept[0][2] is not None else None))
    return tuple(
        LoadWindow(at, then, until_s - since_s, None if read is None or reads is None else reads - read)
        for (at, since_s, read), (then, until_s, reads) in pairwise(kept)
    )


Point = tuple[float, float, float | None]


def _check(before: Point, after: Point, row: Row) -> None:
    """Entries may stand still: a loader that notes its progress each second shows one count while a commit runs."""
    for column, first, last in zip(OF_LOADS, before, after, strict=True):
        if first is None or last is None:
            continue
        if last < first or (column == "seconds" and last == first):
            raise SampleError(
                f"{row.where}: {column} is {last:g} after {first:g}",
                remedy="Each row has more seconds than the one before, and at least as many entries and reads.",
            )


AXIS, CHANGES = "entries", "change_rate"
READS = ("mariadb.pool_reads", "mysql.pool_reads", "postgres.blocks_read")
"""Reads from beyond each database's own memory, 1/s."""


def windows_of_run(run: RunFolder) -> tuple[LoadWindow, ...]:
    """A run's loads over the axis `entries`. RunError for another axis, and without a finished step."""
    remedy = "Measure a study whose steps load ever more entries: loadframe case show metadata-index."
    _check_axis(run, AXIS, "growth is read from", remedy)
    steps = [step for step in conclude(run).state(START).steps if step.throughput > 0]
    if not steps:
        raise RunError(f"{run.path} has no step of treatment {START!r} that loaded anything", remedy="Measure it.")
    return windows_of_steps(steps)


def following_of_run(run: RunFolder) -> tuple[tuple[Following, ...], Followed]:
    """Each step over the axis `change_rate`, and the highest rate that is followed. RunError for another axis."""
    _check_axis(run, CHANGES, "a change log is judged on", "Measure a study whose load is a rate of changes.")
    steps = conclude(run).state(START).steps
    following = tuple(by_rates(step.batches, step.level) for step in sorted(steps, key=lambda step: step.level))
    return following, followed(following)


def _check_axis(run: RunFolder, wanted: str, what: str, remedy: str) -> None:
    if (axis := run.declared().load.axis) != wanted:
        raise RunError(f"{run.path} has the load axis {axis!r}; {what} the axis {wanted!r}", remedy=remedy)


def windows_of_steps(steps: Sequence[Step]) -> tuple[LoadWindow, ...]:
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
    memories: Mapping[str, float] = UNKNOWN_MEMORIES,
    up_to: float | None = None,
) -> GrowthForecast:
    """Rate and time at the sizes `at` (entries; default: the load's end, else 2 and 4 times what was seen), from the
    windows up to `up_to`, scored by later ones. memories: as `forecast`. SampleError where no window is left."""
    windows = sorted(windows, key=lambda window: (window.after, window.before))
    seen = [window for window in windows if up_to is None or window.after <= up_to]
    if not seen:
        raise SampleError(
            f"the load has no window up to {up_to:,.0f} entries; the first ends at {windows[0].after:,.0f}"
            if windows and up_to is not None
            else "a load without windows shows nothing",
            remedy="Choose a higher --up-to.",
        )
    if up_to is not None and not at and windows[-1].after > seen[-1].after:
        at = [windows[-1].after]
    return size_forecast.score(size_forecast.forecast(seen, at, memories), windows)
