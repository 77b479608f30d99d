"""CSV loads: a row whenever a loader noted how far it was, as entries,seconds and perhaps reads, all counted from 0."""

from __future__ import annotations

from itertools import pairwise

from loadframe.errors import SampleError
from loadframe.formats.csv_text import Row, check_cells, header, measured, name_of, read_text, rows
from loadframe.formats.plain_numbers import plausible
from loadframe.model import LoadWindow
from loadframe.progress import counted

OF_LOADS = ("entries", "seconds", "reads")
NAME_ENTRIES = (
    "The first line names the columns: entries,seconds[,reads]; entries in the database, seconds since the load "
    "began, pages that were read from beyond the database's memory so far."
)
FEWEST_ROWS = 2
MOST_ROWS = 200_000


def read_load(place: str) -> tuple[LoadWindow, ...]:
    """The windows of a load in a file, or on standard input for "-". SampleError names the line and the value that is
    wrong."""
    return parse_load(read_text(place, remedy="Give a CSV file of entries,seconds[,reads]."), name_of(place))


def parse_load(text: str, name: str) -> tuple[LoadWindow, ...]:
    """The windows of a load in CSV text: what happened from each row to the next one with more entries. The load begins
    at 0 entries and 0 s unless the first row says otherwise. SampleError for what is no load."""
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
    points = [_point(names, row) for row in body]
    for (before, after), row in zip(pairwise(points), body[1:], strict=True):
        _check(before, after, row)
    kept = [one for number, one in enumerate(points) if number == 0 or one[0] > points[number - 1][0]]
    if len(kept) < FEWEST_ROWS:
        raise SampleError(f"{name}: entries is {points[0][0]:g} in every row", remedy="Note a load while it goes on.")
    if kept[0][0] > 0 and kept[0][1] > 0:
        kept.insert(0, (0.0, 0.0, 0.0 if kept[0][2] is not None else None))
    return tuple(
        LoadWindow(at, then, until_s - since_s, None if read is None or reads is None else reads - read)
        for (at, since_s, read), (then, until_s, reads) in pairwise(kept)
    )


Point = tuple[float, float, float | None]


def _point(names: list[str], row: Row) -> Point:
    found = {
        column: measured(column, cell, row, plausible, "A count or a time, 0 or more.")
        for column, cell in zip(names, row.cells, strict=True)
    }
    return found["entries"], found["seconds"], found.get("reads")


def _check(before: Point, after: Point, row: Row) -> None:
    """A row with as many entries as the one before is none of its own: a loader that notes how far it is each second
    stands still while a transaction is committed."""
    for column, first, last in zip(OF_LOADS, before, after, strict=True):
        if first is None or last is None:
            continue
        if last < first or (column == "seconds" and last == first):
            raise SampleError(
                f"{row.where}: {column} is {last:g} after {first:g}",
                remedy="Each row has more seconds than the one before, and at least as many entries and reads.",
            )
