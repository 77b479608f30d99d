"""CSV in time order: a column of times, a load, and what was seen at each moment; empty cells are missing. Also what
`pmrep -o csv` of Performance Co-Pilot writes: its first column is Time, its others are metrics by name."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise

from loadframe.errors import SampleError
from loadframe.formats.csv_tables import TIMES, Row, check_cells, check_commas, check_once, header, rows
from loadframe.formats.plain_numbers import finite
from loadframe.progress import counted
from loadframe_watch.observed.records import ObservedMapping
from loadframe_watch.observed.series import MOST_CELLS, MOST_ROWS, MOST_SERIES, Series, Table

MISSING = frozenset({"", "nan", "na", "n/a", "null", "none", "-"})
MILLISECONDS_FROM = 1e11
"""Seconds since 1970 have ten digits for centuries to come: larger numbers count milliseconds."""
FINER = ((MILLISECONDS_FROM, 1e3), (1e14, 1e6), (1e17, 1e9))
"""Numbers above these are times in milliseconds, microseconds or nanoseconds, with the units in a second."""
NO_ZONE = "The times name no time zone, and were taken as UTC."
SUMMER_S = (1800, 3600)
REMEDY = (
    "The first line names the columns: time,load[,throughput][,response_s or latency_p95_ms][,util.NAME...]; other "
    "names are said with --load, --throughput, --response and --use."
)
RESPONSES = (("response_s", 1.0, "mean"), ("response_ms", 1000.0, "mean"), ("latency_p95_ms", 1000.0, "p95"))
"""Columns of response times: name, parts of a second, which statistic of the window's response times it is."""


def parse_table(text: str, name: str) -> Table:
    """Rows without times are one second apart, in file order. Raises SampleError, naming line and value."""
    lines = rows(text, name)
    if not lines:
        raise SampleError(f"{name} is empty", remedy=REMEDY)
    names, body = list(lines[0].cells), lines[1:]
    lower = header(lines)
    check_commas(lower, name)
    check_once(lower, name)
    if not body:
        raise SampleError(f"{name} has no rows below its first line", remedy="Export a longer range.")
    if len(body) > MOST_ROWS or len(names) > MOST_SERIES or len(names) * len(body) > MOST_CELLS:
        raise SampleError(
            f"{name} has {counted(len(body), 'row')} of {counted(len(names), 'column')}; at most "
            f"{MOST_ROWS:,} rows, {MOST_SERIES:,} columns and {MOST_CELLS:,} cells are read",
            remedy="Choose a longer step, or fewer columns.",
        )
    at = next((index for index, column in enumerate(lower) if column in TIMES), None)
    check_cells(names, body, "Give every row a cell for each column; leave it empty where the value is missing.")
    whole = len(body)
    body = body if at is None else [row for row in body if row.cells[at].lower() not in MISSING]
    if not body:
        raise SampleError(f"{name} has no row with a time", remedy=REMEDY)
    times = [float(index) for index in range(len(body))] if at is None else [_time(row, at, lower[at]) for row in body]
    order = sorted(range(len(body)), key=times.__getitem__)
    kept = [index for place, index in enumerate(order) if place == 0 or times[index] > times[order[place - 1]]]
    ordered = tuple(times[index] for index in kept)
    series = tuple(
        Series(_plain(names[column]), {}, ordered, tuple(_cell(body[index], column, names[column]) for index in kept))
        for column in range(len(names))
        if column != at and names[column]
    )
    notes = []
    if at is None:
        notes.append("There is no column of times: the rows were taken as equal steps in the order of the file.")
    elif zoneless(body[0].cells[at]):
        notes.append(NO_ZONE)
    if order != sorted(order):
        notes.append("The rows were not in time order, and were sorted.")
    if len(kept) < len(body):
        notes.append(f"{counted(len(body) - len(kept), 'row')} with the time of another one left out.")
    if len(body) < whole:
        notes.append(f"{counted(whole - len(body), 'row')} without a time left out.")
    if NO_ZONE in notes:
        notes += _set_back(times)
    return Table(name, series, _usual(lower), _servers(series, name), tuple(notes))


def _plain(name: str) -> str:
    """Our own columns in lower case; others as they are."""
    lower = name.lower()
    known = lower in ("load", "throughput", *(row[0] for row in RESPONSES))
    return lower if known or lower.startswith(("util.", "use.", "servers.")) else name


def _usual(lower: Sequence[str]) -> ObservedMapping:
    response = next((row for row in RESPONSES if row[0] in lower), None)
    return ObservedMapping(
        load="load" if "load" in lower else None,
        throughput="throughput" if "throughput" in lower else None,
        response=None if response is None else f"{response[0]} / {response[1]:g}",
        use={
            column.partition(".")[2]: column
            for column in lower
            if column.startswith(("util.", "use.")) and column.partition(".")[2]
        },
        response_is="p95" if response is not None and response[2] == "p95" else "mean",
    )


def _servers(series: Sequence[Series], name: str) -> dict[str, float]:
    servers: dict[str, float] = {}
    for column in series:
        if not column.name.startswith("servers."):
            continue
        counts = {value for value in column.values if math.isfinite(value)}
        if len(counts) > 1 or any(value < 1 for value in counts):
            raise SampleError(
                f"{name}: {column.name[:100]} is {min(counts):g} to {max(counts):g}",
                remedy="A count of 1 or more, the same in every row; split the file where it changes.",
            )
        servers |= {column.name.partition(".")[2]: value for value in counts}
    return servers


def _set_back(times: list[float]) -> tuple[str, ...]:
    """A note if times without a zone repeat one hour, or half of one: the end of daylight saving time."""
    back = [before for before, after in pairwise(times) if after < before]
    if len(back) != 1:
        return ()
    (last,) = back
    again = times[times.index(last) + 1]
    by = last - again + min((b - a for a, b in pairwise(times) if b > a), default=0.0)
    if round(by) not in SUMMER_S:
        return ()
    hour = datetime.fromtimestamp(again, UTC).strftime("%Y-%m-%d %H:%M")
    return (
        f"The times from {hour} on are there twice, as where summer time ends: these rows were mixed, and what is said "
        "of hours is off by one before or after. Write the times with their zone, or in UTC.",
    )


def _cell(row: Row, column: int, name: str) -> float:
    """A word is missing data in others' columns, and an error in ours."""
    text, lower = row.cells[column], name.lower()
    value = finite(text)
    if value is not None:
        return value
    missing = text.lower() in MISSING or text.lower().lstrip("+-") in ("inf", "infinity")
    if not missing and (lower in ("load", "throughput") or lower.startswith("util.")):
        raise SampleError(
            f"{row.where}: {name[:60]} is {text[:100]!r}, not a number",
            remedy="Write numbers as 1234.5, and leave a cell empty where the value is missing.",
        )
    return math.nan


def _time(row: Row, column: int, name: str) -> float:
    text = row.cells[column]
    value = finite(text)
    if value is None:
        value = moment(text)
    if value is None:
        raise SampleError(
            f"{row.where}: {name} is {text[:60]!r}, not a time",
            remedy="Write seconds (milli-, micro-, nanoseconds) since 1970, seconds from the start, or "
            "2026-11-25T04:30:00Z.",
        )
    parts = next((parts for least, parts in reversed(FINER) if abs(value) >= least), 1.0)
    return value / (1e3 if name.endswith("_ms") else parts)


def moment(text: str) -> float | None:
    """Seconds since 1970 of a date and time in ISO 8601, UTC unless it names a zone; None for other text."""
    try:
        date = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()


def zoneless(text: str) -> bool:
    """Whether it is a date and time of an unknown zone, as pmrep writes them."""
    try:
        return finite(text) is None and datetime.fromisoformat(text.strip()).tzinfo is None
    except ValueError:
        return False
